"""The recommended strategy, and a sentence for each strategy on why or why not."""

from collections.abc import Sequence

from tui_fs.linux.mounts import is_served
from tui_fs.model.estimate import Estimate
from tui_fs.model.paths import PATH_MAX_BYTES
from tui_fs.model.strategy import StrategyName
from tui_fs.model.survey import Survey
from tui_fs.model.units import count, counted
from tui_fs.strategies.fts import FTS_SORTED_ABOVE
from tui_fs.strategies.registry import STRATEGIES

_SORTED_ON = ("ext2", "ext3", "ext4")  # where the order of inodes is that of the disk
_FEW = 1_000
_MUCH_SLOWER = 1.25
_NOTICEABLE_S = 0.1
_INSTANT_S = 2.0


def recommended(estimates: Sequence[Estimate]) -> StrategyName | None:
    """Return the safest of the strategies that can run, or a much faster one that is as safe.

    Only threads make a strategy much faster, and only where that was measured.
    """
    feasible = {estimate.strategy: estimate for estimate in estimates if estimate.feasible}
    safest_first = sorted(feasible, key=lambda name: STRATEGIES[name].rank)
    if not safest_first:
        return None
    safest = safest_first[0]
    for name in safest_first[1:]:
        threads, baseline = feasible[name], feasible[safest]
        is_as_safe = threads.race_safe or not baseline.race_safe
        if STRATEGIES[name].has_threads and is_as_safe and _gain(threads, baseline):
            return name
    return safest


def recommended_as(estimates: Sequence[Estimate]) -> str:
    """Return ``best``, or ``safest`` if another strategy is predicted to be much faster."""
    name = recommended(estimates)
    seconds = next((e.seconds for e in estimates if e.strategy == name), 0.0)
    is_slower = any(e.feasible and e.seconds * _MUCH_SLOWER <= seconds for e in estimates)
    return "safest" if is_slower and seconds >= _NOTICEABLE_S else "best"


def _gain(threads: Estimate, baseline: Estimate) -> bool:
    """Return whether threads are measured, and predicted, to be much faster than the baseline."""
    is_measured = _measured_s(threads) * _MUCH_SLOWER <= _measured_s(baseline)
    is_predicted = threads.seconds * _MUCH_SLOWER <= baseline.seconds
    return threads.measured_at > 0 and is_measured and is_predicted


def _measured_s(estimate: Estimate) -> float:
    """Return the predicted time without the factor of finished jobs, which are few and differ."""
    return estimate.seconds / estimate.learned_factor


def advice(
    survey: Survey, kind: str, estimates: Sequence[Estimate], rate_per_s: int = 0
) -> dict[StrategyName, str]:
    """Return a sentence for each strategy: why the recommended strategy, and why not another.

    Args:
        kind: type of the file system.
        rate_per_s: maximum number of entries removed per second; 0 for no limit.
    """
    best, best_as = recommended(estimates), recommended_as(estimates)
    by_name = {estimate.strategy: estimate for estimate in estimates}
    single_threaded = [e for e in estimates if not STRATEGIES[e.strategy].has_threads]
    baseline = recommended(single_threaded)
    sentences: dict[StrategyName, str] = {}
    for name, estimate in by_name.items():
        if name != best:
            chosen = by_name.get(best) if best is not None else None
            sentences[name] = _why_not(survey, kind, estimate, chosen, rate_per_s)
            continue
        single = by_name.get(baseline) if baseline is not None else None
        sentences[name] = _why(survey, kind, estimate, single, rate_per_s)
        if best_as == "safest":
            reason = sentences[name].removesuffix(".")
            sentences[name] = f"{reason}; others may be faster, but it is the safest."
    return sentences


def _threads_cannot_help(survey: Survey, kind: str) -> bool:
    """Return whether a server holds nearly all entries in one directory."""
    in_one = survey.max_entries_in_directory
    return is_served(kind) and 10 * in_one >= 9 * survey.totals.entries


def _limit_s(survey: Survey, rate_per_s: int) -> float:
    """Return the shortest time that a limit on the entries per second allows."""
    return (survey.matched or survey.totals).entries / rate_per_s if rate_per_s else 0.0


def _limit_in_words(rate_per_s: int) -> str:
    return f"{counted(rate_per_s, 'entry', 'entries')} per second"


