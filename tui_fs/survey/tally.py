"""Add up the entries of directories in Python: for the walker, and for imported files."""

import stat
import unicodedata
from collections import Counter
from collections.abc import Callable
from os import stat_result

from tui_fs.linux.fnmatch import name_matcher
from tui_fs.model.strategy import Filters
from tui_fs.survey.histogram import Classes, Labels, columns_of
from tui_fs.survey.records import (
    NO_PARENT,
    Batch,
    BigFile,
    DirectoryFlag,
    DirRecord,
    Link,
    Matched,
)

BIG_FILE_BYTES = 64 << 20
"""Files of at least this size are reported individually."""

LONG_NAME_BYTES = 250
"""NAME_MAX is 255 (limits.h)."""

_DIRENT_HEADER_BYTES = 19 + 1
"""struct linux_dirent64 without the name, plus the terminating NUL; padded to 8."""

_KINDS = ("files", "symlinks", "other")

Predicate = Callable[[bytes, stat_result], bool]


def predicate_of(filters: Filters) -> Predicate:
    """Return a predicate that selects what the find tests of the strategies select."""
    has_name = None if filters.name_glob is None else name_matcher(filters.name_glob)
    least, limit = filters.min_size_bytes, filters.size_below_bytes
    before, after = filters.modified_before_s, filters.modified_after_s
    selects_by_size = least is not None or limit is not None

    def matches(name: bytes, status: stat_result) -> bool:
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
        records: takes the links, large files, matches and histograms of the directory.
    """

    def __init__(self, number: int, owner: int, records: "BatchBuilder") -> None:
        self.number = number
        self._owner = owner
        self._records = records
        self._flags = self._longest_name = 0
        self._clear()

    def _clear(self) -> None:
        self._sums: Counter[str] = Counter()
        """By fields of `DirRecord`."""
        self._matched: Counter[str] = Counter()
        self._times: tuple[int, int] | None = None
        self._matched_times: tuple[int, int] | None = None
        self._cells: dict[int, tuple[int, int]] = {}

    def add(self, name: bytes, status: stat_result, matches: Predicate | None = None) -> None:
        """Add an entry; a directory counts in `subdirectories` only."""
        sums, modified_s = self._sums, int(status[stat.ST_MTIME])
        self._longest_name = max(self._longest_name, len(name))
        sums["record_bytes"] += _DIRENT_HEADER_BYTES + len(name) + 7 & ~7
        self._flags |= _flags_of_name(name)
        if status.st_uid != self._owner:
            self._flags |= DirectoryFlag.FOREIGN_OWNERS
        if stat.S_ISDIR(status.st_mode):
            sums["subdirectories"] += 1
            return
        kind = 0 if stat.S_ISREG(status.st_mode) else 1 if stat.S_ISLNK(status.st_mode) else 2
        size, allocated, links = status.st_size, status.st_blocks * 512, status.st_nlink
        sums[_KINDS[kind]] += 1
        sums["name_bytes"] += len(name)
        self._times = _with_time(self._times, modified_s)
        if links <= 1:
            sums["apparent_bytes"] += size
            sums["allocated_bytes"] += allocated
        records, device, inode = self._records, status.st_dev, status.st_ino
        if size >= BIG_FILE_BYTES and kind == 0:
            known = (device, inode) if links > 1 else (0, 0)
            records.big_files.append(
                BigFile(self.number, name, size, allocated, modified_s, *known)
            )
        is_selected = matches is None or matches(name, status)
        if is_selected and matches is not None:
            self._matched_times = _with_time(self._matched_times, modified_s)
            if links <= 1:
                self._matched[_KINDS[kind]] += 1
                self._matched["apparent_bytes"] += size
                self._matched["allocated_bytes"] += allocated
        suffix = owner = 0
        if (labels := records.labels) is not None and (is_selected or links > 1):
            suffix, owner = labels.of_suffix(name), labels.of_owner(status.st_uid)
        if is_selected and (classes := records.classes) is not None:
            cells = [classes.of_time(modified_s), classes.of_size(size)]
            for class_ in (*cells, *filter(None, (suffix, owner))):
                entries, known_bytes = self._cells.get(class_, (0, 0))
                self._cells[class_] = entries + 1, known_bytes + (allocated if links <= 1 else 0)
        if links > 1:
            is_matched = matches is not None and is_selected
            link = Link(self.number, device, inode, links, size, allocated, kind, is_matched)
            link = link._replace(modified_s=modified_s, suffix=suffix, owner=owner)
            records.links.append(link)

    def report(
        self,
        parent: int = NO_PARENT,
        name: bytes = b"",
        own: tuple[int, int] = (0, 0),
        pending: int = 0,
        flags: int = 0,
    ) -> None:
        """Pass the sums on as a record, and reset them.

        Args:
            own: apparent and allocated bytes of the directory itself.
            flags: in addition to those of the names and owners that were added.
        """
        records = self._records
        oldest_s, newest_s = self._times or (0, 0)
        records.add(
            DirRecord(
                self.number,
                parent,
                name,
                own_bytes=own[0],
                own_allocated_bytes=own[1],
                oldest_s=oldest_s,
                newest_s=newest_s,
                longest_name=self._longest_name,
                pending=pending,
                flags=flags | self._flags,
                **self._sums,
            )
        )
        if self._matched_times is not None:
            oldest_s, newest_s = self._matched_times
            counts = {field: self._matched[field] for field in Matched._fields[1:6]}
            records.matched.append(
                Matched(self.number, **counts, oldest_s=oldest_s, newest_s=newest_s)
            )
        records.cells += [(self.number, class_, *cell) for class_, cell in self._cells.items()]
        self._clear()


class BatchBuilder:
    """Collect records for the aggregator.

    Args:
        classes, labels: of the histograms; None for no histograms.
    """

    def __init__(self, classes: Classes | None = None, labels: Labels | None = None) -> None:
        self.classes, self.labels = classes, labels
        self._clear()

    def __len__(self) -> int:
        return len(self._pieces)

    def _clear(self) -> None:
        self._pieces: list[DirRecord] = []
        self.links: list[Link] = []
        self.big_files: list[BigFile] = []
        self.matched: list[Matched] = []
        self.cells: list[tuple[int, int, int, int]] = []

    def add(self, record: DirRecord) -> None:
        """Add a part of a directory."""
        self._pieces.append(record)

    def take(self, vanished: int = 0) -> Batch:
        """Return the records since the last batch."""
        labels = self.labels.take_new() if self.labels else ()
        cells = columns_of(self.cells)
        batch = Batch(
            self._pieces, self.links, self.big_files, self.matched, cells, vanished, labels
        )
        self._clear()
        return batch


def _with_time(times: tuple[int, int] | None, modified_s: int) -> tuple[int, int]:
    modified_s = max(1, modified_s)  # 0 means no entry
    return (min(times[0], modified_s), max(times[1], modified_s)) if times else (modified_s,) * 2


def _flags_of_name(name: bytes) -> int:
    flags = 0
    if name.startswith(b"-"):
        flags |= DirectoryFlag.DASH_NAMES
    if name.startswith(b" ") or name.endswith(b" "):
        flags |= DirectoryFlag.SPACE_NAMES
    if len(name) >= LONG_NAME_BYTES:
        flags |= DirectoryFlag.LONG_NAMES
    try:
        text = name.decode("utf-8")
    except UnicodeDecodeError:
        flags |= DirectoryFlag.UNDECODABLE_NAMES
        text = name.decode("utf-8", "ignore")
    if not text.isprintable() and any(map(_is_not_shown, text)):
        flags |= DirectoryFlag.CONTROL_NAMES
    return flags


def _is_not_shown(letter: str) -> bool:
    """Return whether a character is a separator other than the space, or of a category Other.

    Unassigned characters do not count: they depend on the version of Unicode.
    """
    category = unicodedata.category(letter)
    return letter != " " and category[0] in "CZ" and category != "Cn"
