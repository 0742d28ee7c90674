"""What a deletion is predicted to cost."""

from dataclasses import dataclass

from tui_fs.model.strategy import Argv, StrategyName
from tui_fs.model.units import count


@dataclass(frozen=True, slots=True)
class Estimate:
    """The predicted cost of one strategy on one target.

    Attributes:
        seconds_low: nine of ten runs should take longer.
        seconds_high: nine of ten runs should take less.
        syscalls: predicted calls by name, of all processes together: those that remove, open, read
            and ask for the status of directories and entries, and that start processes.
        other_calls: about how many all other calls are (start-up, memory, closes); None if not
            known.
        peak_memory_bytes: an order of magnitude, of the largest single process.
        memory_reason: why it needs so much memory; empty where it is not much.
        feasible: whether the strategy can be run here at all.
        reasons: why it cannot be run, or what to know about it.
        rests_on: where the time comes from, in words.
        calls_rest_on: where the calls come from, likewise.
        measured_at: when the prices were measured (epoch seconds), 0 if nobody has.
        learned_factor: of finished jobs, by which the time was multiplied.
        advice: why this strategy is the one to take, or why not, in a sentence.
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

    @property
    def memory_words(self) -> str:
        """The magnitude of the peak memory, for a person."""
        return f"~{count(self.peak_memory_bytes >> 20)} MiB"

    @property
    def total_calls(self) -> int:
        """All predicted system calls, about."""
        return sum(self.syscalls.values()) + (self.other_calls or 0)
