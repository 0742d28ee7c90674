"""The estimates of all strategies side by side, and the one to recommend."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tui_fs.cost.calls import (
    FTS_BYTES_PER_ENTRY,
    FTS_ENTRIES_AT_ONCE,
    RMDIR_CALLS,
    batches_of,
    predicted_calls,
)
from tui_fs.cost.time import first_estimate, rests_on
from tui_fs.model.estimate import Estimate
from tui_fs.model.strategy import Argv, Guarantees, Options, StrategyName
from tui_fs.model.survey import Survey

PATH_MAX_BYTES = 4_096
_RSYNC_BYTES_PER_ENTRY = 80
_PYTHON_BYTES_PER_ENTRY = 160
_BASE_MEMORY = {
    StrategyName.RM: 2 << 20,
    StrategyName.FIND: 4 << 20,
    StrategyName.XARGS: 4 << 20,
    StrategyName.RSYNC: 5 << 20,
    StrategyName.RMTREE: 10 << 20,
}
_SAFEST_FIRST = (
    StrategyName.RM,
    StrategyName.FIND,
    StrategyName.RMTREE,
    StrategyName.RSYNC,
    StrategyName.XARGS,
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A strategy as the estimate needs to know it.

    Attributes:
        unfit: reasons why it cannot run here (its tool is missing, say).
        targets: how many directories it is to delete.
        runs: how often its tools are started for them, rmdir for the directory itself left out.
    """

    guarantees: Guarantees
    command: tuple[Argv, ...]
    unfit: tuple[str, ...]
    targets: int = 1
    runs: int = 1


def estimate_all(
    survey: Survey,
    options: Options,
    filesystem: str,
    candidates: Mapping[StrategyName, Candidate],
) -> tuple[Estimate, ...]:
    """Return an estimate for each candidate, in their order."""
    return tuple(
        _estimate(survey, options, filesystem, name, candidate)
        for name, candidate in candidates.items()
    )


def with_rmdir(estimate: Estimate, number: int) -> Estimate:
    """Return the estimate of emptying targets with those of rmdir processes added."""
    calls = Counter(estimate.syscalls)
    for name, each in RMDIR_CALLS.items() if number else ():
        calls[name] += number * each
    processes = estimate.processes + number
    return replace(estimate, syscalls=dict(sorted(calls.items())), processes=processes)


def recommended(estimates: tuple[Estimate, ...]) -> StrategyName | None:
    """Return the safest of the strategies that can run; rm and find are equally fast."""
    feasible = {estimate.strategy for estimate in estimates if estimate.feasible}
    for name in _SAFEST_FIRST:
        if name in feasible:
            return name
    return None


def _estimate(
    survey: Survey, options: Options, filesystem: str, name: StrategyName, candidate: Candidate
) -> Estimate:
    guarantees = candidate.guarantees
    hindrances = list(candidate.unfit)
    if survey.max_path_bytes >= PATH_MAX_BYTES and not guarantees.any_depth:
        hindrances.append(
            f"{name} works by path and stops at 4,096 bytes; "
            f"the longest here has {survey.max_path_bytes:,}"
        )
    most = guarantees.max_levels
    if most is not None and survey.max_depth > most:
        hindrances.append(
            f"{name} calls itself for each level and stops at about {most}; "
            f"this tree has {survey.max_depth:,}"
        )
    notes = [] if guarantees.race_safe else ["not safe where somebody else can write in the tree"]
    runs = candidate.runs
    seconds = first_estimate(survey, name, options, filesystem, runs)
    return Estimate(
        strategy=name,
        seconds_low=seconds.low,
        seconds=seconds.expected,
        seconds_high=seconds.high,
        syscalls=predicted_calls(survey, name, options, candidate.targets, runs),
        processes=_processes(survey, options, name, runs),
        peak_memory_bytes=_peak_memory_bytes(survey, name),
        feasible=not hindrances,
        race_safe=guarantees.race_safe,
        mount_safe=guarantees.mount_safe,
        reasons=(*hindrances, *notes),
        command=candidate.command,
        rests_on=rests_on(filesystem),
    )


def _processes(survey: Survey, options: Options, name: StrategyName, runs: int) -> int:
    match name:
        case StrategyName.RM:
            return 2 * runs if options.keep_root else runs
        case StrategyName.FIND:
            return runs
        case StrategyName.XARGS:
            return 3 * runs + batches_of(survey, options)
        case StrategyName.RSYNC:
            return 3 * runs if options.keep_root else 4 * runs
        case StrategyName.RMTREE:
            return runs


def _peak_memory_bytes(survey: Survey, name: StrategyName) -> int:
    largest = survey.max_entries_in_directory
    if name is StrategyName.RSYNC:
        return _BASE_MEMORY[name] + largest * _RSYNC_BYTES_PER_ENTRY
    if name is StrategyName.RMTREE:
        return _BASE_MEMORY[name] + largest * _PYTHON_BYTES_PER_ENTRY
    return _BASE_MEMORY[name] + min(largest, FTS_ENTRIES_AT_ONCE) * FTS_BYTES_PER_ENTRY
