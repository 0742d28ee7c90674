"""Directories of one name that are spread over a tree: node_modules, .cache, backup."""

import os
from collections import Counter
from itertools import islice

from tui_fs.model.paths import PathStr
from tui_fs.model.survey import NamedGroup, Totals
from tui_fs.survey.table import NO_ROW, DirectoryTable

KNOWN_NAMES = frozenset(
    b"node_modules .cache cache __pycache__ .git .svn .hg .venv venv .tox .mypy_cache"
    b" .pytest_cache .gradle .m2 .npm target build dist .Trash-1000 .Trash tmp temp backup"
    b" backups .snapshots logs log sessions".split()
)
"""Names that are told from the second directory on; others when they hold much."""

_DIRECTORIES = 3
_ENTRIES = 1_000
_SHARE = 100
"""Other names are told if they hold at least this part of all entries: one in a hundred."""

GROUPS_TOLD = 8
_PATHS_TOLD = 20


def groups_of(table: DirectoryTable) -> tuple[NamedGroup, ...]:
    """Return the groups that hold the most, the largest first."""
    names = list(map(table.name, range(len(table))))
    wanted = {
        name
        for name, number in Counter(names).items()
        if number >= _DIRECTORIES - (name in KNOWN_NAMES) and not name.isdigit()
    }
    if not wanted:
        return ()
    whole = sum(table.subtree(root).totals.entries for root in table.roots())
    least = max(_ENTRIES, whole // _SHARE)
    wanted = _worth_telling(table, names, wanted, least)
    rows: dict[bytes, list[int]] = {name: [] for name in wanted}
    for row, name in enumerate(names):
        if name in wanted and table.parent[row] != NO_ROW and not lies_in_same(table, row, name):
            rows[name].append(row)
    groups = [_group(table, name, its_rows) for name, its_rows in rows.items() if len(its_rows) > 1]
    told = [g for g in groups if os.fsencode(g.name) in KNOWN_NAMES or g.totals.entries >= least]
    told.sort(key=lambda group: group.totals.entries, reverse=True)
    return tuple(told[:GROUPS_TOLD])


def _worth_telling(
    table: DirectoryTable, names: list[bytes], wanted: set[bytes], least: int
) -> set[bytes]:
    """Return the names that can hold enough, by what is in and below all their directories."""
    most: Counter[bytes] = Counter()
    for row, name in enumerate(names):
        if name in wanted:
            most[name] += table.entries_below(row)
    return {name for name in wanted if name in KNOWN_NAMES or most[name] >= least}


def lies_in_same(table: DirectoryTable, row: int, name: bytes) -> bool:
    """Tell whether a directory lies in another one of its name, the surveyed one left out."""
    above = table.parent[row]
    while above != NO_ROW and table.parent[above] != NO_ROW:
        if table.name(above) == name:
            return True
        above = table.parent[above]
    return False


def _group(table: DirectoryTable, name: bytes, rows: list[int]) -> NamedGroup:
    sums = [table.subtree(row).totals for row in rows]
    rows.sort(key=lambda row: table.subtree(row).totals.entries, reverse=True)
    return NamedGroup(
        PathStr(os.fsdecode(name)),
        len(rows),
        Totals(
            sum(one.files for one in sums),
            sum(one.directories for one in sums),
            sum(one.symlinks for one in sums),
            sum(one.other for one in sums),
            sum(one.apparent_bytes for one in sums),
            sum(one.allocated_bytes for one in sums),
        ),
        tuple(map(table.path, rows[:_PATHS_TOLD])),
    )


def paths_named(table: DirectoryTable, name: bytes, limit: int) -> tuple[PathStr, ...]:
    """Return the first directories of one name that lie in no other of that name."""
    rows = (
        row
        for row in range(len(table))
        if table.parent[row] != NO_ROW
        and table.name(row) == name
        and not lies_in_same(table, row, name)
    )
    return tuple(map(table.path, islice(rows, limit)))
