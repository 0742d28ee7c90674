"""Deferred eviction: in a large directory of ext4 one thread removes, a helper evicts inodes."""

import os
from pathlib import Path

import pytest

from tests.engine.running import Conversation, delete
from tests.filesystems import CROWDED_FILES
from tests.trees import flat

FILES = 20_000
MAX_EVICT_FDS = 256
"""Descriptors of a helper (engine/src/delete/deferred_evict.rs)."""
OTHER_FDS = 20
"""Upper bound of other descriptors: pipes, the path to the target, and the target."""


MIN_OPENED = 1_000
"""More than are opened on the path to a target: the helper runs."""


def opened_names(engine: Conversation) -> int:
    """Return the number of openat calls that the engine has reported."""
    return int(engine.counts.get("calls", {}).get("openat", (0,))[0])


@pytest.mark.parametrize("limits", ["", "ulimit -n 40", "ulimit -n 200"])
def test_removed_inodes_are_free_at_the_end(ext4: Path, limits: str) -> None:
    free = os.statvfs(ext4).f_ffree
    target = ext4 / "target"
    flat(target, FILES)
    ended = delete("--threads", "2", "--", target, limits=limits).expect(0)
    assert os.statvfs(ext4).f_ffree == free
    calls = ended.counts["calls"]
    assert (ended.counts["removed"], calls["unlinkat"][0]) == (FILES + 1, FILES + 1)
    assert calls["openat"][0] > FILES / 20
    # and names were not shared with the other thread, which was the helper
    assert calls["fcntl"][0] <= 3


@pytest.mark.parametrize(
    "words",
    [("--threads", "1"), ("--threads", "2", "--min-size", "0"), ("--rate", "1000000")],
    ids=["one thread", "by size", "a rate"],
)
def test_helper_does_not_run_with_one_thread_filter_or_rate(
    ext4: Path, words: tuple[str, ...]
) -> None:
    target = ext4 / "target"
    flat(target, FILES)
    calls = delete(*words, "--", target).expect(0).counts["calls"]
    assert calls["openat"][0] < len(target.parts) + 1
    assert not target.exists() or not any(target.iterdir())


def test_helper_does_not_affect_unselected_names(ext4: Path) -> None:
    # A large directory with some names that the filter does not select
    target = ext4 / "target"
    flat(target, FILES)
    stay = {f"stay {number}" for number in range(100)}
    for name in stay:
        (target / name).write_text(name)
    ended = delete("--threads", "2", "--name", "f*", "--", target).expect(0)
    assert ended.counts["calls"]["openat"][0] > FILES / 20
    assert {path.name for path in target.iterdir()} == stay
    assert all((target / name).read_text() == name for name in stay)


def test_remover_does_not_wait_for_its_helper(crowded: Path) -> None:
    engine = Conversation("--threads", "2", "--", crowded / "target")
    while opened_names(engine) < MIN_OPENED:
        engine.next_counts()
    assert engine.say("threads 1")["problem"] is None
    engine.next_counts()
    opened = int(engine.next_counts()["calls"]["openat"][0])
    assert engine.counts["removed"] < CROWDED_FILES / 2, (
        "the run was nearly over before the command"
    )
    assert engine.end().expect(0).counts["removed"] == CROWDED_FILES + 1
    assert opened_names(engine) == opened


def test_removed_inodes_are_free_during_a_pause(crowded: Path) -> None:
    free = os.statvfs(crowded).f_ffree
    engine = Conversation("--threads", "2", "--", crowded / "target")
    while opened_names(engine) < MIN_OPENED:
        engine.next_counts()
        assert engine.descriptors() <= MAX_EVICT_FDS + OTHER_FDS
    assert engine.say("pause")["problem"] is None
    while engine.descriptors() > OTHER_FDS:
        engine.next_counts()
    removed = engine.next_counts()["removed"]
    assert 0 < removed < CROWDED_FILES
    assert os.statvfs(crowded).f_ffree == free + removed
    opened = opened_names(engine)
    assert engine.say("resume")["problem"] is None
    assert engine.end().expect(0).counts["removed"] == CROWDED_FILES + 1
    assert opened_names(engine) > opened