def _why(
    survey: Survey, kind: str, estimate: Estimate, baseline: Estimate | None, rate_per_s: int
) -> str:
    """Return why the recommended strategy fits this tree.

    Args:
        baseline: of the strategy that would be recommended among those without threads.
    """
    if (
        STRATEGIES[estimate.strategy].has_threads
        and baseline is not None
        and _gain(estimate, baseline)
        and not _threads_cannot_help(survey, kind)
    ):
        return (
            f"About {_measured_s(baseline) / _measured_s(estimate):.1f} times as fast as "
            f"{baseline.strategy}, as measured on this file system: several threads delete at "
            "the same time, and no other user can redirect them outside the tree."
        )
    totals, largest = survey.totals, survey.max_entries_in_directory
    best = estimate.strategy
    if survey.matched is not None:
        return f"With a filter, {best} reads every directory, and removes only what matches."
    guarantees = STRATEGIES[best].guarantees
    is_by_descriptor = guarantees.any_depth and guarantees.max_levels is None
    is_safe = estimate.race_safe
    if rate_per_s and _limit_s(survey, rate_per_s) >= estimate.seconds:
        safe = f"; no other user can redirect {best} outside the tree" if is_safe else ""
        limit = _limit_in_words(rate_per_s)
        return f"The limit of {limit} sets the time, so no strategy is faster{safe}."
    if totals.allocated_bytes > (1 << 20) * max(1, totals.entries):
        return (
            f"A few large files: freeing their blocks takes most of the time, and {best} makes "
            "no extra calls."
        )
    if survey.finished and totals.entries < _FEW and estimate.seconds_high < _INSTANT_S:
        safe = ", and no other user can redirect it outside the tree" if is_safe else ""
        return f"With so few entries {best} is instant{safe}."
    if survey.max_path_bytes >= PATH_MAX_BYTES and is_by_descriptor:
        return (
            f"Paths of up to {count(survey.max_path_bytes)} bytes: {best} descends one level at "
            "a time, so no path is too long for it."
        )
    if survey.writable_by_others and is_by_descriptor:
        where = counted(survey.writable_by_others, "directory", "directories")
        return f"Other users can write in {where}, but cannot redirect {best} outside the tree."
    if largest > FTS_SORTED_ABOVE and 2 * largest >= totals.entries:
        if kind in _SORTED_ON and is_by_descriptor:
            how = f"{best} removes the names in inode order, which saves disk seeks"
        else:
            how = "every strategy spends its time removing the names one by one"
        return f"One directory of {count(largest)} entries on {kind}: {how}."
    if totals.directories and totals.entries < 3 * totals.directories:
        return (
            f"Nearly as many directories as files: {best} opens, reads and removes each "
            "directory once; no strategy can do less."
        )
    return (
        f"Removing the names is nearly all of the work and the same for every strategy; {best} "
        f"adds little{', and no other user can redirect it outside the tree' if is_safe else ''}."
    )


def _why_not(
    survey: Survey, kind: str, estimate: Estimate, best: Estimate | None, rate_per_s: int
) -> str:
    """Return why a strategy is not the recommended one."""
    name = estimate.strategy
    if not estimate.feasible:
        return f"It cannot run here: {estimate.reasons[0]}."
    if best is None:
        return ""
    if STRATEGIES[name].has_threads and _threads_cannot_help(survey, kind):
        return (
            "One directory: threads cannot help here, because the kernel removes its entries one "
            f"after the other on {kind}; several clients can (tui-fs delete --shard)."
        )
    if STRATEGIES[name].has_threads and not estimate.measured_at:
        return "The gain of several threads was not measured on this file system."
    words = STRATEGIES[name].trade_off
    ratio = estimate.seconds / best.seconds if best.seconds else 1.0
    if ratio * _MUCH_SLOWER <= 1.0:
        return f"Possibly {ratio:.1f} times the time of {best.strategy}, but {words}."
    if ratio >= _MUCH_SLOWER:
        return f"About {ratio:.1f} times the time of {best.strategy}: {words}."
    if STRATEGIES[name].has_threads and _limit_s(survey, rate_per_s) * _MUCH_SLOWER >= best.seconds:
        words = f"both are limited to {_limit_in_words(rate_per_s)}"
    return f"Not faster than {best.strategy}: {words}."
