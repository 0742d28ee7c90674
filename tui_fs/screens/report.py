"""The report of a job, compared with the prediction."""

import os
from collections.abc import Sequence
from functools import partial
from typing import ClassVar, NamedTuple

from rich.style import NULL_STYLE, Style
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container, VerticalScroll
from textual.message import Message
from textual.widgets import Static

from tui_fs.job.command_line import attach_command
from tui_fs.job.permission import read_only_reason
from tui_fs.job.report import Report
from tui_fs.job.report_text import (
    Weight,
    call_lines_of,
    calls_title,
    figures,
    harmless_errors,
    pairs,
    remarks,
)
from tui_fs.job.sampling import SAMPLE_EVERY_S
from tui_fs.job.store import JobFolder
from tui_fs.job.view import JobView
from tui_fs.model.calls import REMOVING_CALLS, CallLine
from tui_fs.model.errors import TuiFsError, meaning
from tui_fs.model.outcome import JobState, Outcome
from tui_fs.model.paths import displayable, harmless, is_within
from tui_fs.model.plan import Plan
from tui_fs.model.snapshot import Snapshot
from tui_fs.model.strategy import Argv
from tui_fs.model.target import command_lines, common_directory, in_words
from tui_fs.model.units import count
from tui_fs.screens.base import (
    COPY_BINDING,
    PAGE_BINDINGS,
    SCROLL_BINDINGS,
    BaseScreen,
    Failed,
    Settings,
    broken_at_dots,
    deleting_is_off,
    muted,
)
from tui_fs.screens.call_dialog import CallDialog
from tui_fs.screens.run_history import RunHistory, Trends
from tui_fs.widgets.call_table import CallRow, CallTable
from tui_fs.widgets.cell_drawing import dots
from tui_fs.widgets.figure_layout import layout_predicted
from tui_fs.widgets.fitted_lines import FittedLines

_LABEL_CELLS = 13
_STYLES = {Weight.STRONG: "bold", Weight.NORMAL: "", Weight.WEAK: "dim"}
_HEADLINES = {
    "done": "DONE",
    "partial": "PARTIAL: not everything was deleted",
    "cancelled": "CANCELLED",
    "refused": "REFUSED: nothing was deleted",
    "died": "DIED: the job did not finish",
}


def headline(report: Report, style: Style = NULL_STYLE) -> Text:
    """Return the outcome, in a style, and its explanation."""
    text = Text.assemble((_HEADLINES[report.outcome], Style(bold=True) + style))
    if (started := report.started) is not None:
        targets = in_words(started.targets, started.share, is_filtered=started.is_filtered)
        text.append(f"  {targets}")
    return text.append(f"\n{harmless(report.explanation)}")


def details(report: Report, width: int) -> Text:
    """Return figures, what is left, why space is missing, and the failures; figures in a width."""
    text = Text()
    if report.started is None:
        return text
    for label, value in figures(report, report.started):
        text.append(f"{label:<{_LABEL_CELLS}}", "dim")
        lines = broken_at_dots(Text(value), width - _LABEL_CELLS).plain.split("\n")
        text.append(f"\n{'':{_LABEL_CELLS}}".join(lines) + "\n")
    for line in remarks(report, report.started):
        text.append(f"{line.text}\n", _STYLES[line.weight])
    return text


def call_rows(report: Report, trends: Trends | None = None) -> tuple[CallRow, ...]:
    """Return predicted and counted calls by group, and their rates."""
    lines = call_lines_of(report, report.started) if report.started else []
    totals = CallTotals.of(lines)
    calls = trends.calls if trends is not None else {}
    return tuple(call_row(line, totals, trend=calls.get(line.name, ())) for line in lines)


class CallTotals(NamedTuple):
    """The sums of a table of calls."""

    calls: int
    seconds: float

    @classmethod
    def of(cls, lines: Sequence[CallLine]) -> "CallTotals":
        """Return the sums of these lines."""
        return cls(
            sum(line.counted.calls for line in lines),
            sum(line.counted.seconds or 0.0 for line in lines),
        )


