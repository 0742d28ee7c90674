"""Makes estimates from a survey, and a plan from the chosen strategy."""

import contextlib
import os
import time
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tui_fs.estimate.estimator import (
    Candidate,
    EstimateInputs,
    estimate_all,
    installed_versions,
)
from tui_fs.estimate.preflight import RunConditions
from tui_fs.estimate.recommendation import recommended
from tui_fs.job.calibration.store import load_calibration
from tui_fs.job.conflicts import check_conflicts
from tui_fs.job.outcome import without_roots
from tui_fs.job.path_safety import (
    PreparedStep,
    check_path_race,
    directories_named_from,
    path_race,
    prepare_steps,
    step_limit_problem,
)
from tui_fs.job.permission import check_targets
from tui_fs.job.store import new_job_id, state_directory
from tui_fs.linux.filesystem import file_system_of
from tui_fs.linux.host import current_caller
from tui_fs.linux.limits import slowdown_by_load
from tui_fs.linux.memory import memory_room
from tui_fs.linux.missing_figures import missing_figures
from tui_fs.linux.pins import take_pin
from tui_fs.model.calls import TraceSource
from tui_fs.model.errors import BadInput, Missing, Refused, TuiFsError
from tui_fs.model.estimate import Estimate
from tui_fs.model.figures import FOR_ESTIMATE, Figure, MissingFigure
from tui_fs.model.finding import Finding
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.plan import Expected, Plan
from tui_fs.model.quick_estimate import QuickEstimate
from tui_fs.model.space import metadata_bytes_max
from tui_fs.model.strategy import (
    Confine,
    Guarantees,
    Mechanism,
    Options,
    StrategyName,
    flatten,
)
from tui_fs.model.survey import Survey
from tui_fs.model.target import Pin, Target, in_words, is_file
from tui_fs.model.units import counted
from tui_fs.safety.confinement import mechanisms_for, why_not
from tui_fs.safety.policy import Policy, read_policy
from tui_fs.strategies.base import Strategy
from tui_fs.strategies.registry import (
    RACE_SAFE,
    STRATEGIES,
    strategy_named,
    tools_of,
    unfit_options,
)
from tui_fs.tracing.select_source import likely_source

_EMPTY_SHOWN = "EMPTY"

_ABOUT_FILE = (
    "It compares the file with the confirmed one immediately before it removes the name. The "
    "kernel cannot do both in one step: a file that takes its place within these microseconds is "
    "removed instead, and the report says so."
)


class Forecast(Struct, frozen=True):
    """All strategies side by side, for one survey and one set of options.

    Attributes:
        directories: targets whose tools run in them; command lines have the full paths of the rest.
        expected: the entries to be deleted and the space to be freed.
        missing_figures: figures that the estimates lack.
        file_system: the type of the file system of the first target.
    """

    estimates: tuple[Estimate, ...]
    recommended: StrategyName | None
    directories: tuple[PathStr, ...]
    expected: Expected
    missing_figures: tuple[MissingFigure, ...] = ()
    file_system: str = ""

    def of(self, strategy: StrategyName) -> Estimate:
        """Return the estimate of one strategy."""
        return next(estimate for estimate in self.estimates if estimate.strategy == strategy)


