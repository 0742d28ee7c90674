"""What ``rsync -r --delete`` from an empty directory calls, with rsync 3.5.0 and glibc 2.36.

Measured as in `calls_rm_find`. Every file costs a stat and an unlink. What lies directly in the
target goes by unlink and rmdir; for the rest rsync walks down from the target to the directory
that holds it, one openat for each level (since 3.4), and keeps that directory open while it
empties it: deep trees cost the square of their depth.

Not exact, because they depend on how three processes interleave: poll, read and wait4, by some few.
"""

from collections import Counter
from collections.abc import Sequence

from tui_fs.cost.calls_rm_find import Calls
from tui_fs.cost.heap import HEAP_STEP_BYTES, entries_on_one_way, mean_name_bytes
from tui_fs.model.survey import Survey

_LISTED_BYTES = 33
"""Of an entry in the list of a directory, without its name; the whole is a multiple of 8 (measured
with names of 6 to 100 letters)."""

RSYNC_LIST_BYTES = 131_072
"""The least that a list takes of the heap (flist.c), whether it fills it or not."""

_LEFT_BYTES = 32
"""Of each directory that is gone something stays behind in the heap (measured)."""

_GROWTH_OF_A_LEVEL = 0.505
_GROWTH_BY_DEPTH = 2.6e-5
_GROWTH_OF_A_LARGE_LEVEL = 0.38
_GROWTH_OF_A_NAME = 0.00103
"""Each level of the way down keeps its list: two such lists fill what the heap grows by, of many
names one does (measured in 60 to 900 levels of 1 file, and in 400 of up to 900; 900 levels of 100
files grow 5 % more)."""


def of_rsync(survey: Survey) -> Calls:
    """rsync alone, without the rmdir that removes the target."""
    totals = survey.totals
    full = max(1, survey.non_empty_directories)  # the target is read in any case
    directories = totals.directories
    opened = full + survey.non_empty_levels
    growth = _growth_of_lists(survey) + directories * _LEFT_BYTES / HEAP_STEP_BYTES
    return Counter(
        {
            "unlink": survey.top_non_directories,
            "rmdir": survey.top_directories,
            "unlinkat": totals.entries - 1 - survey.top_non_directories - survey.top_directories,
            "getdents64": survey.directory_reads + 2,
            "openat": 20 + directories + opened,
            "close": 28 + directories + opened,
            "newfstatat": 23 + 2 * directories + totals.non_directories,
            "fcntl": 23 + 2 * full,
            "access": 1,
            "brk": 12 + round(growth),
            "chdir": 1,
            "clone": 2,
            "dup2": 2,
            "execve": 1,
            "fchdir": 1,
            "futex": 27,
            "getrandom": 1,
            "mmap": 39,
            "mprotect": 10,
            "munmap": 1,
            "poll": 20,
            "pread64": 2,
            "prlimit64": 2,
            "read": 29,
            "rseq": 1,
            "rt_sigaction": 13,
            "rt_sigprocmask": 1,
            "set_robust_list": 3,
            "set_tid_address": 1,
            "wait4": 11,
            "write": 12,
        }
    )


def _growth_of_lists(survey: Survey) -> float:
    """Return how often the heap grows for the lists of the way down that takes most of it."""
    if survey.ways:
        return max(_growth_of_a_way(way, sum(way), survey) for way in survey.ways)
    most = survey.most_by_level or (survey.max_entries_in_directory, *[0] * (survey.max_depth - 1))
    return _growth_of_a_way(most, entries_on_one_way(survey), survey)


def _growth_of_a_way(way: Sequence[int], names: int, survey: Survey) -> float:
    """Return how often the heap grows for the lists of directories below each other.

    Args:
        way: no directory has more entries, from the first on.
        names: nor have all together.
    """
    list_step_bytes, entry_bytes = 2 * RSYNC_LIST_BYTES, listed_bytes(survey)
    least = _GROWTH_OF_A_LEVEL + _GROWTH_BY_DEPTH * len(way)
    large = (_GROWTH_OF_A_LARGE_LEVEL + _GROWTH_OF_A_NAME * entries for entries in way[2:])
    more = sum(max(0.0, min(1.0, one) - least) for one in large)
    lists = (entries * entry_bytes for entries in way)
    beyond_bytes = sum(one for one in lists if one > RSYNC_LIST_BYTES)
    return (
        max(0, len(way) - 2) * least
        + min(more, names * _GROWTH_OF_A_NAME)
        + min(beyond_bytes, names * entry_bytes) / list_step_bytes
    )


def listed_bytes(survey: Survey) -> int:
    """Return what an entry takes in the list of a directory, its name of mean length among it."""
    return (_LISTED_BYTES + round(mean_name_bytes(survey)) + 7) & ~7
