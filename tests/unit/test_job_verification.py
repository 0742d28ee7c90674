"""What the verification reports when it fails itself."""

import errno
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.test_job_store import plan
from tui_fs.job.outcome import verify
from tui_fs.linux.pins import take_pin
from tui_fs.model.errors import TuiFsError
from tui_fs.model.paths import PathStr
from tui_fs.model.survey import Survey
from tui_fs.model.target import Target
from tui_fs.survey.runner import SurveyRunner


@pytest.mark.parametrize("error", [OSError("gone"), TuiFsError("A counting process has ended.")])
def test_what_could_not_be_counted_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    # A target that is still there, and a count that fails (a walker was killed)
    target = tmp_path / "t"
    target.mkdir()
    died = replace(plan(), targets=(Target(PathStr(str(target)), take_pin(str(target))),))

    def failing(_: SurveyRunner) -> Iterator[Survey]:
        yield Survey(PathStr(str(target)))
        raise error

    monkeypatch.setattr(SurveyRunner, "run", failing)
    target_fd = os.open(target, os.O_PATH | os.O_DIRECTORY)
    try:
        verification = verify(died, [target_fd])
    finally:
        os.close(target_fd)
    assert verification.left == (str(target),)
    assert verification.survivors is None
    assert not verification.is_all_gone


def test_a_location_too_deep_for_a_path_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "t"
    target.mkdir()
    moved = replace(plan(), targets=(Target(PathStr(str(target)), take_pin(str(target))),))
    target_fd = os.open(target, os.O_PATH | os.O_DIRECTORY)
    target.rename(tmp_path / "elsewhere")

    def too_long(_: str) -> str:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))

    monkeypatch.setattr(os, "readlink", too_long)
    try:
        verification = verify(moved, [target_fd])
    finally:
        os.close(target_fd)
    assert verification.left == (str(target),)
    assert "an unknown location (path too long)" in verification.note


def linkless(status: os.stat_result) -> os.stat_result:
    """Return a status as of a file system that counts no links of directories."""
    return os.stat_result((*status[:3], 0, *status[4:10]))


def test_a_directory_at_its_path_is_not_gone_despite_its_link_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "t"
    target.mkdir()
    (target / "file").touch()
    whole = replace(plan(), targets=(Target(PathStr(str(target)), take_pin(str(target))),))
    target_fd = os.open(target, os.O_PATH | os.O_DIRECTORY)
    real_fstat, real_lstat = os.fstat, os.lstat
    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", lambda descriptor: linkless(real_fstat(descriptor)))
        patch.setattr(os, "lstat", lambda path: linkless(real_lstat(path)))
        try:
            verification = verify(whole, [target_fd])
        finally:
            os.close(target_fd)
    assert verification.left == (str(target),)


def test_a_file_system_that_fails_is_not_taken_for_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "t"
    target.mkdir()
    there = replace(plan(), targets=(Target(PathStr(str(target)), take_pin(str(target))),))
    target_fd = os.open(target, os.O_PATH | os.O_DIRECTORY)

    def failing(_: int) -> os.stat_result:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", failing)
        try:
            verification = verify(there, [target_fd])
        finally:
            os.close(target_fd)
    assert verification.left == (str(target),)
    assert verification.survivors is None
    assert verification.note == "The directory can no longer be examined: Input/output error."


@pytest.mark.parametrize(
    ("links", "is_done"),
    ((0, True), (2, False), (None, False)),
)
def test_a_directory_that_its_server_forgot_is_gone_only_if_this_machine_removed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: int | None, is_done: bool
) -> None:
    target = tmp_path / "t"
    target.mkdir()
    plan_of_it = replace(plan(), targets=(Target(PathStr(str(target)), take_pin(str(target))),))
    target_fd = os.open(target, os.O_PATH | os.O_DIRECTORY)
    target.rmdir()

    def stale(_: int) -> os.stat_result:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    with monkeypatch.context() as served:
        served.setattr(os, "fstat", stale)
        served.setattr("tui_fs.job.outcome.cached_links", lambda _: links)
        try:
            verification = verify(plan_of_it, [target_fd])
        finally:
            os.close(target_fd)
    # It is done only if the kernel itself has taken its last link
    assert verification.is_all_gone is is_done
    assert ("renamed elsewhere" in verification.note) is not is_done
    assert verification.unknown == (() if is_done else (str(target),))
