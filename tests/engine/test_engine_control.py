"""The engine obeys while it runs, and keeps to its bounds."""

import os
import time
from pathlib import Path

import pytest

from tests.engine.running import Conversation, delete, delete_command, peak_memory_kib
from tests.trees import chain, flat, many_directories

MANY_FILES = 40_000
SLOW_PER_S = 2_000


@pytest.mark.parametrize(
    ("place", "shares"), (("tmpfs", True), ("xfs", False), ("btrfs", False), ("ramfs", False))
)
def test_workers_share_one_directory_only_where_that_is_known_to_be_faster(
    request: pytest.FixtureRequest, place: str, shares: bool
) -> None:
    target: Path = request.getfixturevalue(place) / "one"
    flat(target, MANY_FILES)
    calls = delete("--threads", "2", "--", target).expect(0).counts["calls"]
    # A descriptor is duplicated for each part that another worker gets.
    assert ("fcntl" in calls) is shares


@pytest.mark.parametrize(
    ("place", "all_work"),
    (("tmpfs", True), ("ext4", True), ("xfs", True), ("btrfs", False), ("ramfs", True)),
)
def test_number_of_threads_depends_on_the_file_system(
    request: pytest.FixtureRequest, tmpfs: Path, place: str, all_work: bool
) -> None:
    target: Path = request.getfixturevalue(place) / "many"
    many_directories(target, 20, 20)
    engine = Conversation("--rate", "20", "--", target)
    assert engine.next_counts()["threads"] == (_processors(tmpfs) if all_work else 1)
    engine.say("cancel")
    engine.end().expect(130)


def _processors(tmpfs: Path) -> int:
    """Return the number of threads where it is not reduced."""
    (tmpfs / "empty").mkdir()
    return int(delete("--", tmpfs / "empty").expect(0).counts["threads"])


def test_a_pause_holds_and_resuming_ends_it(tmpfs: Path) -> None:
    target = tmpfs / "target"
    flat(target, MANY_FILES)
    engine = Conversation("--rate", str(SLOW_PER_S), "--", target)
    while not engine.counts["removed"]:
        engine.next_counts()
    assert engine.say("pause")["problem"] is None
    engine.next_counts()
    before = engine.next_counts()["removed"]
    for _ in range(5):
        assert engine.next_counts()["removed"] == before
    left = len(os.listdir(target))
    assert left == MANY_FILES - before
    # And when it is resumed without a limit, it comes to its end
    engine.say("rate off")
    engine.say("resume")
    assert engine.end().expect(0).counts["removed"] == MANY_FILES + 1


def test_a_rate_is_kept(tmpfs: Path) -> None:
    target = tmpfs / "target"
    many_directories(target, 50, 100)
    began = time.monotonic()
    engine = Conversation("--rate", str(SLOW_PER_S), "--", target)
    for _ in range(10):
        counts = engine.next_counts()
        # It has not removed more than the rate permits, plus a burst of a quarter of a second
        assert counts["removed"] <= SLOW_PER_S * (time.monotonic() - began + 0.25) + 1
    assert engine.say("rate off")["problem"] is None
    assert engine.end().expect(0).counts["removed"] == 50 * 101 + 1


def test_cancelled_it_ends_and_says_what_it_did(tmpfs: Path) -> None:
    target = tmpfs / "target"
    flat(target, MANY_FILES)
    engine = Conversation("--rate", str(SLOW_PER_S), "--threads", "3", "--", target)
    while not engine.counts["removed"]:
        engine.next_counts()
    engine.say("pause")
    engine.say("cancel")
    ended = engine.end().expect(130)
    assert len(os.listdir(target)) == MANY_FILES - ended.counts["removed"]


def test_threads_can_be_changed(tmpfs: Path) -> None:
    target = tmpfs / "target"
    many_directories(target, 200, 100)
    engine = Conversation("--rate", "200", "--threads", "4", "--", target)
    assert engine.next_counts()["threads"] == 4
    chosen = min(4, len(os.sched_getaffinity(0)))
    for command, number in (("threads 1", 1), ("threads 3", 3), ("threads auto", chosen)):
        assert engine.say(command)["problem"] is None
        while engine.next_counts()["threads"] != number:
            pass
    engine.say("threads 1")
    engine.say("rate off")
    assert engine.end().expect(0).counts["removed"] == 200 * 101 + 1


@pytest.mark.parametrize("command", ["", "stop", "rate", "rate -1", "threads 0", "pause now"])
def test_other_commands_are_refused(tmpfs: Path, command: str) -> None:
    target = tmpfs / "target"
    flat(target, MANY_FILES)
    engine = Conversation("--rate", str(SLOW_PER_S), "--", target)
    # When something else is said
    # It is not obeyed
    assert engine.say(command)["problem"] is not None
    engine.say("cancel")
    engine.end().expect(130)


def test_memory_does_not_grow_with_a_directory(tmpfs: Path) -> None:
    # All names together would take 53 MiB
    target = tmpfs / "target"
    target.mkdir()
    at = os.open(target, os.O_RDONLY)
    for number in range(200_000):
        os.mknod(f"{number:0250}", dir_fd=at)
    os.close(at)
    code, peak_kib = peak_memory_kib(delete_command("--", target))
    assert code == 0
    # 16 MiB of names; twice as much when the allocator copies what grows
    assert peak_kib < 44 << 10, peak_kib


def test_memory_of_a_deep_chain(tmpfs: Path) -> None:
    levels = 100_000
    chain(tmpfs / "target", levels)
    code, peak_kib = peak_memory_kib(delete_command("--", tmpfs / "target"))
    assert code == 0
    assert os.listdir(tmpfs) == []
    assert peak_kib << 10 < (12 << 20) + 70 * levels


def test_memory_of_a_deep_chain_of_wide_levels(tmpfs: Path) -> None:
    # Nested directories with so many siblings at each level that the names of all
    # would take 100 MiB; the last one made is the first that tmpfs lists
    levels, beside = 700, 600
    at = os.open(tmpfs, os.O_RDONLY)
    for level in range(levels):
        name = "target" if level == 0 else "z"
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
        for number in range(beside):
            os.mkdir(f"{number:0250}", dir_fd=at)
    os.close(at)
    code, peak_kib = peak_memory_kib(delete_command("--threads", "1", "--", tmpfs / "target"))
    # Not all of them waited in memory
    assert code == 0
    assert os.listdir(tmpfs) == []
    assert peak_kib < 72 << 10, peak_kib
