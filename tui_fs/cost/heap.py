"""How rm and find hold the names of directories in memory, and how often that moves the heap.

Both read directories through gnulib's fts (lib/fts.c), which keeps an FTSENT for each name.
"""

import math

from tui_fs.model.survey import Survey

FTS_ENTRIES_AT_ONCE = 100_000
"""fts reads at most this many names at a time (FTS_MAX_READDIR_ENTRIES)."""

FTS_SORTED_ABOVE = 10_000
"""It sorts larger directories by inode (FTS_INODE_SORT_DIR_ENTRIES_THRESHOLD)."""

NOT_SORTED = frozenset({"tmpfs", "nfs", "nfs4"})
"""But not on these file systems (dirent_inode_sort_may_be_useful)."""

_FTSENT_BYTES = 256
"""Before the name; measured with glibc on x86-64 by names of 6, 8 and 200 bytes."""

_HEAP_STEP_BYTES = 135_168
"""glibc grows the heap by 132 KiB, and gives it back when 128 KiB lie free at its top."""

_MOVES_OF_FURTHER_BATCHES = 27
"""Each time a sorted directory has twice as many names as are read at once (measured)."""

_KEPT_STEPS = 131_072 / _HEAP_STEP_BYTES
_ALIKE = 1.02

_DEEP_LEVELS = 20
"""Of so many directories the survey tells the entries one by one."""

_NAME_BYTES = 8
"""Taken where the names' lengths are not known."""


def mean_name_bytes(survey: Survey) -> float:
    """Return the mean length of the names of all that are no directories."""
    names, name_bytes = survey.totals.non_directories, survey.non_directory_name_bytes
    return name_bytes / names if names and name_bytes else _NAME_BYTES


def fts_entry_bytes(name_bytes: float) -> int:
    """Return what an entry takes: FTSENT, name and NUL, and malloc's header, in steps of 16."""
    return (_FTSENT_BYTES + int(name_bytes) + 1 + 7 & ~7) + 8 + 15 & ~15


def entries_held(survey: Survey) -> int:
    """Return how many names fts holds at most: those of a directory and of all above it.

    Of a directory above those count that come after the way down.
    """
    largest = survey.largest or ()
    most = min(survey.max_entries_in_directory, FTS_ENTRIES_AT_ONCE)
    for lower in largest:
        above = (
            min(one.entries, FTS_ENTRIES_AT_ONCE)
            for one in largest
            if lower.path == one.path or lower.path.startswith(f"{one.path.rstrip('/')}/")
        )
        most = max(most, sum(above))
    held = max(most, _held_on_the_way(survey)) + survey.max_depth
    return min(survey.totals.entries, held)


def _held_on_the_way(survey: Survey) -> int:
    if survey.names_held is not None:
        return survey.names_held
    # of a chain every directory is on the way: levels of the lowest are twice the mean
    full = max(1, survey.non_empty_directories)
    levels = 2 * survey.non_empty_levels / full
    on_the_way = levels * (survey.totals.entries / full) if levels > _DEEP_LEVELS else 0
    return int(on_the_way)


def heap_moves(survey: Survey, filesystem: str) -> int:
    """Return how often rm or find calls brk to hold the names of one directory after another.

    The heap is given back after each directory, but not beneath the array in which fts has
    sorted a large one.
    """
    entry_bytes = fts_entry_bytes(mean_name_bytes(survey))
    is_sorted = filesystem not in NOT_SORTED and survey.max_entries_in_directory > FTS_SORTED_ABOVE
    if is_sorted:
        batches = max(1.0, survey.max_entries_in_directory / FTS_ENTRIES_AT_ONCE)
        further = _MOVES_OF_FURTHER_BATCHES * math.log2(batches)
        return round(heap_moves_of(survey.max_entries_in_directory, entry_bytes) + further)
    moves = sum(heap_moves_of(one.entries, entry_bytes) for one in survey.largest)
    others = survey.non_empty_directories - sum(one.entries > 0 for one in survey.largest)
    if others > 0:
        left = survey.totals.entries - 1 - sum(one.entries for one in survey.largest)
        mean, least = left / others, min((one.entries for one in survey.largest), default=0)
        moves += others * heap_moves_of(mean, entry_bytes, is_one=least <= _ALIKE * mean)
    # what is held on a deep way down is not given back before the way up
    grown = (survey.names_held or 0) * entry_bytes / _HEAP_STEP_BYTES
    return round(max(moves, grown))


def heap_moves_of(entries: float, entry_bytes: int, *, is_one: bool = True) -> float:
    """Return the calls for a directory: the heap grows step by step, and is given back.

    Args:
        is_one: it has so many entries; else they are the mean of directories of many sizes.
    """
    steps = heap_steps(entries, entry_bytes)
    if is_one:
        return math.ceil(steps - _KEPT_STEPS) + 1 if steps > 1.0 else 0
    # of what is given back 128 KiB stay, which saves a third of a step (measured)
    return (steps + 0.7) * min(1.0, max(0.0, (steps - 0.98) / 0.12))


def heap_steps(entries: float, entry_bytes: int) -> float:
    """Return by how many steps the heap has grown when all these are held."""
    return min(entries, FTS_ENTRIES_AT_ONCE) * entry_bytes / _HEAP_STEP_BYTES
