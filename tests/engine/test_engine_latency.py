"""The engine where a server answers late, and wrongly at times."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.engine.running import Conversation, delete
from tests.fuse.latency import fault, fault_of, missed, served_late
from tests.trees import census, chain, flat, many_directories

MOST_THAT_COMPUTE = 8
RARELY = 101
REREADS = 3
WITH_REPEATS = 3  # calls that may fail: kernel and engine each repeat an unlink or rmdir once


def _fault_of_some(operation: str, error: str, times: int) -> tuple[str, ...]:
    """Return the options that make the first calls on each of some directories fail."""
    names = [f"directory-{number:05}" for number in range(0, 40, 6)]
    return tuple(word for name in names for word in fault_of(name, operation, error, times))


PASSING = {
    "entries are missed while others are removed": ("--moving-cookies",),
    "types of entries are unknown": ("--without-d-type",),
    "a file's handle is stale": fault("unlink", "ESTALE", RARELY),
    "a directory's handle is stale": _fault_of_some("rmdir", "ESTALE", WITH_REPEATS),
    "a handle is stale when it is opened": _fault_of_some("opendir", "ESTALE", 1),
    "a handle is stale when it is read": _fault_of_some("readdir", "ESTALE", 1),
    "an empty directory is called not empty": _fault_of_some("rmdir", "ENOTEMPTY", REREADS),
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
    assert max(counts["threads"] for counts in ended.progress) > MOST_THAT_COMPUTE
    assert os.listdir(backing) == []


def test_a_requested_number_of_workers_is_kept(backing: Path) -> None:
    with served_late(backing, _mount_point(backing), 1.0) as mounted:
        ended = delete("--every", "10", "--threads", "3", "--", mounted / "tree").expect(0)
    assert {counts["threads"] for counts in ended.progress} == {3}
    assert os.listdir(backing) == []


def test_directories_of_a_deep_chain_stay_open(backing: Path) -> None:
    # with a request for each directory, whatever the number of threads
    levels = 200
    chain(backing / "chain", levels)
    with served_late(backing, _mount_point(backing)) as mounted:
        ended = delete("--threads", "128", "--", mounted / "chain").expect(0)
    opened_on_the_way = len(mounted.parts)
    assert ended.counts["calls"]["openat2"][0] == levels
    assert ended.counts["calls"]["openat"][0] <= opened_on_the_way + 1


def test_subdirectories_are_emptied_while_files_above_them_are_removed(backing: Path) -> None:
    levels = 20
    chain(backing / "chain", levels)
    for level in range(levels):
        flat(backing / "chain" / Path(*["d"] * level), 30)
    with served_late(backing, _mount_point(backing), 1.0) as mounted:
        ended = delete("--", mounted / "chain").expect(0)
    shared = ended.counts["calls"]["fcntl"][0]  # a descriptor of the directory for another thread
    assert shared >= levels / 2
    assert not (backing / "chain").exists()


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


WAYS = {"one worker": ("--threads", "1"), "shared directories": ("--threads", "8")}
PASSING_FOR_A_NAME = {
    "a subdirectory is missed once": missed("flat", "below", 1),
    "a subdirectory of a shared directory is missed": missed("shared", "directory-00007", REREADS),
    "an entry of the target is missed": missed("tree", "flat", REREADS),
    "a file is missed in each reading but the last": missed("flat", "file-0000007", REREADS),
    "an empty directory is called not empty": fault_of("flat", "rmdir", "ENOTEMPTY", REREADS),
    "a shared directory is called not empty": fault_of("shared", "rmdir", "ENOTEMPTY", REREADS),
    "the target is called not empty": fault_of("tree", "rmdir", "ENOTEMPTY", REREADS),
    "a file's handle is stale": fault_of("file-0000099", "unlink", "ESTALE", WITH_REPEATS),
}
LASTING_FOR_A_NAME = {
    "a file is missed": ("flat", missed("flat", "file-0000007", REREADS + 1)),
    "a subdirectory is missed": ("shared", missed("shared", "directory-00007", REREADS + 1)),
    "an entry of the target is missed": ("", missed("tree", "flat", REREADS + 1)),
    "an empty directory is called not empty": ("flat", fault_of("flat", "rmdir", "ENOTEMPTY")),
    "a shared directory is called not empty": ("shared", fault_of("shared", "rmdir", "ENOTEMPTY")),
    "the target is called not empty": ("", fault_of("tree", "rmdir", "ENOTEMPTY")),
    "a type cannot be read": (
        "flat/file-0000099",
        ("--without-d-type", *fault_of("file-0000099", "getattr", "EIO")),
    ),
}


@pytest.fixture
def small_backing(tmpfs: Path) -> Path:
    """Return the directory that the server shows, with subdirectories that workers share."""
    directory = tmpfs / "backing"
    directory.mkdir()
    flat(directory / "tree", 5)
    many_directories(directory / "tree" / "shared", 40, 3)
    flat(directory / "tree" / "flat", 100)
    flat(directory / "tree" / "flat" / "below", 5)
    return directory


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("options", PASSING_FOR_A_NAME.values(), ids=PASSING_FOR_A_NAME)
def test_an_entry_that_fails_or_is_missed_at_first_is_removed_once(
    small_backing: Path, options: tuple[str, ...], way: tuple[str, ...]
) -> None:
    entries = census(small_backing / "tree").entries
    with served_late(small_backing, _mount_point(small_backing), 0.1, *options) as mounted:
        ended = delete(*way, "--", mounted / "tree").expect(0)
    assert ended.counts["removed"] == entries
    assert os.listdir(small_backing) == []


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(("name", "options"), LASTING_FOR_A_NAME.values(), ids=LASTING_FOR_A_NAME)
def test_an_entry_that_always_fails_or_is_missed_is_reported_once(
    small_backing: Path, name: str, options: tuple[str, ...], way: tuple[str, ...]
) -> None:
    entries = census(small_backing / "tree").entries
    with served_late(small_backing, _mount_point(small_backing), 0.1, *options) as mounted:
        ended = delete(*way, "--", mounted / "tree").expect(1)
        reported = os.path.normpath(mounted / "tree" / name)
    assert re.findall(r"'(.*)'", "\n".join(ended.messages)) == [reported]
    assert ended.counts["removed"] == entries - census(small_backing / "tree").entries


@pytest.mark.parametrize("throttle", [("--rate", "50000"), ("--gentle",), ("--name", "*")])
def test_a_stale_handle_passes_where_removals_are_slowed_or_filtered(
    backing: Path, throttle: tuple[str, ...]
) -> None:
    options = fault_of("file-0000499", "unlink", "ESTALE", 3)
    with served_late(backing, _mount_point(backing), 0.1, *options) as mounted:
        delete(*throttle, "--", mounted / "tree").expect(0)
    assert census(backing).files == 0


def test_a_kept_target_is_read_again(backing: Path) -> None:
    options = missed("tree", "flat", 1)
    with served_late(backing, _mount_point(backing), 0.1, *options) as mounted:
        delete("--keep-root", "--", mounted / "tree").expect(0)
    assert os.listdir(backing / "tree") == []


@pytest.mark.parametrize("vanished", ["outer/inner", "outer"])
def test_what_another_process_removes_meanwhile_is_no_failure(tmpfs: Path, vanished: str) -> None:
    # A server that no longer knows a directory answers ESTALE for each name in it
    backing = tmpfs / "backing"
    (backing / "tree" / "outer").mkdir(parents=True)
    flat(backing / "tree" / "outer" / "inner", 500)
    many_directories(backing / "tree" / "outer" / "inner", 3, 3)
    with served_late(backing, _mount_point(backing)) as mounted:
        engine = Conversation("--rate", "500", "--threads", "1", "--", mounted / "tree")
        while engine.counts["removed"] < 10:
            engine.next_counts()
        engine.say("pause")
        # One removal may still be in flight, and rm does not mind what it misses
        subprocess.run(["rm", "-rf", mounted / "tree" / vanished], check=True)
        engine.say("resume")
        ended = engine.end().expect(0)
    assert 10 <= ended.counts["removed"] < 500
    assert os.listdir(backing) == []


@pytest.mark.parametrize(("share", "code"), [((), 1), (("--share", "1/1"), 0)])
def test_the_last_client_may_remove_the_target_before_it_is_checked(
    tmpfs: Path, share: tuple[str, ...], code: int
) -> None:
    backing = tmpfs / "backing"
    (backing / "tree").mkdir(parents=True)
    flat(backing / "tree", 3)
    third_reading = fault("readdir", "ESTALE", 3)  # after the names and the end of the directory
    with served_late(backing, _mount_point(backing), 0.0, *third_reading) as mounted:
        delete(*share, "--keep-root", "--threads", "1", "--", mounted / "tree").expect(code)
    assert os.listdir(backing / "tree") == []
