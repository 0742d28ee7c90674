"""A line about the jobs of this user that run now."""

import time
from collections.abc import Sequence

from rich.text import Text
from textual import work
from textual.message import Message
from textual.widgets import Static
from textual.worker import get_current_worker

from tui_fs.job.view import JobList, JobSummary
from tui_fs.model.errors import TuiFsError
from tui_fs.model.outcome import JobState
from tui_fs.model.units import count, duration_range, percent_done
from tui_fs.screens.base import NARROW_COLUMNS
from tui_fs.widgets.cell_drawing import fit_end

_POLL_INTERVAL_S = 1.0
_MIN_PATH = 12
"""Cells; a shorter end of a path names nothing."""


def strip_of(jobs: Sequence[JobSummary], columns: int) -> Text:
    """Return the progress of the newest running job, and the number of the others.

    Args:
        jobs: running, the newest first; at least one.
        columns: a narrow line has no id; a long path loses its beginning.
    """
    job = jobs[0]
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append("PAUSED " if job.state is JobState.PAUSED else "▶ ", "bold")
    line.append(f"{job.strategy}", "bold")
    if job.fraction is not None:
        line.append(f" {percent_done(job.fraction)}", "bold")
    if job.left_s is not None and job.state is not JobState.PAUSED:
        line.append(f" · {duration_range(*job.left_s)} left")
    if job.failed:
        line.append(f" · {count(job.failed)} failed !", "bold")
    if columns >= NARROW_COLUMNS - 2:
        line.append(f" · job {job.job_id}")
    if len(jobs) > 1:
        line.append(f" · {count(len(jobs) - 1)} more (J)")
    line.append(" · w watches")
    room = columns - line.cell_len - len(" · ")
    if room >= _MIN_PATH:
        line.append(f" · {fit_end(job.place, room)}", "dim")
    return line


class JobStrip(Static):
    """Follows the jobs of this user; takes no room while none runs.

    Attributes:
        job_id: of the newest running job; empty while none runs.
    """

    class Ended(Message):
        """Jobs have ended since the last poll."""

        def __init__(self, jobs: Sequence[JobSummary]) -> None:
            super().__init__()
            self.jobs = jobs

    class Polled(Message):
        """All jobs, as read now."""

        def __init__(self, jobs: Sequence[JobSummary]) -> None:
            super().__init__()
            self.jobs = jobs

    def __init__(self) -> None:
        super().__init__(Text(""), id="running")
        self.display = False
        self.job_id = ""
        self._live: frozenset[str] = frozenset()

    def on_mount(self) -> None:
        """Begin to follow the jobs."""
        self._poll()

    @work(thread=True, exclusive=True, group="follow")
    def _poll(self) -> None:
        worker = get_current_worker()
        jobs = JobList()
        while not worker.is_cancelled:
            if self.screen.is_current:
                try:
                    self.post_message(self.Polled(jobs.read()[0]))
                except TuiFsError:
                    self.post_message(self.Polled(()))  # the list of jobs shows the reason
            time.sleep(_POLL_INTERVAL_S)

    async def on_click(self) -> None:
        """Watch the job."""
        await self.screen.run_action("watch")

    def on_job_strip_polled(self, message: Polled) -> None:
        """Show the running jobs."""
        message.stop()
        running = [job for job in message.jobs if job.state.is_live]
        self.display = bool(running)
        self.job_id = running[0].job_id if running else ""
        if running:
            self.update(strip_of(running, self.screen.size.width - 2), layout=False)
        ids = frozenset(job.job_id for job in running)
        ended = [job for job in message.jobs if job.job_id in self._live - ids]
        self._live = ids
        if ended:
            self.post_message(self.Ended(ended))
