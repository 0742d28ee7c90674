"""System call counts and where they come from."""

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
"""Removals, opens, reads, stats and process starts: what a table shows one by one."""

OTHER_CALLS = "other"
"""What stands for all other calls in a prediction; no system call has this name."""
OTHER_CALLS_LABEL = "start-up, memory, closes"
"""The row of a table that adds up all other calls."""


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
        directories: None where the source cannot distinguish directories from files.
    """

    entries: int
    directories: int | None = None


class CallLine(NamedTuple):
    """Counted calls beside predicted ones, as tables show them.

    Attributes:
        name: of a system call, or `OTHER_CALLS_LABEL`.
        predicted: 0 if nothing is.
        predicted_text: empty if nothing is.
    """

    name: str
    counted: CallCount
    predicted: int
    predicted_text: str


def call_lines(
    counted: Mapping[str, CallCount], predicted: Mapping[str, int], predicted_other: int | None
) -> list[CallLine]:
    """Return the calls that decide something one by one, and one line for all others.

    Args:
        predicted: calls by name.
        predicted_other: about how many are predicted that have no name there; None if not known.
    """
    lines = [
        CallLine(name, calls, number, count(number) if number else "")
        for name, calls in counted.items()
        if name in TELLING_CALLS
        for number in (predicted.get(name, 0),)
    ]
    rest = [calls for name, calls in counted.items() if name not in TELLING_CALLS]
    if rest:
        seconds = [calls.seconds for calls in rest if calls.seconds is not None]
        together = CallCount(
            sum(calls.calls for calls in rest),
            sum(calls.errors for calls in rest),
            sum(seconds) if len(seconds) == len(rest) else None,
        )
        text = "" if predicted_other is None else about_text(predicted_other)
        lines.append(CallLine(OTHER_CALLS_LABEL, together, 0, text))
    return lines


def about_text(number: int) -> str:
    """Return a number of calls of which only the magnitude is predicted."""
    digits = len(str(number))
    return f"about {count(round(number, 2 - digits))}" if digits > 2 else f"about {number}"


def added_up(counts: Iterable[Mapping[str, CallCount]]) -> dict[str, CallCount]:
    """Return the sums of several counts by name, which all have times."""
    sums: dict[str, CallCount] = {}
    for calls in counts:
        for name, call in calls.items():
            before = sums.get(name, CallCount(0, 0, 0.0))
            seconds = (before.seconds or 0.0) + (call.seconds or 0.0)
            sums[name] = CallCount(before.calls + call.calls, before.errors + call.errors, seconds)
    return sums
