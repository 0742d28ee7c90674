"""The report of a job, compared with the prediction."""

from typing import Any, ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import Static

from tui_fs.job.permission import read_only_reason
from tui_fs.job.store import JobFolder
from tui_fs.job.view import JobView
from tui_fs.model.calls import REMOVING_CALLS, CallCount, CallLine, call_lines
from tui_fs.model.codec import shown_failure, shown_path
from tui_fs.model.errors import TuiFsError, meaning
from tui_fs.model.figures import MissingFigure
from tui_fs.model.outcome import JobState
from tui_fs.model.paths import displayable, harmless
from tui_fs.model.plan import Plan
from tui_fs.model.snapshot import Snapshot
from tui_fs.model.target import done_word, shown_commands, shown_targets
from tui_fs.model.units import bytes_iec, count, counted, duration, duration_span, more_or_less
from tui_fs.screens.base import PAGE_BINDINGS, SCROLL_BINDINGS, BaseScreen, Failed, Settings, muted
from widgets.call_table import CallRow, CallTable
from widgets.footer import Footer

_LABEL_CELLS = 13
_PATHS_SHOWN = 3
_HEADLINES = {
    "done": "DONE",
    "partial": "PARTIAL: not everything was deleted",
    "cancelled": "CANCELLED",
    "refused": "REFUSED: nothing was deleted",
    "died": "DIED: the job ended without a report",
}


def headline(report: dict[str, Any]) -> Text:
    """Return the outcome and its explanation."""
    text = Text(_HEADLINES[report["outcome"]], style="bold")
    if "target" in report:
        text.append(f"  {shown_targets(report)}", "not bold")
    text.append(f"\n{harmless(report['explanation'])}", "not bold")
    return text


def details(report: dict[str, Any]) -> Text:
    """Return counts, time, space and failures."""
    text = Text()
    if "target" not in report:
        return text
    expected = report["expected"]["totals"]
    files_expected = expected["files"] + expected["symlinks"] + expected["other"]
    _line(text, "files", _deleted(report, "deleted_files", files_expected))
    _line(text, "directories", _deleted(report, "deleted_directories", expected["directories"]))
    if report["surviving_entries"]:
        _line(text, "left", counted(report["surviving_entries"], "entry", "entries"))
    targets = report["targets"]
    if len(targets) > 1:
        done = sum(target["done"] is True for target in targets)
        _line(text, done_word(report), f"{count(done)} of {count(len(targets))} directories")
        left = [target for target in targets if target["done"] is False]
        for target in left[:_PATHS_SHOWN]:
            text.append(f"   left: {shown_path(target, 'path')}\n", "bold")
        if len(left) > _PATHS_SHOWN:
            text.append(f"   … {count(len(left) - _PATHS_SHOWN)} more\n", "bold")
    _line(text, "failed", count(report["failed"]))
    _line(text, "time", _time(report))
    _line(
        text,
        "cpu",
        f"kernel {report['cpu_system_s']:.1f} s · user {report['cpu_user_s']:.1f} s · "
        f"peak memory {_peak_memory(report)}",
    )
    _line(text, "space", _space(report))
    _line(text, "inodes", _inodes(report))
    for missing in report.get("missing_figures", []):
        text.append(f"{MissingFigure(**missing).sentence}\n", "dim")
    for cause in report["space_causes"]:
        text.append(f"\n{cause['sentence']}\n", "bold")
        text.append(f"   {cause['advice']}\n", "dim")
    for group in report["error_groups"]:
        text.append(f"\n{count(group['number'])} × {group['operation']}: ", "bold")
        text.append(f"{group['meaning']}\n")
        key = (group["operation"], group["errno"])
        same = [e for e in report["errors"] if (e["operation"], e["errno"]) == key]
        for error in same[:_PATHS_SHOWN]:
            text.append(f"   {shown_failure(error)}\n", "dim")
        if group["number"] > _PATHS_SHOWN:
            text.append(f"   … {count(group['number'] - _PATHS_SHOWN)} more: e\n", "dim")
    return text


