"""What rm and find call, with coreutils 9.1, findutils 4.9.0 and glibc 2.36 on x86-64.

Measured with kernel counters over 30 tree shapes (empty, flat up to 1,000,000 files, wide, deep,
random) on ext4, xfs and tmpfs; every coefficient came out as a whole number. What they stand for
is in gnulib's lib/fts.c: a directory is opened, its type and status asked, read, left and removed;
fts keeps the last four directories open on its way down, and opens `..` on its way back up
where these do not suffice (lib/i-ring.h).
"""

import math
from collections import Counter

from tui_fs.cost.heap import (
    RM_STEPS,
    fts_entry_bytes,
    heap_growth,
    heap_steps,
    mean_name_bytes,
)
from tui_fs.model.fts import FTS_ENTRIES_AT_ONCE
from tui_fs.model.survey import Survey

Calls = Counter[str]

COMMAND_BYTES = 131_072
"""xargs and find -exec + fill a command line up to this (findutils, lib/buildcmd.c: 128 KiB)."""

RM_ARGV_BYTES = 32
"""What ``rm -f --`` takes of that, with a usual path of rm."""


def of_rm(survey: Survey) -> Calls:
    """``rm -rf --one-file-system``: reads every directory that holds something once more."""
    directories, full = survey.totals.directories, survey.non_empty_directories
    upwards = survey.tall_full_directories
    return Counter(
        {
            "unlinkat": survey.totals.entries,
            "getdents64": survey.directory_reads + full,
            "openat": 2 + directories + full + upwards,
            "close": 5 + directories + 2 * full + upwards,
            "newfstatat": 3 + 2 * directories + full + upwards,
            "fcntl": 2 * directories + 3 * full,
            "access": 1,
            "brk": 3 + heap_growth(survey),
            "execve": 1,
            "fstatfs": 1 if survey.totals.non_directories else 0,
            "getrandom": 1,
            "ioctl": 1,
            "lseek": 1,
            "mmap": 8,
            "mprotect": 3,
            "munmap": 1,
            "pread64": 2,
            "prlimit64": 1,
            "read": 1,
            "rseq": 1,
            "set_robust_list": 1,
            "set_tid_address": 1,
        }
    )


def rm_processes_keeping_root(survey: Survey) -> int:
    """Return how many rm find starts to empty a directory, whose entries are their arguments."""
    entries = survey.top_directories + survey.top_non_directories
    if not entries:
        return 1 if survey.totals.entries > 1 else 0
    each_bytes = len("./") + mean_name_bytes(survey) + 1
    return math.ceil(entries / max(1, (COMMAND_BYTES - RM_ARGV_BYTES) // each_bytes))


def of_rm_keeping_root(survey: Survey, processes: int) -> Calls:
    """``find -maxdepth 1 -execdir rm -rf … {} +``: rm asks the status of each argument.

    Args:
        processes: how many rm are started.
    """
    if survey.totals.directories == 1 and not processes:
        return of_find(survey) + Counter(mmap=1, prlimit64=1) - Counter(unlinkat=1)
    directories, full = survey.totals.directories, survey.non_empty_directories
    top = survey.top_directories
    upwards = max(0, survey.tall_full_directories - top)
    return Counter(
        {
            "unlinkat": survey.totals.entries - 1,
            "getdents64": survey.directory_reads + full - (1 if full else 0),
            "openat": 8 + 2 * processes + directories + full + upwards,
            "close": 11 + 5 * processes + top + directories + 2 * full + upwards,
            "newfstatat": 7
            + 2 * processes
            + survey.top_non_directories
            + 2 * top
            + 2 * directories
            + full
            + upwards,
            "fcntl": 1 + top + 2 * directories + 3 * full,
            "access": 2 + processes,
            "brk": 3 + 3 * processes + _heap_growth_keeping_root(survey, processes),
            **dict.fromkeys(("clone", "lseek", "wait4"), processes),
            "execve": 1 + processes,
            "fchdir": 3 + processes,
            "fstatfs": 1,
            "getrandom": 1 + processes,
            "ioctl": 1 + processes,
            "mmap": 22 + 8 * processes,
            "mprotect": 6 + 3 * processes,
            "munmap": 1 + processes,
            "pread64": 2 + 2 * processes,
            "prlimit64": 2 + processes,
            "read": 6 + processes,
            "rseq": 1 + processes,
            "rt_sigaction": 1 if processes else 0,
            "set_robust_list": 1 + 2 * processes,
            "set_tid_address": 1 + processes,
            "statfs": 2,
            "uname": 1,
        }
    )


def of_find(survey: Survey) -> Calls:
    """``find -depth -delete``: asks the status of directories only."""
    directories, full = survey.totals.directories, survey.non_empty_directories
    upwards = survey.tall_directories
    return Counter(
        {
            "unlinkat": survey.totals.entries,
            "getdents64": survey.directory_reads,
            "openat": 7 + directories + upwards,
            "close": 8 + 3 * directories + full + upwards,
            "newfstatat": 6 + 3 * directories + upwards,
            "fcntl": 4 * directories + full - 1,
            "access": 2,
            "brk": 3 + heap_growth(survey),
            "execve": 1,
            "fchdir": 1,
            "fstatfs": 1,
            "getrandom": 1,
            "ioctl": 1,
            "mmap": 21,
            "mprotect": 6,
            "munmap": 1,
            "pread64": 2,
            "prlimit64": 1,
            "read": 6,
            "rseq": 1,
            "set_robust_list": 1,
            "set_tid_address": 1,
            "statfs": 2,
            "uname": 1,
        }
    )


def _heap_growth_keeping_root(survey: Survey, processes: int) -> int:
    """find holds the names of the target itself, each rm those that it was given, and below."""
    top = survey.top_directories + survey.top_non_directories
    entry_bytes = fts_entry_bytes(mean_name_bytes(survey))
    listed = math.ceil(heap_steps(min(top, FTS_ENTRIES_AT_ONCE), entry_bytes))
    if not processes:
        return listed
    # an argument is ./name
    argument_bytes = fts_entry_bytes(mean_name_bytes(survey) + 2)
    given = processes * int(heap_steps(top / processes, argument_bytes) + RM_STEPS)
    below = max(0, heap_growth(survey) - listed)
    return listed + given + below
