"""What a job came to, beside what was predicted."""

from typing import Any, ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from tui_fs.job.permission import read_only_reason
from tui_fs.job.store import JobFolder
from tui_fs.job.view import JobView
from tui_fs.model.errors import TuiFsError
from tui_fs.model.outcome import JobState
from tui_fs.model.plan import Plan
from tui_fs.model.snapshot import Snapshot
from tui_fs.screens.errors import ErrorsScreen
from tui_fs.screens.frame import FramedScreen, Settings
from tui_fs.screens.messages import Failed, GoOnAsked
from tui_fs.screens.report_text import call_rows, details, headline, where_kept
from widgets.call_table import CallTable
from widgets.footer import Footer


class ReportScreen(FramedScreen):
    """The report of an ended job."""

    KEYS: ClassVar = (("↑↓", "scroll"), ("e", "errors"), ("J", "jobs"), ("esc", "back"))
    EXPLANATION = (
        "How the job ended: what is gone, what is not and why, how long it took beside the "
        "prediction, the space that came back, and every system call. Counts called exact were "
        "counted by the kernel; by difference means survey before minus survey after. "
        "Calls of the programs' start, of memory and closes are one line."
    )

    BINDINGS = [
        Binding("escape,q,left,h", "app.pop_screen", tooltip="Go back"),
        Binding("r", "go_on", tooltip="Go on with what a job left that died (asks first)"),
        Binding("e", "errors", tooltip="Show what could not be deleted"),
        Binding("j,down", "scroll(1)", tooltip="Scroll down"),
        Binding("k,up", "scroll(-1)", tooltip="Scroll up"),
        Binding("pagedown,ctrl+f,space", "scroll(10)", tooltip="Scroll a page down"),
        Binding("pageup,ctrl+b", "scroll(-10)", tooltip="Scroll a page up"),
    ]

    def __init__(self, folder: JobFolder, settings: Settings) -> None:
        super().__init__(settings)
        self._folder = folder
        self._snapshot = Snapshot()
        self._died: Plan | None = None

    def compose_body(self) -> ComposeResult:
        """Lay out headline, details and the table of calls."""
        yield Static(Text("reading…"), id="headline")
        with VerticalScroll(id="body"):
            yield Static(Text(""), id="details")
            yield CallTable(id="calls")
            yield Static(Text(""), id="kept")

    def on_mount(self) -> None:
        """Read the report."""
        self.show_place("report of job", self._folder.job_id)
        self._read()

    @work(thread=True, exclusive=True)
    def _read(self) -> None:
        try:
            view = JobView(self._folder)
            view.poll()
            report = view.report()
        except TuiFsError as why:
            self.post_message(Failed(why))
            return
        died = view.plan if view.state is JobState.DIED else None
        self.app.call_from_thread(self._show, report, view.snapshot, died)

    def _show(self, report: dict[str, Any], snapshot: Snapshot, died: Plan | None) -> None:
        self._snapshot, self._died = snapshot, died
        if died is not None and read_only_reason(by_option=self.settings.read_only) is None:
            self.query_one(Footer).keys = (
                ("r", "go on with the rest…"),
                *self.KEYS,
                ("?", "help"),
            )
        top = self.query_one("#headline", Static)
        top.update(headline(report))
        top.set_class(report["outcome"] not in ("done", "cancelled"), "refused")
        self.query_one("#details", Static).update(details(report))
        table = self.query_one(CallTable)
        if report["syscalls"]:
            table.title = f"system calls · {report['trace_note']}"
            table.rows = call_rows(report)
        self.query_one("#kept", Static).update(where_kept(report, self._folder.report))

    def on_failed(self, message: Failed) -> None:
        """Say why there is no report."""
        self.query_one("#headline", Static).update(Text(str(message.error), style="bold"))

    def action_go_on(self) -> None:
        """Preview what a dead job has left, with its strategy and options."""
        if self._died is None:
            self.notify("Only a job that died can be taken up again.", markup=False)
        elif (reason := read_only_reason(by_option=self.settings.read_only)) is not None:
            self.notify(f"Deleting is switched off: {reason}.", markup=False)
        else:
            self.app.post_message(GoOnAsked(self._died))

    def action_errors(self) -> None:
        """List the failures."""
        self.app.push_screen(ErrorsScreen(self._snapshot, self.settings))

    def action_scroll(self, lines: int) -> None:
        """Scroll by some lines."""
        self.query_one("#body").scroll_relative(y=lines, animate=False)
