"""What the inodes themselves give back: on xfs, chunks of which none is used any more.

A chunk comes back if all of its inodes that are in use lie in the tree. Which these are the kernel
tells root; others only know that no more chunks come back than were touched.
"""

import bisect
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tui_fs.linux.mounts import Mount, mount_of
from tui_fs.linux.xfs import INODES_PER_CHUNK, Chunk, chunks, geometry, inodes_made
from tui_fs.survey.records import INODES_PER_GROUP, place_of
from tui_fs.survey.walker import OPEN_FLAGS

_LONGEST_S = 0.7
"""For each of the two questions."""

_ALL = (1 << INODES_PER_CHUNK) - 1


@dataclass(frozen=True, slots=True)
class SeenInodes:
    """The inodes of a tree, as bits of groups (see `Batch.inodes`).

    Attributes:
        whole: those that have all their names in the tree.
        staying: those among them that may stay nevertheless.
        outside: those that have names elsewhere, too.
    """

    whole: Mapping[int, int]
    staying: Mapping[int, int]
    outside: Mapping[int, int]

    def go_for_certain(self, chunk: Chunk) -> bool:
        """Tell whether nothing of a chunk is in use when the tree is gone."""
        going = _bits(self.whole, chunk.first) & ~_bits(self.staying, chunk.first)
        return chunk.in_use != 0 and not chunk.in_use & ~going

    def may_go(self, chunk: Chunk) -> bool:
        """Tell whether nothing of it may be."""
        going = _bits(self.whole, chunk.first) | _bits(self.outside, chunk.first)
        return chunk.in_use != 0 and not chunk.in_use & ~going


def keeps_inodes_by_chunks(path: str, mounts: tuple[Mount, ...]) -> bool:
    """Tell whether a path lies where inodes come back by chunks."""
    mount = mount_of(path, mounts)
    return mount is not None and mount.filesystem == "xfs" and "ikeep" not in mount.options


def grouped(inodes: Iterable[int]) -> dict[int, int]:
    """Return inodes as bits of groups."""
    found: dict[int, int] = {}
    for inode in inodes:
        group, bit = place_of(inode)
        found[group] = found.get(group, 0) | bit
    return found


def inode_bytes_freed(path: str, seen: SeenInodes) -> tuple[int, int]:
    """Return how many bytes come back with the inodes of a tree: certainly, and at most.

    Args:
        path: of a directory on their file system.

    Raises:
        OSError: the file system cannot be asked.
    """
    descriptor = os.open(path, OPEN_FLAGS)
    try:
        made = geometry(descriptor)
        if not made.gives_chunks_back:
            return 0, 0
        os.fstatvfs(descriptor)  # which has the kernel finish what was deleted just before
        chunk_bytes = INODES_PER_CHUNK * made.inode_bytes
        known = _going(descriptor, seen)
        if known is None:
            return 0, len(seen.whole.keys() | seen.outside.keys()) * chunk_bytes
        certain, certainly_in_use, possible = known
        if certainly_in_use < certain * INODES_PER_CHUNK and not _are_whole(descriptor):
            return certainly_in_use * made.inode_bytes, possible * chunk_bytes
        return certain * chunk_bytes, possible * chunk_bytes
    finally:
        os.close(descriptor)


def inode_bytes_at_most(path: str, inodes: int) -> int:
    """Return what so many inodes give back at most: each the last of its chunk.

    Raises:
        OSError: the file system cannot be asked.
    """
    descriptor = os.open(path, OPEN_FLAGS)
    try:
        return inodes * INODES_PER_CHUNK * geometry(descriptor).inode_bytes
    finally:
        os.close(descriptor)


def _going(descriptor: int, seen: SeenInodes) -> tuple[int, int, int] | None:
    """Return how many chunks go for certain, how many of their inodes are in use, how many may go.

    None where that is not told in time.
    """
    groups = sorted(seen.whole.keys() | seen.outside.keys())
    certain = certainly_in_use = possible = 0
    at = behind = 0
    until_s = time.monotonic() + _LONGEST_S
    while at < len(groups):
        answer = _asked(descriptor, max(behind, groups[at] * INODES_PER_GROUP), until_s)
        if answer is None:
            return None
        if not answer:
            break
        for chunk in answer:
            possible += seen.may_go(chunk)
            if seen.go_for_certain(chunk):
                certain += 1
                certainly_in_use += chunk.in_use.bit_count()
        behind = answer[-1].first + INODES_PER_CHUNK
        at = bisect.bisect_left(groups, behind // INODES_PER_GROUP)
    return certain, certainly_in_use, possible


def _are_whole(descriptor: int) -> bool:
    """Tell whether all chunks of the file system are known to have all their inodes.

    Where space is short a chunk is made with fewer, and nothing tells which.
    """
    number = first = 0
    until_s = time.monotonic() + _LONGEST_S
    while answer := _asked(descriptor, first, until_s):
        number += len(answer)
        first = answer[-1].first + INODES_PER_CHUNK
    try:
        return answer is not None and number * INODES_PER_CHUNK == inodes_made(descriptor)
    except OSError:
        return False  # an older kernel


def _asked(descriptor: int, first: int, until_s: float) -> list[Chunk] | None:
    """Return some chunks; None where the kernel does not tell, or it is too late."""
    if time.monotonic() > until_s:
        return None
    try:
        return chunks(descriptor, first)
    except OSError:
        return None  # not root, or an older kernel


def _bits(inodes: Mapping[int, int], first: int) -> int:
    """Return those of 64 inodes that are among these, the lowest bit for the first."""
    group, shift = divmod(first, INODES_PER_GROUP)
    bits = 0
    for number in range(INODES_PER_CHUNK // INODES_PER_GROUP + 1):
        bits |= inodes.get(group + number, 0) << number * INODES_PER_GROUP
    return bits >> shift & _ALL
