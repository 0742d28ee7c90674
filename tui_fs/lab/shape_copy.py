"""A copy of the shape of a user's tree: its directories, and how many names are in each.

Names and contents are not copied. The survey reads the tree: it follows no link and enters no
mount. All files of a directory get its mean size and a name of its mean length.
"""

import errno
import math
import os
import stat
import string
from collections.abc import Iterator

from msgspec import Struct

from tui_fs.lab.tree_generators import Directory, Tree, blocks_bytes
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable
from tui_fs.model.units import bytes_iec, count, counted
from tui_fs.survey.runner import SurveyRunner
from tui_fs.survey.table import DirectoryTable

MAX_ENTRIES = 50_000
"""The copy of a larger tree is a share of it."""

MAX_FILE_BYTES = 16 << 20
"""A file gets no more than this."""

_LARGE_SHARE = 20
"""A directory with more than 1/20 of the copied entries is thinned out. Others are copied whole or
left out, which changes the whole by no more than 1/20."""

_DOT_RECORDS_BYTES = 48
_RECORD_OVERHEAD_BYTES = 23
"""A record of getdents64(2): 19 bytes of header, a NUL, and padding to 8 bytes, 3 on average."""

_DIGITS = string.digits + string.ascii_lowercase


class CopiedDirectory(Struct, frozen=True):
    """A directory `level` levels below the tree; it contains the next if that has a higher level.

    Attributes:
        file_name_bytes, file_bytes: of each of its files.
    """

    level: int
    name_bytes: int = 1
    files: int = 0
    file_name_bytes: int = 1
    file_bytes: int = 0


class ShapeCopy(Tree, frozen=True):
    """The shape of a tree, or of a share of it.

    Attributes:
        copied: its directories, each before those in it.
        original_entries: names in the original tree, its own included.
        is_sized: the files get blocks like the originals, reserved only; else they are empty.
    """

    copied: tuple[CopiedDirectory, ...]
    original_entries: int
    is_sized: bool = False

    is_written = False

    @property
    def entries(self) -> int:
        return len(self.copied) + self._files

    @property
    def contents_bytes(self) -> int:
        if not self.is_sized:
            return 0
        return sum(each.files * blocks_bytes(each.file_bytes) for each in self.copied)

    @property
    def words(self) -> str:
        """A description, with the share of the original tree."""
        files = counted(self._files, "empty file", "empty files")
        if self.is_sized:
            files = counted(self._files, "file", "files")
            files = f"{files} ({bytes_iec(self.contents_bytes)})"
        words = f"{files} in {counted(len(self.copied), 'directory', 'directories')}"
        if self.entries < self.original_entries:
            share = f"{100 * self.entries / self.original_entries:.2g} %"
            words += f", {share} of the {count(self.original_entries)} entries there"
        return f"the shape of your own tree: {words}"

    @property
    def _files(self) -> int:
        return sum(directory.files for directory in self.copied)

    def directories(self) -> Iterator[Directory]:
        names_used: list[int] = []  # in each directory on the current path
        for copied in self.copied:
            del names_used[max(1, copied.level) :]
            if names_used:
                names_used[-1] += 1
            name = name_of(names_used[-1] if names_used else 0, copied.name_bytes)
            names_used.append(copied.files)
            yield Directory(copied.level, name, self._files_of(copied))

    def _files_of(self, copied: CopiedDirectory) -> Iterator[tuple[str, int]]:
        file_bytes = copied.file_bytes if self.is_sized else 0
        for number in range(1, copied.files + 1):
            yield name_of(number, copied.file_name_bytes), file_bytes


def name_of(number: int, name_bytes: int) -> str:
    """Return a name of that length, or longer if need be; each number has its own."""
    digits = ""
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits.rjust(name_bytes, "0")


def copy_shape(target: str, *, is_sized: bool = False, max_entries: int = MAX_ENTRIES) -> ShapeCopy:
    """Return the shape of a directory, of a share if it has more than `max_entries`.

    The share is every k-th directory, with those above it; of large directories every k-th file.

    Raises:
        BadInput: it is no directory, or cannot be read.
    """
    try:
        if not stat.S_ISDIR(os.lstat(target).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "it is not a directory")
        runner = SurveyRunner((target,), checks_surroundings=False)
        *_, survey = runner.run()
    except OSError as error:
        raise BadInput(f"{displayable(target)} cannot be surveyed: {error.strerror}.") from error
    entries = 1 + runner.collector.table.entries_below(0)
    copied = tuple(_copied(runner.collector.table, math.ceil(entries / max_entries), max_entries))
    return ShapeCopy(copied, survey.totals.entries, is_sized)


def _copied(table: DirectoryTable, one_in: int, max_entries: int) -> Iterator[CopiedDirectory]:
    """Yield about one in `one_in` entries, and never more than `max_entries`."""
    left = max_entries
    path: list[int] = []  # rows from the tree to the current directory
    copied = 0  # how many of them are copied
    pending, number = [0], -1
    while pending and left > 0:
        row = pending.pop()
        pending += table.children(row)
        number += 1
        level = table.depth[row]
        path[level:] = [row]
        copied = min(copied, level)
        files = table.entries(row) - table.subdirectories[row]
        if one_in > 1 and files > max_entries // _LARGE_SHARE:
            files //= one_in
        elif number % one_in:
            continue
        for above in path[copied : min(level, copied + left)]:
            yield CopiedDirectory(table.depth[above], len(table.name(above)))
            copied, left = copied + 1, left - 1
        if left > 0:
            files = min(files, left - 1)
            yield _copied_directory(table, row, files)
            copied, left = copied + 1, left - 1 - files


def _copied_directory(table: DirectoryTable, row: int, files: int) -> CopiedDirectory:
    names = max(1, table.entries(row))
    others = max(1, names - table.subdirectories[row])
    record_bytes = (table.record_bytes[row] - _DOT_RECORDS_BYTES) / names
    return CopiedDirectory(
        table.depth[row],
        len(table.name(row)),
        files,
        max(1, round(record_bytes - _RECORD_OVERHEAD_BYTES)),
        min(MAX_FILE_BYTES, table.allocated[row] // others),
    )
