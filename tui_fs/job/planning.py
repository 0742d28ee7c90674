"""From a survey to estimates, and from a choice to a plan that can be run."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tui_fs.cost.estimate import Candidate, estimate_all, recommended, with_rmdir
from tui_fs.job.aftermath import without_roots
from tui_fs.job.races import (
    directories_named_from,
    refuse_race,
    stage,
    why_race,
    why_too_many_steps,
)
from tui_fs.job.store import new_job_id, state_directory
from tui_fs.linux.filesystem import file_system_of
from tui_fs.linux.requester import requester_here
from tui_fs.model.calls import TraceSource
from tui_fs.model.errors import BadInput, Missing, Refused
from tui_fs.model.estimate import Estimate
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.plan import Expected, Plan
from tui_fs.model.strategy import Guarantees, Options, StrategyName, flatten
from tui_fs.model.survey import Survey
from tui_fs.model.target import Target
from tui_fs.strategies.registry import STRATEGIES, tools_of, unfit_options

_EMPTY_SHOWN = "EMPTY"


@dataclass(frozen=True, slots=True)
class Forecast:
    """All strategies side by side, for one survey and one set of options.

    Attributes:
        directories: the targets whose tools run in them; command lines name the others in full.
    """

    estimates: tuple[Estimate, ...]
    recommended: StrategyName | None
    directories: tuple[PathStr, ...] = ()

    def of(self, strategy: StrategyName) -> Estimate:
        """Return the estimate of one strategy."""
        return next(one for one in self.estimates if one.strategy is strategy)


def forecast(
    paths: Sequence[str], survey: Survey, options: Options, job_id: str | None = None
) -> Forecast:
    """Return what each strategy would cost.

    Args:
        paths: the targets, which the survey has counted together.
        job_id: the job the commands are meant for; None shows rsync's empty directory as a word.
    """
    candidates: dict[StrategyName, Candidate] = {}
    empty = _empty_directory(job_id)
    inside = directories_named_from(paths)
    keeps = options.keep_root or options.filters.active
    for name, strategy in STRATEGIES.items():
        tools, reasons = tools_of(strategy)
        shown = {tool: tools.get(tool, tool) for tool in strategy.tools}
        staged = stage(strategy, paths, options, shown, empty)
        unfit = [*reasons, *unfit_options(strategy, options)]
        unfit += [
            why
            for why in (
                why_race(strategy, options, paths, survey.writable_by_others),
                why_too_many_steps(strategy, staged),
            )
            if why is not None
        ]
        candidates[name] = Candidate(
            strategy.guarantees,
            flatten(tuple(one.step for one in staged)),
            tuple(unfit),
            targets=len(paths),
            runs=len({(one.targets, one.is_inside) for one in staged})
            - (0 if keeps else len(inside)),
        )
    filesystem = file_system_of(paths[0]).kind
    if len(inside) == len(paths):
        options = replace(options, keep_root=True)
    estimates = estimate_all(survey, options, filesystem, candidates)
    if not keeps:
        estimates = tuple(with_rmdir(estimate, len(inside)) for estimate in estimates)
    return Forecast(estimates, recommended(estimates), inside)


def guarantees_of(strategy: StrategyName) -> Guarantees:
    """Return what a strategy promises."""
    return STRATEGIES[strategy].guarantees


def make_plan(
    targets: Sequence[Target],
    survey: Survey,
    strategy: StrategyName,
    options: Options,
    trace: TraceSource | None = None,
) -> Plan:
    """Return the plan to run.

    Raises:
        Missing, BadInput: the strategy cannot run here.
        Refused: something else was counted, or somebody could lead the strategy astray.
    """
    tools, reasons = tools_of(STRATEGIES[strategy])
    if reasons:
        raise Missing(f"{strategy} cannot run here: {'; '.join(reasons)}.")
    _refuse_exchanged(targets, survey)
    paths = tuple(target.path for target in targets)
    refuse_race(STRATEGIES[strategy], options, paths, survey.writable_by_others)
    if not survey.finished and not (guarantees_of(strategy).race_safe or options.accept_races):
        raise Refused(
            f"Not everything is counted yet, so nobody knows whether others may write in the "
            f"tree, and {strategy} would not be safe against them.",
            "Wait until it is counted, or use rm, find or rmtree.",
            rule="races",
        )
    job_id = new_job_id()
    estimate = forecast(paths, survey, options, job_id).of(strategy)
    if not estimate.feasible:
        raise BadInput(f"{strategy} cannot do this: {'; '.join(estimate.reasons)}.")
    try:
        standing_in = os.getcwd()
    except FileNotFoundError:
        standing_in = ""
    return Plan(
        job_id=job_id,
        created_at=time.time(),
        targets=tuple(targets),
        strategy=strategy,
        options=options,
        tools=tools,
        expected=expected_of(survey, options),
        predicted=estimate,
        confirmed_from=PathStr(standing_in),
        requester=requester_here(),
        writable_by_others=survey.writable_by_others,
        trace=trace,
    )


def expected_of(survey: Survey, options: Options) -> Expected:
    """Return what will be deleted, by the survey."""
    if survey.matched is not None:
        matched = survey.matched
        return Expected(matched, 0, matched.allocated_bytes, survey.complete)
    kept = len(survey.roots) if options.keep_root else 0
    totals = without_roots(survey.totals, kept)
    return Expected(totals, survey.freed_bytes_min, survey.freed_bytes_max, survey.complete)


def _refuse_exchanged(targets: Sequence[Target], survey: Survey) -> None:
    """Raise Refused unless the survey has counted the targets, as far as it has come."""
    counted = [(root.device, root.inode) for root in survey.roots]
    is_short = not counted or (survey.finished and len(counted) < len(targets))
    if is_short or len(counted) > len(targets):
        raise Refused(
            "What was counted is not what is to be deleted.", "Look at it again.", rule="changed"
        )
    for (device, inode), target in zip(counted, targets, strict=False):
        if (device, inode) != (target.pin.device, target.pin.inode):
            raise Refused(
                f"{displayable(target.path)} was exchanged while it was counted.",
                "Look at it again.",
                rule="changed",
            )


def _empty_directory(job_id: str | None) -> str:
    if job_id is None:
        return _EMPTY_SHOWN
    return os.path.join(state_directory(), "jobs", job_id, "empty")
