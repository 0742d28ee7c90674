"""System calls by formula, and how many processes are started.

The formulas hold for the versions in `tui_fs.cost.versions`; `tui_fs.cost.counted` takes their
place for others.
"""

from collections import Counter

from tui_fs.cost.calls_parallel import closed_on, of_parallel, way_of
from tui_fs.cost.calls_rm_find import (
    Calls,
    of_find,
    of_rm,
    of_rm_keeping_root,
    rm_processes_keeping_root,
)
from tui_fs.cost.calls_rmtree import of_rmtree
from tui_fs.cost.calls_rsync import of_rsync
from tui_fs.cost.calls_xargs import batches_of, of_xargs
from tui_fs.model.strategy import Options, StrategyName
from tui_fs.model.survey import Survey

__all__ = [
    "RMDIR_CALLS",
    "batches_of",
    "predicted_calls",
    "processes_started",
]

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
    "rseq": 1,
    "set_robust_list": 1,
    "set_tid_address": 1,
}
"""An rmdir process that takes one directory (coreutils 9.1, glibc 2.36)."""


def predicted_calls(
    survey: Survey,
    strategy: StrategyName,
    options: Options,
    targets: int = 1,
    runs: int = 1,
    *,
    filesystem: str = "",
    is_inside: bool = False,
) -> dict[str, int]:
    """Return the calls of all the strategy's processes together, by name.

    With filters only the removing calls are known (what matches), so only they are given.

    Args:
        targets: how many directories the survey has counted together.
        runs: how often the tools are started for them.
        filesystem: its type, as the mount table names it.
        is_inside: the tools run in the targets and name them ``.``.
    """
    if survey.matched is not None:
        return {"unlinkat": survey.matched.entries}
    calls = _calls_of_a_run(survey, strategy, options, filesystem, runs, is_inside=is_inside)
    start = _calls_of_a_run(Survey(survey.path), strategy, options, filesystem, 1, is_inside=False)
    if strategy is StrategyName.RM and options.keep_root:
        start = of_rm_keeping_root(Survey(survey.path), 1)
    roots = _calls_of_a_root(strategy, options, way_of(survey, is_inside=is_inside))
    for name in {*start, *roots}:
        calls[name] += (runs - 1) * start[name] + (targets - runs) * roots[name]
    return {name: number for name, number in sorted(calls.items()) if number > 0}


def processes_started(
    survey: Survey,
    strategy: StrategyName,
    options: Options,
    runs: int = 1,
    *,
    is_inside: bool = False,
) -> int:
    """Return how many processes run, the forked ones of rsync among them.

    An rmdir for a target whose tools run in it is not among them.
    """
    match strategy:
        case StrategyName.RM if options.keep_root:
            started = rm_processes_keeping_root(survey)
            return runs + (max(runs, started) if started else 0)
        case StrategyName.XARGS:
            return 3 * runs + batches_of(survey, options, runs, is_inside=is_inside)
        case StrategyName.RSYNC:
            return 3 * runs if options.keep_root else 4 * runs
        case StrategyName.RM | StrategyName.FIND | StrategyName.RMTREE | StrategyName.PARALLEL:
            return runs


def _calls_of_a_run(
    survey: Survey,
    strategy: StrategyName,
    options: Options,
    filesystem: str,
    runs: int,
    *,
    is_inside: bool,
) -> Calls:
    match strategy:
        case StrategyName.RM:
            if not options.keep_root:
                return of_rm(survey)
            return of_rm_keeping_root(survey, rm_processes_keeping_root(survey))
        case StrategyName.FIND:
            calls = of_find(survey)
        case StrategyName.XARGS:
            calls = of_xargs(survey, options, runs, is_inside=is_inside)
        case StrategyName.RSYNC:
            calls = of_rsync(survey)
            if not options.keep_root:
                calls.update(RMDIR_CALLS)
            return calls
        case StrategyName.RMTREE:
            return of_rmtree(survey, options)
        case StrategyName.PARALLEL:
            return of_parallel(survey, options, filesystem, is_inside=is_inside)
    if options.keep_root:
        calls["unlinkat"] -= 1
    return calls


def _calls_of_a_root(strategy: StrategyName, options: Options, way: int) -> Calls:
    """Return what a target costs besides its entries, where another one shares its run.

    Args:
        way: directories from the root of all to it, itself among them.
    """
    calls: Calls = Counter()
    match strategy:
        case StrategyName.FIND:
            calls.update({"fstatfs": 1, "close": -1, "fcntl": -1})
        case StrategyName.XARGS:
            calls.update({"fstatfs": 2, "close": -2, "fcntl": -3})
        case StrategyName.RMTREE if not options.keep_root:
            calls.update({"unlinkat": -1, "rmdir": 1, "lseek": -1, "newfstatat": 1})
        case StrategyName.PARALLEL:
            calls.update({"openat2": -1, "fstatfs": 1, "newfstatat": 0 if options.keep_root else 1})
            calls.update({"openat": way, "close": closed_on(way)})
    if options.keep_root:
        calls["unlinkat"] -= 1
    return calls
