"""The predicted cost of a deletion."""

from msgspec import Struct

from tui_fs.model.strategy import Argv, Mechanism, StrategyName
from tui_fs.model.units import count


class Estimate(Struct, frozen=True):
    """The predicted cost of one strategy on one target.

    Attributes:
        seconds_low: nine of ten runs should take longer.
        seconds_high: nine of ten runs should take less.
        syscalls: predicted calls by name, summed over all processes: removals, opens, reads and
            stats of directories and entries, and process starts.
        other_calls: approximate number of all other calls (start-up, memory, closes); None if
            unknown.
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

    @property
    def memory_words(self) -> str:
        """The magnitude of the peak memory, in words."""
        return f"~{count(self.peak_memory_bytes >> 20)} MiB"

    @property
    def total_calls(self) -> int:
        """The approximate number of all predicted system calls."""
        return sum(self.syscalls.values()) + (self.other_calls or 0)
