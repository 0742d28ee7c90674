"""What the native engine calls, with version 0.1 and glibc 2.36 on x86-64.

Each directory is opened in the one above, asked what it is, read to its end, removed and closed;
a thread makes it its current one before it removes names of anything but directories in it.
Some calls come as chance has it, with work that threads give each other: futex, write, and a
second descriptor of a directory. The engine's own counters hold what it calls on trees and on the
way to them; its start (`calls_of_start`) is seen by the other sources only.
"""

import math
from collections import Counter

from tui_fs.cost.calls_rm_find import Calls
from tui_fs.cost.heap import mean_name_bytes
from tui_fs.linux.limits import processors
from tui_fs.model.strategy import Options
from tui_fs.model.survey import Survey

_READS_IN_ONE = 8
_READ_BYTES = 256 << 10
"""Of a large directory 256 KiB are read at once, by other tools 32 KiB."""

_RECORD_BYTES = 24
"""Of an entry read by getdents64, without its name: rounded up to eight."""

_SLICE = 512
_SPLIT = frozenset({"tmpfs"})
"""Where it gives names of one directory to other threads, so many at a time
(engine/src/delete/file_systems.rs and giving.rs)."""

_KEPT = frozenset({"ext2", "ext3", "ext4"})
"""Where another thread keeps files open that one removes, and frees them (keeping.rs)."""
_KEPT_OF_FEW = 0.7
_KEPT_OF_MANY = 0.9
_KEPT_LATER = 4_000
"""How many, by what the engine told with two threads on two processors: 0.7 of 1,500 and of 12,000
names, 0.86 of 200,000. The others are removed before they are opened."""
_READ_AT_ONCE_BYTES = 16 << 20
_NAMED_BYTES = 17
"""Names of a directory are read to so many bytes, each with so many besides its own (worker.rs)."""

_MOST_THREADS = 8
_DESCRIPTORS = 2_048
"""Directories that all threads keep open on their ways down (engine/src/delete/mod.rs)."""


def of_parallel(survey: Survey, options: Options, filesystem: str, *, is_inside: bool) -> Calls:
    """The engine starts, opens the targets, and then empties directory after directory."""
    totals, directories = survey.totals, survey.totals.directories
    record_bytes = _RECORD_BYTES + mean_name_bytes(survey)
    further_reads = 0
    if survey.max_entries_in_directory * record_bytes > _READ_BYTES:
        further_reads = max(0, survey.directory_reads - 2 * directories) // _READS_IN_ONE
    threads = threads_of(options)
    # a directory that was closed on a long way down is opened again by `..`
    closed = max(0, survey.max_depth - _DESCRIPTORS // threads)
    together = calls_together(survey, options, filesystem)
    kept = 1 if options.keep_root else 0
    way = way_of(survey, is_inside=is_inside)
    tree = Counter(
        {
            "unlinkat": totals.entries - kept,
            "openat2": directories - 1,
            "openat": closed + way,
            "statx": directories + closed,
            "fstatfs": 1,
            "fchdir": survey.non_directory_parents,
            "chdir": steps_out(survey, options, together["fchdir"]),
            # a directory that is kept is looked at once more at the end: it must be empty
            "getdents64": 2 * directories + further_reads + kept,
            "lseek": kept,
            "newfstatat": 1 - kept,
            "close": directories + closed + closed_on(way),
        }
    )
    tree.update(together)
    tree.update(calls_of_start(options))
    return tree


def calls_together(survey: Survey, options: Options, filesystem: str) -> Calls:
    """Return what threads call besides who are in one directory together.

    Each time that one is given names of it, or names to keep, it gets a descriptor of it, and makes
    it its current directory.

    Args:
        filesystem: its type, as the mount table names it.
    """
    threads, given, kept = threads_of(options), 0, 0
    shared = shared_names(survey, threads)
    is_held_back = options.pace.rate_per_s > 0 or options.pace.gentle
    if filesystem in _SPLIT:
        given = int(shared * (threads - 1) / threads / _SLICE)
    elif filesystem in _KEPT and shared > 2 * _SLICE and not is_held_back:
        bytes_read = survey.max_entries_in_directory * (_NAMED_BYTES + mean_name_bytes(survey))
        given = math.ceil(bytes_read / _READ_AT_ONCE_BYTES)
        kept = round(max(_KEPT_OF_FEW * shared, _KEPT_OF_MANY * (shared - _KEPT_LATER)))
    return Counter({"fcntl": given, "fchdir": given, "openat": kept, "close": kept + given})


def steps_out(survey: Survey, options: Options, given: int = 0) -> int:
    """Return how often a thread leaves the directory it stands in for the root.

    Whoever has nothing left to do does, and who removes the directory above where it stands.

    Args:
        given: how often one goes where others are.
    """
    stood = survey.non_directory_parents + given
    return min(threads_of(options), stood) + max(0, round(turns_up(survey)) - 1)


def turns_up(survey: Survey) -> float:
    """Return how often about a directory's last directory removed is one without directories.

    Whoever removes it and then the one above it no longer stands where names were removed. It is
    taken to be so as often as among all directories.
    """
    below = max(1, survey.totals.directories - 1)
    lowest = max(0, survey.totals.directories - survey.parent_directories)
    return survey.parent_directories * lowest / below


def shared_names(survey: Survey, threads: int) -> float:
    """Return how many names are left when only the largest directory is, for all threads."""
    names = survey.totals.non_directories
    largest = min(names, survey.max_entries_in_directory)
    return max(0.0, (threads * largest - names) / (threads - 1)) if threads > 1 else 0.0


def way_of(survey: Survey, *, is_inside: bool) -> int:
    """Return how many directories are opened one in another, from the root to a target."""
    return 1 if is_inside else survey.path.count("/") + (2 if len(survey.roots) > 1 else 1)


def closed_on(way: int) -> int:
    """Return how many of the directories on a way are closed besides the target itself.

    Where it is the only one, it is the one the engine stands in.
    """
    return way if way > 1 else 0


def threads_of(options: Options) -> int:
    """Return how many threads the engine starts."""
    return options.pace.threads or min(_MOST_THREADS, processors())


def calls_of_start(options: Options) -> Calls:
    """Return what the dynamic linker, the runtime and its threads call."""
    threads = threads_of(options)
    calls = Counter(
        {
            "access": 1,
            "brk": 3,
            "clone3": 1 + threads,
            "close": 4,
            "execve": 1,
            "futex": 4 + 3 * threads,
            "getpid": threads,
            "getrandom": 1,
            "gettid": threads,
            "kcmp": threads,
            "mmap": 16 + 4 * threads,
            "mprotect": 8 + 3 * threads,
            "munmap": 6 + 2 * threads,
            "newfstatat": 4,
            "openat": 4,
            "poll": 1,
            "pread64": 2,
            "prlimit64": 3,
            "read": 6,
            "rseq": 2 + threads,
            "rt_sigaction": 6,
            "rt_sigprocmask": 5 + 4 * threads,
            "set_robust_list": 2 + threads,
            "set_tid_address": 1,
            "unshare": threads,
            "write": 1,
        }
    )
    if not options.pace.threads:  # it asks how many processors there are for it
        calls.update({"close": 3, "lseek": 3, "openat": 3, "read": 7, "statx": 3})
    return calls