def call_row(
    line: CallLine,
    totals: CallTotals,
    done: str = "",
    rate: str = "",
    trend: tuple[float, ...] = (),
) -> CallRow:
    """Return a row of the table of calls.

    Args:
        totals: of the table, for the shares of this call.
        trend: its rates since the start.
    """
    counts, time_share = line.counted, ""
    if counts.seconds is not None and totals.seconds > 0:
        time_share = percent(counts.seconds / totals.seconds)
    return CallRow(
        name=line.name,
        calls=count(counts.calls),
        predicted=line.predicted_text,
        done=done,
        errors=count(counts.errors) if counts.errors else "",
        rate=rate,
        time=time_share,
        share=percent(counts.calls / totals.calls) if totals.calls else "",
        note=line.note,
        trend=trend,
        group=line.guide.group,
        has_failed=line.has_failed,
        emphasised=line.name in REMOVING_CALLS,
    )


def percent(share: float) -> str:
    """Return a share as a whole percentage, and a small one as such."""
    return "<1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def where_kept(report: Report, folder: JobFolder) -> Text:
    """Return the command lines that ran and the path of the record; a dead job wrote no report."""
    text = Text()
    for line in command_lines(report.started.command) if report.started else ():
        text.append("\n$ ", "dim")
        text.append(line)
    has_report = report.outcome is not Outcome.DIED
    record, path = ("report", folder.report) if has_report else ("journal", folder.journal)
    text.append(f"\n\n{record} stored in {displayable(path)}", "dim")
    return text


class ResumeRequested(Message):
    """The user wants to resume a dead job."""

    def __init__(self, died: Plan) -> None:
        super().__init__()
        self.died = died


class ReportScreen(BaseScreen):
    """The report of an ended job."""

    KEYS: ClassVar = (
        ("p", "resume…"),
        ("↑↓", "scroll"),
        ("enter", "explain calls"),
        ("x", "errors"),
        ("J", "jobs"),
        ("esc", "back"),
        ("y", "copy"),
    )
    EXPLANATION = (
        "How the job ended: what was deleted, what was not and why, the time compared with the "
        "prediction, the freed space, and every system call. In the figure, the lighter part of a "
        "predicted bar is the range. Counts without a note are exact; "
        "counts by difference are the survey before minus the survey after. All other calls, such "
        "as those of program start-up and of closing files, share one line."
    )

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (140, "-wide")]
    BINDINGS = [
        COPY_BINDING,
        Binding("escape,q,left,h", "app.pop_screen", tooltip="Go back"),
        Binding("p", "pause", tooltip="Resume a job that died (asks first)"),
        Binding("x", "errors", tooltip="Show what could not be deleted"),
        Binding("enter", "explain", tooltip="Explain the system calls"),
        *SCROLL_BINDINGS,
        *PAGE_BINDINGS,
    ]

    COMPONENT_CLASSES: ClassVar = {"report--failed"}

    def __init__(self, folder: JobFolder, settings: Settings) -> None:
        super().__init__(settings)
        self._folder = folder
        self._snapshot = Snapshot()
        self._report: Report | None = None
        self._died: Plan | None = None
        self._history = RunHistory(SAMPLE_EVERY_S)
        self._lines: list[CallLine] = []

    def compose_body(self) -> ComposeResult:
        """Lay out headline, details and the table of calls."""
        yield Static(Text(f"reading{dots()}"), id="headline")
        with VerticalScroll(id="body", can_focus=False):
            with Container(id="results"):
                yield Static(Text(""), id="details")
                yield FittedLines(lambda _: (), id="pairs")
            yield CallTable(id="calls")
            yield Static(Text(""), id="harmless")
            yield Static(Text(""), id="kept")

    def on_mount(self) -> None:
        """Read the report."""
        self.show_place("report of job", self._folder.job_id)
        self._show_keys()
        self._read()

    def _show_keys(self) -> None:
        actions = {"enter": "explain", "x": "errors", "p": "pause"}
        idle = {key for key, action in actions.items() if not self.check_action(action, ())}
        if read_only_reason(by_option=self.settings.read_only) is not None:
            idle.add("p")
        self.show_keys(without=idle)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:  # noqa: ARG002
        """Disable the keys for failures, calls and a resumption that this job does not have."""
        match action:
            case "errors":
                return self._snapshot.has_errors
            case "explain":
                return bool(self._lines)
            case "pause":
                return self._died is not None
        return True

    @work(thread=True, exclusive=True)
    def _read(self) -> None:
        try:
            view = JobView(self._folder)
            view.poll(lambda event: self._history.add(view.snapshot, event))
            report = view.report()
        except TuiFsError as error:
            self.post_message(Failed(error))
            return
        died = view.plan if view.state is JobState.DIED else None
        self.app.call_from_thread(self._show, report, view.snapshot, died)

    def _show(self, report: Report, snapshot: Snapshot, died: Plan | None) -> None:
        self._snapshot, self._died = snapshot, died
        top = self.query_one("#headline", Static)
        has_failed = report.outcome in (Outcome.PARTIAL, Outcome.DIED)
        failed = self.get_component_rich_style("report--failed", partial=True)
        top.update(headline(report, failed if has_failed else NULL_STYLE))
        top.set_class(report.outcome is Outcome.REFUSED, "refused")
        started = report.started
        self.query_one("#results").display = started is not None
        self._report = report
        self.on_resize()
        figure, compared = self.query_one("#pairs", FittedLines), pairs(report)
        figure.display = bool(compared)
        figure.lay_out_by(partial(layout_predicted, compared))
        table = self.query_one(CallTable)
        table.display = False
        if started is not None and report.syscalls:
            table.display = True
            table.title = calls_title(report, started)
            table.rows = call_rows(report, self._history.trends())
            self._lines = call_lines_of(report, started)
        harmless_words = self.query_one("#harmless", Static)
        harmless_words.update(muted("\n".join(harmless_errors(self._lines))))
        harmless_words.display = bool(self._lines)
        self.query_one("#kept", Static).update(where_kept(report, self._folder))
        self._show_keys()

    def on_resize(self) -> None:
        """Break the lines of the figures for the present width."""
        if self._report is not None:
            text = details(self._report, self.size.width - 4)
            self.query_one("#details", Static).update(text)

    def on_failed(self, message: Failed) -> None:
        """Show why there is no report."""
        self.query_one("#headline", Static).update(Text(str(message.error), style="bold"))

    def command_to_copy(self) -> Argv:
        """Return the command that prints this report."""
        return attach_command(self._folder.job_id)

    def action_explain(self) -> None:
        """Explain the calls, the first one first."""
        started = self._snapshot.started
        if self._lines and started is not None:
            self.app.push_screen(CallDialog(self._lines, started.strategy, self._snapshot))

    def action_pause(self) -> None:
        """Preview the rest of a dead job, with its strategy and options."""
        if (reason := read_only_reason(by_option=self.settings.read_only)) is not None:
            self.notify(deleting_is_off(reason), markup=False)
        elif self._died is not None:
            self.app.post_message(ResumeRequested(self._died))

    def action_errors(self) -> None:
        """List the failures."""
        self.app.push_screen(ErrorsScreen(self._snapshot, self.settings))


