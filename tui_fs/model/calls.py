"""System call counts and where they come from."""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tui_fs.model.strategy import StrategyName
from tui_fs.model.units import count

REMOVING_CALLS = frozenset({"unlink", "unlinkat", "rmdir"})

OF_CHANCE = {
    StrategyName.XARGS: frozenset({"wait4"}),
    StrategyName.RSYNC: frozenset({"poll", "read", "wait4"}),
    StrategyName.PARALLEL: frozenset({"chdir", "close", "fchdir", "fcntl", "openat"}),
}
"""By how processes or threads interleave: the tree alone does not decide how many there are."""
CHANCE_NOTE = "~ about: which process or thread is first has a part"
"""What a table says whose numbers are from `predicted_text`."""


class TraceSource(enum.StrEnum):
    """Who counts."""

    PERF = "perf"
    ENGINE = "engine"
    BPF = "bpf"
    STRACE = "strace"
    OUTPUT = "output"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class CallCount:
    """How often a system call returned, and how often with an error.

    Attributes:
        seconds: time spent in the call, None where the source does not measure it.
    """

    calls: int
    errors: int = 0
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Removed:
    """What has been removed so far.

    Attributes:
        directories: None where the source cannot tell directories from files.
    """

    entries: int
    directories: int | None = None


def countable(predicted: Mapping[str, int], uncounted: Mapping[str, int]) -> dict[str, int]:
    """Return what of the predicted calls can stand beside counts: all but those nobody counts."""
    left = {name: number - uncounted.get(name, 0) for name, number in predicted.items()}
    return {name: number for name, number in left.items() if number > 0}


def predicted_text(strategy: StrategyName, name: str, number: int) -> str:
    """Return a predicted number of calls, with a ``~`` where chance has a part in it."""
    return f"{'~' if name in OF_CHANCE.get(strategy, ()) else ''}{count(number)}"


def predicted_texts(strategy: str, predicted: Mapping[str, int]) -> dict[str, str]:
    """Return predicted numbers of calls by name, each as `predicted_text` writes it.

    Args:
        strategy: its name; of a job that never began there is none, nor a prediction.
    """
    return {
        name: predicted_text(StrategyName(strategy), name, number)
        for name, number in predicted.items()
    }


def added_up(counts: Iterable[Mapping[str, CallCount]]) -> dict[str, CallCount]:
    """Return the sums of several counts by name, which all have times."""
    sums: dict[str, CallCount] = {}
    for calls in counts:
        for name, one in calls.items():
            before = sums.get(name, CallCount(0, 0, 0.0))
            seconds = (before.seconds or 0.0) + (one.seconds or 0.0)
            sums[name] = CallCount(before.calls + one.calls, before.errors + one.errors, seconds)
    return sums
