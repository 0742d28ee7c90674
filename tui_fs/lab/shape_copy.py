"""A copy of the shape of a person's own tree: how many names, how long, how large, how deep.

Names and contents are not copied. The tree is only looked at: no link is followed, and nothing
that is mounted in it is entered.
"""

import errno
import math
import os
import string
from collections.abc import Iterator
from dataclasses import dataclass

from tui_fs.lab.tree_generators import Builder, Tick, blocks_bytes
from tui_fs.linux.directories import Directory, DirectoryStack, open_directory
from tui_fs.linux.mounts import mounts_below, read_mounts
from tui_fs.linux.pins import pin_of
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable
from tui_fs.model.units import bytes_iec, count, counted

MOST_ENTRIES = 50_000
"""Of a larger tree a share is copied."""

MOST_SEEN = 5_000_000
"""Of a tree that is larger still only the beginning is looked at (half a minute at least)."""

LARGEST_BYTES = 16 << 20
"""A file gets no more than this."""

_LARGE = 20
"""A directory with more than 1/20 of what is copied is thinned out; others are whole or left out,
which changes the whole by no more than that."""

_DIGITS = string.digits + string.ascii_lowercase


@dataclass(frozen=True, slots=True)
class SampledFile:
    """A name that is no directory's: its length and the bytes it occupies."""

    name_bytes: int
    file_bytes: int


@dataclass(frozen=True, slots=True)
class SampledDirectory:
    """A directory so many levels below the tree; the next one of a higher level lies in it."""

    level: int
    name_bytes: int
    files: tuple[SampledFile, ...]


@dataclass(frozen=True, slots=True)
class Sampled:
    """The shape of a tree, or of a share of it.

    Attributes:
        directories: each before those in it.
        seen_entries: names in the tree that was looked at, its own included.
        unreadable: directories that could not be read; they are empty here.
        mounts: directories that something is mounted on; they are empty here.
        is_sized: the files get blocks as there, reserved and not written; else they are empty.
    """

    directories: tuple[SampledDirectory, ...]
    seen_entries: int
    unreadable: int = 0
    mounts: int = 0
    is_sized: bool = False

    @property
    def entries(self) -> int:
        """All names in it, its own included."""
        return len(self.directories) + self._files

    @property
    def contents_bytes(self) -> int:
        """What its files will occupy, in whole blocks."""
        if not self.is_sized:
            return 0
        return sum(blocks_bytes(file.file_bytes) for one in self.directories for file in one.files)

    @property
    def words(self) -> str:
        """What it is, and which share of the tree."""
        files = counted(self._files, "empty file", "empty files")
        if self.is_sized:
            files = counted(self._files, "file", "files")
            files = f"{files} of {bytes_iec(self.contents_bytes)}"
        words = [f"{files} in {counted(len(self.directories), 'directory', 'directories')}"]
        if self.entries < self.seen_entries:
            share = f"{100 * self.entries / self.seen_entries:.2g} %"
            beginning = "first " if self.seen_entries >= MOST_SEEN else ""
            words.append(f"{share} of the {beginning}{count(self.seen_entries)} entries there")
        if self.unreadable:
            unreadable = counted(self.unreadable, "directory", "directories")
            words.append(f"{unreadable} could not be read")
        if self.mounts:
            words.append(f"{counted(self.mounts, 'mount', 'mounts')} not entered")
        return f"the shape of your own tree: {', '.join(words)}"

    @property
    def _files(self) -> int:
        return sum(len(one.files) for one in self.directories)

    def build(self, directory: int, tick: Tick) -> None:
        """Fill an open, empty directory."""
        used: list[int] = []  # names given in each directory on the way down
        with Builder(directory, tick) as builder:
            for one in self.directories:
                while len(used) > max(1, one.level):
                    builder.up()
                    used.pop()
                if used:
                    used[-1] += 1
                    builder.down(name_of(used[-1], one.name_bytes))
                used.append(len(one.files))
                for number, file in enumerate(one.files, 1):
                    file_bytes = file.file_bytes if self.is_sized else 0
                    builder.file(name_of(number, file.name_bytes), file_bytes, is_written=False)
            builder.done()


def name_of(number: int, name_bytes: int) -> str:
    """Return a name of that length, or longer if need be; each number has its own."""
    digits = ""
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits.rjust(name_bytes, "0")


def sample(target: str, *, is_sized: bool = False, most_entries: int = MOST_ENTRIES) -> Sampled:
    """Return the shape of a directory, of a share if it has more than `most_entries`.

    The share is every k-th directory, with those above it; of large directories every k-th file.

    Raises:
        BadInput: it is no directory, or cannot be read.
    """
    try:
        root = open_directory(target)
    except OSError as error:
        is_other = error.errno in (errno.ENOTDIR, errno.ELOOP)
        why = "it is no directory" if is_other else os.strerror(error.errno or 0)
        raise BadInput(f"{displayable(target)} cannot be looked at: {why}.") from error
    try:
        has_mounts = bool(mounts_below(os.path.realpath(target), read_mounts()))
        walk = _Walk(root, has_mounts)
        seen_entries = sum(1 + sum(1 for _ in one.others) for one in walk.directories())
        one_in = math.ceil(seen_entries / most_entries)
        directories = tuple(_taken(_Walk(root, has_mounts), one_in, most_entries))
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise BadInput(f"{displayable(target)} cannot be read: {why}.") from error
    finally:
        os.close(root)
    return Sampled(directories, seen_entries, walk.unreadable, walk.mounts, is_sized)