def forecast(
    paths: Sequence[str],
    survey: Survey,
    options: Options,
    trace: TraceSource | None = None,
    *,
    pins: Sequence[Pin] | None = None,
    job_id: str | None = None,
    note: str = "",
    strategies: Iterable[StrategyName] = STRATEGIES,
) -> Forecast:
    """Return the estimates of the strategies.

    Args:
        paths: the targets, which the survey has counted together.
        trace: the requested source of call counts; None for the best.
        pins: the pins of the targets; None to take them now.
        note: why the file system was not calibrated now, or that it is; see `Known.rests_on`.
        job_id: the job that will run the commands; None shows rsync's empty directory as a word.
    """
    candidates: dict[StrategyName, Candidate] = {}
    pins = _pins_now(paths) if pins is None else pins
    empty = _empty_directory(job_id)
    of_file = bool(pins) and pins[0].is_file
    inside = () if of_file else directories_named_from(paths)
    policy = read_policy(known_strategies=STRATEGIES)
    for name in strategies:
        strategy = STRATEGIES[name]
        if of_file and not strategy.guarantees.takes_files:
            continue
        confinement = confinement_of(strategy, options, survey, policy, is_replaceable=bool(inside))
        mechanisms, unconfined = confinement.mechanisms, confinement.problem
        tools, reasons = tools_of(strategy)
        shown = {tool: tools.get(tool, tool) for tool in strategy.tools}
        prepared_steps = prepare_steps(
            strategy, paths, options, shown, empty, pins=pins, confined_by=mechanisms
        )
        speaks = strategy.guarantees.speaks
        unfit = [*reasons, *unfit_options(strategy, options, of_file=of_file)]
        unfit += [] if unconfined is None else [unconfined.sentence.rstrip(".")]
        unfit += [
            reason
            for reason in (
                path_race(
                    strategy,
                    options,
                    paths,
                    survey.writable_by_others,
                    is_confined=bool(mechanisms),
                ),
                step_limit_problem(strategy, prepared_steps),
            )
            if reason is not None
        ]
        candidates[name] = Candidate(
            flatten(tuple(prepared.step for prepared in prepared_steps)),
            tuple(unfit),
            targets=0 if of_file else len(paths),  # directories
            runs=len({step.targets for step in prepared_steps if not step.is_rmdir}),
            trace=likely_source(trace, speaks=True) if speaks else None,
            confined_by=mechanisms,
            rmdirs=_rmdirs(strategy, prepared_steps, inside, paths),
        )
    filesystem = file_system_of(os.path.dirname(paths[0]) if of_file else paths[0])
    expected = expected_of(survey, options, filesystem.kind)
    known = load_calibration(filesystem)
    words = known.rests_on(note)
    is_inside = len(inside) == len(paths)
    directories = (PathStr(os.path.dirname(paths[0])),) if of_file else inside
    place = RunConditions(
        memory_room(),
        installed_versions(candidates),
        filesystem.is_read_only,
        is_inside=is_inside,
        slowdown=slowdown_by_load(),
    )
    source = likely_source(trace)
    basis = EstimateInputs(known.calibration, known.is_of_this, words, source, place)
    if is_inside or options.filters.share is not None:
        options = replace(options, keep_root=True)
    estimates = estimate_all(survey, options, basis, candidates)
    if of_file:
        estimates = tuple(replace(e, race_safe=False, advice=_ABOUT_FILE) for e in estimates)
    missing = missing_figures(FOR_ESTIMATE)
    is_hidden = Figure.PROCESSES in {missing_figure.figure for missing_figure in missing}
    # Root may inspect all but the first process of some containers, which is in their namespace.
    if survey.unchecked_processes and os.geteuid() != 0 and not is_hidden:
        processes = counted(survey.unchecked_processes, "process", "processes")
        reason = f"this user cannot inspect {processes}"
        missing = (*missing, MissingFigure(Figure.NAMESPACES, reason))
    return Forecast(
        estimates, recommended(estimates), directories, expected, missing, filesystem.kind
    )


class Confinement(Struct, frozen=True):
    """What will keep the tools inside the targets.

    Attributes:
        problem: why the job must not run, because it has to be confined; None if it may.
    """

    mechanisms: tuple[Mechanism, ...]
    problem: Refused | None = None


