"""How many blocks xfs's index of inode chunks takes, against trees as full as they may be."""

from hypothesis import given
from hypothesis import strategies as some

from tui_fs.linux.xfs import IndexChange
from tui_fs.survey.inode_index import (
    Shrinking,
    blocks_given_back,
    blocks_of,
    blocks_there_are,
    with_room_for_index,
)

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


def given_back(records: int, certain: int, possible: int) -> tuple[int, int]:
    """Return what a single tree gives back."""
    return blocks_given_back([Shrinking(records, certain, possible)], BLOCK_BYTES)


def test_what_was_measured_of_files_made_one_after_the_other() -> None:
    # Given 120,000 files in one directory: 1,877 chunks, of which the target's parents keep one
    # When all go / Then 8 blocks at least, which is what xfs gave back
    assert given_back(1_877, 1_876, 1_876) == (8, 14)
    # And nothing of a tree that has no more than its root
    assert given_back(252, 251, 251) == (0, 2)
    assert given_back(125, 124, 125) == (0, 0)
    assert blocks_of(0, BLOCK_BYTES) == (1, 1)


@given(
    sizes=some.lists(
        some.lists(some.integers(0, 10_000), min_size=2, max_size=20), min_size=1, max_size=4
    ),
    left=some.integers(0, 125),
    untouched=some.lists(some.integers(0, 250), max_size=3),
)
def test_where_it_is_known_how_many_there_are_there_is_one_answer(
    sizes: list[list[int]], left: int, untouched: list[int]
) -> None:
    # Given trees of leaves and a root, and others of no more than a root
    trees = [sum(as_full_as(leaves, PER_LEAF)) for leaves in sizes]
    there_are = sum(len(leaves) + 1 for leaves in sizes) + len(untouched)
    # When so many records of the first ones go that a root is left of each
    shrinking = [Shrinking(records, records - left, records - left) for records in trees]
    shrinking += [Shrinking(records, 0, 0) for records in untouched]
    found = blocks_given_back(shrinking, BLOCK_BYTES, there_are)
    # Then all leaves come back, neither more nor fewer
    assert found == (sum(map(len, sizes)), sum(map(len, sizes)))
    # And of a number that cannot be nothing is believed
    least, most = blocks_given_back(shrinking, BLOCK_BYTES)
    for wrong in (0, there_are + 10_000):
        assert blocks_given_back(shrinking, BLOCK_BYTES, wrong) == (least, most)
    assert least <= found[0] <= most


def test_a_tree_that_is_not_touched_gives_nothing_back() -> None:
    # Given a tree of which nothing is known, from which nothing goes / When asked / Then nothing
    assert given_back(252, 0, 0) == (0, 0)
    # Nor does it make another one uncertain whose blocks can be no other
    trees = [Shrinking(252, 0, 0), Shrinking(100, 100, 100)]
    assert blocks_given_back(trees, BLOCK_BYTES, 2) == (0, 0)


def test_how_many_there_are_is_known_of_trees_that_were_small() -> None:
    # Given four trees, and what came since the file system was mounted
    records = [1_000, 3, 0, 200]
    # When there were so few that each had only its root / Then their blocks, and those that came
    assert blocks_there_are(records, IndexChange(1_203, 5), BLOCK_BYTES) == 9
    assert blocks_there_are(records, IndexChange(1_203 - 251, 5), BLOCK_BYTES) == 9
    # Else nothing is known; nor where others wrote meanwhile
    assert blocks_there_are(records, IndexChange(1_203 - 252, 5), BLOCK_BYTES) is None
    assert blocks_there_are(records, IndexChange(1_204, 5), BLOCK_BYTES) is None


def test_large_trees_have_inner_blocks() -> None:
    # Given a million chunks / When asked / Then leaves, two levels of nodes, the root
    least, most = blocks_of(1_000_000, BLOCK_BYTES)
    assert least == 3_922 + 8 + 1
    assert most == 7_936 + 31 + 1


def test_a_record_that_may_stay_may_keep_a_block() -> None:
    # Given chunks of which some may stay / When asked / Then the bounds are those of both
    fewest, most = given_back(1_000, 500, 500), given_back(1_000, 999, 999)
    assert given_back(1_000, 500, 999) == (fewest[0], most[1])
    assert fewest[0] <= most[0]


def test_where_nothing_is_known_of_records_there_is_room_for_them() -> None:
    # Given chunks of 32 KiB / When asked / Then twice what two records take, half empty, and more
    assert with_room_for_index(1_000 << 15) - (1_000 << 15) == 1_000 * 128 + (64 << 10)
