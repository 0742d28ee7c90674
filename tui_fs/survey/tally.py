"""Add up the entries of one directory, a few thousand names at a time.

Nearly all work is done by C loops over whole columns (zip, sum, set): a Python loop over the
entries takes longer than the kernel takes to stat them.
"""

import os
import stat
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import compress
from operator import attrgetter, itemgetter, not_

from tui_fs.linux.fnmatch import name_matcher
from tui_fs.model.strategy import Filters
from tui_fs.survey.histogram import FIRST_SIZE_CLASS, Classes, Labels
from tui_fs.survey.records import NO_PARENT, BigFile, DirectoryFlag, DirRecord, Link

BIG_FILE_BYTES = 64 << 20
"""Files of at least this size are reported individually."""

LONG_NAME_BYTES = 250
"""NAME_MAX is 255 (limits.h)."""

_DIRENT_HEADER_BYTES = 19 + 1
"""struct linux_dirent64 without the name, plus the terminating NUL; padded to 8."""

_blocks: Callable[[os.stat_result], int] = attrgetter("st_blocks")
_size: Callable[[os.stat_result], int] = attrgetter("st_size")
_owner: Callable[[os.stat_result], int] = attrgetter("st_uid")
_modified_s: Callable[[os.stat_result], int] = itemgetter(stat.ST_MTIME)

Predicate = Callable[[bytes, os.stat_result], bool]


def predicate_of(filters: Filters) -> Predicate:
    """Return a predicate that selects what the find tests of the strategies select."""
    has_name = None if filters.name_glob is None else name_matcher(filters.name_glob)
    least, limit = filters.min_size_bytes, filters.size_below_bytes
    before, after = filters.modified_before_s, filters.modified_after_s
    selects_by_size = least is not None or limit is not None

    def matches(name: bytes, status: os.stat_result) -> bool:
        if has_name is not None and not has_name(name):
            return False
        if selects_by_size and not (
            stat.S_ISREG(status.st_mode)
            and (least is None or status.st_size >= least)
            and (limit is None or status.st_size < limit)
        ):
            return False
        modified_ns = status.st_mtime_ns
        return (before is None or modified_ns <= before * 1_000_000_000) and (
            after is None or modified_ns > after * 1_000_000_000
        )

    return matches


