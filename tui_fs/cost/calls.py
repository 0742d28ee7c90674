"""System calls by formula.

The coefficients were measured with kernel counters over nine tree shapes (empty, nested,
flat, up to 60,000 files) on ext4 with coreutils 9.1, findutils 4.9.0 and rsync 3.5.0 with
glibc 2.36, and fit those counts exactly, but for brk, mmap and munmap (the allocator's) and
rsync's poll, read, write and wait4 (they depend on how its processes interleave). rmtree's were
measured over seven shapes with CPython 3.11; another version starts with some dozens of calls
more or less. The few calls by which a process and its C library begin (rseq, set_robust_list
and such) are left out.
"""

import math
from collections import Counter

from tui_fs.model.strategy import Options, StrategyName
from tui_fs.model.survey import Survey

XARGS_COMMAND_BYTES = 131_072
"""xargs' own limit on one command line (findutils, lib/buildcmd.c: 128 KiB)."""

FTS_ENTRIES_AT_ONCE = 100_000
"""rm and find read at most this many names at a time (gnulib, lib/fts.c)."""

FTS_BYTES_PER_ENTRY = 280
_HEAP_STEP_BYTES = 135_168
"""glibc grows the heap by 132 KiB at a time."""

Calls = Counter[str]


def predicted_calls(
    survey: Survey, strategy: StrategyName, options: Options, targets: int = 1, runs: int = 1
) -> dict[str, int]:
    """Return the calls of all the strategy's processes together, by name.

    With filters only the removing calls are known (what matches), so only they are given.

    Args:
        targets: how many directories the survey has counted together.
        runs: how often the tools are started for them.
    """
    if survey.matched is not None:
        return {"unlinkat": survey.matched.entries}
    calls = _calls_of_a_run(survey, strategy, options)
    start = _calls_of_a_run(Survey(survey.path), strategy, options)
    roots = _calls_of_a_root(strategy, options)
    for name in {*start, *roots}:
        calls[name] += (runs - 1) * start[name] + (targets - runs) * roots[name]
    return {name: number for name, number in sorted(calls.items()) if number > 0}


def _calls_of_a_run(survey: Survey, strategy: StrategyName, options: Options) -> Calls:
    match strategy:
        case StrategyName.RM:
            calls = _rm_keeping_root(survey) if options.keep_root else _rm(survey)
        case StrategyName.FIND:
            calls = _find(survey, survey.totals.entries)
        case StrategyName.XARGS:
            calls = _xargs(survey, options)
        case StrategyName.RSYNC:
            calls = _rsync(survey, options)
        case StrategyName.RMTREE:
            calls = _rmtree(survey, options)
    if options.keep_root and strategy in (StrategyName.FIND, StrategyName.XARGS):
        calls["unlinkat"] -= 1
    return calls


def _calls_of_a_root(strategy: StrategyName, options: Options) -> Calls:
    """Return what a target costs besides its entries, where another one shares its run."""
    calls: Calls = Counter()
    match strategy:
        case StrategyName.FIND:
            calls.update({"fstatfs": 1, "close": -1, "fcntl": -1})
        case StrategyName.XARGS:
            calls.update({"fstatfs": 2, "close": -2, "fcntl": -3})
        case StrategyName.RMTREE if not options.keep_root:
            calls.update({"unlinkat": -1, "rmdir": 1, "lseek": -1, "newfstatat": 1})
    if options.keep_root:
        calls["unlinkat"] -= 1
    return calls


RMDIR_CALLS = {
    "rmdir": 1,
    "openat": 2,
    "close": 4,
    "newfstatat": 2,
    "access": 1,
    "brk": 3,
    "execve": 1,
    "getrandom": 1,
    "mmap": 8,
    "mprotect": 3,
    "munmap": 1,
    "pread64": 2,
    "prlimit64": 1,
    "read": 1,
}
"""An rmdir process that takes one directory."""


def batches_of(survey: Survey, options: Options) -> int:
    """Return how many rm processes xargs starts: by count or by the length of the command."""
    files = survey.totals.non_directories
    if not files:
        return 0
    # every argument takes its bytes and a NUL; "rm -f --" comes off the room for names
    mean_bytes = survey.non_directory_path_bytes / files + 1
    fitting = max(1, int((XARGS_COMMAND_BYTES - 32) / mean_bytes))
    return math.ceil(files / min(options.batch_size, fitting))


def _heap_steps(survey: Survey) -> int:
    """How often the heap grows to hold the names of the largest directory."""
    names = min(survey.max_entries_in_directory, FTS_ENTRIES_AT_ONCE)
    return names * FTS_BYTES_PER_ENTRY // _HEAP_STEP_BYTES


def _rm(survey: Survey) -> Calls:
    directories, full = survey.totals.directories, survey.non_empty_directories
    return Counter(
        {
            "unlinkat": survey.totals.entries,
            "getdents64": survey.directory_reads + full,
            "openat": 2 + directories + full,
            "close": 5 + directories + 2 * full,
            "newfstatat": 3 + 2 * directories + full,
            "fcntl": 2 * directories + 3 * full,
            "access": 1,
            "brk": 3 + _heap_steps(survey),
            "execve": 1,
            "getrandom": 1,
            "ioctl": 1,
            "lseek": 1,
            "mmap": 8,
            "mprotect": 3,
            "munmap": 1,
            "pread64": 2,
            "prlimit64": 1,
            "read": 1,
        }
    )


