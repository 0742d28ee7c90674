"""The estimates of all strategies side by side, and the one to recommend."""

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from tui_fs.estimate.calibration import Calibration
from tui_fs.estimate.preflight import RunConditions, check_preflight
from tui_fs.estimate.recommendation import advice
from tui_fs.estimate.time import learned_factor, predicted_seconds
from tui_fs.linux.tools import find_tool
from tui_fs.model.calls import TraceSource
from tui_fs.model.errors import Missing
from tui_fs.model.estimate import Estimate
from tui_fs.model.strategy import Argv, Mechanism, Options, StrategyName
from tui_fs.model.survey import Survey
from tui_fs.strategies.base import Strategy
from tui_fs.strategies.prediction import RMDIR_CALLS, Work, about_bytes, apply
from tui_fs.strategies.registry import STRATEGIES

MUCH_MEMORY_BYTES = 16 << 20
"""An estimate of at least this much memory states what needs it."""


class EstimateInputs(Struct, frozen=True):
    """What the predicted times of all candidates depend on.

    Attributes:
        is_of_this: the calibration was made on the targets' own file system.
        words: basis of the times, as text for the user.
        trace: source that will count the calls, which takes time.
        place: further conditions of the run.
    """

    calibration: Calibration
    is_of_this: bool
    words: str
    trace: TraceSource = TraceSource.OFF
    place: RunConditions = field(default_factory=RunConditions)


class Candidate(Struct, frozen=True):
    """The command of a strategy, and how often it would run.

    Attributes:
        unfit: reasons why it cannot run here (its tool is missing, say).
        targets: how many directories it is to delete.
        runs: how often its tools are started for the targets; rmdir of a target does not count.
        trace: source that will count its calls; None for that of the inputs.
        confined_by: what will keep its tools inside the targets.
        rmdirs: rmdir processes that follow the strategy's own steps, and their targets.
    """

    command: tuple[Argv, ...]
    unfit: tuple[str, ...]
    targets: int = 1
    runs: int = 1
    trace: TraceSource | None = None
    confined_by: tuple[Mechanism, ...] = ()
    rmdirs: tuple[int, int] = (0, 0)


def estimate_all(
    survey: Survey,
    options: Options,
    inputs: EstimateInputs,
    candidates: Mapping[StrategyName, Candidate],
) -> tuple[Estimate, ...]:
    """Return an estimate for each candidate, in their order."""
    estimates = tuple(
        _with_rmdir(_estimate(survey, options, inputs, name, candidate), candidate)
        for name, candidate in candidates.items()
    )
    rate_per_s = options.pace.rate_per_s
    sentences = advice(survey, inputs.calibration.kind, estimates, rate_per_s)
    return tuple(replace(estimate, advice=sentences[estimate.strategy]) for estimate in estimates)


def _with_rmdir(estimate: Estimate, candidate: Candidate) -> Estimate:
    """Return the estimate of emptying targets with those of rmdir processes added."""
    processes, targets = candidate.rmdirs
    if not processes:
        return estimate
    added = apply(RMDIR_CALLS, {"start": processes, "targets": targets})
    if candidate.trace is TraceSource.ENGINE:  # the engine counts only its own calls
        is_partial = estimate.other_calls is None
        return replace(
            estimate,
            processes=estimate.processes + processes,
            uncounted_calls=0 if is_partial else estimate.uncounted_calls + added.total,
        )
    calls = Counter(estimate.syscalls) + Counter(added.calls)
    other_calls = estimate.other_calls
    return replace(
        estimate,
        syscalls=dict(sorted(calls.items())),
        other_calls=None if other_calls is None else other_calls + (added.other or 0),
        processes=estimate.processes + processes,
    )


def _estimate(
    survey: Survey,
    options: Options,
    inputs: EstimateInputs,
    name: StrategyName,
    candidate: Candidate,
) -> Estimate:
    strategy = STRATEGIES[name]
    guarantees = strategy.guarantees
    trace = candidate.trace or inputs.trace
    work = Work(
        survey,
        options,
        inputs.calibration.kind,
        candidate.targets,
        candidate.runs,
        is_inside=inputs.place.is_inside,
        counts_itself=trace is TraceSource.ENGINE,
        emptied=candidate.rmdirs[1],
    )
    peak_bytes = about_bytes(strategy.peak_memory_bytes(work))
    preflight = check_preflight(strategy, work, peak_bytes, inputs.place)
    hindrances = (*candidate.unfit, *preflight.hindrances)
    notes = preflight.notes
    race_safe = guarantees.race_safe or bool(candidate.confined_by)
    if not race_safe:
        notes = (*notes, "not safe where another user can write in the tree")
    calls = strategy.predicted_calls(work)
    with_start = strategy.predicted_calls(replace(work, counts_itself=False))
    seconds = predicted_seconds(
        strategy,
        work,
        inputs.calibration,
        is_of_this=inputs.is_of_this,
        trace=trace,
        calls=calls.total,
        slowdown=inputs.place.slowdown,
    )
    return Estimate(
        strategy=name,
        seconds_low=seconds.low,
        seconds=seconds.expected,
        seconds_high=seconds.high,
        syscalls=calls.calls,
        other_calls=calls.other,
        uncounted_calls=with_start.total - calls.total,
        calls_rest_on=_calls_basis(strategy, work, inputs.place.versions or {}),
        processes=strategy.processes(work),
        peak_memory_bytes=peak_bytes,
        feasible=not hindrances,
        race_safe=race_safe,
        mount_safe=guarantees.mount_safe,
        reasons=(*hindrances, *notes),
        command=candidate.command,
        rests_on=inputs.words,
        advice="",
        measured_at=inputs.calibration.measured_at if inputs.is_of_this else 0.0,
        learned_factor=learned_factor(inputs.calibration, name, is_of_this=inputs.is_of_this),
        confined_by=candidate.confined_by,
        memory_reason=strategy.memory_reason if peak_bytes >= MUCH_MEMORY_BYTES else "",
    )


def _calls_basis(strategy: Strategy, work: Work, versions: Mapping[str, str]) -> str:
    if is_measured(strategy, versions) or work.survey.matched is not None:
        return "measurements with the installed versions"
    return "measurements with other versions of the tools: the number of opens may differ"


def is_measured(strategy: Strategy, versions: Mapping[str, str]) -> bool:
    """Return whether the strategy's table of calls was measured with these versions of its tools.

    Args:
        versions: of each tool the first line of its ``--version``; see `installed_versions`.
    """
    return all(
        _begins_with(versions.get(tool, ""), measured)
        for tool, measured in strategy.measured_with.items()
    )


def installed_versions(strategies: Iterable[StrategyName] = STRATEGIES) -> dict[str, str]:
    """Return the versions of the tools that the calls of some strategies depend on.

    A tool that is missing, or cannot be started now, has no version.
    """
    versions: dict[str, str] = {}
    for name in {tool for strategy in strategies for tool in STRATEGIES[strategy].measured_with}:
        with contextlib.suppress(
            Missing
        ):  # no table is used for it; the strategy reports the reason
            if (tool := find_tool(name)) is not None:
                versions[name] = tool.version
    return versions


def _begins_with(version: str, measured: str) -> bool:
    """Return whether a version is the measured one or a correction of it: 9.1.4, but not 9.10."""
    return version.startswith(measured) and not version[len(measured) : len(measured) + 1].isdigit()