def call_rows(report: dict[str, Any]) -> tuple[CallRow, ...]:
    """Return predicted and counted calls, the most frequent first."""
    predicted = report["predicted"]
    counts = {name: CallCount(**numbers) for name, numbers in report["syscalls"].items()}
    total_s = sum(call.seconds or 0.0 for call in counts.values())
    lines = call_lines(counts, predicted["syscalls"], predicted.get("other_calls"))
    ordered = sorted(lines, key=lambda line: (-line.counted.calls, line.name))
    return tuple(call_row(line, total_s) for line in ordered)


def call_row(line: CallLine, total_s: float, done: str = "", rate: str = "") -> CallRow:
    """Return a row of the table of calls.

    Args:
        total_s: the time in all calls, for the share of this call.
    """
    counts, share = line.counted, ""
    if counts.seconds is not None and total_s > 0:
        share = f"{100 * counts.seconds / total_s:.1f} %"
    return CallRow(
        name=line.name,
        calls=count(counts.calls),
        predicted=line.predicted_text,
        done=done,
        errors=count(counts.errors) if counts.errors else "",
        rate=rate,
        share=share,
        emphasised=line.name in REMOVING_CALLS,
    )


def where_kept(report: dict[str, Any], path: str) -> Text:
    """Return the command lines that ran and the path of the record."""
    text = Text()
    for line in shown_commands(report, "command"):
        text.append("\n$ ", "dim")
        text.append(line)
    text.append(f"\n\nkept in {displayable(path)}", "dim")
    return text


def _line(text: Text, label: str, value: str) -> None:
    text.append(f"{label:<{_LABEL_CELLS}}", "dim")
    text.append(f"{value}\n")


def _deleted(report: dict[str, Any], key: str, expected: int) -> str:
    number = report[key]
    if number is None:
        return f"not counted, of {count(expected)} surveyed"
    accuracy = "" if report["counts_are"] == "exact" else f" ({report['counts_are']})"
    return f"{count(number)} of {count(expected)} deleted{accuracy}"


def _peak_memory(report: dict[str, Any]) -> str:
    """Return the peak memory; a tool that exits within milliseconds is never sampled."""
    peak_bytes = report["peak_memory_bytes"]
    return bytes_iec(peak_bytes) if peak_bytes else "not seen"


def _time(report: dict[str, Any]) -> str:
    working_s = max(0.0, report["strategy_wall_s"] - report["paused_s"])
    deleted = (report["deleted_files"] or 0) + (report["deleted_directories"] or 0)
    words = [duration(working_s)]
    if report["paused_s"]:
        words[0] += f" and {duration(report['paused_s'])} paused"
    if report["held_back_s"]:
        words[0] += f", {duration(report['held_back_s'])} of it throttled"
    low, high = report["predicted"]["seconds_low"], report["predicted"]["seconds_high"]
    if low is not None:
        words.append(f"predicted {duration_span(low, high)}")
    if working_s > 0 and deleted:
        words.append(f"{count(round(deleted / working_s))} /s")
    return " · ".join(words)


def _space(report: dict[str, Any]) -> str:
    before, after = report["space_before"], report["space_after"]
    if before is None or after is None:
        return "the file system did not answer"
    expected = report["expected"]
    low, high = bytes_iec(expected["freed_bytes_min"]), bytes_iec(expected["freed_bytes_max"])
    span = high if low == high else f"{low} to {high}"
    return (
        f"{more_or_less(bytes_iec, report['freed_bytes'])} free · expected {span} · "
        f"{bytes_iec(before['free_bytes'])} → {bytes_iec(after['free_bytes'])}"
    )


def _inodes(report: dict[str, Any]) -> str:
    before, after = report["space_before"], report["space_after"]
    if report["freed_inodes"] is None:
        return "this file system does not count them"
    return (
        f"{more_or_less(count, report['freed_inodes'])} free · {count(before['free_inodes'])} → "
        f"{count(after['free_inodes'])}"
    )


