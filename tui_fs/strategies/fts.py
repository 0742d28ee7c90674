"""How rm and find read directories: gnulib's fts (lib/fts.c)."""

from tui_fs.model.survey import Survey
from tui_fs.strategies.prediction import mean_name_bytes

FTS_ENTRIES_AT_ONCE = 100_000
"""fts reads at most this many names at a time (FTS_MAX_READDIR_ENTRIES)."""

FTS_SORTED_ABOVE = 10_000
"""fts sorts the names of larger directories by inode
(FTS_INODE_SORT_DIR_ENTRIES_THRESHOLD)."""

FTS_MEMORY = "keeps up to 100,000 names of a directory in memory"

COMMAND_BYTES = 131_072
"""xargs and find -exec + fill a command line up to this (findutils, lib/buildcmd.c: 128 KiB)."""

RM_ARGV_BYTES = 32
"""Bytes of the command line that ``rm -f --`` takes, with a usual path of rm."""

_FTSENT_BYTES = 256
"""Bytes before the name; measured with glibc on x86-64 by names of 6, 8 and 200 bytes."""
_DEEP_LEVELS = 20


def fts_bytes(survey: Survey) -> int:
    """Return about how much memory fts needs for the names that it holds at most."""
    return _entries_held(survey) * entry_bytes(mean_name_bytes(survey))


def entry_bytes(name_bytes: float) -> int:
    """Return the bytes of an entry: FTSENT, name, NUL and malloc's header, in steps of 16."""
    return (_FTSENT_BYTES + int(name_bytes) + 1 + 7 & ~7) + 8 + 15 & ~15


def _entries_held(survey: Survey) -> int:
    """Return about how many names fts holds: a large directory's, or those along a long path."""
    most = min(survey.max_entries_in_directory, FTS_ENTRIES_AT_ONCE)
    full = max(1, survey.non_empty_directories)
    levels = survey.non_empty_levels / full
    if levels > _DEEP_LEVELS:  # about half of each directory on the path is still listed
        most = max(most, int(levels * survey.totals.entries / full))
    return min(survey.totals.entries, most + survey.max_depth)
