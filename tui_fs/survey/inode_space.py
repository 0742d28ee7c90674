"""What the inodes themselves give back: on xfs, chunks of which none is used any more.

A chunk comes back if all of its inodes that are in use lie in the tree. Which these are the kernel
tells root; others only know that no more chunks come back than were touched.
"""

import bisect
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tui_fs.linux.mounts import MountTable, mount_of
from tui_fs.linux.xfs import (
    INODES_PER_CHUNK,
    Chunk,
    Geometry,
    IndexChange,
    chunks,
    geometry,
    index_change,
    inodes_made,
)
from tui_fs.survey.inode_index import (
    Shrinking,
    blocks_given_back,
    blocks_of,
    blocks_there_are,
    with_room_for_index,
)
from tui_fs.survey.records import INODES_PER_GROUP, place_of
from tui_fs.survey.walker import OPEN_FLAGS

_LONGEST_S = 0.7
"""For each of the two questions."""

_BLOCKS_OF_A_NAME = 4
"""A directory may lose with a name its block of names and those that list and find it."""

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


def keeps_inodes_by_chunks(path: str, mounts: MountTable) -> bool:
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
        os.fstatvfs(descriptor)  # which has the kernel hurry up with what was deleted just before
        chunk_bytes = INODES_PER_CHUNK * made.inode_bytes
        change = _index_change(descriptor)
        going = _going(descriptor, seen, made)
        if going is None:
            chunks_touched = len(seen.whole.keys() | seen.outside.keys())
            return 0, with_room_for_index(chunks_touched * chunk_bytes)
        records = _chunks_there_are(descriptor, made)
        certainly = going.certainly_in_use * made.inode_bytes
        possibly = going.possible.total() * chunk_bytes
        if records is None:
            return certainly, with_room_for_index(possibly)
        if _are_whole(descriptor, made, records):
            certainly = going.certain.total() * chunk_bytes
        if _index_change(descriptor) != change:
            change = None  # others write: what was counted is of no one moment
        least, most = _index_bytes(going, records, made, change)
        return certainly + least, possibly + most
    finally:
        os.close(descriptor)


def directory_bytes_above(paths: Iterable[str]) -> int:
    """Return how much the directories shrink at most in which paths are, when these go.

    One whose names lie in its inode does not.

    Raises:
        OSError: one of them is not there.
    """
    above = [os.lstat(os.path.dirname(path)) for path in paths]
    return sum(min(one.st_blocks * 512, _BLOCKS_OF_A_NAME * one.st_blksize) for one in above)


def inode_bytes_at_most(path: str, inodes: int) -> int:
    """Return what so many inodes give back at most: each the last of its chunk.

    Raises:
        OSError: the file system cannot be asked.
    """
    descriptor = os.open(path, OPEN_FLAGS)
    try:
        return with_room_for_index(inodes * INODES_PER_CHUNK * geometry(descriptor).inode_bytes)
    finally:
        os.close(descriptor)


@dataclass(slots=True)
class _Going:
    """What goes with a tree, as far as is known.

    Attributes:
        certain, possible: chunks of each allocation group.
        partly_used: those among the possible ones of which not all inodes are in use.
        certainly_in_use: inodes of the certain ones.
    """

    certain: Counter[int] = field(default_factory=Counter)
    possible: Counter[int] = field(default_factory=Counter)
    partly_used: Counter[int] = field(default_factory=Counter)
    certainly_in_use: int = 0

    def add(self, chunk: Chunk, seen: SeenInodes, group: int) -> None:
        """Take in a chunk that holds inodes of the tree, or lies near them."""
        if not seen.may_go(chunk):
            return
        self.possible[group] += 1
        in_use = chunk.in_use.bit_count()
        self.partly_used[group] += in_use < INODES_PER_CHUNK
        if seen.go_for_certain(chunk):
            self.certain[group] += 1
            self.certainly_in_use += in_use


def _going(descriptor: int, seen: SeenInodes, made: Geometry) -> _Going | None:
    """Return which chunks go; None where that is not told in time."""
    groups = sorted(seen.whole.keys() | seen.outside.keys())
    going = _Going()
    at = behind = 0
    until_s = time.monotonic() + _LONGEST_S
    while at < len(groups):
        answer = _asked(descriptor, max(behind, groups[at] * INODES_PER_GROUP), until_s)
        if answer is None:
            return None
        if not answer:
            break
        for chunk in answer:
            going.add(chunk, seen, made.group_of(chunk.first))
        behind = answer[-1].first + INODES_PER_CHUNK
        at = bisect.bisect_left(groups, behind // INODES_PER_GROUP)
    return going


def _chunks_there_are(descriptor: int, made: Geometry) -> Counter[int] | None:
    """Return how many chunks each allocation group has; None where that is not told in time."""
    found: Counter[int] = Counter()
    first = 0
    until_s = time.monotonic() + _LONGEST_S
    while answer := _asked(descriptor, first, until_s):
        found.update(made.group_of(chunk.first) for chunk in answer)
        first = answer[-1].first + INODES_PER_CHUNK
    return found if answer is not None else None


def _are_whole(descriptor: int, made: Geometry, chunks_there_are: Counter[int]) -> bool:
    """Tell whether all chunks of the file system are known to have all their inodes.

    Where space is short a chunk is made with fewer, and nothing tells which.
    """
    try:
        inodes = sum(inodes_made(descriptor, group) for group in range(made.groups))
    except OSError:
        return False  # an older kernel
    return chunks_there_are.total() * INODES_PER_CHUNK == inodes


def _index_bytes(
    going: _Going, records: Counter[int], made: Geometry, change: IndexChange | None
) -> tuple[int, int]:
    """Return how much the index of the chunks shrinks: certainly, and at most.

    Args:
        change: how it has changed since the file system was mounted, where that is known.
    """
    trees = [
        Shrinking(records[group], going.certain[group], going.possible[group])
        for group in range(made.groups)
    ]
    there_are = None
    if change is not None:
        there_are = blocks_there_are([tree.records for tree in trees], change, made.block_bytes)
    least, most = blocks_given_back(trees, made.block_bytes, there_are)
    for partly_used in going.partly_used.values():
        _, free_list = blocks_of(partly_used, made.block_bytes)
        most += free_list - 1
    return least * made.block_bytes, most * made.block_bytes


def _index_change(descriptor: int) -> IndexChange | None:
    """Return how the index of the chunks has changed; None where nobody knows."""
    try:
        return index_change(os.fstat(descriptor).st_dev)
    except OSError:
        return None  # no sysfs here, or an older kernel


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
