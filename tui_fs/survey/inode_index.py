"""How many blocks the index of xfs's chunks of inodes takes, and gives back when it shrinks.

Each allocation group has a tree of records, one for a chunk (the kernel's xfs_btree.c,
xfs_ialloc_btree.c). How full its blocks are depends on what was made and removed before, and
nothing tells it; but none besides the root is less than half full. A second tree, of the chunks
that have inodes to give, takes its blocks from a reserve, unless there was no room for one.
"""

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


def blocks_given_back(
    records: int, certain: int, possible: int, block_bytes: int
) -> tuple[int, int]:
    """Return how many blocks a tree gives back when some of its records go: at least, and at most.

    Args:
        records: how many it has.
        certain, possible: how many of them go.
    """
    least, most = blocks_of(records, block_bytes)
    _, most_left = blocks_of(records - certain, block_bytes)
    least_left, _ = blocks_of(records - possible, block_bytes)
    return max(0, least - most_left), max(0, most - least_left)
