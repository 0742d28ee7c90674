"""Entries by last change, size, suffix and owner, for every directory of a survey.

A cell is the number of entries and their bytes in one class of one directory. A directory has cells
only for the classes that occur in it: about four, of 18 bytes each.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress

from msgspec import Struct

from tui_fs.linux.host import account_name
from tui_fs.model.survey import Bin, Histograms, OwnerSum, SuffixSum
from tui_fs.survey.records import Cells, Label
from tui_fs.survey.table import DirectoryTable

AGES_DAYS = (1, 7, 30, 90, 365)
SIZES_BYTES = (1, 4 << 10, 64 << 10, 1 << 20, 64 << 20, 1 << 30)
"""Where the classes begin; one more is below the first."""

AGE_LABELS = (
    "last 24 hours",
    "1 to 7 days ago",
    "7 to 30 days ago",
    "30 to 90 days ago",
    "90 days to 1 year ago",
    "over 1 year ago",
)
SIZE_LABELS = (
    "empty",
    "under 4 KiB",
    "4 to 64 KiB",
    "64 KiB to 1 MiB",
    "1 to 64 MiB",
    "64 MiB to 1 GiB",
    "1 GiB and more",
)
# For narrow columns
SHORT_AGE_LABELS = ("< 1 day", "< 7 days", "< 30 days", "< 90 days", "< 1 year", "≥ 1 year")
SHORT_SIZE_LABELS = (
    *("empty", "< 4 KiB", "< 64 KiB", "< 1 MiB", "< 64 MiB", "< 1 GiB", "≥ 1 GiB"),
)
OLD_DAYS = 90
"""Older entries are summed up in one figure."""

FIRST_SIZE_CLASS = len(AGES_DAYS) + 1
CLASSES = FIRST_SIZE_CLASS + len(SIZES_BYTES) + 1
"""Classes of times and sizes; those of the labels begin at `FIRST_LABEL_CLASS`."""
FIRST_LABEL_CLASS = 16

_DAY_S = 86_400
_MAX_ENTRIES, _MAX_BYTES = 2**32 - 1, 2**64 - 1
"""What an item of the columns holds."""
_MAX_RECENT = 10_000
_CLASS_BITS = 16
_MAX_LABELS = 1_000
_MAX_SUFFIX_BYTES = 8
_SUMS_KEPT = 20
"""Of suffixes, and of owners."""


class Classes(Struct, frozen=True):
    """The classes of one survey: those of the times, then those of the sizes.

    A limit is the highest value of its class; one class more is above the last limit.

    Attributes:
        modified_s: modification times, ascending (epoch seconds).
        size_bytes: apparent sizes, ascending.
    """

    modified_s: tuple[int, ...]
    size_bytes: tuple[int, ...] = tuple(size - 1 for size in SIZES_BYTES)

    @classmethod
    def at(cls, now_s: float) -> "Classes":
        """Return the classes of a survey that begins now."""
        return cls(tuple(int(now_s) - days * _DAY_S for days in reversed(AGES_DAYS)))

    def __str__(self) -> str:
        """Return the value of the engine's option."""
        return ":".join(",".join(map(str, row)) for row in (self.modified_s, self.size_bytes))

    def of_time(self, modified_s: int) -> int:
        """Return the class of a modification time."""
        return bisect_left(self.modified_s, modified_s)

    def of_size(self, size_bytes: int) -> int:
        """Return the class of an apparent size."""
        return FIRST_SIZE_CLASS + bisect_left(self.size_bytes, size_bytes)


class Labels:
    """The classes of the suffixes and owners of one survey, the first ones that are met.

    Args:
        main_owner: has no cells: it owns what no other owner has.

    Attributes:
        new: labels that no batch has had.
    """

    def __init__(self, main_owner: int) -> None:
        self._classes: dict[str | int, int] = {main_owner: FIRST_LABEL_CLASS}
        self._main_owner = main_owner
        self.new = [Label(FIRST_LABEL_CLASS, None, main_owner)]

    def of_suffix(self, name: bytes) -> int:
        """Return the class of what follows the last dot of a name; 0 for none.

        A suffix has up to 8 letters and digits, the first one a letter, because numbers count files
        rather than name a kind.
        """
        stem, _, suffix = name.rpartition(b".")
        is_kind = stem and suffix.isalnum() and suffix[:1].isalpha()
        return (
            self._class_of(suffix.decode()) if is_kind and len(suffix) <= _MAX_SUFFIX_BYTES else 0
        )

    def of_owner(self, uid: int) -> int:
        """Return the class of an owner; 0 for the main one."""
        return 0 if uid == self._main_owner else self._class_of(uid)

    def take_new(self) -> list[Label]:
        """Return the labels since the last call."""
        new, self.new = self.new, []
        return new

    def _class_of(self, label: str | int) -> int:
        known = self._classes.get(label)
        if known is not None or len(self._classes) >= _MAX_LABELS:
            return known or 0
        class_ = FIRST_LABEL_CLASS + len(self._classes)
        self._classes[label] = class_
        self.new.append(Label(class_, *((label,) if isinstance(label, str) else (None, label))))
        return class_