def confinement_of(
    strategy: Strategy,
    options: Options,
    survey: Survey,
    policy: Policy,
    *,
    is_replaceable: bool,
) -> Confinement:
    """Return the confinement of a job.

    Args:
        is_replaceable: another user can replace a directory on the path to a target.
    """
    if policy.confines and options.confine is Confine.OFF:
        sentence = f"--confine off is not allowed here{policy.files}."
        return Confinement((), Refused(sentence, "Omit --confine off.", rule="policy"))
    is_required = policy.confines or options.confine is Confine.ALWAYS
    is_exposed = (
        not strategy.guarantees.race_safe or survey.writable_by_others > 0 or is_replaceable
    )
    wanted = Confine.ALWAYS if is_required else options.confine
    mechanisms = mechanisms_for(wanted, survey.max_depth, is_exposed=is_exposed)
    if mechanisms or not is_required:
        return Confinement(mechanisms)
    return Confinement(
        (),
        Refused(
            f"The kernel cannot keep the tools inside the target: {why_not(survey.max_depth)}.",
            f"The policy requires this{policy.files}."
            if policy.confines
            else "To delete without that, use --confine auto.",
            rule="confine",
        ),
    )


def _rmdirs(
    strategy: Strategy,
    prepared_steps: Sequence[PreparedStep],
    inside: Sequence[str],
    paths: Sequence[str],
) -> tuple[int, int]:
    """Return the rmdir processes that are not steps of the strategy, and their targets."""
    added = [
        step
        for step in prepared_steps
        if step.is_rmdir and not (strategy.ends_with_rmdir and paths[step.targets[0]] not in inside)
    ]
    return len(added), sum(len(step.targets) for step in added)


def forecast_by_estimate(
    paths: Sequence[str],
    estimate: QuickEstimate,
    options: Options,
    trace: TraceSource | None = None,
    *,
    pins: Sequence[Pin] | None = None,
    findings: tuple[Finding, ...] = (),
) -> Forecast:
    """Return the estimates of all strategies by a quick estimate, whose range widens the times.

    Args:
        findings: the findings in the directories so far.
    """
    survey = replace(estimate.survey, findings=findings)
    predicted = forecast(paths, survey, options, trace, pins=pins)
    entries = estimate.entries
    expected = max(1, entries.expected)
    widened = tuple(
        replace(
            strategy,
            seconds_low=strategy.seconds_low * entries.low / expected,
            seconds_high=strategy.seconds_high * entries.high / expected,
            rests_on=f"{strategy.rests_on}. {estimate.basis.rstrip('.')}",
        )
        for strategy in predicted.estimates
    )
    return replace(predicted, estimates=widened)


def with_times_of(plan: Plan, shown: Estimate) -> Plan:
    """Return a plan with the times that the user confirmed, with which its report compares."""
    assert plan.predicted is not None  # by `make_plan`
    seconds = {
        "seconds_low": shown.seconds_low,
        "seconds": shown.seconds,
        "seconds_high": shown.seconds_high,
    }
    return replace(plan, predicted=replace(plan.predicted, **seconds))


def guarantees_of(strategy: StrategyName) -> Guarantees:
    """Return the guarantees of a strategy."""
    return strategy_named(strategy).guarantees


def refuse_uncounted_rate(
    strategy: StrategyName, options: Options, trace: TraceSource | None
) -> None:
    """Raise BadInput if the options limit the rate and no source would count removals."""
    is_counted = trace is not TraceSource.OFF or guarantees_of(strategy).speaks
    if options.pace.rate_per_s and not is_counted:
        raise BadInput(
            "A rate limit needs a count of the removed entries, and --trace off counts nothing.",
            "Omit --trace off.",
        )


