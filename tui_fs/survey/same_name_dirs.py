"""Group directories of one name that are spread over a tree: node_modules, .cache, backup."""

import os
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import astuple

from tui_fs.model.paths import PathStr
from tui_fs.model.survey import NamedGroup, Totals
from tui_fs.survey.table import NO_ROW, DirectoryTable

KNOWN_NAMES = frozenset(
    b"node_modules .cache cache __pycache__ .git .svn .hg .venv venv .tox .mypy_cache"
    b" .pytest_cache .gradle .m2 .npm target build dist .Trash-1000 .Trash tmp temp backup"
    b" backups .snapshots logs log sessions".split()
)
"""Names reported from two directories on; other names need many entries as well."""

_DIRECTORIES = 3
_ENTRIES = 1_000
_SHARE = 100
"""Other names are reported if they have at least 1 / `_SHARE` of all entries."""

GROUPS_TOLD, OTHERS_TOLD = 8, 3
_PATHS_TOLD = 20
_NAMES_AT_ONCE = 64
"""One bit each in a 64-bit mask."""


def groups_of(table: DirectoryTable) -> tuple[NamedGroup, ...]:
    """Return the groups with the most entries: known names first, each part by size."""
    names = list(map(table.name, range(len(table))))
    wanted = {
        name
        for name, number in Counter(names).items()
        if number >= _DIRECTORIES - (name in KNOWN_NAMES) and not name.isdigit()
    }
    if not wanted:
        return ()
    all_entries = sum(table.subtree(root).totals.entries for root in table.roots())
    least = max(_ENTRIES, all_entries // _SHARE)
    wanted = _large_enough(table, names, wanted, least)
    rows = _outermost(table, names, sorted(wanted))
    groups = [_group(table, name, its_rows) for name, its_rows in rows.items() if len(its_rows) > 1]
    groups.sort(key=lambda group: group.totals.entries, reverse=True)
    known_groups = [group for group in groups if os.fsencode(group.name) in KNOWN_NAMES]
    others = [
        group for group in groups if group not in known_groups and group.totals.entries >= least
    ]
    return (*known_groups[:GROUPS_TOLD], *others[:OTHERS_TOLD])


def _large_enough(
    table: DirectoryTable, names: list[bytes], wanted: set[bytes], least: int
) -> set[bytes]:
    """Return the names that may have enough entries, by an upper bound of their subtrees."""
    most: Counter[bytes] = Counter()
    for row, name in enumerate(names):
        if name in wanted:
            most[name] += 1 + table.entries_below(row)
    others = [name for name in wanted if name not in KNOWN_NAMES and most[name] >= least]
    others.sort(key=most.__getitem__, reverse=True)
    return {*others[: _NAMES_AT_ONCE - len(KNOWN_NAMES)], *(wanted & KNOWN_NAMES)}


def _outermost(
    table: DirectoryTable, names: Iterable[bytes], wanted: Sequence[bytes]
) -> dict[bytes, list[int]]:
    """Return the rows of each name that have no ancestor of that name; roots never count.

    Args:
        names: of all rows.
        wanted: at most `_NAMES_AT_ONCE`.
    """
    bits = {name: 1 << bit for bit, name in enumerate(wanted)}
    rows: dict[bytes, list[int]] = {name: [] for name in wanted}
    inside = array("Q", [0]) * len(table)
    for row, (name, above) in enumerate(zip(names, table.parent, strict=True)):
        if above == NO_ROW:
            continue  # a surveyed directory is not a member of a group in itself
        bit = bits.get(name, 0)
        if bit and not inside[above] & bit:
            rows[name].append(row)
        inside[row] = inside[above] | bit
    return rows


def _group(table: DirectoryTable, name: bytes, rows: list[int]) -> NamedGroup:
    sums = [table.subtree(row).totals for row in rows]
    rows.sort(key=lambda row: table.subtree(row).totals.entries, reverse=True)
    return NamedGroup(
        PathStr(os.fsdecode(name)),
        len(rows),
        Totals(*map(sum, zip(*map(astuple, sums), strict=True))),
        tuple(map(table.path, rows[:_PATHS_TOLD])),
    )


def paths_named(table: DirectoryTable, name: bytes, limit: int) -> tuple[PathStr, ...]:
    """Return the first directories of one name that have no ancestor of that name."""
    every = map(table.name, range(len(table)))
    return tuple(map(table.path, _outermost(table, every, [name])[name][:limit]))
