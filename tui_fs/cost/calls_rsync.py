"""What ``rsync -r --delete`` from an empty directory calls, with rsync 3.5.0 and glibc 2.36.

Measured as in `calls_rm_find`. Every file costs a stat and an unlink. What lies directly in the
target goes by unlink and rmdir; for the rest rsync walks down from the target to the directory
that holds it, one openat for each level (since 3.4), and keeps that directory open while it
empties it: deep trees cost the square of their depth.

How the first process reads what it is told of deleted entries follows from its buffer, a ring of
32 KiB (io.c): a read fills it up to its end, the next one from its beginning, unless the last
message ended where the data did. Not exact, because they depend on how three processes interleave:
read, write (and with them poll, which comes before each), futex and wait4.
"""

from collections import Counter

from tui_fs.cost.calls_rm_find import Calls
from tui_fs.cost.heap import HEAP_STEP_BYTES, mean_name_bytes
from tui_fs.model.survey import Survey

_RING_BYTES = 32_768
_ENDS_TOGETHER = 1.6
"""Of as many reads as a message has bytes, so many end where a message does (measured)."""

_SOCKET_BUFFER_BYTES = 36_544
"""What a Unix stream socket puts in one of its buffers: 32 KiB and the rest of a first page."""

_BYTES_A_WRITE = 6 * _SOCKET_BUFFER_BYTES
"""All is told at the end, in one block: a write takes as many buffers as a socket may have waiting
(net.core.wmem_default, 212,992 bytes), and more where the reader takes some while it is at it: of
names of 200 letters it can (measured: 176,000 to 590,000 bytes), of short ones it cannot.
"""

_HEADER_BYTES = 4
_LISTED_BYTES = 37
"""Of an entry in the list of a directory, without its name; the whole is a multiple of 8."""

_LIST_STEP_BYTES = 262_144
"""Lists take 128 KiB at a time (flist.c), and then the heap grows by twice that."""

_LEFT_BYTES = 32
"""Of each directory that is gone something stays behind in the heap (measured)."""

_GROWTH_OF_A_LEVEL = 0.51
_GROWTH_OF_A_LARGE_LEVEL = 0.38
_GROWTH_OF_A_NAME = 0.00103
"""Each level of the way down keeps its list: two such lists fill what the heap grows by, of many
names one does (measured in 400 levels of 1, 10, 100, 300 and 600 files)."""


def of_rsync(survey: Survey) -> Calls:
    """rsync alone, without the rmdir that removes the target."""
    totals, full = survey.totals, survey.non_empty_directories
    directories = totals.directories
    opened = full + survey.non_empty_levels
    told = told_bytes(survey)
    reads, writes = _reads(told, totals.entries), told // _BYTES_A_WRITE
    listed_bytes = survey.max_entries_in_directory * _listed_bytes(survey)
    growth = listed_bytes / _LIST_STEP_BYTES + directories * _LEFT_BYTES / HEAP_STEP_BYTES
    growth += max(0, survey.max_depth - 2) * _growth_of_a_level(survey)
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
            "brk": 15 + round(growth),
            "chdir": 1,
            "clone": 2,
            "dup2": 2,
            "execve": 1,
            "fchdir": 1,
            "futex": 27,
            "getrandom": 1,
            "mmap": 40,
            "mprotect": 10,
            "munmap": 1,
            "mremap": 2,
            "poll": 31 + reads + writes,
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


def _reads(told_bytes: int, messages: int) -> int:
    """Return how many reads take the messages from the ring: two for each time round, or one."""
    if not told_bytes:
        return 0
    return round(told_bytes / (_RING_BYTES / 2 * (1 + _ENDS_TOGETHER * messages / told_bytes)))


def _growth_of_a_level(survey: Survey) -> float:
    names = survey.totals.entries / max(1, survey.non_empty_directories)
    large = _GROWTH_OF_A_LARGE_LEVEL + _GROWTH_OF_A_NAME * names
    return max(_GROWTH_OF_A_LEVEL, min(1.0, large))


def _listed_bytes(survey: Survey) -> int:
    return (_LISTED_BYTES + round(mean_name_bytes(survey)) + 7) & ~7


def told_bytes(survey: Survey) -> int:
    """Return what the deleting process tells the first: headers, and the paths of files.

    Those of directories, of which it tells too, no survey adds up.
    """
    return _relative_path_bytes(survey) + _HEADER_BYTES * survey.totals.entries


def _relative_path_bytes(survey: Survey) -> int:
    """Return the length of all files' paths below the target, added up."""
    root_bytes = len(survey.path.encode(errors="surrogateescape")) + 1
    return max(0, survey.non_directory_path_bytes - root_bytes * survey.totals.non_directories)
