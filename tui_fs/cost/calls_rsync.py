"""What ``rsync -r --delete`` from an empty directory calls, with rsync 3.5.0 and glibc 2.36.

Measured as in `calls_rm_find`. Every file costs a stat and an unlink. What lies directly in the
target goes by unlink and rmdir; for the rest rsync walks down from the target to the directory
that holds it, one openat for each level (since 3.4), and keeps that directory open while it
empties it: deep trees cost the square of their depth.

Not exact, because they depend on how three processes interleave and on where the heap ends: brk
(0 to 1.9 for each lowest directory), poll, read, write, futex and wait4.
"""

from collections import Counter

from tui_fs.cost.calls_rm_find import Calls
from tui_fs.cost.heap import mean_name_bytes
from tui_fs.model.survey import Survey

_HEAP_MOVES_OF_A_LEAF = 0.7
_HEAP_MOVES_OF_A_LARGE_LEAF = 1.8
_LARGE_LEAF_ENTRIES = 100
_BYTES_A_READ = 16_000
"""The deleting process tells the first of each name, which reads it in pieces (measured)."""

_BYTES_A_WRITE = 200_000
_HEADER_BYTES = 4
_BYTES_A_MAPPING = 190_000
"""Lists of names grow by mappings of about so much (measured), and each level has one."""


def of_rsync(survey: Survey) -> Calls:
    """rsync alone, without the rmdir that removes the target."""
    totals, full = survey.totals, survey.non_empty_directories
    directories = totals.directories
    opened = full + survey.non_empty_levels
    leaves = max(0, full - survey.parent_directories - 1)
    is_large = totals.entries >= _LARGE_LEAF_ENTRIES * full
    moves = _HEAP_MOVES_OF_A_LARGE_LEAF if is_large else _HEAP_MOVES_OF_A_LEAF
    told = told_bytes(survey)
    reads, writes = told // _BYTES_A_READ, told // _BYTES_A_WRITE
    held_bytes = survey.max_entries_in_directory * (50 + 2 * mean_name_bytes(survey))
    mapped = round(0.957 * max(0, survey.max_depth - 2)) + round(held_bytes / _BYTES_A_MAPPING)
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
            "brk": 10 + round(moves * leaves),
            "chdir": 1,
            "clone": 2,
            "dup2": 2,
            "execve": 1,
            "fchdir": 1,
            "futex": 27,
            "getrandom": 1,
            "mmap": 44 + mapped,
            "mprotect": 10,
            "munmap": 4 + mapped,
            "poll": 31 + reads,
            "pread64": 2,
            "prlimit64": 2,
            "read": 36 + reads,
            "rseq": 1,
            "rt_sigaction": 13,
            "rt_sigprocmask": 1,
            "set_robust_list": 3,
            "set_tid_address": 1,
            "wait4": 9,
            "write": 21 + writes,
        }
    )


def told_bytes(survey: Survey) -> int:
    """Return what the deleting process tells the first: a header and the path of each entry."""
    return _relative_path_bytes(survey) + _HEADER_BYTES * survey.totals.entries


def _relative_path_bytes(survey: Survey) -> int:
    """Return the length of all files' paths below the target, added up."""
    root_bytes = len(survey.path.encode(errors="surrogateescape")) + 1
    return max(0, survey.non_directory_path_bytes - root_bytes * survey.totals.non_directories)
