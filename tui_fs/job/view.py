"""A job as a viewer sees it: its journal folded, and whether anybody is still at work."""

import os
import time

from tui_fs.job.journal import JournalReader
from tui_fs.job.lock import holder_of
from tui_fs.job.report import report_of
from tui_fs.job.start import START_TIMEOUT_S
from tui_fs.job.store import JobFolder, load_plan
from tui_fs.model.codec import Json
from tui_fs.model.events import EntryFailed, Event
from tui_fs.model.outcome import JobState
from tui_fs.model.plan import Plan
from tui_fs.model.snapshot import Snapshot, fold


class JobView:
    """Follows one job by its journal; never changes anything."""

    def __init__(self, folder: JobFolder) -> None:
        self.folder = folder
        self.plan: Plan = load_plan(folder)
        self.snapshot = Snapshot()
        self._reader = JournalReader(folder.journal)
        self._errors: list[EntryFailed] = []
        self._is_over = False

    def poll(self) -> list[Event]:
        """Read on; return the new events.

        Raises:
            BadInput: the journal is damaged.
        """
        # Asked before reading: what a supervisor writes last is then certainly read.
        is_alive = holder_of(self.folder.lock) is not None or self._is_starting()
        new: list[Event] = []
        while events := self._reader.poll():
            new += events
            for event in events:
                self.snapshot = fold(self.snapshot, event)
                if isinstance(event, EntryFailed):
                    self._errors.append(event)
        ended = self.snapshot.finished is not None or self.snapshot.refused is not None
        self._is_over = ended or not is_alive
        return new

    @property
    def state(self) -> JobState:
        """How the job stood at the last `poll`."""
        state = self.snapshot.state
        if self._is_over and (state is None or state.is_live):
            return JobState.DIED
        return state or JobState.RUNNING

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come."""
        return self._is_over

    def report(self) -> dict[str, Json]:
        """Return the report that the journal gives; report.json is a copy for other programs."""
        return report_of(self.snapshot, self.state, self._errors)

    def _is_starting(self) -> bool:
        """Between the folder's making and the supervisor's first word there may be no lock."""
        is_silent = not os.path.exists(self.folder.journal)
        return is_silent and time.time() - self.plan.created_at < START_TIMEOUT_S
