"""What an experiment needs is told, is enough, and is there, or it is refused."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trees import chain
from tui_fs.lab import disk_check
from tui_fs.lab.disk_check import Needed, Needs, needed_on, needs_of, refuse_without_room
from tui_fs.lab.experiment import Place, Trial
from tui_fs.linux.filesystem import FileSystem
from tui_fs.linux.memory import MemoryRoom
from tui_fs.model.errors import Refused

GIB = 1 << 30
NOTHING = Needs(0, 0, 0)
DISK = FileSystem(
    "ext4", "/dev/sda1", "/", False, 1000 * GIB, 40 * GIB, 30 * GIB, 1_000_000, 500_000
)


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree that is only spoken of."""

    entries: int
    contents_bytes: int = 0
    words: str = "a tree"

    def build(self, directory: int, tick: Callable[[int], None]) -> None:
        """Build nothing."""


trials = st.lists(
    st.builds(
        Trial,
        steps=st.just(()),
        tree=st.none() | st.builds(Tree, st.integers(1, 10**7), st.integers(0, 10**12)),
        place=st.sampled_from(Place),
        disk_bytes=st.integers(0, 10**12),
        memory_bytes=st.integers(0, 10**12),
    )
)


def figures(needs: Needs) -> tuple[int, int, int]:
    """Give what can be compared."""
    return needs.disk_bytes, needs.disk_inodes, needs.memory_bytes


@given(trials)
def test_all_together_need_at_least_what_each_does(some: list[Trial]) -> None:
    everything = figures(needs_of(some))
    for one in some:
        assert all(map(int.__le__, figures(needs_of([one])), everything))
    # And the order does not matter
    assert figures(needs_of(reversed(some))) == everything


def test_trees_in_the_directory_itself_exist_one_at_a_time() -> None:
    small, large = (Trial((), Tree(10, GIB)), Trial((), Tree(20, 5 * GIB), disk_bytes=GIB))
    assert needs_of([small, large]) == needs_of([large])
    assert 6 * GIB < needs_of([large]).disk_bytes < 6.1 * GIB
    assert 20 < needs_of([large]).disk_inodes < 100
    assert needs_of([large]).memory_bytes == 0


def test_images_stay_and_count_together() -> None:
    tree = Tree(1_000, GIB)
    on_ext4, on_xfs = (Trial((), tree, place) for place in (Place.EXT4, Place.XFS))
    both = needs_of([on_ext4, on_xfs, on_xfs]).disk_bytes
    assert both == sum(one.image_bytes for one in needed_on([on_ext4, on_xfs]).values())
    assert both > 2 * GIB
    # And an image is one entry, however many are in it
    assert needs_of([replace(on_ext4, tree=Tree(10**6))]).disk_inodes < 100


def test_a_tree_in_memory_needs_memory_and_no_disk() -> None:
    one = Trial((), Tree(1_000_000, GIB), Place.TMPFS, memory_bytes=2 * GIB)
    needs = needs_of([one, Trial((), memory_bytes=GIB)])
    assert 4 * GIB < needs.memory_bytes < 5 * GIB
    assert needs.disk_bytes < 1 << 20


def test_the_figure_is_enough_for_the_hungriest_entries(tmp_path: Path) -> None:
    chain(tmp_path / "chain", 500)
    (tmp_path / "names").mkdir()
    for number in range(500):
        (tmp_path / "names" / f"{number:0255}").touch()
    entries = occupied = 0
    for _, _, files, directory in os.fwalk(tmp_path):
        entries += 1 + len(files)
        occupied += 512 * (1 + len(files)) + 512 * os.fstat(directory).st_blocks
    assert entries == 1_003
    assert occupied <= Needed(0, entries).disk_bytes


def test_a_place_with_room_is_taken(tmp_path: Path) -> None:
    refuse_without_room(Needs(4096, 1, 4096), str(tmp_path))


def test_what_no_disk_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"EiB of disk") as refused:
        refuse_without_room(Needs(1 << 62, 1, 0), str(tmp_path))
    assert refused.value.rule == "room"
    assert "--dir" in refused.value.advice


@pytest.mark.parametrize(
    ("filesystem", "needs", "words"),
    [
        (DISK, Needs(9 * GIB, 0, 0), ""),
        (DISK, Needs(11 * GIB, 0, 0), "up to 11.0 GiB of disk, and 10.0 GiB can be used"),
        (replace(DISK, available_bytes=GIB), Needs(1, 0, 0), "0 B can be used"),
        (DISK, Needs(0, 479_000, 0), ""),
        (DISK, Needs(0, 481_000, 0), "481,000 inodes"),
        (replace(DISK, total_inodes=None, free_inodes=None), Needs(0, 481_000, 0), ""),
        (replace(DISK, is_read_only=True), NOTHING, "read-only"),
        (replace(DISK, available_bytes=None), NOTHING, "does not tell"),
        (DISK, Needs(0, 0, 8 * GIB), ""),
        (DISK, Needs(0, 0, 9 * GIB), "8.0 GiB are left of the memory of this machine"),
    ],
)
def test_a_share_of_the_disk_is_never_filled(
    monkeypatch: pytest.MonkeyPatch, filesystem: FileSystem, needs: Needs, words: str
) -> None:
    monkeypatch.setattr(disk_check, "file_system_of", lambda _: filesystem)
    memory = MemoryRoom(8 * GIB, "the memory of this machine")
    monkeypatch.setattr(disk_check, "memory_room", lambda: memory)
    if not words:
        refuse_without_room(needs, "/somewhere")
        return
    with pytest.raises(Refused, match=words) as refused:
        refuse_without_room(needs, "/somewhere")
    assert refused.value.rule == "room"


def test_memory_that_cannot_be_known_is_no_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_check, "file_system_of", lambda _: DISK)
    monkeypatch.setattr(disk_check, "memory_room", lambda: None)
    refuse_without_room(Needs(0, 0, GIB), "/somewhere")


def test_the_words_name_all_figures() -> None:
    assert Needs(3 * GIB, 1_065, GIB).words == (
        "up to 3.0 GiB of disk (1,065 inodes) and 1.0 GiB of memory"
    )
