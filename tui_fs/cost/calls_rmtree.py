"""What the rmtree strategy's child calls, with CPython 3.11 and glibc 2.36.

Measured as in `calls_rm_find`. shutil.rmtree stats, opens and compares each directory, reads it
through a descriptor of its own and removes it. How many calls the interpreter begins with depends
on its version and on where it is installed: some dozens more or less.
"""

import math
from collections import Counter

from tui_fs.cost.calls_rm_find import Calls
from tui_fs.model.strategy import Options
from tui_fs.model.survey import Survey

_ENTRIES_AN_ARENA = 6_600
"""Entries of one directory whose objects fill an arena of Python's allocator (1 MiB)."""

_ENTRIES_ON_HEAP = 131_072
"""A list of more than 1 MiB is mapped by itself (as the launcher sets it), and grows by an eighth
at a time (listobject.c)."""


def of_rmtree(survey: Survey, options: Options) -> Calls:
    """The interpreter starts; then each directory is opened, checked, read, closed, removed."""
    directories = survey.totals.directories
    largest = survey.max_entries_in_directory
    list_moves = math.log(largest / _ENTRIES_ON_HEAP, 1.125) if largest > _ENTRIES_ON_HEAP else 0
    arenas = survey.max_entries_in_directory // _ENTRIES_AN_ARENA + survey.max_depth // 15
    calls = Counter(
        {
            "unlinkat": survey.totals.entries - 1,
            "rmdir": 1,
            "getdents64": 10 + survey.directory_reads,
            "openat": 67 + directories,
            "close": 47 + 2 * directories,
            "newfstatat": 213 + 4 * directories,
            "fcntl": 4 + 3 * directories,
            "lseek": 65 + directories,
            "access": 1,
            "brk": 14,
            "execve": 1,
            "getrandom": 2,
            "ioctl": 34,
            "mmap": 55 + arenas,
            "mprotect": 12,
            "mremap": round(list_moves),
            "munmap": 6 + arenas,
            "pread64": 2,
            "prlimit64": 1,
            "read": 68,
            "rseq": 1,
            "rt_sigaction": 66,
            "set_robust_list": 1,
            "set_tid_address": 1,
        }
    )
    if options.keep_root:
        calls.subtract({"rmdir": 1, "close": 1, "newfstatat": 2})
    return calls
