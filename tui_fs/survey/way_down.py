"""The ways down on which a tool that reads each directory whole holds most.

Of every directory above it holds all names, or those that are listed after the way down; where that
is depends on the file system, and on the numbers of the inodes where it sorts by them. So the way
with the most names is looked at once more, level by level.
"""

import os
import time
from array import array

from tui_fs.linux.filesystem import file_system_of
from tui_fs.model.fts import FTS_ENTRIES_AT_ONCE, FTS_SORTED_ABOVE, NOT_SORTED
from tui_fs.survey.collector import Collector
from tui_fs.survey.result import LEVELS_KEPT
from tui_fs.survey.table import NO_ROW, DirectoryTable
from tui_fs.survey.walker import OPEN_FLAGS

_DEEP_LEVELS = 10
"""Directories that hold something and lie less deep, on the average, have few above them."""

_MOST_ROWS = 1_000_000
"""Of so many directories the way down is found within a second."""

_LONGEST_S = 0.5


def look_down(counted: Collector) -> tuple[int | None, tuple[tuple[int, ...], ...]]:
    """Return how many names are held at most, and `Survey.ways`.

    Neither where the tree is not deep; the former is None also where half a second is too short.
    """
    table = counted.table
    if counted.non_empty_levels <= _DEEP_LEVELS * counted.non_empty or len(table) > _MOST_ROWS:
        return None, ()
    fullest, deepest = _fullest(table), max(range(len(table)), key=table.depth.__getitem__)
    ways = [_way_to(row, table) for row in (fullest, deepest)]
    names = [table.name(row) for row in ways[0]]
    told = tuple(tuple(map(table.entries, way[:LEVELS_KEPT])) for way in ways)
    is_sorted = file_system_of(os.fsdecode(names[0])).kind not in NOT_SORTED
    try:
        return _held_on(names, time.monotonic() + _LONGEST_S, is_sorted), told
    except OSError:
        # not there any more, or not to be read: the survey has told of what it met
        return None, told


def _fullest(table: DirectoryTable) -> int:
    """Return the row of the directory that has the most names in and above it."""
    names, parent = array("Q", bytes(8 * len(table))), table.parent
    fullest = 0
    for row in range(len(table)):
        above = parent[row]
        names[row] = table.entries(row) + (names[above] if above != NO_ROW else 0)
        if names[row] > names[fullest]:
            fullest = row
    return fullest


def _way_to(row: int, table: DirectoryTable) -> list[int]:
    """Return the rows from a root down to a directory."""
    way = []
    while row != NO_ROW:
        way.append(row)
        row = table.parent[row]
    return way[::-1]


def _held_on(way: list[bytes], until_s: float, is_sorted: bool) -> int | None:
    """Return the most names held on a way: a root's path, and the names from there down."""
    descriptor = os.open(way[0], OPEN_FLAGS)
    try:
        held = most = 0
        for name in map(os.fsdecode, way[1:]):
            if time.monotonic() > until_s:
                return None
            listed = _read(descriptor, name, is_sorted)
            most = max(most, held + len(listed))
            if name not in listed:
                return None
            held += len(listed) - 1 - listed.index(name)
            below = os.open(name, OPEN_FLAGS, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        return max(most, held + min(len(os.listdir(descriptor)), FTS_ENTRIES_AT_ONCE))
    finally:
        os.close(descriptor)


def _read(descriptor: int, below: str, is_sorted: bool) -> list[str]:
    """Return the names that are read at once with the one of the way down, in their order."""
    with os.scandir(descriptor) as entries:
        listed = [(entry.inode(), entry.name) for entry in entries]
    at = next((at for at, (_, name) in enumerate(listed) if name == below), 0)
    begin = at - at % FTS_ENTRIES_AT_ONCE
    together = listed[begin : begin + FTS_ENTRIES_AT_ONCE]
    if is_sorted and len(together) > FTS_SORTED_ABOVE:
        together.sort()
    return [name for _, name in together]