class HistogramTable:
    """The cells of all directories; several ones of a directory and a class add up.

    Attributes:
        labels: of the classes beyond those of times and sizes.
        has_ages: the times of all entries are known.
        has_owners: the owners of all entries are known.
        has_accounts: the owners are accounts of this machine.
    """

    def __init__(self) -> None:
        self.has_ages = self.has_owners = self.has_accounts = True
        self.labels: dict[int, Label] = {}
        self._rows = array("i")
        self._classes = array("H")
        self._entries = array("I")
        self._allocated = array("Q")
        self._recent: dict[int, int] = {}

    def cells(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield row, class, entries and allocated bytes of all cells."""
        yield from zip(self._rows, self._classes, self._entries, self._allocated, strict=True)

    def name_labels(self, labels: Iterable[Label]) -> None:
        """Remember what classes mean. Cells can come before the label of their class."""
        self.labels |= {label.class_: label for label in labels}

    def take(self, cells: Cells, rows: Sequence[int], *, is_full: bool) -> None:
        """Add the cells of a batch.

        Args:
            rows: of the directories, by their numbers.
            is_full: several directories may have the same row.
        """
        directories, classes, entries = array("Q"), array("H"), array("I")
        allocated = array("Q")
        directories.frombytes(cells.directories)
        classes.frombytes(cells.classes)
        entries.frombytes(cells.entries)
        allocated.frombytes(cells.allocated_bytes)
        cell_rows = map(rows.__getitem__, directories)
        if is_full:
            for cell in zip(cell_rows, classes, entries, allocated, strict=True):
                self.add(*cell)
        else:
            self._rows.extend(cell_rows)
            self._classes.extend(classes)
            self._entries.extend(entries)
            self._allocated.extend(allocated)

    def add(self, row: int, class_: int, entries: int, allocated_bytes: int) -> None:
        """Add to a cell that was added recently, else add a cell."""
        key = row << _CLASS_BITS | class_
        at = self._recent.get(key)
        if (
            at is None
            or self._entries[at] + entries > _MAX_ENTRIES
            or self._allocated[at] + allocated_bytes > _MAX_BYTES
        ):
            if len(self._recent) >= _MAX_RECENT:
                self._recent.clear()
            self._recent[key] = len(self._rows)
            self._rows.append(row)
            self._classes.append(class_)
            self._entries.append(entries)
            self._allocated.append(allocated_bytes)
        else:
            self._entries[at] += entries
            self._allocated[at] += allocated_bytes

    def of(self, table: DirectoryTable, row: int | None = None) -> Histograms:
        """Return the histograms of a directory and everything below it; None for all roots.

        Takes about 0.1 microseconds for each cell and each row of the table.
        """
        columns: Iterable[tuple[int, int, int]]
        columns = zip(self._classes, self._entries, self._allocated, strict=True)
        if row is not None:
            is_inside = table.rows_below(row)
            columns = compress(columns, map(is_inside.__getitem__, self._rows))
        entries = [0] * (FIRST_LABEL_CLASS + _MAX_LABELS)
        allocated = entries.copy()
        for class_, number, size in columns:
            entries[class_] += number
            allocated[class_] += size
        sums = list(zip(entries, allocated, strict=True))
        sizes = sums[FIRST_SIZE_CLASS:CLASSES]
        return Histograms(
            _bins(AGES_DAYS, sums[:FIRST_SIZE_CLASS][::-1]) if self.has_ages else (),
            _bins(SIZES_BYTES, sizes),
            tuple(
                SuffixSum(label.suffix, *sums[label.class_])
                for label in self._by_bytes(sums)
                if label.suffix is not None
            )[:_SUMS_KEPT],
            self._owners(sums, sizes) if self.has_owners else (),
        )

    def _by_bytes(self, sums: Sequence[tuple[int, int]]) -> list[Label]:
        """Return the labels that occur, the one with most allocated bytes first."""
        occurring = (label for label in self.labels.values() if sums[label.class_][0])
        return sorted(occurring, key=lambda label: sums[label.class_][::-1], reverse=True)

    def _owners(
        self, sums: Sequence[tuple[int, int]], sizes: Sequence[tuple[int, int]]
    ) -> tuple[OwnerSum, ...]:
        """Return the owners; the main one has what remains of the sums of all sizes."""
        others = [label for label in self._by_bytes(sums) if label.suffix is None]
        owners = [
            OwnerSum(label.uid, self._name(label.uid), *sums[label.class_]) for label in others
        ]
        main = self.labels.get(FIRST_LABEL_CLASS)
        remaining = [
            sum(both) - sum(known)
            for both, known in zip(
                zip(*sizes, strict=True),
                zip((0, 0), *(sums[label.class_] for label in others), strict=True),
                strict=True,
            )
        ]
        if main is not None and remaining[0]:
            owners.append(OwnerSum(main.uid, self._name(main.uid), *remaining))
        owners.sort(key=lambda owner: (owner.allocated_bytes, owner.entries), reverse=True)
        return tuple(owners[:_SUMS_KEPT])

    def _name(self, uid: int) -> str:
        return account_name(uid) if self.has_accounts else str(uid)


def columns_of(cells: Iterable[tuple[int, int, int, int]]) -> Cells:
    """Return the columns of cells: number of a directory, class, entries, allocated bytes."""
    columns = zip(*cells, strict=True)
    arrays = [array(kind, column) for kind, column in zip("QHIQ", columns, strict=False)]
    return Cells(*(column.tobytes() for column in arrays))


def _bins(limits: Sequence[int], sums: Sequence[tuple[int, int]]) -> tuple[Bin, ...]:
    return tuple(
        Bin(least, below, *both)
        for least, below, both in zip((0, *limits), (*limits, None), sums, strict=True)
    )
