"""The last words of a supervisor, in an order that others can rely on."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tui_fs.job.store import JobFolder
from tui_fs.job.supervisor import Supervisor
from tui_fs.model.events import Event, JobRefused
from tui_fs.model.snapshot import Snapshot

REFUSED = JobRefused(0.1, "busy", "Another job is at work there.", "")


def _ending(
    folder: JobFolder, seen: list[object], finish: Callable[[], bool] = lambda: True
) -> Supervisor:
    """Give a supervisor that has nothing left but to tell its end."""

    def write(event: Event) -> None:
        report = Path(folder.report)
        outcome = json.loads(report.read_text())["outcome"] if report.exists() else "no report"
        seen.append((event, outcome))

    supervisor = object.__new__(Supervisor)
    record = SimpleNamespace(write=write, finish=finish, problem="")
    supervisor.__dict__.update(_folder=folder, _record=record, _snapshot=Snapshot(), _errors=[])
    return supervisor


def test_whoever_sees_the_end_of_a_job_finds_its_report(tmp_path: Path) -> None:
    seen: list[object] = []
    _ending(JobFolder(str(tmp_path)), seen)._end(REFUSED)
    assert seen == [(REFUSED, "refused")]


def test_a_report_that_had_no_room_is_written_when_there_is_some(tmp_path: Path) -> None:
    folder = JobFolder(str(tmp_path / "later"))

    def finds_room() -> bool:
        Path(folder.path).mkdir()
        return True

    _ending(folder, [], finds_room)._end(REFUSED)
    assert json.loads(Path(folder.report).read_text())["outcome"] == "refused"


def test_the_end_is_told_also_where_the_report_cannot_be_written(tmp_path: Path) -> None:
    seen: list[object] = []
    with pytest.raises(OSError, match="No such file"):
        _ending(JobFolder(str(tmp_path / "gone")), seen)._end(REFUSED)
    # It is told, and the problem not kept quiet
    assert seen == [(REFUSED, "no report")]