def make_plan(
    targets: Sequence[Target],
    survey: Survey,
    strategy: StrategyName,
    options: Options,
    trace: TraceSource | None = None,
    *,
    compares: bool = True,
    job_id: str | None = None,
) -> Plan:
    """Return the plan to run.

    Args:
        job_id: None for a new one.
        compares: the prediction compares the strategy with all others; this runs their tools for
            their versions.

    Raises:
        Missing, BadInput: the strategy cannot run here.
        Refused: the survey counted another directory, or others could redirect the strategy.
    """
    refuse_uncounted_rate(strategy, options, trace)
    if not guarantees_of(strategy).speaks:
        options = replace(options, pace=replace(options.pace, threads=0))
    tools, reasons = tools_of(STRATEGIES[strategy])
    if reasons:
        raise Missing(f"{strategy} cannot run here: {'; '.join(reasons)}.")
    _refuse_exchanged(targets, survey)
    paths = tuple(target.path for target in targets)
    policy = read_policy(known_strategies=STRATEGIES)
    of_file = is_file(targets)
    if of_file and not guarantees_of(strategy).takes_files:
        able = ", ".join(s.name for s in STRATEGIES.values() if s.guarantees.takes_files)
        raise BadInput(f"{strategy} does not delete single files.", f"Use --strategy {able}.")
    is_replaceable = not of_file and bool(directories_named_from(paths))
    confinement = confinement_of(
        STRATEGIES[strategy], options, survey, policy, is_replaceable=is_replaceable
    )
    if confinement.problem is not None:
        raise confinement.problem
    is_confined = bool(confinement.mechanisms)
    check_path_race(
        STRATEGIES[strategy], options, paths, survey.writable_by_others, is_confined=is_confined
    )
    is_safe = guarantees_of(strategy).race_safe or options.accept_races or is_confined
    if not survey.finished and not is_safe:
        raise Refused(
            "The scan has not finished, so it is not yet known whether another user can write in "
            f"the tree and redirect {strategy} outside.",
            f"Wait for the scan, or use a race-safe strategy: {RACE_SAFE}.",
            rule="races",
        )
    job_id = job_id or new_job_id()
    pins = [target.pin for target in targets]
    prediction = forecast(
        paths,
        survey,
        options,
        trace,
        pins=pins,
        job_id=job_id,
        strategies=STRATEGIES if compares else (strategy,),
    )
    estimate = prediction.of(strategy)
    if not estimate.feasible:
        check_conflicts(targets)  # the tools of a running job may be the reason
        raise BadInput(f"{strategy} cannot delete this: {'; '.join(estimate.reasons)}.")
    try:
        cwd = os.getcwd()
    except FileNotFoundError:
        cwd = ""
    return Plan(
        job_id=job_id,
        created_at=time.time(),
        targets=tuple(targets),
        strategy=strategy,
        options=options,
        tools=tools,
        expected=prediction.expected,
        predicted=estimate,
        confirmed_from=PathStr(cwd),
        requester=current_caller(),
        writable_by_others=survey.writable_by_others,
        trace=trace,
        confined_by=estimate.confined_by,
        file_system=prediction.file_system,
    )


def expected_of(survey: Survey, options: Options, filesystem: str) -> Expected:
    """Return the entries to be deleted and the space to be freed, by the survey.

    Args:
        filesystem: the type of the file system.
    """
    if survey.matched is not None:
        matched = survey.matched
        has_no_other_names = (
            survey.freed_bytes_min == survey.freed_bytes_max
            and survey.inodes == survey.totals.entries
        )
        return Expected(
            matched,
            matched.allocated_bytes if has_no_other_names else 0,
            matched.allocated_bytes,
            survey.complete,
            metadata_bytes_max(filesystem, matched.entries),
            matching_directories=survey.matching_directories,
            is_on_overlay=survey.is_on_overlay,
            linked_names=_linked_names(survey),
        )
    kept = kept_bytes = 0
    if options.keep_root or options.filters.share is not None:
        kept = len(survey.roots)
        for root in survey.roots:
            with contextlib.suppress(OSError):  # gone by now; the job reports that
                kept_bytes += os.lstat(root.path).st_blocks * 512
    totals = without_roots(survey.totals, kept)
    least = max(0, survey.freed_bytes_min - kept_bytes)
    allocated = survey.freed_bytes_max
    return Expected(
        totals,
        least,
        allocated,
        survey.complete,
        metadata_bytes_max(filesystem, totals.entries),
        shared_bytes=min(survey.shared_bytes, allocated - least),
        is_on_overlay=survey.is_on_overlay,
        linked_names=_linked_names(survey),
    )


def _linked_names(survey: Survey) -> int:
    return survey.totals.entries - survey.inodes + survey.inodes_linked_outside