class ErrorsScreen(BaseScreen):
    """The failures of a job so far, grouped by meaning."""

    KEYS: ClassVar = (("↑↓", "scroll"), ("esc", "back"))
    EXPLANATION = "Entries that could not be deleted, grouped by the failed call and the error."

    BINDINGS = [
        Binding("escape,q,x,left,h", "app.pop_screen", tooltip="Go back"),
        *SCROLL_BINDINGS,
        *PAGE_BINDINGS,
    ]

    def __init__(self, snapshot: Snapshot, settings: Settings) -> None:
        super().__init__(settings)
        self._snapshot = snapshot
        targets = snapshot.started.targets if snapshot.started else ("/",)
        self._target = common_directory(targets)
        self._above = os.path.dirname(self._target)  # names begin with that of the target

    def compose_body(self) -> ComposeResult:
        """Lay out one paragraph for each group."""
        with VerticalScroll(id="body", can_focus=False):
            for group in self._snapshot.failures:
                text = Text(f"{count(group.number)} × {group.operation}: ", style="bold")
                text.append(f"{meaning(group.error)}\n", "not bold")
                for path, cause in zip(group.examples, group.causes, strict=True):
                    reason = f": {cause}" if cause else ""
                    text.append(f"   {self._shown(path)}{reason}\n", "dim not bold")
                if group.number > len(group.examples):
                    more = group.number - len(group.examples)
                    text.append(f"   {dots()} and {count(more)} more\n", "dim not bold")
                yield Static(text)
            for line in self._snapshot.tool_lines:
                yield Static(muted(harmless(line)))

    def on_mount(self) -> None:
        """Name the job."""
        self.show_place(f"{count(self._snapshot.failed)} failed in", displayable(self._target))

    def _shown(self, path: str) -> str:
        inside = is_within(path, self._above)
        return displayable(os.path.relpath(path, self._above) if inside else path)
