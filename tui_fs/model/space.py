"""Room on a file system, and why a deletion gave back less, or more, than was expected."""

import enum
from dataclasses import dataclass

from tui_fs.model.units import bytes_iec

LOWER_LAYER_WORDS = "files of a lower layer free nothing"
_WORTH_TELLING_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Space:
    """Free space and inodes of the targets' file systems.

    Attributes:
        free_bytes: what users other than root can use (f_bavail), as df shows it.
        free_inodes: None where a file system does not count them.
        reserved_bytes: what is free besides, for root only.
    """

    free_bytes: int
    free_inodes: int | None
    reserved_bytes: int = 0

    @property
    def unused_bytes(self) -> int:
        """All that no file occupies (f_bfree)."""
        return self.free_bytes + self.reserved_bytes


class DiscrepancyKind(enum.StrEnum):
    """What keeps space from coming back, or made more of it come back."""

    HELD_OPEN = "held-open"
    HELD_OPEN_ELSEWHERE = "held-open-elsewhere"
    LINKS_OUTSIDE = "links-outside"
    SNAPSHOTS = "snapshots"
    OVERLAY = "overlay"
    RESERVED = "reserved"
    OTHERS_WROTE = "others-wrote"
    OTHERS_FREED = "others-freed"
    """Only in journals of earlier versions."""
    INODES = "inodes"
    NOT_LOOKED_AT = "not-looked-at"


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """One cause, in words that can be shown as they are.

    Attributes:
        bytes, inodes: how much it accounts for; None where that is not known.
        pid: the process, or the first of those that hold the same files; None without one.
        command: its name, fit to be shown; empty without a process.
    """

    kind: DiscrepancyKind
    sentence: str
    advice: str
    bytes: int | None = None
    inodes: int | None = None
    pid: int | None = None
    command: str = ""


def freed_in_words(
    least_bytes: int,
    most_bytes: int,
    metadata_bytes_max: int = 0,
    shared_bytes: int = 0,
    *,
    is_on_overlay: bool = False,
) -> str:
    """Return the space that comes back: one figure where it is sure, else a range and why.

    Args:
        metadata_bytes_max: what may come back besides.
        shared_bytes: how much of the range copies and snapshots account for.
        is_on_overlay: lower layers account for the whole range.
    """
    words, reasons = bytes_iec(most_bytes), []
    worth_telling = max(_WORTH_TELLING_BYTES, most_bytes // 20)
    is_range = least_bytes < most_bytes
    if shared_bytes:
        reasons.append(f"{bytes_iec(shared_bytes)} shared with copies or snapshots")
    if is_on_overlay:
        reasons.append(LOWER_LAYER_WORDS)
    elif is_range and most_bytes - least_bytes > shared_bytes:
        reasons.append("links outside, or held open")
    if metadata_bytes_max > worth_telling:
        is_range = True
        words = bytes_iec(most_bytes + metadata_bytes_max)
        reasons.append("metadata comes back by chunks")
    if is_range:
        words = f"{bytes_iec(least_bytes)} to {words}"
    return f"{words} ({'; '.join(reasons)})" if reasons else words