def _refuse_exchanged(targets: Sequence[Target], survey: Survey) -> None:
    """Raise Refused if the survey, so far, has counted other directories than the targets."""
    counted = [(root.device, root.inode) for root in survey.roots]
    is_short = not counted or (survey.finished and len(counted) < len(targets))
    if is_short or len(counted) > len(targets):
        raise Refused(
            "A target changed while it was scanned.", "Check it and scan it again.", rule="changed"
        )
    for (device, inode), target in zip(counted, targets, strict=False):
        if (device, inode) != (target.pin.device, target.pin.inode):
            raise Refused(
                f"{displayable(target.path)} was replaced while it was scanned.",
                "Check it and scan it again.",
                rule="changed",
            )


def _pins_now(paths: Sequence[str]) -> list[Pin]:
    """Return the pins of the targets; an empty list if one is gone, which the job reports."""
    try:
        return [take_pin(path, any_kind=True) for path in paths]
    except (OSError, TuiFsError):
        return []


def _empty_directory(job_id: str | None) -> str:
    if job_id is None:
        return _EMPTY_SHOWN
    return os.path.join(state_directory(), "jobs", job_id, "empty")


_SHOWN = 3


class Remainder(Struct, frozen=True):
    """The targets that a job left when it died.

    Attributes:
        targets: the targets that still exist.
        gone: a sentence about the rest, whose paths may lead to other directories now; empty if
            there are none.
    """

    targets: tuple[Target, ...]
    gone: str = ""


def remainder_of(plan: Plan) -> Remainder:
    """Return the pinned targets that a job left when it died.

    After a restart of the machine the mount id differs, the device number may differ, and the inode
    number stays. File systems reuse inode numbers, and another disk mounted at the same path
    starts with the same numbers. So a directory with another birth time is another directory.
    Without birth times a directory cannot be recognized.

    Raises:
        BadInput: nothing is left, or a target cannot be examined.
        Refused: other directories have replaced all targets, or a rule forbids one.
    """
    before = {target.path: target for target in plan.targets}
    left = [path for path in plan.paths if os.path.lexists(path)]
    if not left:
        is_gone = "is" if len(before) == 1 else "are"
        raise BadInput(f"{in_words(plan.paths)} {is_gone} gone: nothing is left to delete.")
    targets = check_targets(left, allows_file=is_file(plan.targets))
    same = tuple(
        target
        for path, target in zip(left, targets, strict=True)
        if target.path == path and _is_same(target, before[path], plan)
    )
    if not same:
        is_or_are, their, them = f"is not the {plan.targets[0].noun}", "its", "it"
        if len(left) > 1:
            is_or_are, their, them = "are not the directories", "their", "them"
        raise Refused(
            f"{in_words(left)} {is_or_are} that job {plan.job_id} began to delete.",
            f"Check {their} content, and delete {them} in a new job.",
            rule="changed",
        )
    gone = [path for path in plan.paths if path not in {target.path for target in same}]
    return Remainder(same, _gone(gone, len(before)) if gone else "")


def _is_same(target: Target, before: Target, plan: Plan) -> bool:
    """Return whether a target is the job's directory; Refused if that cannot be determined."""
    if target.pin.inode != before.pin.inode:
        return False
    if target.pin.birth_ns is None or before.pin.birth_ns is None:
        raise Refused(
            f"The file system of {displayable(target.path)} does not record when a {target.noun} "
            f"was created, so this may not be the {target.noun} that job {plan.job_id} began to "
            "delete.",
            "Check its content, and delete it in a new job.",
            rule="changed",
        )
    return target.pin.is_same_later(before.pin)


def _gone(gone: list[PathStr], number: int) -> str:
    shown = ", ".join(displayable(path) for path in gone[:_SHOWN])
    more = f" and {len(gone) - _SHOWN:,} more" if len(gone) > _SHOWN else ""
    verb = "was" if len(gone) == 1 else "were"
    directories = counted(number, "directory", "directories")
    return f"{len(gone):,} of {directories} {verb} deleted or replaced: {shown}{more}."
