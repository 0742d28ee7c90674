"""What the verification reports when it fails itself."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from msgspec.structs import replace

from tests.unit.test_job_store import plan
from tui_fs.job import outcome
from tui_fs.job.outcome import Verification, verify
from tui_fs.linux.pins import take_pin
from tui_fs.model.errors import TuiFsError
from tui_fs.model.paths import PathStr
from tui_fs.model.survey import Survey
from tui_fs.model.target import Target
from tui_fs.survey.runner import SurveyRunner


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Return a directory that a job was to delete, with a file."""
    directory = tmp_path / "t"
    directory.mkdir()
    (directory / "file").touch()
    return directory


@pytest.fixture
def verified(target: Path) -> Iterator[Callable[[], Verification]]:
    """Yield the verification of a job on the target, as it is before the test changes it."""
    pinned = Target(PathStr(str(target)), take_pin(str(target)))
    target_fd = os.open(target, os.O_PATH | os.O_DIRECTORY)
    yield lambda: verify(replace(plan(), targets=(pinned,)), [target_fd])
    os.close(target_fd)


def failing(number: int) -> Callable[[object], NoReturn]:
    """Return a system call that fails."""

    def fail(_: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    return fail


Verified = Callable[[], Verification]


@pytest.mark.parametrize("error", [OSError("gone"), TuiFsError("A counting process has ended.")])
def test_what_could_not_be_counted_is_left(
    target: Path, verified: Verified, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    # A target that is still there, and a count that fails (a walker was killed)
    def die(_: SurveyRunner) -> Iterator[Survey]:
        yield Survey(PathStr(str(target)))
        raise error

    monkeypatch.setattr(SurveyRunner, "run", die)
    verification = verified()
    assert verification.left == (str(target),)
    assert verification.survivors is None
    assert not verification.is_all_gone


def test_a_location_too_deep_for_a_path_is_reported(
    target: Path, verified: Verified, monkeypatch: pytest.MonkeyPatch
) -> None:
    target.rename(target.parent / "elsewhere")
    monkeypatch.setattr(os, "readlink", failing(errno.ENAMETOOLONG))
    verification = verified()
    assert verification.left == (str(target),)
    assert "an unknown location (path too long)" in verification.note


def linkless(status: os.stat_result) -> os.stat_result:
    """Return a status as of a file system that counts no links of directories."""
    return os.stat_result((*status[:3], 0, *status[4:10]))


def test_a_directory_at_its_path_is_not_gone_despite_its_link_count(
    target: Path, verified: Verified, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_fstat, real_lstat = os.fstat, os.lstat
    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", lambda descriptor: linkless(real_fstat(descriptor)))
        patch.setattr(os, "lstat", lambda path: linkless(real_lstat(path)))
        assert verified().left == (str(target),)


def test_a_file_system_that_fails_is_not_taken_for_empty(
    target: Path, verified: Verified, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", failing(errno.EIO))
        verification = verified()
    assert verification.left == (str(target),)
    assert verification.survivors is None
    assert verification.note == "The directory can no longer be examined: Input/output error."


@pytest.mark.parametrize(("links", "is_done"), [(0, True), (2, False), (None, False)])
def test_a_directory_that_its_server_forgot_is_gone_only_if_this_machine_removed_it(
    target: Path,
    verified: Verified,
    monkeypatch: pytest.MonkeyPatch,
    links: int | None,
    is_done: bool,
) -> None:
    (target / "file").unlink()
    target.rmdir()
    with monkeypatch.context() as served:
        served.setattr(os, "fstat", failing(errno.ESTALE))
        served.setattr(outcome, "cached_links", lambda _: links)
        verification = verified()
    # It is done only if the kernel itself has taken its last link
    assert verification.is_all_gone is is_done
    assert ("renamed elsewhere" in verification.note) is not is_done
    assert verification.unknown == (() if is_done else (str(target),))
