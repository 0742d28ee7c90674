"""From a survey to estimates, and from a choice to a plan that can be run."""

import os
import time
from dataclasses import dataclass, replace

from tui_fs.cost.estimate import Candidate, estimate_all, recommended, with_rmdir
from tui_fs.job.aftermath import without_root
from tui_fs.job.races import (
    directory_named_from,
    is_firm,
    refuse_race,
    stage,
    why_race,
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
        directory: where the command lines name the target from; None if they give its path.
    """

    estimates: tuple[Estimate, ...]
    recommended: StrategyName | None
    directory: PathStr | None = None

    def of(self, strategy: StrategyName) -> Estimate:
        """Return the estimate of one strategy."""
        return next(one for one in self.estimates if one.strategy is strategy)


def forecast(survey: Survey, options: Options, job_id: str | None = None) -> Forecast:
    """Return what each strategy would cost.

    Args:
        job_id: the job the commands are meant for; None shows rsync's empty directory as a word.
    """
    candidates: dict[StrategyName, Candidate] = {}
    empty = _empty_directory(job_id)
    for name, strategy in STRATEGIES.items():
        tools, reasons = tools_of(strategy)
        shown = {tool: tools.get(tool, tool) for tool in strategy.tools}
        staging = stage(strategy, survey.path, options, shown, empty)
        unfit = (*reasons, *unfit_options(strategy, options))
        race = why_race(strategy, options, survey.path, survey.writable_by_others)
        if race is not None:
            unfit = (*unfit, race)
        candidates[name] = Candidate(strategy.guarantees, flatten(staging.steps), unfit)
    filesystem = file_system_of(survey.path).kind
    if is_firm(survey.path):
        estimates = estimate_all(survey, options, filesystem, candidates)
    else:
        inside = replace(options, keep_root=True)
        estimates = estimate_all(survey, inside, filesystem, candidates)
        if not (options.keep_root or options.filters.active):
            estimates = tuple(with_rmdir(estimate) for estimate in estimates)
    return Forecast(estimates, recommended(estimates), directory_named_from(survey.path))


def guarantees_of(strategy: StrategyName) -> Guarantees:
    """Return what a strategy promises."""
    return STRATEGIES[strategy].guarantees


def make_plan(
    target: Target,
    survey: Survey,
    strategy: StrategyName,
    options: Options,
    trace: TraceSource | None = None,
) -> Plan:
    """Return the plan to run; Missing or BadInput if the strategy cannot run here."""
    tools, reasons = tools_of(STRATEGIES[strategy])
    if reasons:
        raise Missing(f"{strategy} cannot run here: {'; '.join(reasons)}.")
    if [(r.device, r.inode) for r in survey.roots] != [(target.pin.device, target.pin.inode)]:
        raise Refused(
            f"{displayable(target.path)} was exchanged while it was counted.",
            "Look at it again.",
            rule="changed",
        )
    refuse_race(STRATEGIES[strategy], options, target.path, survey.writable_by_others)
    if not survey.finished and not (guarantees_of(strategy).race_safe or options.accept_races):
        raise Refused(
            f"Not everything is counted yet, so nobody knows whether others may write in the "
            f"tree, and {strategy} would not be safe against them.",
            "Wait until it is counted, or use rm, find or rmtree.",
            rule="races",
        )
    job_id = new_job_id()
    estimate = forecast(survey, options, job_id).of(strategy)
    if not estimate.feasible:
        raise BadInput(f"{strategy} cannot do this: {'; '.join(estimate.reasons)}.")
    try:
        standing_in = os.getcwd()
    except FileNotFoundError:
        standing_in = ""
    return Plan(
        job_id=job_id,
        created_at=time.time(),
        target=target,
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
    totals = without_root(survey.totals) if options.keep_root else survey.totals
    return Expected(totals, survey.freed_bytes_min, survey.freed_bytes_max, survey.complete)


def _empty_directory(job_id: str | None) -> str:
    if job_id is None:
        return _EMPTY_SHOWN
    return os.path.join(state_directory(), "jobs", job_id, "empty")
