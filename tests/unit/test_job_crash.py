"""A supervisor that failed is distinguished from one that was killed."""

import errno
from pathlib import Path

import pytest

from tests.unit.test_job_view import job, reported
from tests.unit.test_model_snapshot import RUNNING
from tui_fs.job.journal import CrashMark, read_crash
from tui_fs.job.store import JobFolder


def test_a_crash_is_reported_as_one_with_its_log() -> None:
    folder = job(*RUNNING)
    CrashMark(folder.crash).leave(KeyError("missing"))
    report = reported(folder)
    assert report["outcome"] == "died"
    explanation = str(report["explanation"])
    assert explanation.startswith("tui-fs itself failed: KeyError: 'missing'; see ")
    assert folder.log in explanation
    assert "was killed" not in explanation


@pytest.mark.parametrize("has_mark_file", (False, True))
def test_a_killed_supervisor_is_reported_as_killed(has_mark_file: bool) -> None:
    folder = job(*RUNNING)
    if has_mark_file:
        CrashMark(folder.crash)
    assert "The supervisor was killed" in str(reported(folder)["explanation"])


def test_a_limit_is_named_in_the_mark(tmp_path: Path) -> None:
    folder = JobFolder(str(tmp_path))
    CrashMark(folder.crash).leave(OSError(errno.EMFILE, "Too many open files"))
    assert read_crash(folder.crash) == "the limit on open files per process is reached (EMFILE)"
