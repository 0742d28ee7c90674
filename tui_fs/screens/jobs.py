"""All jobs, running and ended."""

import time
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Static
from textual.worker import get_current_worker

from tui_fs.job.command_line import attach_command
from tui_fs.job.store import find
from tui_fs.job.view import JobList, JobSummary, elsewhere
from tui_fs.model.errors import BadInput, TuiFsError
from tui_fs.model.outcome import JobState
from tui_fs.model.paths import displayable
from tui_fs.model.strategy import Argv
from tui_fs.model.units import count, duration_range, percent_done
from tui_fs.screens.base import COPY_BINDING, BaseScreen, Settings, age, muted
from tui_fs.screens.comparison import ComparisonScreen
from tui_fs.screens.report import ReportScreen
from tui_fs.screens.run import RunScreen
from tui_fs.screens.selection import toggled_pair
from tui_fs.widgets.bar_table import BarRow, BarTable, Column
from tui_fs.widgets.cell_drawing import fit_end

_POLL_INTERVAL_S = 1.0
_BAD = (JobState.DIED, JobState.PARTIAL)


class JobsScreen(BaseScreen):
    """A list of jobs, the newest first."""

    KEYS: ClassVar = (
        ("enter", "open"),
        ("space", "mark"),
        ("=", "compare two"),
        ("esc", "back"),
        ("y", "copy"),
    )
    EXPLANATION = (
        "All your jobs. A job runs in its own processes; enter shows its progress, or its report "
        "when it has ended. Mark two with space, and = compares them; with one marked, = compares "
        "it with the one under the cursor. Died: its supervisor was killed, or the machine went "
        "down. Elsewhere: the job belongs to another host that shares this home directory."
    )

    OPENS = "Show the progress of the job, or its report"
    OPENS_FOR = "while it runs"
    BINDINGS = [
        COPY_BINDING,
        Binding("equals_sign", "compare", tooltip="Compare two jobs: marked, or at the cursor"),
        Binding("escape,q,left,h,J", "app.pop_screen", tooltip="Go back"),
    ]

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._jobs: dict[str, JobSummary] = {}
        self._marked: list[str] = []

    def compose_body(self) -> ComposeResult:
        """Lay out the list above the whole path of the highlighted job."""
        yield BarTable(_columns(), empty_text="reading…", toggle_mark=self._toggle_mark, id="jobs")
        yield Static(Text(""), id="job-place")

    def on_mount(self) -> None:
        """Start polling the jobs."""
        self.show_place("", "jobs")
        self.query_one(BarTable).focus()
        self._poll_jobs()

    @work(thread=True, exclusive=True)
    def _poll_jobs(self) -> None:
        worker = get_current_worker()
        jobs = JobList()
        while not worker.is_cancelled:
            if self.is_current:
                try:
                    summaries, damaged = jobs.read()
                except TuiFsError as error:
                    self.app.call_from_thread(self._show_problem, error)
                else:
                    self.app.call_from_thread(self._show, summaries, damaged)
            time.sleep(_POLL_INTERVAL_S)

    def _show_problem(self, error: TuiFsError) -> None:
        if not self.is_attached:
            return
        self._jobs = {}
        rows = self.query_one(BarTable)
        rows.empty_text = str(error)
        rows.set_rows([])

    def _show(self, summaries: list[JobSummary], damaged: list[str]) -> None:
        if not self.is_attached:
            return
        self._jobs = {job.job_id: job for job in summaries}
        self._marked = [job_id for job_id in self._marked if job_id in self._jobs]
        self.query_one(BarTable).empty_text = "no jobs yet"
        self._show_rows()
        live = sum(job.state.is_live for job in summaries)
        paused = sum(job.state is JobState.PAUSED for job in summaries)
        elsewhere_count = sum(job.state is JobState.ELSEWHERE for job in summaries)
        note = f"{count(live - paused)} running, " + f"{count(paused)} paused, " * bool(paused)
        note += f"{count(len(summaries) - live - elsewhere_count)} ended"
        if elsewhere_count:
            note += f", {count(elsewhere_count)} on other hosts"
        if damaged:
            note += f", {count(len(damaged))} unreadable !"
        self.show_place("", "jobs", note)

    def _show_rows(self) -> None:
        states = {job.state for job in self._jobs.values()}
        has_left = any(state.is_live and state is not JobState.PAUSED for state in states)
        rows = [
            _row(job, has_left=has_left, is_marked=job.job_id in self._marked)
            for job in self._jobs.values()
        ]
        table = self.query_one(BarTable)
        is_live = any(state.is_live for state in states)
        table.set_columns(_columns(is_live=is_live, has_left=has_left))
        table.set_rows(rows)
        self._show_place_of_job()
        self.show_idle_keys()

    def on_bar_table_highlighted(self) -> None:
        """Show the targets of the job."""
        self._show_place_of_job()

    def _show_place_of_job(self) -> None:
        row = self.query_one(BarTable).cursor_row
        job = None if row is None else self._jobs.get(row.key)
        text = "" if job is None else fit_end(job.place, max(1, self.size.width - 2))
        self.set_line("#job-place", muted(text))

    def idle_keys(self) -> frozenset[str]:
        """Return the keys that would do nothing now: a single job cannot be compared."""
        idle = super().idle_keys()
        return idle if len(self._jobs) > 1 else idle | {"space", "="}

    def _toggle_mark(self, row: BarRow) -> bool:
        self._marked = toggled_pair(self._marked, row.key)
        self._show_rows()
        return True

    def command_to_copy(self) -> Argv:
        """Return the command that follows the highlighted job, or prints its report."""
        row = self.query_one(BarTable).cursor_row
        if row is None:
            raise BadInput("There is no job to attach to.")
        job = self._jobs[row.key]
        if job.state is JobState.ELSEWHERE:
            raise elsewhere(job.job_id, job.host.name)
        return attach_command(job.job_id)

    def action_compare(self) -> None:
        """Compare two jobs, the older one first."""
        pair = set(self._marked)
        row = self.query_one(BarTable).cursor_row
        if len(pair) == 1 and row is not None:
            pair.add(row.key)
        if len(pair) < 2:
            self.notify(
                "Mark two jobs with space first, or one, and move to the other.", markup=False
            )
            return
        try:
            older, newer = (find(job_id) for job_id in reversed(self._jobs) if job_id in pair)
        except TuiFsError as error:
            self.notify(str(error), markup=False)
            return
        self.app.push_screen(ComparisonScreen((older, newer), self.settings))

    def on_bar_table_opened(self, message: BarTable.Opened) -> None:
        """Show the running job, or its report."""
        try:
            folder = find(message.row.key)
        except TuiFsError as error:
            self.notify(str(error), markup=False)
            return
        job = self._jobs[message.row.key]
        if job.state is JobState.ELSEWHERE:
            self.notify(str(elsewhere(job.job_id, job.host.name)), markup=False)
            return
        screen = RunScreen if job.state.is_live else ReportScreen
        self.app.push_screen(screen(folder, self.settings))


