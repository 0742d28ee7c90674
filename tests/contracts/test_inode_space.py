"""Inodes that come back by chunks: what is told before, and what statvfs says afterwards."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.needs import needs_engine
from tests.trees import flat, many_directories
from tui_fs.cost.space import metadata_bytes
from tui_fs.linux.filesystem import settle
from tui_fs.model.survey import Survey
from tui_fs.survey.scandir import Backend, ScandirSurvey

CHUNK_BYTES = 64 * 512
INDEX_ROOM_BYTES = 64 << 10


def surveyed(*paths: Path, backend: Backend = "scandir") -> Survey:
    """Count to the end."""
    *_, last = ScandirSurvey([str(path) for path in paths], backend=backend).run()
    return last


def free_bytes(place: Path) -> int:
    """Return what is free when all that was begun is done."""
    settle(str(place))
    now = os.statvfs(place)
    return now.f_bfree * now.f_frsize


def freed_by_removing(root: Path) -> int:
    """Remove a tree, and return by how much there is more room."""
    before = free_bytes(root.parent)
    shutil.rmtree(root)
    return free_bytes(root.parent) - before


def bounds(survey: Survey) -> tuple[int, int]:
    """Return how much is to come back."""
    least, most = metadata_bytes(survey, "xfs", survey.totals.entries)
    return survey.freed_bytes_min + least, survey.freed_bytes_max + most


def crowded(root: Path) -> None:
    """Chunks that are full."""
    flat(root, 20_000)


def in_one_group(root: Path) -> None:
    """So many chunks in one allocation group that their index has several blocks."""
    flat(root, 60_000)


def scattered(root: Path) -> None:
    """One inode left of each chunk."""
    flat(root, 60_000)
    for path in root.iterdir():
        if path.stat().st_ino % 64:
            path.unlink()


def beside_others(root: Path) -> None:
    """Half of each chunk is somebody else's."""
    flat(root, 10_000)
    other = root.parent / "other"
    other.mkdir()
    for path in sorted(root.iterdir())[::2]:
        path.rename(other / path.name)


def linked(root: Path) -> None:
    """Names of one file in the tree, and names outside of it."""
    many_directories(root, 20, 500)
    (root / "again").mkdir()
    for number in range(0, 500, 7):
        source = root / f"directory-00000/file-{number:07}"
        os.link(source, root / f"again/{number}")
    os.link(root / "directory-00001/file-0000000", root.parent / "outside")
    os.link(root / "directory-00002/file-0000000", root.parent / "outside too")


@pytest.mark.parametrize("backend", ["engine", "scandir"])
@pytest.mark.parametrize(
    ("build", "apart_bytes"),
    [
        (crowded, 0),
        (in_one_group, 0),
        (scattered, INDEX_ROOM_BYTES),
        (beside_others, 0),
        (linked, 2 * CHUNK_BYTES),
    ],
)
def test_what_comes_back_lies_within_what_was_told(
    xfs: Path, build: Callable[[Path], None], apart_bytes: int, backend: Backend
) -> None:
    # Given a tree on xfs / When it is counted by root, and removed
    if backend == "engine":
        needs_engine()
    root = xfs / "root"
    build(root)
    settle(str(root))
    survey = surveyed(root, backend=backend)
    least, most = bounds(survey)
    got = freed_by_removing(root)
    # Then what came back lies within bounds that are the same where nothing is shared
    assert survey.inode_bytes is not None
    assert least <= got <= most
    assert most - least <= apart_bytes


@pytest.mark.parametrize("build", [crowded, scattered, beside_others])
def test_who_may_not_ask_for_the_chunks_gets_wide_bounds(
    xfs: Path, build: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a kernel that tells only root / When counted by somebody else, and removed
    def refused(*_: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("tui_fs.survey.inode_space.chunks", refused)
    root = xfs / "root"
    build(root)
    settle(str(root))
    survey = surveyed(root)
    least, most = bounds(survey)
    # Then nothing is certain of the inodes, and what comes back is still within
    assert survey.inode_bytes is not None
    assert survey.inode_bytes[0] == 0
    assert least <= freed_by_removing(root) <= most


def test_several_directories_give_back_the_chunks_they_share(xfs: Path) -> None:
    # Given two directories whose files share chunks / When counted together, and one by one
    root, other = xfs / "root", xfs / "other"
    beside_others(root)
    both, one = surveyed(root, other), surveyed(root)
    assert both.inode_bytes is not None
    assert one.inode_bytes is not None
    # Then only together they give them back
    assert both.inode_bytes[0] > 10_000 * 512 * 0.9
    assert one.inode_bytes[1] < 10_000 * 512 * 0.1


def test_the_directory_above_may_give_back_blocks(xfs: Path) -> None:
    # Given a directory whose names just do not fit into its inode
    above = xfs / "above"
    above.mkdir()
    names = (f"{number:0200}" for number in range(9))
    while above.stat().st_blocks == 0:
        flat(above / next(names), 5)
    *_, root = sorted(above.iterdir())
    # When one of them is removed, so that they do
    least, most = bounds(surveyed(root))
    got = freed_by_removing(root)
    # Then what came back lies within what was told
    assert above.stat().st_blocks == 0
    assert least < got <= most


def test_a_file_that_is_held_open_keeps_its_chunk(xfs: Path) -> None:
    # Given a file that a process holds open / When counted / Then one chunk less is certain
    root = xfs / "root"
    flat(root, 5_000)
    alone = surveyed(root).inode_bytes
    with (
        open(root / "file-0001000", "rb") as file,
        subprocess.Popen(["sleep", "60"], stdin=file) as holder,
    ):
        held = surveyed(root).inode_bytes
        holder.kill()
    assert alone is not None
    assert held is not None
    assert alone[0] - held[0] == CHUNK_BYTES
    assert held[1] == alone[1]


def test_a_directory_in_which_a_process_stands_keeps_its_chunk(xfs: Path) -> None:
    # Given a process that stands in a directory / When counted / Then one chunk less is certain
    root = xfs / "root"
    many_directories(root, 3, 3_000)
    shared = {path.stat().st_ino // 64 for path in (xfs, xfs.parent)}
    place = next(path for path in root.iterdir() if path.stat().st_ino // 64 not in shared)
    alone = surveyed(root).inode_bytes
    with subprocess.Popen(["sleep", "60"], cwd=place) as resident:
        held = surveyed(root).inode_bytes
        resident.kill()
    assert alone is not None
    assert held is not None
    assert (alone[0] - held[0], held[1]) == (CHUNK_BYTES, alone[1])


@pytest.mark.parametrize("place", ["ext4", "tmpfs"])
def test_elsewhere_inodes_are_not_asked_for(place: str, request: pytest.FixtureRequest) -> None:
    # Given other file systems / When counted / Then nothing is told of inodes
    root = request.getfixturevalue(place) / "root"
    flat(root, 100)
    assert surveyed(root).inode_bytes is None
