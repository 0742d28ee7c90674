"""Targets that share a run must stay the confirmed directories while it works."""

import errno
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.test_job_store import plan
from tui_fs.job.path_safety import PreparedStep
from tui_fs.job.permission import RepeatedChecks
from tui_fs.job.target_watch import CheckFailed, TargetWatch
from tui_fs.linux.pins import take_pin
from tui_fs.model.paths import PathStr
from tui_fs.model.target import Target


@pytest.fixture
def places(tmp_path: Path) -> list[Path]:
    """Return two directories."""
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        path.mkdir()
    return paths


@pytest.fixture
def watch(places: list[Path]) -> Iterator[TargetWatch]:
    """Watch both, which share the first step; the second step has one of them."""
    targets = tuple(Target(PathStr(str(path)), take_pin(str(path))) for path in places)
    target_fds = [os.open(path, os.O_PATH | os.O_DIRECTORY) for path in places]
    prepared_steps = (PreparedStep(((),), (0, 1), False), PreparedStep(((),), (1,), False))
    yield TargetWatch(replace(plan(), targets=targets), prepared_steps, target_fds)
    for descriptor in target_fds:
        os.close(descriptor)


def exchange(path: Path) -> None:
    """Put another directory in the place of one that stays elsewhere."""
    path.rename(path.parent / "kept")
    path.mkdir()


def test_what_is_in_its_place_is_no_reason(watch: TargetWatch) -> None:
    assert watch.exchanged_reason(0) is None


def test_an_exchanged_one_ends_the_job(watch: TargetWatch, places: list[Path]) -> None:
    exchange(places[1])
    reason = watch.exchanged_reason(0)
    assert reason is not None and str(places[1]) in reason


def test_what_replaces_a_deleted_target_is_no_reason(
    watch: TargetWatch, places: list[Path]
) -> None:
    shutil.rmtree(places[0])
    places[0].mkdir()
    assert watch.exchanged_reason(0) is None


def test_one_that_is_only_gone_is_no_reason(watch: TargetWatch, places: list[Path]) -> None:
    places[1].rename(places[1].parent / "kept")
    assert watch.exchanged_reason(0) is None


def test_a_failed_stat_costs_no_job_its_end(
    watch: TargetWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(path: str) -> os.stat_result:
        raise NotADirectoryError(path)

    monkeypatch.setattr(os, "lstat", refusing)
    assert watch.exchanged_reason(0) is None


def test_one_alone_was_compared_before_its_step(watch: TargetWatch, places: list[Path]) -> None:
    exchange(places[1])
    assert watch.exchanged_reason(1) is None


def test_a_check_that_a_limit_prevents_leaves_the_target_doubtful(
    watch: TargetWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    watch.mounts_changed(1)
    with monkeypatch.context() as limited:
        limited.setattr(RepeatedChecks, "check", refuse)
        with pytest.raises(CheckFailed, match="open files"):
            watch.reason_to_end()
    assert watch.has_doubts
    # And it is over as soon as the target can be checked
    monkeypatch.setattr(RepeatedChecks, "check", lambda *_: None)
    assert watch.reason_to_end() is None
    assert not watch.has_doubts


def test_a_target_whose_stat_fails_becomes_doubtful(
    watch: TargetWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: str) -> os.stat_result:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr(os, "lstat", fail)
    assert watch.exchanged_reason(0) is None
    assert watch.has_doubts
