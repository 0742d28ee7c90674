"""Targets that share a run must stay the confirmed directories while it works."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.unit.test_job_store import plan
from tui_fs.job.path_safety import PreparedStep
from tui_fs.job.permission import RepeatedChecks
from tui_fs.job.target_watch import CheckFailed, TargetWatch
from tui_fs.linux.pins import take_pin
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Filters, Options, Share
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


def stay(_: Path) -> None:
    """Leave a directory as it is."""


def exchange(path: Path) -> None:
    """Put another directory in the place of one that stays elsewhere."""
    path.rename(path.parent / "kept")
    path.mkdir()


def recreate(path: Path) -> None:
    """Put another directory in the place of one that was deleted."""
    path.rmdir()
    path.mkdir()


def move(path: Path) -> None:
    """Leave nothing in the place of a directory that stays elsewhere."""
    path.rename(path.parent / "kept")


@pytest.mark.parametrize(
    ("change", "step", "is_reason"),
    [
        (stay, 0, False),
        (exchange, 0, True),
        (recreate, 0, False),
        (move, 0, False),
        (exchange, 1, False),  # alone in its step: it was compared before it
    ],
)
def test_only_an_exchanged_target_of_several_ends_the_job(
    watch: TargetWatch,
    places: list[Path],
    change: Callable[[Path], None],
    step: int,
    is_reason: bool,
) -> None:
    change(places[1])
    reason = watch.exchanged_reason(step)
    assert (reason is not None) is is_reason
    assert reason is None or str(places[1]) in reason


@pytest.mark.parametrize(("number", "is_doubtful"), [(errno.ENOTDIR, False), (errno.EIO, True)])
def test_a_failed_stat_ends_no_job(
    watch: TargetWatch, monkeypatch: pytest.MonkeyPatch, number: int, is_doubtful: bool
) -> None:
    def fail(path: str) -> os.stat_result:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(os, "lstat", fail)
    assert watch.exchanged_reason(0) is None
    assert watch.has_doubts is is_doubtful


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


@pytest.mark.parametrize(("share", "is_refused"), [(Share(1, 2), False), (None, True)])
def test_another_machine_may_have_removed_a_target_of_which_this_job_deletes_a_share(
    places: list[Path], share: Share | None, is_refused: bool
) -> None:
    targets = tuple(Target(PathStr(str(path)), take_pin(str(path))) for path in places)
    target_fds = [os.open(path, os.O_PATH | os.O_DIRECTORY) for path in places]
    steps = (PreparedStep(((),), (0, 1), False), PreparedStep(((),), (0, 1), False, is_rmdir=True))
    options = Options(filters=Filters(share=share))
    watch = TargetWatch(replace(plan(), targets=targets, options=options), steps, target_fds)
    try:
        watch.check_before(steps[1], ())
        places[1].rmdir()
        with pytest.raises(BadInput, match="does not exist") if is_refused else nullcontext():
            watch.check_before(steps[1], ())
        with pytest.raises(BadInput, match="does not exist"):
            watch.check_before(steps[0], ())
    finally:
        for descriptor in target_fds:
            os.close(descriptor)
