"""How a supervisor records the end of its job."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.test_job_store import plan
from tui_fs.job.journal import BufferedJournal, EndReserve, JournalWriter
from tui_fs.job.record import JobRecord
from tui_fs.job.store import JobFolder
from tui_fs.model.errors import Refused
from tui_fs.model.events import Event, JobRefused

BUSY = Refused("Another job is at work there.", rule="busy")


class WatchedJournal(BufferedJournal):
    """Notes which outcome the report has when the last event is written."""

    def __init__(
        self, folder: JobFolder, scratch: Path, finish: Callable[[], None] = lambda: None
    ) -> None:
        reserve = scratch / "end"
        reserve.touch()
        super().__init__(JournalWriter(str(scratch / "events")), EndReserve(str(reserve)))
        self._report = Path(folder.report)
        self._finish = finish
        self.outcomes: list[str | None] = []

    def write(self, event: Event) -> None:
        """Note what a viewer that reads this event finds in the report."""
        if isinstance(event, JobRefused):
            exists = self._report.exists()
            outcome = json.loads(self._report.read_text())["outcome"] if exists else None
            self.outcomes.append(outcome)

    def finish(self, sleep: Callable[[float], None] = lambda _: None) -> bool:
        """Do what was asked for before the end, and end."""
        self._finish()
        return super().finish(sleep)


def test_a_viewer_that_reads_the_end_of_a_job_finds_its_report(tmp_path: Path) -> None:
    folder = JobFolder(str(tmp_path))
    journal = WatchedJournal(folder, tmp_path)
    JobRecord(folder, plan(), journal).refuse(BUSY)
    assert journal.outcomes == ["refused"]


def test_a_report_that_had_no_room_is_written_when_there_is_some(tmp_path: Path) -> None:
    folder = JobFolder(str(tmp_path / "later"))
    journal = WatchedJournal(folder, tmp_path, Path(folder.path).mkdir)
    JobRecord(folder, plan(), journal).refuse(BUSY)
    assert json.loads(Path(folder.report).read_text())["outcome"] == "refused"


def test_the_end_is_journalled_even_if_the_report_cannot_be_written(tmp_path: Path) -> None:
    folder = JobFolder(str(tmp_path / "gone"))
    journal = WatchedJournal(folder, tmp_path)
    with pytest.raises(OSError, match="No such file"):
        JobRecord(folder, plan(), journal).refuse(BUSY)
    assert journal.outcomes == [None]
