"""How many blocks xfs's index of inode chunks takes, against trees as full as they may be."""

from hypothesis import given
from hypothesis import strategies as some

from tui_fs.survey.inode_index import blocks_given_back, blocks_of, with_room_for_index

BLOCK_BYTES = 4096
PER_LEAF = 252
"""With checksums: 56 bytes, and 16 for each record."""


def as_full_as(fill: list[int], most: int) -> list[int]:
    """Return how much each block holds: no less than a half of the most, no more."""
    return [most // 2 + number % (most - most // 2 + 1) for number in fill]


@given(leaves=some.lists(some.integers(0, 10_000), min_size=2, max_size=505))
def test_a_tree_has_no_more_and_no_fewer_blocks(leaves: list[int]) -> None:
    # Given a tree, each of whose blocks is at least half full
    records = sum(as_full_as(leaves, PER_LEAF))
    # When asked how many blocks it has / Then no fewer than these and their root, and no more
    least, most = blocks_of(records, BLOCK_BYTES)
    assert least <= len(leaves) + 1 <= most


def test_what_was_measured_of_files_made_one_after_the_other() -> None:
    # Given 120,000 files in one directory: 1,877 chunks, of which the target's parents keep one
    # When all go / Then 8 blocks at least, which is what xfs gave back
    assert blocks_given_back(1_877, 1_876, 1_876, BLOCK_BYTES) == (8, 14)
    # And nothing of a tree that has no more than its root
    assert blocks_given_back(252, 251, 251, BLOCK_BYTES) == (0, 2)
    assert blocks_given_back(125, 124, 125, BLOCK_BYTES) == (0, 0)
    assert blocks_of(0, BLOCK_BYTES) == (1, 1)


def test_large_trees_have_inner_blocks() -> None:
    # Given a million chunks / When asked / Then leaves, two levels of nodes, the root
    least, most = blocks_of(1_000_000, BLOCK_BYTES)
    assert least == 3_922 + 8 + 1
    assert most == 7_936 + 31 + 1


def test_a_record_that_may_stay_may_keep_a_block() -> None:
    # Given chunks of which some may stay / When asked / Then the bounds are those of both
    fewest = blocks_given_back(1_000, 500, 500, BLOCK_BYTES)
    most = blocks_given_back(1_000, 999, 999, BLOCK_BYTES)
    assert blocks_given_back(1_000, 500, 999, BLOCK_BYTES) == (fewest[0], most[1])
    assert fewest[0] <= most[0]


def test_where_nothing_is_known_of_records_there_is_room_for_them() -> None:
    # Given chunks of 32 KiB / When asked / Then twice what two records take, half empty, and more
    assert with_room_for_index(1_000 << 15) - (1_000 << 15) == 1_000 * 128 + (64 << 10)
