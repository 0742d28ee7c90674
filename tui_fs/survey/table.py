"""All directories of a survey in columns: about 100 bytes a directory, independent of its entries.

The row of a directory follows the row of its parent, so sums over subtrees take one pass from the
end.
"""

import heapq
import os
from array import array
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Any

from msgspec import Struct

from tui_fs.model.paths import PathStr
from tui_fs.model.survey import LargeDirectory, Ranking, Totals

NO_ROW = -1


class Subtree(Struct, frozen=True):
    """Sums over a directory and everything below it.

    Attributes:
        repeats: names whose inode was counted under another name.
        oldest_s, newest_s: modification times of all entries but directories; 0 for none.
        is_complete: everything below it has been read.
    """

    totals: Totals
    repeats: int
    oldest_s: int
    newest_s: int
    is_complete: bool


class DirectoryTable:
    """Rows of directories. A row counts the direct entries of its directory.

    Attributes:
        matches: a table of the same rows that counts only matching entries, and no directories;
            None without filters.
        further: further directories counted in this row because the table was full.
        path_bytes: length of the path without a trailing slash.
    """

    def __init__(self) -> None:
        self._names = bytearray()
        self._name_ends = array("Q")
        self.parent = array("i")
        self._first_child = array("i")
        self._next_sibling = array("i")
        self.depth = array("I")
        self.path_bytes = array("I")
        self.pending = array("i")
        self.flags = array("I")
        self.matches: DirectoryTable | None = None
        self.counts_directories = True
        self._reset_counts()

    def _reset_counts(self) -> None:
        self.further = array("I")
        self.subdirectories = array("I")
        self.files = array("Q")
        self.symlinks = array("I")
        self.other = array("I")
        self.repeats = array("I")
        self.apparent = array("d")  # sizes of sparse files may add up to more than 64 bits
        self.allocated = array("Q")
        self.index_bytes = array("Q")
        self.index_allocated = array("Q")
        self.record_bytes = array("Q")
        self.oldest_s = array("q")
        self.newest_s = array("q")
        self._subtrees: _Subtrees | None = None

    def __len__(self) -> int:
        return len(self.parent)

    def add_matches(self) -> "DirectoryTable":
        """Add the table of matching entries to this table, which is empty; return it."""
        self.matches = copy(self)  # shares the names, the tree and what is pending
        self.matches.counts_directories = False
        self.matches._reset_counts()
        return self.matches

    def add(self, parent: int, name: bytes) -> int:
        """Add a directory with zero counts; return its row."""
        row = len(self.parent)
        self._names += name
        self._name_ends.append(len(self._names))
        self.parent.append(parent)
        self._first_child.append(NO_ROW)
        if parent == NO_ROW:
            self._next_sibling.append(NO_ROW)
            self.depth.append(0)
            self.path_bytes.append(len(name.rstrip(b"/")))
        else:
            self._next_sibling.append(self._first_child[parent])
            self._first_child[parent] = row
            self.depth.append(self.depth[parent] + 1)
            self.path_bytes.append(self.path_bytes[parent] + 1 + len(name))
        self.pending.append(0)
        self.flags.append(0)
        for table in (self, self.matches):
            for column in table._counts() if table is not None else ():
                column.append(0)
        return row

    def _counts(self) -> "tuple[array[int] | array[float], ...]":
        return (
            self.further,
            self.subdirectories,
            self.files,
            self.symlinks,
            self.other,
            self.repeats,
            self.apparent,
            self.allocated,
            self.index_bytes,
            self.index_allocated,
            self.record_bytes,
            self.oldest_s,
            self.newest_s,
        )

    def add_times(self, row: int, oldest_s: int, newest_s: int) -> None:
        """Add modification times to the range of a row."""
        self.newest_s[row] = max(newest_s, self.newest_s[row])
        self.oldest_s[row] = min(self.oldest_s[row] or oldest_s, oldest_s)

    def entries(self, row: int) -> int:
        """Return the number of names in the directory itself."""
        others = self.files[row] + self.symlinks[row] + self.other[row]
        return others + self.subdirectories[row]

    def name(self, row: int) -> bytes:
        """Return the last component; the whole path of a root."""
        start = self._name_ends[row - 1] if row else 0
        return bytes(self._names[start : self._name_ends[row]])

    def path(self, row: int) -> PathStr:
        """Return the absolute path."""
        names: list[bytes] = []
        while row != NO_ROW:
            names.append(self.name(row))
            row = self.parent[row]
        top = names.pop().rstrip(b"/")
        return PathStr(os.fsdecode(b"/".join((top, *reversed(names))) or b"/"))

    def children(self, row: int) -> Iterator[int]:
        """Yield the rows of the subdirectories."""
        child = self._first_child[row]
        while child != NO_ROW:
            yield child
            child = self._next_sibling[child]

    def count_named(self, matches: Callable[[bytes], bool]) -> int:
        """Return how many directories below the roots have a name that matches."""
        rows = (row for row in range(len(self.parent)) if self.parent[row] != NO_ROW)
        return sum(matches(self.name(row)) for row in rows)

    def roots(self) -> Iterator[int]:
        """Yield the rows of the surveyed directories."""
        row = 0
        for row in range(len(self.parent)):
            if self.parent[row] == NO_ROW:
                yield row

    def find(self, path: str) -> int:
        """Return the row of an absolute path, `NO_ROW` if it is not in the table."""
        wanted = os.fsencode(path)
        for root in self.roots():
            top = self.name(root).rstrip(b"/")
            if wanted.rstrip(b"/") == top:
                return root
            if wanted.startswith(top + b"/"):
                row = root
                for name in wanted[len(top) + 1 :].split(b"/"):
                    row = next((c for c in self.children(row) if self.name(c) == name), NO_ROW)
                    if row == NO_ROW:
                        return NO_ROW
                return row
        return NO_ROW

    def rows_below(self, row: int) -> bytearray:
        """Return 1 for the rows of a directory and of all directories below it."""
        is_inside = bytearray(len(self.parent) + 1)  # a root's parent, -1, is the last one
        is_inside[row] = 1
        for below in range(row + 1, len(self.parent)):
            if is_inside[self.parent[below]]:
                is_inside[below] = 1
        return is_inside

    def find_all(self, paths: Iterable[PathStr]) -> dict[PathStr, int]:
        """Return the rows of those paths that are in the table."""
        rows: dict[PathStr, int] = {}
        below: dict[str, dict[bytes, PathStr]] = {}
        for path in paths:
            parent, name = os.path.split(path)
            below.setdefault(parent, {})[os.fsencode(name)] = path
        for parent, wanted in below.items():
            above = self.find(parent)
            if above == NO_ROW:  # perhaps a root
                located = ((path, self.find(path)) for path in wanted.values())
                rows.update((path, row) for path, row in located if row != NO_ROW)
                continue
            for row in self.children(above):
                child = wanted.get(self.name(row))
                if child is not None:
                    rows[child] = row
        return rows

    def subtree(self, row: int) -> Subtree:
        """Return the sums over a directory and everything below it.

        The first call after a change takes about two microseconds for each row.
        """
        if self._subtrees is None:
            self._subtrees = _Subtrees(self)
        return self._subtrees.of(row)

    def entries_below(self, row: int) -> int:
        """Return the number of names in a directory and below it."""
        if self._subtrees is None:
            self._subtrees = _Subtrees(self)
        return self._subtrees.entries(row)

    def forget_sums(self) -> None:
        """Discard the cached sums; call this after every change."""
        self._subtrees = None
        if self.matches is not None:
            self.matches.forget_sums()

    def ranked(self, by: Ranking, number: int) -> tuple[LargeDirectory, ...]:
        """Return the first directories of a ranking by their direct entries, equal ones by path."""
        rows: Iterable[int] = range(len(self))
        if not self.counts_directories:
            rows = list(filter(self.entries, rows))
        rank: Callable[[int], int]
        match by:
            case Ranking.ENTRIES:
                rank = self.entries
            case Ranking.INODES:
                rank = self._inodes_in
            case Ranking.ALLOCATED:
                rank = self._allocated_in
            case Ranking.NEWEST:
                rank = self.newest_s.__getitem__
            case Ranking.OLDEST:
                rank = self.oldest_s.__getitem__
        if by in (Ranking.NEWEST, Ranking.OLDEST):
            rows = [row for row in rows if self.newest_s[row]]
        least_first = by is Ranking.OLDEST
        choose = heapq.nsmallest if least_first else heapq.nlargest
        # The order of the rows depends on which thread read a directory first.
        chosen = sorted(choose(number, rows, rank), key=self.path)
        chosen.sort(key=rank, reverse=not least_first)
        return tuple(map(self.large_directory, chosen))

    def large_directory(self, row: int) -> LargeDirectory:
        """Return one directory with the values that it is ranked by."""
        has_dates = self.newest_s[row] != 0
        return LargeDirectory(
            self.path(row),
            self.entries(row),
            self.index_bytes[row],
            self._inodes_in(row),
            self._allocated_in(row),
            self.oldest_s[row] if has_dates else None,
            self.newest_s[row] if has_dates else None,
        )

    def _inodes_in(self, row: int) -> int:
        return self.entries(row) - self.repeats[row]

    def _allocated_in(self, row: int) -> int:
        return self.allocated[row] + self.index_allocated[row]


