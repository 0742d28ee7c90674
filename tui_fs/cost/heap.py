"""How rm and find hold the names of directories in memory, and how often that moves the heap.

Both read directories through gnulib's fts (lib/fts.c), which keeps an FTSENT for each name. The
tools of a job keep their heap (docs/decisions/0020), so it moves only when it grows.
"""

import math

from tui_fs.model.fts import FTS_ENTRIES_AT_ONCE
from tui_fs.model.survey import Survey

_FTSENT_BYTES = 256
"""Before the name; measured with glibc on x86-64 by names of 6, 8 and 200 bytes."""

HEAP_STEP_BYTES = 135_168
"""For small requests glibc grows the heap by 132 KiB."""

RM_STEPS = 0.04
"""What rm holds besides its arguments, in steps of the heap (measured)."""

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
    if survey.names_held is not None:
        most = max(survey.names_held, min(survey.max_entries_in_directory, FTS_ENTRIES_AT_ONCE))
    else:
        most = max(_above_each_other(survey, FTS_ENTRIES_AT_ONCE), _in_a_chain(survey))
    return min(survey.totals.entries, most + survey.max_depth)


def entries_on_one_way(survey: Survey) -> int:
    """Return how many names a directory and all above it have at most."""
    if survey.ways:
        return max(map(sum, survey.ways))
    on_one_way = max(_above_each_other(survey, survey.totals.entries), _in_a_chain(survey))
    return min(survey.totals.entries, on_one_way)


def _above_each_other(survey: Survey, at_once: int) -> int:
    """Return the names of the largest directories that lie on one way, of each so many at most."""
    largest = survey.largest or ()
    most = min(survey.max_entries_in_directory, at_once)
    for lower in largest:
        above = (
            min(one.entries, at_once)
            for one in largest
            if lower.path == one.path or lower.path.startswith(f"{one.path.rstrip('/')}/")
        )
        most = max(most, sum(above))
    return most


def _in_a_chain(survey: Survey) -> int:
    # of a chain every directory is on the way: levels of the lowest are twice the mean
    full = max(1, survey.non_empty_directories)
    levels = 2 * survey.non_empty_levels / full
    on_the_way = levels * (survey.totals.entries / full) if levels > _DEEP_LEVELS else 0
    return int(on_the_way)


def heap_growth(survey: Survey) -> int:
    """Return how often rm or find calls brk to hold the names that it holds at most."""
    return math.ceil(heap_steps(entries_held(survey), fts_entry_bytes(mean_name_bytes(survey))))


def heap_steps(entries: float, entry_bytes: int) -> float:
    """Return by how many steps the heap has grown when all these are held."""
    return entries * entry_bytes / HEAP_STEP_BYTES
