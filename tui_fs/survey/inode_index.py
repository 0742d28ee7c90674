"""How many blocks the index of xfs's chunks of inodes takes, and gives back when it shrinks.

Each allocation group has a tree of records, one for a chunk (the kernel's xfs_btree.c,
xfs_ialloc_btree.c). How full its blocks are depends on what was made and removed before; but none
besides the root is less than half full, and the kernel counts how many came and went since the
file system was mounted. A second tree, of the chunks that have inodes to give, takes its blocks
from a reserve, unless there was no room for one.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tui_fs.linux.xfs import IndexChange

_RECORD_BYTES = 16
_POINTER_BYTES = 8
"""A key and a block number, of 4 bytes each."""
_SHORT_HEAD_BYTES = 16
_LONG_HEAD_BYTES = 56
"""Without checksums, and with them (version 5 of the format)."""

_INDEX_SHARE = 256
_ROOM_BYTES = 64 * 1024


def with_room_for_index(chunk_bytes: int) -> int:
    """Return how much chunks give back at most with their records, where nothing is known of these.

    There are some 32 bytes for a chunk of 32 KiB in both trees; twice that is told, half empty, and
    room for the inner blocks and for a chunk of a neighbour.
    """
    return chunk_bytes + chunk_bytes // _INDEX_SHARE + _ROOM_BYTES


def blocks_of(records: int, block_bytes: int) -> tuple[int, int]:
    """Return how many blocks a tree of records has: at least, and at most."""
    per_leaf = (block_bytes - _SHORT_HEAD_BYTES) // _RECORD_BYTES
    per_node = (block_bytes - _SHORT_HEAD_BYTES) // _POINTER_BYTES
    least = level = max(1, -(-records // per_leaf))
    while level > 1:
        level = -(-level // per_node)
        least += level
    half_leaf = (block_bytes - _LONG_HEAD_BYTES) // _RECORD_BYTES // 2
    half_node = (block_bytes - _LONG_HEAD_BYTES) // _POINTER_BYTES // 2
    most = level = max(1, records // half_leaf)
    while level > 1:
        level = max(1, level // half_node)
        most += level
    return least, most


def blocks_there_are(records: Sequence[int], change: IndexChange, block_bytes: int) -> int | None:
    """Return how many blocks trees have together; None where that is not known.

    It is where they had so few records when the change began that each was a single block.

    Args:
        records: how many each of them has now.
        change: of all of them.
    """
    before = sum(records) - change.records
    if before < 0 or blocks_of(before, block_bytes) != (1, 1):
        return None
    return len(records) + change.blocks


class Shrinking(NamedTuple):
    """The tree of an allocation group: how many records it has, and how many of them go."""

    records: int
    certain: int
    possible: int


def blocks_given_back(
    trees: Sequence[Shrinking], block_bytes: int, there_are: int | None = None
) -> tuple[int, int]:
    """Return how many blocks trees give back when records go: at least, and at most.

    Args:
        there_are: how many blocks they have together, where that is known.
    """
    least = most = least_now = most_now = least_left = most_left = 0
    for tree in trees:
        least_here, most_here = blocks_of(tree.records, block_bytes)
        least_then, _ = blocks_of(tree.records - tree.possible, block_bytes)
        _, most_then = blocks_of(tree.records - tree.certain, block_bytes)
        if tree.possible:
            least += max(0, least_here - most_then)
            most += max(0, most_here - least_then)
        least_now, most_now = least_now + least_here, most_now + most_here
        least_left, most_left = least_left + least_then, most_left + most_then
    if there_are is not None and least_now <= there_are <= most_now:
        return max(least, there_are - most_left), min(most, there_are - least_left)
    return least, most