def _columns(*, is_live: bool = False, has_left: bool = False) -> tuple[Column, ...]:
    """Return the columns, with those of live jobs, or of a time left, if there are any."""
    meaning = "running or paused, with the deleted part, or how it ended"
    left = Column("left", 15, right=True, is_optional=True, meaning="the time that it still needs")
    return (
        Column("job", 6, meaning="its identifier, for example for tui-fs attach"),
        Column("state", 12 if is_live else 9, meaning=meaning),
        Column("ago", 7, right=True, is_optional=True, meaning="the time since it was started"),
        *((left,) * has_left),
        Column("deleted", 13, right=True, is_optional=True, meaning="the entries it has deleted"),
        Column("strategy", 8, is_optional=True, meaning="how it deletes"),
        Column("directory", 0, keep_end=True, meaning="its targets"),
    )


def _row(job: JobSummary, *, has_left: bool, is_marked: bool) -> BarRow:
    left = "" if job.left_s is None else duration_range(*job.left_s)
    return BarRow(
        key=job.job_id,
        cells=(
            job.job_id,
            str(job.state) + ("" if job.fraction is None else f" {percent_done(job.fraction)}"),
            age(int(job.created_at), time.time()),
            *((left,) * has_left),
            "?" if job.deleted_entries is None else count(job.deleted_entries),
            str(job.strategy),
            job.place,
        ),
        marked=is_marked,
        flag=_flag(job),
        flag_tone="warning" if job.state in _BAD else "muted",
    )


def _flag(job: JobSummary) -> str:
    """Return a flag for an unusual state of a job."""
    if job.is_other_host:
        return f"on host {displayable(job.host.name)}"
    return f"! {count(job.failed)} failed" if job.failed else ""
