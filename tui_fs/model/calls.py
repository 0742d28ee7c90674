"""System call counts and where they come from."""

import enum
from dataclasses import dataclass

REMOVING_CALLS = frozenset({"unlink", "unlinkat", "rmdir"})


class TraceSource(enum.StrEnum):
    """Who counts."""

    PERF = "perf"
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
