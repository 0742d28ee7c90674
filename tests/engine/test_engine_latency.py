"""The engine where a server answers late, and wrongly at times."""

import os
import re
from pathlib import Path

import pytest

from tests.engine.running import delete
from tests.fuse.latency import fault, served_late
from tests.trees import census, flat, many_directories

MOST_THAT_COMPUTE = 8
RARELY = 101
PASSING = {
    "entries are missed while others are removed": ("--moving-cookies",),
    "types of entries are unknown": ("--without-d-type",),
    "a file's handle is stale": fault("unlink", "ESTALE", RARELY),
    "a directory's handle is stale": fault("rmdir", "ESTALE", 7),
    "a handle is stale when it is opened": fault("opendir", "ESTALE", 7),
    "a handle is stale when it is read": fault("readdir", "ESTALE", 31),
    "an empty directory is called not empty": fault("rmdir", "ENOTEMPTY", 13),
}
LASTING = {
    "a file cannot be removed": fault("unlink", "EIO", RARELY),
    "a directory is in use": fault("rmdir", "EBUSY", 13),
    "a directory cannot be opened": fault("opendir", "EIO", 13),
    "a directory cannot be read": fault("readdir", "EIO", 31),
}


@pytest.fixture
def backing(tmpfs: Path) -> Path:
    """Return the directory that the server shows, with a tree in it."""
    directory = tmpfs / "backing"
    directory.mkdir()
    many_directories(directory / "tree", 40, 20)
    flat(directory / "tree" / "flat", 500)
    return directory


def _mount_point(backing: Path) -> Path:
    return backing.parent / "mount"


def test_more_workers_than_processors_wait_for_a_server(backing: Path) -> None:
    with served_late(backing, _mount_point(backing), 2.0) as mounted:
        ended = delete("--every", "10", "--", mounted / "tree").expect(0)
    assert max(counts["threads"] for counts in ended.tellings) > MOST_THAT_COMPUTE
    assert os.listdir(backing) == []


def test_a_requested_number_of_workers_is_kept(backing: Path) -> None:
    with served_late(backing, _mount_point(backing), 1.0) as mounted:
        ended = delete("--every", "10", "--threads", "3", "--", mounted / "tree").expect(0)
    assert {counts["threads"] for counts in ended.tellings} == {3}
    assert os.listdir(backing) == []


@pytest.mark.parametrize("options", PASSING.values(), ids=PASSING)
def test_what_passes_is_not_reported(backing: Path, options: tuple[str, ...]) -> None:
    entries = census(backing / "tree").entries
    with served_late(backing, _mount_point(backing), 0.1, *options) as mounted:
        ended = delete("--", mounted / "tree").expect(0)
    assert ended.counts["removed"] == entries
    assert os.listdir(backing) == []


@pytest.mark.parametrize("options", LASTING.values(), ids=LASTING)
def test_what_stays_is_named(backing: Path, options: tuple[str, ...]) -> None:
    entries = census(backing / "tree").entries
    with served_late(backing, _mount_point(backing), 0.1, *options) as mounted:
        ended = delete("--", mounted / "tree").expect(1)
    left = census(backing / "tree")
    assert ended.counts["removed"] == entries - left.entries
    named = set(re.findall(r"'(.*)'", "\n".join(ended.messages)))
    # Each file that is left is named, or the directory that could not be opened or read
    for directory, below, files in os.walk(backing / "tree"):
        shown = directory.replace(str(backing), str(mounted))
        if shown not in named:
            assert {f"{shown}/{file}" for file in files} <= named
            assert below or files
