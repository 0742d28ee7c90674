"""The estimates of all strategies side by side, and the one to recommend."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tui_fs.cost.advice import advice
from tui_fs.cost.calibration import Calibration
from tui_fs.cost.calls import RMDIR_CALLS, predicted_calls, processes_started
from tui_fs.cost.calls_parallel import calls_together
from tui_fs.cost.counted import CallModel
from tui_fs.cost.feasible import Surroundings, feasibility
from tui_fs.cost.memory import peak_memory_bytes
from tui_fs.cost.time import experience_factor, predicted_seconds
from tui_fs.cost.versions import formulas_hold, versions_used
from tui_fs.model.calls import REMOVING_CALLS, TraceSource
from tui_fs.model.estimate import Estimate
from tui_fs.model.strategy import Argv, Guarantees, Options, StrategyName
from tui_fs.model.survey import Survey


@dataclass(frozen=True, slots=True)
class Basis:
    """What the time of all candidates rests on.

    Attributes:
        is_of_this: the calibration was made on the targets' own file system.
        words: what the times rest on, for a person.
        trace: what will count the calls, which takes time.
        place: what else matters there.
        is_cold: the times are those of a tree of which nothing is in memory.
    """

    calibration: Calibration
    is_of_this: bool
    words: str
    trace: TraceSource = TraceSource.OFF
    place: Surroundings = field(default_factory=Surroundings)
    is_cold: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """A strategy as the estimate needs to know it.

    Attributes:
        unfit: reasons why it cannot run here (its tool is missing, say).
        targets: how many directories it is to delete.
        runs: how often its tools are started for them, rmdir for the directory itself left out.
        trace: what will count its calls; None for what counts those of every other one.
    """

    guarantees: Guarantees
    command: tuple[Argv, ...]
    unfit: tuple[str, ...]
    targets: int = 1
    runs: int = 1
    trace: TraceSource | None = None


def estimate_all(
    survey: Survey,
    options: Options,
    basis: Basis,
    candidates: Mapping[StrategyName, Candidate],
) -> tuple[Estimate, ...]:
    """Return an estimate for each candidate, in their order."""
    estimates = tuple(
        _estimate(survey, options, basis, name, candidate) for name, candidate in candidates.items()
    )
    sentences = advice(survey, basis.calibration.kind, estimates)
    return tuple(replace(one, advice=sentences[one.strategy]) for one in estimates)


def with_rmdir(estimate: Estimate, number: int) -> Estimate:
    """Return the estimate of emptying targets with those of rmdir processes added."""
    calls = Counter(estimate.syscalls)
    for name, each in RMDIR_CALLS.items() if number else ():
        calls[name] += number * each
    processes = estimate.processes + number
    return replace(estimate, syscalls=dict(sorted(calls.items())), processes=processes)


def _estimate(
    survey: Survey, options: Options, basis: Basis, name: StrategyName, candidate: Candidate
) -> Estimate:
    guarantees, kind = candidate.guarantees, basis.calibration.kind
    peak_bytes = peak_memory_bytes(survey, name, options, kind)
    found = feasibility(survey, name, options, guarantees, peak_bytes, basis.place)
    hindrances = (*candidate.unfit, *found.hindrances)
    notes = found.notes
    if not guarantees.race_safe:
        notes = (*notes, "not safe where somebody else can write in the tree")
    calls, calls_rest_on = _calls(survey, options, basis, name, candidate)
    runs = candidate.runs
    seconds = predicted_seconds(
        survey,
        name,
        options,
        basis.calibration,
        is_of_this=basis.is_of_this,
        runs=runs,
        trace=candidate.trace or basis.trace,
        calls=sum(calls.values()),
        is_cold=basis.is_cold,
    )
    return Estimate(
        strategy=name,
        seconds_low=seconds.low,
        seconds=seconds.expected,
        seconds_high=seconds.high,
        syscalls=calls,
        calls_rest_on=calls_rest_on,
        processes=processes_started(survey, name, options, runs, is_inside=basis.place.is_inside),
        peak_memory_bytes=peak_bytes,
        feasible=not hindrances,
        race_safe=guarantees.race_safe,
        mount_safe=guarantees.mount_safe,
        reasons=(*hindrances, *notes),
        command=candidate.command,
        rests_on=basis.words,
        advice="",
        measured_at=basis.calibration.measured_at if basis.is_of_this else 0.0,
        experience_factor=experience_factor(basis.calibration, name, is_of_this=basis.is_of_this),
    )


def _calls(
    survey: Survey, options: Options, basis: Basis, name: StrategyName, candidate: Candidate
) -> tuple[dict[str, int], str]:
    """Return the predicted calls, and what they rest on."""
    kind, is_inside, runs = basis.calibration.kind, basis.place.is_inside, candidate.runs
    by_formula = predicted_calls(
        survey, name, options, candidate.targets, runs, filesystem=kind, is_inside=is_inside
    )
    versions = basis.place.versions or {}
    if formulas_hold(name, versions) or survey.matched is not None:
        return by_formula, "formulas for the installed versions"
    counted = basis.calibration.counted.get(name.value)
    if counted is None or options.keep_root or counted.versions != versions_used(name, versions):
        return by_formula, "formulas for other versions of the tools: some calls may be off"
    model = CallModel(name, keep_root=False, shares=counted.shares)
    calls = Counter(model.predicted(survey, options, is_inside=is_inside))
    if name is StrategyName.PARALLEL:  # of the small trees none was large enough for that
        calls += calls_together(survey, options, kind)
    start = Counter(model.predicted(Survey(survey.path), options))
    for call, number in start.items():
        calls[call] += (runs - 1) * number if call not in REMOVING_CALLS else 0
    return dict(sorted(calls.items())), "small trees deleted under counters with the tools here"