class _Subtrees:
    def __init__(self, table: DirectoryTable) -> None:
        number = len(table)
        self._own = int(table.counts_directories)  # whether a directory counts itself
        self.directories = array("I", (further + self._own for further in table.further))
        self.files = array("Q", table.files)
        self.symlinks = array("I", table.symlinks)
        self.other = array("I", table.other)
        self.repeats = array("I", table.repeats)
        self.pending = array("i", table.pending)
        self.apparent = array("d", map(sum, zip(table.apparent, table.index_bytes, strict=True)))
        self.allocated = array(
            "Q", map(sum, zip(table.allocated, table.index_allocated, strict=True))
        )
        self.oldest_s = array("q", table.oldest_s)
        self.newest_s = array("q", table.newest_s)
        parent, oldest, newest = table.parent, self.oldest_s, self.newest_s
        columns: list[array[int] | array[float]] = [
            self.directories,
            self.files,
            self.symlinks,
            self.other,
            self.repeats,
            self.pending,
            self.apparent,
            self.allocated,
        ]
        for column in columns:
            if not any(column):
                continue
            sums: Any = column
            for row in range(number - 1, -1, -1):
                if sums[row] and (above := parent[row]) >= 0:
                    sums[above] += sums[row]
        for row in range(number - 1, -1, -1):
            above = parent[row]
            if above < 0 or not newest[row]:
                continue
            if newest[row] > newest[above]:
                newest[above] = newest[row]
            if not oldest[above] or oldest[row] < oldest[above]:
                oldest[above] = oldest[row]

    def entries(self, row: int) -> int:
        others = self.files[row] + self.symlinks[row] + self.other[row]
        return others + self.directories[row] - self._own

    def of(self, row: int) -> Subtree:
        totals = Totals(
            self.files[row],
            self.directories[row],
            self.symlinks[row],
            self.other[row],
            int(self.apparent[row]),
            self.allocated[row],
        )
        return Subtree(
            totals,
            self.repeats[row],
            self.oldest_s[row],
            self.newest_s[row],
            self.pending[row] <= 0,
        )