@dataclass(frozen=True, slots=True)
class _Found:
    """A directory, with everything in it that is none; this is to be read to its end."""

    level: int
    name_bytes: int
    others: "Iterator[os.DirEntry[str]]"


class _Walk:
    """Goes through a tree, each directory before those in it, with few descriptors."""

    def __init__(self, root: int, has_mounts: bool) -> None:
        self._root = root
        self._has_mounts = has_mounts
        self._left = MOST_SEEN
        self.unreadable = 0
        self.mounts = 0

    def directories(self) -> Iterator[_Found]:
        """Yield the directories; one that changes on the way up ends it."""
        stack = DirectoryStack[Directory](self._root, max_open=2)
        root = open_directory(".", self._root)
        stack.push(Directory(b"", os.fstat(root), root))
        location = self._location(root)
        try:
            yield _Found(0, 0, self._others(stack.top))
            while len(stack) and self._left > 0:
                if not stack.top.pending:
                    stack.pop()
                    continue
                above = stack.reopen_top()
                level, name = len(stack), above.pending.pop()
                descriptor = self._entered(name, above.descriptor, location)
                if descriptor < 0:
                    self._left -= 1
                    yield _Found(level, len(name), iter(()))
                    continue
                stack.push(Directory(name, os.fstat(descriptor), descriptor))
                yield _Found(level, len(name), self._others(stack.top))
        except OSError:
            self.unreadable += 1  # the way back up is barred
        finally:
            stack.close()

    def _others(self, directory: Directory) -> "Iterator[os.DirEntry[str]]":
        """Yield what is no directory; the other names become pending."""
        self._left -= 1
        try:
            with os.scandir(directory.descriptor) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        directory.pending.append(os.fsencode(entry.name))
                        continue
                    self._left -= 1
                    yield entry
                    if self._left <= 0:
                        return
        except OSError:
            self.unreadable += 1

    def _entered(self, name: bytes, above: int, location: tuple[int, int]) -> int:
        """Return a directory's descriptor, -1 if it is not to be entered or cannot be."""
        try:
            descriptor = open_directory(name, above)
        except OSError:
            self.unreadable += 1
            return -1
        if self._location(descriptor) == location:
            return descriptor
        os.close(descriptor)
        self.mounts += 1
        return -1

    def _location(self, directory: int) -> tuple[int, int]:
        """Return device and mount; the mount only where there are others in the tree."""
        if not self._has_mounts:
            return os.fstat(directory).st_dev, 0
        pin = pin_of(directory)
        return pin.device, pin.mount_id


def _taken(walk: _Walk, one_in: int, most_entries: int) -> Iterator[SampledDirectory]:
    """Yield what is copied: about one in so many entries, and never more than there may be."""
    left = most_entries
    way: list[int] = []  # lengths of the names on the way to where the walk is
    made = 0  # so many of them are copied already
    for number, found in enumerate(walk.directories()):
        del way[found.level :]
        way.append(found.name_bytes)
        made = min(made, found.level)
        is_whole = number % one_in == 0
        files = _thinned(found.others, one_in, is_whole, max(1, most_entries // _LARGE))
        if not is_whole and not files:
            continue
        while made < found.level and left > 0:
            yield SampledDirectory(made, way[made], ())
            made += 1
            left -= 1
        if left <= 0:
            return
        files = files[: left - 1]
        yield SampledDirectory(found.level, found.name_bytes, tuple(map(_sampled, files)))
        made += 1
        left -= 1 + len(files)


def _thinned(
    others: "Iterator[os.DirEntry[str]]", one_in: int, is_whole: bool, large: int
) -> "list[os.DirEntry[str]]":
    """Return all or nothing of a directory, or one in so many of a large one."""
    files: list[os.DirEntry[str]] = []
    number = 0
    for number, entry in enumerate(others, 1):
        if number <= large or one_in == 1 or number % one_in == 0:
            files.append(entry)
        if number == large and one_in > 1:
            files = files[one_in - 1 :: one_in]
    if number >= large or is_whole:
        return files
    return []


def _sampled(entry: "os.DirEntry[str]") -> SampledFile:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return SampledFile(len(os.fsencode(entry.name)), 0)  # gone by now
    # of a sparse file what it really occupies
    file_bytes = min(status.st_size, status.st_blocks * 512, LARGEST_BYTES)
    return SampledFile(len(os.fsencode(entry.name)), file_bytes)
