"""In one large directory of ext4 one thread removes, and another one keeps and frees."""

import os
from pathlib import Path

import pytest

from tests.engine.running import Conversation, delete
from tests.filesystems import CROWDED_FILES
from tests.trees import flat

FILES = 20_000
MOST_KEPT = 256
"""More are never kept (engine/src/delete/keeping.rs)."""
OTHERS = 20
"""Descriptors the engine has besides: of its pipes, the way to its target, and the target."""


WELL_BEGUN = 1_000
"""So many are more than are opened on the way to a target."""


def kept_so_far(engine: Conversation) -> int:
    """Return how many names were opened to be kept, as far as it has told."""
    return int(engine.counts.get("calls", {}).get("openat", (0,))[0])


@pytest.mark.parametrize("limits", ["", "ulimit -n 40", "ulimit -n 200"])
def test_what_is_removed_is_free_when_it_ends(ext4: Path, limits: str) -> None:
    # Given a large directory, and how many inodes were free without it
    free = os.statvfs(ext4).f_ffree
    target = ext4 / "target"
    flat(target, FILES)
    # When two threads delete it, with however few descriptors
    ended = delete("--threads", "2", "--", target, limits=limits).expect(0)
    # Then nothing is left of it, each name was removed once, and many were kept by somebody else
    assert os.statvfs(ext4).f_ffree == free
    calls = ended.counts["calls"]
    assert (ended.counts["removed"], calls["unlinkat"][0]) == (FILES + 1, FILES + 1)
    assert calls["openat"][0] > FILES / 20
    # and it is the other one that keeps, as long as there are names: no slices are given away
    assert calls["fcntl"][0] <= 3


@pytest.mark.parametrize(
    "words",
    [("--threads", "1"), ("--threads", "2", "--min-size", "0"), ("--rate", "1000000")],
    ids=["one thread", "by size", "a rate"],
)
def test_nothing_is_kept_where_one_is_alone_or_has_to_look_first(
    ext4: Path, words: tuple[str, ...]
) -> None:
    # Given a large directory
    target = ext4 / "target"
    flat(target, FILES)
    # When it is deleted / Then nothing is opened but the way to it
    calls = delete(*words, "--", target).expect(0).counts["calls"]
    assert calls["openat"][0] < len(target.parts) + 1
    assert not target.exists() or not any(target.iterdir())


def test_names_that_a_filter_spares_are_not_touched(ext4: Path) -> None:
    # Given a large directory with names that are to stay between those that are not
    target = ext4 / "target"
    flat(target, FILES)
    stay = {f"stay {number}" for number in range(100)}
    for name in stay:
        (target / name).write_text(name)
    # When the others are deleted
    ended = delete("--threads", "2", "--name", "f*", "--", target).expect(0)
    # Then they are as they were, and others were kept
    assert ended.counts["calls"]["openat"][0] > FILES / 20
    assert {path.name for path in target.iterdir()} == stay
    assert all((target / name).read_text() == name for name in stay)


def test_whoever_removes_never_waits_for_whoever_keeps(crowded: Path) -> None:
    # Given a run of two threads in one directory
    engine = Conversation("--threads", "2", "--", crowded / "target")
    while kept_so_far(engine) < WELL_BEGUN:
        engine.next_counts()
    # When only one may be at work
    assert engine.say("threads 1")["problem"] is None
    engine.next_counts()
    kept = int(engine.next_counts()["calls"]["openat"][0])
    assert engine.counts["removed"] < CROWDED_FILES / 2, "it was nearly over before it was told"
    # Then it goes on to the end, and nothing more is kept
    assert engine.end().expect(0).counts["removed"] == CROWDED_FILES + 1
    assert kept_so_far(engine) == kept


def test_what_was_removed_is_free_while_it_is_paused(crowded: Path) -> None:
    # Given a run of two threads in one directory
    free = os.statvfs(crowded).f_ffree
    engine = Conversation("--threads", "2", "--", crowded / "target")
    while kept_so_far(engine) < WELL_BEGUN:
        engine.next_counts()
        assert engine.descriptors() <= MOST_KEPT + OTHERS
    # When it is paused
    assert engine.say("pause")["problem"] is None
    while engine.descriptors() > OTHERS:
        engine.next_counts()
    removed = engine.next_counts()["removed"]
    # Then nobody has any of what is removed, and it goes on afterwards
    assert 0 < removed < CROWDED_FILES
    assert os.statvfs(crowded).f_ffree == free + removed
    kept = kept_so_far(engine)
    assert engine.say("resume")["problem"] is None
    assert engine.end().expect(0).counts["removed"] == CROWDED_FILES + 1
    assert kept_so_far(engine) > kept