class DirectoryTally:
    """The sums of one directory since its last record.

    Args:
        classes, labels: of its histogram; None for no histogram.

    Attributes:
        cells: entries and allocated bytes of each class that occurs. With filters, only what they
            select; entries with several names add no bytes.
    """

    __slots__ = (
        "allocated",
        "apparent",
        "big_files",
        "cells",
        "classes",
        "files",
        "flags",
        "labels",
        "links",
        "longest",
        "matched",
        "name_bytes",
        "newest",
        "number",
        "oldest",
        "other",
        "owner",
        "record_bytes",
        "subdirectories",
        "symlinks",
    )

    def __init__(
        self,
        number: int,
        owner: int,
        classes: Classes | None = None,
        labels: Labels | None = None,
    ) -> None:
        self.number = number
        self.owner = owner
        self.classes, self.labels = classes, labels
        self.flags = self.longest = 0
        self._clear()

    def take_record(
        self,
        parent: int = NO_PARENT,
        name: bytes = b"",
        own: tuple[int, int] = (0, 0),
        pending: int = 0,
        flags: int = 0,
    ) -> DirRecord:
        """Return the sums as a record, and reset them.

        Args:
            own: apparent and allocated bytes of the directory itself.
            flags: in addition to those of the names and owners that were added.
        """
        own_bytes, own_allocated_bytes = own
        record = DirRecord(
            number=self.number,
            parent=parent,
            name=name,
            subdirectories=self.subdirectories,
            files=self.files,
            symlinks=self.symlinks,
            other=self.other,
            apparent_bytes=self.apparent,
            allocated_bytes=self.allocated,
            own_bytes=own_bytes,
            own_allocated_bytes=own_allocated_bytes,
            oldest_s=self.oldest,
            newest_s=self.newest,
            name_bytes=self.name_bytes,
            record_bytes=self.record_bytes,
            longest_name=self.longest,
            pending=pending,
            flags=flags | self.flags,
        )
        self._clear()
        return record

    def numbered_cells(self) -> list[tuple[int, int, int, int]]:
        """Return the cells of the histograms, with the number of the directory."""
        return [(self.number, class_, *cell) for class_, cell in self.cells.items()]

    def _clear(self) -> None:
        self.files = self.symlinks = self.other = self.subdirectories = 0
        self.apparent = self.allocated = self.name_bytes = self.record_bytes = 0
        self.oldest = self.newest = 0
        self.matched = [0] * 7  # the fields of `Matched` but the directory
        self.cells: dict[int, tuple[int, int]] = {}
        self.links: list[Link] = []
        self.big_files: list[BigFile] = []

    def add(
        self,
        names: Sequence[bytes],
        statuses: Sequence[os.stat_result],
        matches: Predicate | None,
    ) -> list[tuple[bytes, os.stat_result]]:
        """Add entries.

        Returns:
            The directories among the entries, which are counted in `subdirectories` only.
        """
        lengths = list(map(len, names))
        self.longest = max(self.longest, max(lengths))
        self.record_bytes += sum(
            (_DIRENT_HEADER_BYTES + length + 7 & ~7) * number
            for length, number in _numbers(lengths)
        )
        self._check_names(names)
        modes, _, _, link_counts, owners, _, sizes, _, modified, _ = zip(*statuses, strict=True)
        if set(owners) != {self.owner}:
            self.flags |= DirectoryFlag.FOREIGN_OWNERS
        kinds = {stat.S_IFREG: 0, stat.S_IFLNK: 0, stat.S_IFDIR: 0}
        for mode, number in _numbers(modes):
            kind = stat.S_IFMT(mode)
            kinds[kind] = kinds.get(kind, 0) + number
        directories: list[tuple[bytes, os.stat_result]] = []
        if kinds[stat.S_IFDIR]:
            is_directory = list(map(stat.S_ISDIR, modes))
            directories = list(
                zip(compress(names, is_directory), compress(statuses, is_directory), strict=True)
            )
            self.subdirectories += len(directories)
            is_other = list(map(not_, is_directory))
            names, statuses = list(compress(names, is_other)), list(compress(statuses, is_other))
            if not names:
                return directories
            lengths = list(map(len, names))
            _, _, _, link_counts, _, _, sizes, _, modified, _ = zip(*statuses, strict=True)
        files, symlinks = kinds[stat.S_IFREG], kinds[stat.S_IFLNK]
        self.files += files
        self.symlinks += symlinks
        self.other += len(names) - files - symlinks
        self.name_bytes += sum(lengths)
        oldest = max(1, min(modified))  # 0 means no entry
        self.newest = max(self.newest, oldest, max(modified))
        self.oldest = min(self.oldest, oldest) if self.oldest else oldest
        if max(sizes) >= BIG_FILE_BYTES:
            self._note_big_files(names, statuses)
        if matches is not None:
            self._add_matches(names, statuses, matches)
        if self.classes is not None and self.labels is not None:
            self._add_cells(self.classes, self.labels, names, statuses, matches)
        if max(link_counts) > 1:
            self._note_links(names, statuses, matches)
            statuses = [status for status in statuses if status.st_nlink <= 1]
            sizes = tuple(status.st_size for status in statuses)
        self.apparent += sum(sizes)
        self.allocated += 512 * sum(map(_blocks, statuses))
        return directories

    def _add_cells(
        self,
        classes: Classes,
        labels: Labels,
        names: Sequence[bytes],
        statuses: Sequence[os.stat_result],
        matches: Predicate | None,
    ) -> None:
        if matches is not None:
            is_matched = list(map(matches, names, statuses))
            names = list(compress(names, is_matched))
            statuses = list(compress(statuses, is_matched))
        blocks = [status.st_blocks if status.st_nlink <= 1 else 0 for status in statuses]
        kinds_of_classes = (
            map(partial(bisect_left, classes.modified_s), map(_modified_s, statuses)),
            map(
                FIRST_SIZE_CLASS.__add__,
                map(partial(bisect_left, classes.size_bytes), map(_size, statuses)),
            ),
            map(labels.of_suffix, names),
            map(labels.of_owner, map(_owner, statuses)),
        )
        sums: dict[int, list[int]] = {}
        for kind, class_of_each in enumerate(kinds_of_classes):
            for class_, size in zip(class_of_each, blocks, strict=True):
                if class_ or kind < 2:
                    sums.setdefault(class_, [0, 0])
                    sums[class_][0] += 1
                    sums[class_][1] += size
        for class_, (entries, size) in sums.items():
            known = self.cells.get(class_, (0, 0))
            self.cells[class_] = known[0] + entries, known[1] + 512 * size

    def _note_big_files(self, names: Sequence[bytes], statuses: Sequence[os.stat_result]) -> None:
        for name, status in zip(names, statuses, strict=True):
            if status.st_size >= BIG_FILE_BYTES and stat.S_ISREG(status.st_mode):
                self.big_files.append(
                    BigFile(
                        self.number,
                        name,
                        status.st_size,
                        status.st_blocks * 512,
                        int(status.st_mtime),
                        *((status.st_dev, status.st_ino) if status.st_nlink > 1 else (0, 0)),
                    )
                )

    def _note_links(
        self,
        names: Sequence[bytes],
        statuses: Sequence[os.stat_result],
        matches: Predicate | None,
    ) -> None:
        for name, status in zip(names, statuses, strict=True):
            if status.st_nlink > 1:
                self.links.append(
                    Link(
                        self.number,
                        status.st_dev,
                        status.st_ino,
                        status.st_nlink,
                        status.st_size,
                        status.st_blocks * 512,
                        _kind(status.st_mode),
                        matches is not None and matches(name, status),
                        int(status[stat.ST_MTIME]),
                        self.labels.of_suffix(name) if self.labels else 0,
                        self.labels.of_owner(status.st_uid) if self.labels else 0,
                    )
                )

    def _add_matches(
        self, names: Sequence[bytes], statuses: Sequence[os.stat_result], matches: Predicate
    ) -> None:
        matched = self.matched
        for name, status in zip(names, statuses, strict=True):
            if not matches(name, status):
                continue
            modified_s = max(1, int(status.st_mtime))  # 0 means no entry
            matched[5] = min(matched[5] or modified_s, modified_s)
            matched[6] = max(matched[6], modified_s)
            if status.st_nlink <= 1:
                matched[_kind(status.st_mode)] += 1
                matched[3] += status.st_size
                matched[4] += status.st_blocks * 512

    def _check_names(self, names: Sequence[bytes]) -> None:
        joined = b"/" + b"/".join(names) + b"/"
        if not joined.isascii() or not joined.decode("ascii").isprintable():
            self._check_characters(joined)
        if b"/-" in joined:
            self.flags |= DirectoryFlag.DASH_NAMES
        if b" /" in joined or b"/ " in joined:
            self.flags |= DirectoryFlag.SPACE_NAMES
        if self.longest >= LONG_NAME_BYTES:
            self.flags |= DirectoryFlag.LONG_NAMES

    def _check_characters(self, joined: bytes) -> None:
        try:
            text = joined.decode("utf-8")
        except UnicodeDecodeError:
            self.flags |= DirectoryFlag.UNDECODABLE_NAMES
            text = joined.decode("utf-8", "ignore")
        if not text.isprintable() and any(map(_is_not_shown, text)):
            self.flags |= DirectoryFlag.CONTROL_NAMES


def _is_not_shown(letter: str) -> bool:
    """Return whether a character is a separator other than the space, or of a category Other.

    Unassigned characters do not count: they depend on the version of Unicode.
    """
    category = unicodedata.category(letter)
    return letter != " " and category[0] in "CZ" and category != "Cn"


def _kind(mode: int) -> int:
    """Return the index of a kind of entry: files, symbolic links, other."""
    if stat.S_ISREG(mode):
        return 0
    return 1 if stat.S_ISLNK(mode) else 2


def _numbers(values: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Return each value with its number of occurrences; fast if all are equal."""
    if len(set(values)) == 1:
        return ((values[0], len(values)),)
    return Counter(values).items()
