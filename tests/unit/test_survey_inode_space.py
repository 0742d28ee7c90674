"""Which chunks of inodes go with a tree, against sets, for a made-up xfs."""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tui_fs.linux.mounts import read_mounts
from tui_fs.linux.xfs import Chunk, Geometry, IndexChange
from tui_fs.survey import inode_space
from tui_fs.survey.inode_index import with_room_for_index
from tui_fs.survey.inode_space import (
    SeenInodes,
    grouped,
    inode_bytes_at_most,
    inode_bytes_freed,
    keeps_inodes_by_chunks,
)

INODE_BYTES = 512
CHUNK_BYTES = 64 * INODE_BYTES


@dataclass
class Xfs:
    """What the kernel would tell, two chunks at a time."""

    chunks: list[Chunk]
    block_bytes: int = 4096
    made: int | None = None
    error: OSError | None = None
    tells_all: bool = True
    changes: tuple[IndexChange, ...] = ()

    def tell(self, _: int, first: int) -> list[Chunk]:
        """Return the chunk with an inode, or the next ones."""
        if self.error is not None:
            raise self.error
        if first == 0 and not self.tells_all:
            raise PermissionError(1, "no")
        return [chunk for chunk in self.chunks if chunk.first + 64 > first][:2]

    def tell_change(self, _: int) -> IndexChange:
        """Return how the index has changed, one of these after the other."""
        if not self.changes:
            raise FileNotFoundError(2, "no sysfs")
        change, *later = self.changes
        self.changes = (*later, change)
        return change

    def put(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let it be the file system of every path."""
        made = 64 * len(self.chunks) if self.made is None else self.made
        shape = Geometry(self.block_bytes, 1 << 20, 4, INODE_BYTES)
        monkeypatch.setattr(inode_space, "chunks", self.tell)
        monkeypatch.setattr(inode_space, "index_change", self.tell_change)
        monkeypatch.setattr(inode_space, "geometry", lambda _: shape)
        monkeypatch.setattr(inode_space, "inodes_made", lambda _, group: 0 if group else made)


def bits(inodes: Iterable[int], first: int) -> int:
    """Return inodes as the kernel tells those of a chunk."""
    return sum(1 << inode - first for inode in inodes)


def seen(
    whole: Iterable[int], staying: Iterable[int] = (), outside: Iterable[int] = ()
) -> SeenInodes:
    """Return the inodes of a tree."""
    return SeenInodes(grouped(whole), grouped(staying), grouped(outside))


TREE = Xfs([Chunk(128, bits(range(128, 192), 128)), Chunk(256, bits((256, 300), 256))])


@given(
    gaps=some.lists(some.integers(0, 100), max_size=8),
    dice=some.randoms(use_true_random=False),
    share=some.sampled_from([0.5, 0.98]),
)
def test_a_chunk_goes_if_all_its_inodes_in_use_do(
    gaps: list[int], dice: random.Random, share: float
) -> None:
    # Given chunks that begin anywhere, and inodes of a tree, held open, and linked outside
    firsts, at = [], 128
    for gap in gaps:
        firsts.append(at + gap)
        at += gap + 64
    used = {first: [i for i in range(first, first + 64) if dice.random() < 0.3] for first in firsts}
    everything = [inode for inodes in used.values() for inode in inodes]
    whole = {inode for inode in everything if dice.random() < share}
    staying = {inode for inode in whole if dice.random() < 0.02}
    outside = {inode for inode in everything if inode not in whole and dice.random() < share}
    with pytest.MonkeyPatch.context() as patch:
        Xfs([Chunk(first, bits(used[first], first)) for first in firsts]).put(patch)
        # When asked what comes back
        found = inode_bytes_freed("/", seen(whole, staying, outside))
    # Then the chunks of which none is left
    certain = sum(bool(inodes) and {*inodes} <= whole - staying for inodes in used.values())
    possible = sum(bool(inodes) and {*inodes} <= whole | outside for inodes in used.values())
    assert found == (certain * CHUNK_BYTES, possible * CHUNK_BYTES)


def test_of_a_chunk_that_may_be_a_smaller_one_only_inodes_in_use_are_certain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given fewer inodes than whole chunks have / When asked / Then the two, not 64
    Xfs(TREE.chunks, made=96).put(monkeypatch)
    found = inode_bytes_freed("/", seen([*range(128, 192), 256, 300]))
    assert found == (CHUNK_BYTES + 2 * INODE_BYTES, 2 * CHUNK_BYTES)
    # Nor need anybody count where all are in use
    assert inode_bytes_freed("/", seen(range(128, 192))) == (CHUNK_BYTES, CHUNK_BYTES)


@pytest.mark.parametrize("is_late", [False, True])
def test_who_gets_no_answer_knows_what_was_touched(
    monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    # Given a kernel that tells only root, or takes too long / When asked / Then a chunk a group
    Xfs(TREE.chunks, error=None if is_late else PermissionError(1, "no")).put(monkeypatch)
    monkeypatch.setattr(inode_space, "_LONGEST_S", -1.0 if is_late else 9.0)
    found = inode_bytes_freed("/", seen([128, 129, 300], outside=[500]))
    assert found == (0, with_room_for_index(3 * CHUNK_BYTES))


def test_the_index_of_chunks_shrinks_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given so many chunks that their index has two leaves, with one inode of the tree in each
    firsts = range(128, 128 + 300 * 64, 64)
    chunks = [Chunk(first, 1) for first in firsts]
    Xfs(chunks).put(monkeypatch)
    # When asked / Then a leaf and the root above come back, and perhaps those that list free inodes
    all_chunks = 300 * CHUNK_BYTES
    assert inode_bytes_freed("/", seen(firsts)) == (all_chunks + 8_192, all_chunks + 16_384)
    # And where the kernel has counted one more since each tree had only its root, this one, too
    full = [Chunk(first, (1 << 64) - 1) for first in range(128, 128 + 400 * 64, 64)]
    every, bytes_of_all = seen(range(128, 128 + 400 * 64)), 400 * CHUNK_BYTES
    for changes, blocks in (
        ((), (2, 3)),
        ((IndexChange(400, 2),), (2, 2)),
        ((IndexChange(400, 3),), (3, 3)),
        ((IndexChange(400, 3), IndexChange(399, 3)), (2, 3)),  # others write at the same time
    ):
        Xfs(full, changes=changes).put(monkeypatch)
        least, most = (bytes_of_all + number * 4_096 for number in blocks)
        assert inode_bytes_freed("/", every) == (least, most)
    # And where the kernel does not tell of all chunks there is room for some
    Xfs(chunks, tells_all=False).put(monkeypatch)
    expected = (300 * INODE_BYTES, with_room_for_index(all_chunks))
    assert inode_bytes_freed("/", seen(firsts)) == expected


def test_where_a_block_holds_more_than_a_chunk_none_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given blocks of 64 KiB / When asked / Then nothing
    Xfs(TREE.chunks, block_bytes=65_536).put(monkeypatch)
    assert inode_bytes_freed("/", seen(range(128, 192))) == (0, 0)
    assert inode_bytes_at_most("/", 3) == with_room_for_index(3 * CHUNK_BYTES)


def test_a_file_system_that_is_not_xfs_cannot_be_asked(tmpfs: Path) -> None:
    # Given another file system / When asked / Then it says so
    with pytest.raises(OSError, match="ioctl"):
        inode_bytes_freed(str(tmpfs), seen([1]))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("xfs /dev/a rw,noquota", True),
        ("xfs /dev/a rw,ikeep", False),
        ("ext4 /dev/a rw", False),
    ],
)
def test_chunks_are_asked_for_where_they_come_back(
    tmp_path: Path, line: str, expected: bool
) -> None:
    # Given a mount table / When asked of a path on it / Then only xfs that does not keep them
    table = tmp_path / "mountinfo"
    table.write_text(f"30 1 8:1 / / rw,relatime shared:1 - {line}\n")
    assert keeps_inodes_by_chunks("/srv/t", read_mounts(str(table))) is expected