class ResumeRequested(Message):
    """The user wants to resume a dead job."""

    def __init__(self, died: Plan) -> None:
        super().__init__()
        self.died = died


class ReportScreen(BaseScreen):
    """The report of an ended job."""

    KEYS: ClassVar = (("↑↓", "scroll"), ("e", "errors"), ("J", "jobs"), ("esc", "back"))
    EXPLANATION = (
        "How the job ended: what was deleted, what was not and why, the time compared with the "
        "prediction, the freed space, and every system call. Exact counts come from the kernel; "
        "counts by difference are the survey before minus the survey after. Calls for program "
        "start-up, memory and closing files share one line."
    )

    BINDINGS = [
        Binding("escape,q,left,h", "app.pop_screen", tooltip="Go back"),
        Binding("r", "resume", tooltip="Resume a job that died (asks first)"),
        Binding("e", "errors", tooltip="Show what could not be deleted"),
        *SCROLL_BINDINGS,
        *PAGE_BINDINGS,
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
            report = view.report().to_json()
        except TuiFsError as error:
            self.post_message(Failed(error))
            return
        died = view.plan if view.state is JobState.DIED else None
        self.app.call_from_thread(self._show, report, view.snapshot, died)

    def _show(self, report: dict[str, Any], snapshot: Snapshot, died: Plan | None) -> None:
        self._snapshot, self._died = snapshot, died
        if died is not None and read_only_reason(by_option=self.settings.read_only) is None:
            self.query_one(Footer).keys = (
                ("r", "resume…"),
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
        """Show why there is no report."""
        self.query_one("#headline", Static).update(Text(str(message.error), style="bold"))

    def action_resume(self) -> None:
        """Preview the rest of a dead job, with its strategy and options."""
        if self._died is None:
            self.notify("Only a job that died can be resumed.", markup=False)
        elif (reason := read_only_reason(by_option=self.settings.read_only)) is not None:
            self.notify(f"Deleting is switched off: {reason}.", markup=False)
        else:
            self.app.post_message(ResumeRequested(self._died))

    def action_errors(self) -> None:
        """List the failures."""
        self.app.push_screen(ErrorsScreen(self._snapshot, self.settings))


class ErrorsScreen(BaseScreen):
    """The failures of a job so far, grouped by meaning."""

    KEYS: ClassVar = (("↑↓", "scroll"), ("esc", "back"))
    EXPLANATION = "Entries that could not be deleted, grouped by the failed call and the error."

    BINDINGS = [
        Binding("escape,q,e,left,h", "app.pop_screen", tooltip="Go back"),
        *SCROLL_BINDINGS,
    ]

    def __init__(self, snapshot: Snapshot, settings: Settings) -> None:
        super().__init__(settings)
        self._snapshot = snapshot

    def compose_body(self) -> ComposeResult:
        """Lay out one paragraph for each group."""
        with VerticalScroll(id="body"):
            if not self._snapshot.failures and not self._snapshot.tool_lines:
                yield Static(muted("No failures."))
            for group in self._snapshot.failures:
                text = Text(f"{count(group.number)} × {group.operation}: ", style="bold")
                text.append(f"{meaning(group.error)}\n", "not bold")
                for path, cause in zip(group.examples, group.causes, strict=True):
                    reason = f": {cause}" if cause else ""
                    text.append(f"   {displayable(path)}{reason}\n", "dim not bold")
                if group.number > len(group.examples):
                    more = group.number - len(group.examples)
                    text.append(f"   … and {count(more)} more\n", "dim not bold")
                yield Static(text)
            for line in self._snapshot.tool_lines:
                yield Static(muted(harmless(line)))

    def on_mount(self) -> None:
        """Name the job."""
        self.show_place("", f"{count(self._snapshot.failed)} failed")
