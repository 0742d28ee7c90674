"""What hosts answer: the fields of tui-fs's JSON that the fleet needs, and sums of them."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tui_fs.fleet.fleet import Answer
from tui_fs.linux.filesystem import FileSystem
from tui_fs.model.estimate import sum_of_calls
from tui_fs.model.outcome import JobState
from tui_fs.model.plan import Expected
from tui_fs.strategies.registry import STRATEGIES

T = TypeVar("T")


class Predicted(Struct, frozen=True):
    """The cost of a strategy."""

    seconds_low: float
    seconds_high: float
    syscalls: dict[str, int]
    processes: int


class ListedPath(Struct, frozen=True):
    """A target of a job on a host."""

    path: str


class HostPlan(Struct, frozen=True):
    """What one host would delete: the fields of its dry run that the fleet needs.

    Attributes:
        directory_ids: of the targets, in their order; the deletion is refused for others.
    """

    strategy: str
    expected: Expected
    predicted: Predicted
    directory_ids: list[str]


class ListedJob(Struct, frozen=True):
    """A job as ``tui-fs jobs --json`` lists it."""

    id: str
    state: JobState
    strategy: str
    targets: list[ListedPath]
    deleted_entries: int | None
    expected_entries: int
    failed: int

    @property
    def is_live(self) -> bool:
        """Whether it runs or is paused."""
        return self.state.is_live

    @property
    def paths(self) -> list[str]:
        """Its targets."""
        return [target.path for target in self.targets]


class Finding(Struct, frozen=True):
    """A finding of a survey."""

    kind: str
    severity: str
    path: str
    meaning: str = ""


class HostSurvey(Struct, frozen=True):
    """The survey of a directory, and the file system that contains it."""

    entries: int
    allocated_bytes: int
    pathologies: list[Finding]
    file_system: FileSystem

    @property
    def worst(self) -> Finding | None:
        """The finding of the highest severity."""
        ranks = ("critical", "warning", "info")
        known = [finding for finding in self.pathologies if finding.severity in ranks]
        return min(known, key=lambda finding: ranks.index(finding.severity), default=None)


class StrategyEstimate(Predicted, frozen=True):
    """The estimate of one strategy, which may not be possible there.

    Attributes:
        other_calls, uncounted_calls: see `Estimate`.
    """

    strategy: str
    feasible: bool
    other_calls: int | None
    uncounted_calls: int


class HostEstimate(Struct, frozen=True):
    """The estimates of all strategies.

    Attributes:
        refused: why nothing may be deleted there; None if it may.
    """

    entries: int
    freed_bytes_min: int
    freed_bytes_max: int
    strategies: list[StrategyEstimate]
    recommended: str | None
    refused: str | None


def understood(kind: type[T], answer: Answer) -> T | str:
    """Return the value of an answer, or why there is none."""
    if answer.value is None:
        return answer.problem or "There was no answer."
    try:
        return msgspec.convert(answer.value, kind)
    except msgspec.ValidationError as error:
        return f"The answer is not understood: {error}."


def total_seconds(seconds: Sequence[float], at_once: int, *, canary: bool = False) -> float:
    """Return how long jobs take if at most some of them run at the same time, in their order.

    Args:
        canary: the others wait for the end of the first.
    """
    if canary and seconds:
        return seconds[0] + total_seconds(seconds[1:], at_once)
    lanes = [0.0] * max(1, min(at_once, len(seconds)))
    for duration in seconds:
        lanes[lanes.index(min(lanes))] += duration
    return max(lanes)


def different_directories(plans: Mapping[str, HostPlan]) -> str:
    """Return why the hosts cannot share one deletion; empty if all see the same directory."""
    ids = {host: tuple(plan.directory_ids) for host, plan in plans.items()}
    if not all(ids.values()):
        return "A host gives no id of its directory."
    if len(set(ids.values())) <= 1:
        return ""
    first, *others = ids
    other = next(host for host in others if ids[host] != ids[first])
    return f"{first} and {other} see different directories there."


class StrategySum(Struct, frozen=True):
    """What a strategy costs on all hosts on which it can run.

    Attributes:
        seconds_low: for all hosts, some at the same time.
        quickest_seconds_low: the shortest time on one host.
        slowest_seconds_high: the longest time on one host.
        calls_are_whole: all calls are predicted, on each host; not so with filters.
    """

    strategy: str
    hosts: int
    seconds_low: float
    seconds_high: float
    quickest_seconds_low: float
    slowest_seconds_high: float
    calls: int
    calls_are_whole: bool
    processes: int

    @property
    def at_least(self) -> str:
        """A sign before the number of calls; `≥` if not all are predicted."""
        return "" if self.calls_are_whole else "≥"


def with_times_of(plan: HostPlan, estimate: HostEstimate) -> HostEstimate:
    """Return the estimates of a host with the times of a plan, which was made later."""
    seconds = {
        "seconds_low": plan.predicted.seconds_low,
        "seconds_high": plan.predicted.seconds_high,
    }
    strategies = [
        replace(each, **seconds) if each.strategy == plan.strategy else each
        for each in estimate.strategies
    ]
    return replace(estimate, strategies=strategies)


def strategy_sums(
    estimates: Mapping[str, HostEstimate], at_once: int, *, canary: bool = False
) -> list[StrategySum]:
    """Return the sum of each strategy over the hosts that do not refuse, in their order."""
    chosen: dict[str, list[StrategyEstimate]] = {name: [] for name in STRATEGIES}
    for estimate in estimates.values():
        for each in estimate.strategies:
            if each.feasible and not estimate.refused and each.strategy in chosen:
                chosen[each.strategy].append(each)
    sums = []
    for name, several in chosen.items():
        lows = [each.seconds_low for each in several]
        highs = [each.seconds_high for each in several]
        sums.append(
            StrategySum(
                name,
                len(several),
                total_seconds(lows, at_once, canary=canary),
                total_seconds(highs, at_once, canary=canary),
                min(lows, default=0.0),
                max(highs, default=0.0),
                sum(
                    sum_of_calls(each.syscalls, each.other_calls, each.uncounted_calls)
                    for each in several
                ),
                all(each.other_calls is not None for each in several),
                sum(each.processes for each in several),
            )
        )
    return sums
