"""Room on a file system, and why a deletion gave back less, or more, than was expected."""

import enum
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Space:
    """Free space and inodes of the targets' file systems; None where one has no such count."""

    free_bytes: int
    free_inodes: int | None


class CauseKind(enum.StrEnum):
    """What keeps space from coming back, or made more of it come back."""

    HELD_OPEN = "held-open"
    HELD_OPEN_ELSEWHERE = "held-open-elsewhere"
    LINKS_OUTSIDE = "links-outside"
    SNAPSHOTS = "snapshots"
    OVERLAY = "overlay"
    RESERVED = "reserved"
    OTHERS_WROTE = "others-wrote"
    OTHERS_FREED = "others-freed"
    INODES = "inodes"
    NOT_LOOKED_AT = "not-looked-at"


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause, in words that can be shown as they are.

    Attributes:
        bytes, inodes: how much it accounts for; None where that cannot be told.
        pid: the process, or the first of those that hold the same files; None without one.
        command: its name, fit to be shown; empty without a process.
    """

    kind: CauseKind
    sentence: str
    advice: str
    bytes: int | None = None
    inodes: int | None = None
    pid: int | None = None
    command: str = ""