def _rm_keeping_root(survey: Survey) -> Calls:
    """find reads the target once and hands all its entries to one rm."""
    directories, full = survey.totals.directories, survey.non_empty_directories
    return Counter(
        {
            "unlinkat": survey.totals.entries - 1,
            "getdents64": survey.directory_reads + full - 1,
            "openat": 10 + directories + full,
            "close": 15 + directories + 3 * full,
            "newfstatat": 9 + 3 * directories + full,
            "fcntl": 3 * directories + 3 * full,
            "access": 3,
            "brk": 6 + _heap_steps(survey),
            "clone": 1,
            "execve": 2,
            "fchdir": 4,
            "getrandom": 2,
            "ioctl": 2,
            "lseek": 1,
            "mmap": 30,
            "mprotect": 9,
            "munmap": 2,
            "pread64": 4,
            "prlimit64": 3,
            "read": 7,
            "rt_sigaction": 1,
            "statfs": 2,
            "wait4": 1,
        }
    )


def _find(survey: Survey, removed: int) -> Calls:
    directories, full = survey.totals.directories, survey.non_empty_directories
    return Counter(
        {
            "unlinkat": removed,
            "getdents64": survey.directory_reads,
            "openat": 7 + directories,
            "close": 8 + 3 * directories + full,
            "newfstatat": 6 + 3 * directories,
            "fcntl": 4 * directories + full - 1,
            "access": 2,
            "brk": 3 + _heap_steps(survey),
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
            "statfs": 2,
        }
    )


def _xargs(survey: Survey, options: Options) -> Calls:
    """Twice find (names, then emptied directories), one xargs, and an rm for each batch."""
    totals, parents = survey.totals, survey.parent_directories
    directories = totals.directories
    batches = batches_of(survey, options)
    pipe_writes = math.ceil((survey.non_directory_path_bytes + totals.non_directories) / 4096)
    return Counter(
        {
            "unlinkat": totals.entries,
            "getdents64": survey.directory_reads + 2 * directories + 2,
            "openat": 17 + 2 * directories + 3 * batches,
            "close": 22 + 6 * directories + survey.non_empty_directories + parents + 11 * batches,
            "newfstatat": 16 + 6 * directories + totals.non_directories + 2 * batches + 1,
            "fcntl": 3 + 8 * directories + survey.non_empty_directories + parents + 2 * batches,
            "execve": 3 + batches,
            **dict.fromkeys(("clone", "dup2", "pipe2", "wait4"), batches),
            "access": 5 + batches,
            "brk": 11 + 4 * batches,
            "fchdir": 2,
            "fstatfs": 2,
            "getrandom": 3 + batches,
            "ioctl": 3 + batches,
            "lseek": 1 + batches,
            "mmap": 51 + 8 * batches,
            "mprotect": 15 + 3 * batches,
            "munmap": 3 + batches,
            "poll": 4,
            "pread64": 6 + 2 * batches,
            "prlimit64": 5 + batches,
            "read": 14 + 2 * batches + pipe_writes,
            "rt_sigaction": 3,
            "statfs": 4,
            "write": pipe_writes,
        }
    )


def _rsync(survey: Survey, options: Options) -> Calls:
    """Every file costs a stat and an unlink; directories go by rmdir, the last by rmdir(1)."""
    totals = survey.totals
    directories = totals.directories
    leaves = survey.non_empty_directories - survey.parent_directories
    calls = Counter(
        {
            "unlinkat": totals.non_directories,
            "rmdir": directories,
            "getdents64": survey.directory_reads + 2,
            "openat": 23 + directories + 2 * leaves,
            "close": 33 + directories + 2 * leaves,
            "newfstatat": 25 + 2 * directories + totals.non_directories,
            "fcntl": 25 + 2 * leaves,
            "access": 2,
            "brk": 13,
            "chdir": 1,
            "clone": 2,
            "dup2": 2,
            "execve": 2,
            "fchdir": 1,
            "futex": 27,
            "getrandom": 2,
            "mmap": 52,
            "mprotect": 13,
            "munmap": 5,
            "poll": 31,
            "pread64": 4,
            "prlimit64": 3,
            "read": 36,
            "wait4": 9,
            "rt_sigaction": 13,
            "rt_sigprocmask": 1,
            "write": 21,
        }
    )
    if options.keep_root:
        calls.subtract({"rmdir": 1, "execve": 1})
    return calls


def _rmtree(survey: Survey, options: Options) -> Calls:
    """The interpreter starts; then each directory is opened, checked, read, closed, removed."""
    directories = survey.totals.directories
    calls = Counter(
        {
            "unlinkat": survey.totals.entries - 1,
            "rmdir": 1,
            "getdents64": 10 + survey.directory_reads,
            "openat": 66 + directories,
            "close": 48 + 2 * directories,
            "newfstatat": 214 + 4 * directories,
            "fcntl": 6 + 3 * directories,
            "lseek": 67 + directories,
            "access": 1,
            "brk": 14,
            "execve": 1,
            "getrandom": 2,
            "ioctl": 34,
            "mmap": 55,
            "mprotect": 12,
            "munmap": 6,
            "pread64": 2,
            "prlimit64": 1,
            "read": 70,
            "rt_sigaction": 66,
        }
    )
    if options.keep_root:
        calls.subtract({"rmdir": 1, "close": 1, "lseek": 1, "newfstatat": 2})
    return calls
