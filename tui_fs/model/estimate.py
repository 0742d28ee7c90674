"""The predicted cost of a deletion."""

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from tui_fs.model.strategy import Argv, Mechanism, StrategyName
from tui_fs.model.units import count, duration

MAX_LINEAR_RATIO = 20.0
"""Times that differ by more are drawn on a logarithmic axis."""
_LOG_WORDS = "time, log scale"
_SHORTEST_S = 0.05
"""Shorter times have no differences that a person cares about."""


class Estimate(Struct, frozen=True):
    """The predicted cost of one strategy on one target.

    Attributes:
        seconds_low: nine of ten runs should take longer.
        seconds_high: nine of ten runs should take less.
        syscalls: predicted calls by name, summed over all processes: removals, opens, reads and
            stats of directories and entries, and process starts.
        other_calls: approximate number of all other calls (start-up, memory, closes); None if
            unknown.
        uncounted_calls: approximate number of further calls, which the source of the counts leaves
            out: those of the engine's start, and of rmdir processes after it.
        peak_memory_bytes: order of magnitude for the largest single process.
        memory_reason: why it needs much memory; empty if it does not.
        feasible: the strategy can run on this target.
        reasons: why it cannot run, or notes about it.
        rests_on: the basis of the predicted time, in words.
        calls_rest_on: the basis of the predicted calls, in words.
        measured_at: when the unit costs were measured (epoch seconds), 0 without a measurement.
        learned_factor: factor learned from finished jobs, already applied to the time.
        advice: why to choose this strategy, or why not, as a sentence.
        race_safe: a hostile writer cannot redirect it outside; confinement may be the reason.
        confined_by: what keeps its tools inside the targets.
    """

    strategy: StrategyName
    seconds_low: float
    seconds: float
    seconds_high: float
    syscalls: dict[str, int]
    other_calls: int | None
    processes: int
    peak_memory_bytes: int
    feasible: bool
    race_safe: bool
    mount_safe: bool
    reasons: tuple[str, ...]
    command: tuple[Argv, ...]
    rests_on: str
    calls_rest_on: str
    advice: str
    measured_at: float = 0.0
    learned_factor: float = 1.0
    memory_reason: str = ""
    confined_by: tuple[Mechanism, ...] = ()
    uncounted_calls: int = 0

    @property
    def memory_words(self) -> str:
        """The magnitude of the peak memory, in words."""
        return f"~{count(self.peak_memory_bytes >> 20)} MiB"

    @property
    def total_calls(self) -> int:
        """The approximate number of all predicted system calls."""
        return sum_of_calls(self.syscalls, self.other_calls, self.uncounted_calls)

    @property
    def at_least(self) -> str:
        """A sign before the number of calls; `≥` if not all are predicted, as with filters."""
        return "≥" if self.other_calls is None else ""


def sum_of_calls(syscalls: Mapping[str, int], other_calls: int | None, uncounted_calls: int) -> int:
    """Return the approximate number of all calls of an `Estimate`, from its three parts."""
    return sum(syscalls.values()) + (other_calls or 0) + uncounted_calls


class TimeAxis(Struct, frozen=True):
    """A common axis for the times of several strategies; it begins at 0 unless it is logarithmic.

    Attributes:
        low_s, high_s: the times at its ends.
    """

    low_s: float
    high_s: float
    is_log: bool

    @classmethod
    def of(cls, estimates: Sequence[Estimate]) -> "TimeAxis":
        """Return the axis for the strategies that can run."""
        feasible = [estimate for estimate in estimates if estimate.feasible]
        lows = (max(_SHORTEST_S, estimate.seconds_low) for estimate in feasible)
        highs = (max(_SHORTEST_S, estimate.seconds_high) for estimate in feasible)
        low_s, high_s = min(lows, default=_SHORTEST_S), max(highs, default=1.0)
        is_log = high_s > MAX_LINEAR_RATIO * low_s
        return cls(low_s if is_log else 0.0, high_s, is_log)

    def position(self, seconds: float) -> float:
        """Return the place of a time on the axis, 0..1."""
        if not self.is_log:
            return max(0.0, min(1.0, seconds / self.high_s))
        span = math.log(self.high_s / self.low_s)
        return max(0.0, min(1.0, math.log(max(seconds, self.low_s) / self.low_s) / span))

    def span(self, estimate: Estimate) -> tuple[float, float, float] | None:
        """Return the places of the low, expected and high time; None if it cannot run."""
        if not estimate.feasible:
            return None
        low, high = self.position(estimate.seconds_low), self.position(estimate.seconds_high)
        return low, self.position(estimate.seconds), high

    def title(self, width: int) -> str:
        """Return the line above the axis: the times at its ends, and whether it is logarithmic."""
        low, high = duration(self.low_s) if self.is_log else "0 s", duration(self.high_s)
        room = width - len(low) - len(high)
        words = "log" if self.is_log else "time"
        if self.is_log and room > len(_LOG_WORDS) + 1:
            words = _LOG_WORDS
        return f"{low}{words:^{room}}{high}" if room > len(words) + 1 else f"{low} {words} {high}"
