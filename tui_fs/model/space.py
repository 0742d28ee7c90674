"""Space on a file system, and why a deletion freed less or more than expected."""

from msgspec import Struct

from tui_fs.model.compat import StrEnum
from tui_fs.model.units import bytes_iec

LOWER_LAYER_WORDS = "files in a lower layer free no space"
_MIN_REPORTED_BYTES = 1 << 20

_METADATA_BYTES_PER_ENTRY = {"xfs": 1_024, "btrfs": 2_048, "zfs": 2_048, "bcachefs": 2_048}
"""The file system frees metadata by chunks and tree blocks, once nothing in them is used. Measured:
513 bytes an entry on xfs (an inode), 750 to 1,230 on btrfs, none on ext4 and tmpfs. It is nothing
where other inodes are in the same chunks, and more where one file of each chunk had been left."""
_SHARED_CHUNKS_BYTES = 64 * 1024
"""For parts of a chunk, or of the trees that list chunks, that are freed with others."""


class Space(Struct, frozen=True):
    """Free space and inodes of the targets' file systems.

    Attributes:
        free_bytes: bytes available to users other than root (f_bavail), as df shows them.
        free_inodes: None if a file system does not count inodes.
        reserved_bytes: further free bytes that only root can use.
    """

    free_bytes: int
    free_inodes: int | None
    reserved_bytes: int = 0

    @property
    def unused_bytes(self) -> int:
        """All unallocated bytes (f_bfree)."""
        return self.free_bytes + self.reserved_bytes


class DiscrepancyKind(StrEnum):
    """The cause of less or more freed space than expected."""

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


class Discrepancy(Struct, frozen=True):
    """One cause, with text that is safe to show.

    Attributes:
        bytes, inodes: the amount it explains; None if unknown.
        pid: the process, or the first one with the same open files; None without a process.
        command: its name, safe to show; empty without a process.
    """

    kind: DiscrepancyKind
    sentence: str
    advice: str
    bytes: int | None = None
    inodes: int | None = None
    pid: int | None = None
    command: str = ""


def metadata_bytes_max(filesystem: str, entries: int) -> int:
    """Return the most bytes that the metadata of deleted entries may free; none are certain.

    Args:
        filesystem: its type, as the mount table names it.
        entries: how many are deleted.
    """
    each = _METADATA_BYTES_PER_ENTRY.get(filesystem, 0)
    return entries * each + _SHARED_CHUNKS_BYTES if each else 0


def freed_in_words(
    least_bytes: int,
    most_bytes: int,
    metadata_bytes_max: int = 0,
    shared_bytes: int = 0,
    *,
    is_on_overlay: bool = False,
) -> str:
    """Return the freed space in words: one figure if it is certain, else a range with the reason.

    Args:
        metadata_bytes_max: metadata bytes that may be freed in addition.
        shared_bytes: bytes of the range that copies and snapshots may keep.
        is_on_overlay: lower layers explain the whole range.
    """
    words, reasons = bytes_iec(most_bytes), []
    worth_reporting = max(_MIN_REPORTED_BYTES, most_bytes // 20)
    is_range = least_bytes < most_bytes
    if shared_bytes:
        reasons.append(f"{bytes_iec(shared_bytes)} shared with copies or snapshots")
    if is_on_overlay:
        reasons.append(LOWER_LAYER_WORDS)
    elif is_range and most_bytes - least_bytes > shared_bytes:
        reasons.append("links outside, or open files")
    if metadata_bytes_max > worth_reporting:
        is_range = True
        words = bytes_iec(most_bytes + metadata_bytes_max)
        reasons.append("metadata is freed in chunks")
    if is_range:
        least = bytes_iec(least_bytes)
        words = f"almost {words}" if least == words else f"{least} to {words}"
    return f"{words} ({'; '.join(reasons)})" if reasons else words
