"""Entries by the time of their last change and by their size, for every directory of a survey.

A cell is the number of entries and their bytes in one class of one directory. A directory has cells
only for the classes that occur in it: about three, of 17 bytes each.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress

from msgspec import Struct

from tui_fs.model.survey import Bin, Histograms
from tui_fs.survey.records import Cells
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

_DAY_S = 86_400
_MAX_ENTRIES, _MAX_BYTES = 2**32 - 1, 2**64 - 1
"""What an item of the columns holds."""
_MAX_RECENT = 10_000
_CLASS_BITS = 4


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


class HistogramTable:
    """The cells of all directories; several ones of a directory and a class add up.

    Attributes:
        has_ages: the times of all entries are known.
    """

    def __init__(self) -> None:
        self.has_ages = True
        self._rows = array("i")
        self._classes = array("B")
        self._entries = array("I")
        self._allocated = array("Q")
        self._recent: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def cells(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield row, class, entries and allocated bytes of all cells."""
        yield from zip(self._rows, self._classes, self._entries, self._allocated, strict=True)

    def take(self, cells: Cells, rows: Sequence[int], *, is_full: bool) -> None:
        """Add the cells of a batch.

        Args:
            rows: of the directories, by their numbers.
            is_full: several directories may have the same row.
        """
        directories, entries, allocated = array("Q"), array("I"), array("Q")
        directories.frombytes(cells.directories)
        entries.frombytes(cells.entries)
        allocated.frombytes(cells.allocated_bytes)
        cell_rows = map(rows.__getitem__, directories)
        if is_full:
            for cell in zip(cell_rows, cells.classes, entries, allocated, strict=True):
                self.add(*cell)
        else:
            self._rows.extend(cell_rows)
            self._classes.frombytes(cells.classes)
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
        entries, allocated = [0] * CLASSES, [0] * CLASSES
        for class_, number, size in columns:
            entries[class_] += number
            allocated[class_] += size
        sums = list(zip(entries, allocated, strict=True))
        return Histograms(
            _bins(AGES_DAYS, sums[:FIRST_SIZE_CLASS][::-1]) if self.has_ages else (),
            _bins(SIZES_BYTES, sums[FIRST_SIZE_CLASS:]),
        )


def columns_of(cells: Iterable[tuple[int, int, int, int]]) -> Cells:
    """Return the columns of cells: number of a directory, class, entries, allocated bytes."""
    columns = zip(*cells, strict=True)
    arrays = [array(kind, column) for kind, column in zip("QBIQ", columns, strict=False)]
    return Cells(*(column.tobytes() for column in arrays))


def _bins(limits: Sequence[int], sums: Sequence[tuple[int, int]]) -> tuple[Bin, ...]:
    return tuple(
        Bin(least, below, *both)
        for least, below, both in zip((0, *limits), (*limits, None), sums, strict=True)
    )
