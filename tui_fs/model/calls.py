"""System call counts and their sources."""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tui_fs.model.units import count

REMOVING_CALLS = frozenset({"unlink", "unlinkat", "rmdir"})

TELLING_CALLS = REMOVING_CALLS | {
    *("open", "openat", "openat2", "getdents64"),
    *("stat", "lstat", "newfstatat", "statx"),
    *("execve", "clone", "vfork"),
}
"""Calls with their own row in a table: removals, opens, reads, stats and process starts."""

OTHER_CALLS = "other"
"""The key of all other calls in a prediction; no system call has this name."""
OTHER_CALLS_LABEL = "start-up, memory, closes"
"""The label of the table row for all other calls."""


class TraceSource(enum.StrEnum):
    """The source of the counts."""

    PERF = "perf"
    ENGINE = "engine"
    BPF = "bpf"
    STRACE = "strace"
    OUTPUT = "output"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class CallCount:
    """The number of returns of a system call, and of those with an error.

    Attributes:
        seconds: time spent in the call, None if the source does not measure it.
    """

    calls: int
    errors: int = 0
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Removed:
    """The numbers of removed entries so far.

    Attributes:
        directories: None if the source cannot distinguish directories from files.
    """

    entries: int
    directories: int | None = None


class CallLine(NamedTuple):
    """A row of a table with counted and predicted calls.

    Attributes:
        name: of a system call, or `OTHER_CALLS_LABEL`.
        predicted: 0 without a prediction.
        predicted_text: empty without a prediction.
    """

    name: str
    counted: CallCount
    predicted: int
    predicted_text: str


def call_lines(
    counted: Mapping[str, CallCount], predicted: Mapping[str, int], predicted_other: int | None
) -> list[CallLine]:
    """Return one line for each call in `TELLING_CALLS`, and one line for all others.

    Args:
        predicted: calls by name.
        predicted_other: approximate number of predicted calls not in `predicted`; None if unknown.
    """
    lines = [
        CallLine(name, calls, number, count(number) if number else "")
        for name, calls in counted.items()
        if name in TELLING_CALLS
        for number in (predicted.get(name, 0),)
    ]
    other_calls = [calls for name, calls in counted.items() if name not in TELLING_CALLS]
    if other_calls:
        seconds = [calls.seconds for calls in other_calls if calls.seconds is not None]
        total = CallCount(
            sum(calls.calls for calls in other_calls),
            sum(calls.errors for calls in other_calls),
            sum(seconds) if len(seconds) == len(other_calls) else None,
        )
        text = "" if predicted_other is None else about_text(predicted_other)
        lines.append(CallLine(OTHER_CALLS_LABEL, total, 0, text))
    return lines


def about_text(number: int) -> str:
    """Return the text of a number of calls that is only predicted approximately."""
    digits = len(str(number))
    return f"about {count(round(number, 2 - digits))}" if digits > 2 else f"about {number}"


def added_up(counts: Iterable[Mapping[str, CallCount]]) -> dict[str, CallCount]:
    """Return the sums by name of several counts that all have times."""
    sums: dict[str, CallCount] = {}
    for calls in counts:
        for name, call in calls.items():
            before = sums.get(name, CallCount(0, 0, 0.0))
            seconds = (before.seconds or 0.0) + (call.seconds or 0.0)
            sums[name] = CallCount(before.calls + call.calls, before.errors + call.errors, seconds)
    return sums
