"""A running job: progress, rate, resource use and system calls."""

import textwrap
import time
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container
from textual.widgets import Static
from textual.worker import get_current_worker

from tui_fs.job.command_line import attach_command
from tui_fs.job.control import send
from tui_fs.job.permission import check_command
from tui_fs.job.store import JobFolder
from tui_fs.job.view import JobView
from tui_fs.linux.logind import ends_at_logout
from tui_fs.model.calls import (
    EXPLAINED_CALLS,
    OTHER_CALLS_LABEL,
    CallLine,
    Failures,
    call_lines,
    failed_by_operation,
    removal_times,
)
from tui_fs.model.command import Command
from tui_fs.model.errors import JobFailed, TuiFsError
from tui_fs.model.events import Event
from tui_fs.model.outcome import JobState
from tui_fs.model.snapshot import Snapshot
from tui_fs.model.strategy import Argv, IoPriority
from tui_fs.model.target import in_words
from tui_fs.model.units import bytes_iec, clock, count, counted, duration_range, duration_span
from tui_fs.screens.base import (
    COPY_BINDING,
    BaseScreen,
    Failed,
    Settings,
    broken_at_dots,
    muted,
)
from tui_fs.screens.call_dialog import CallDialog, explanation
from tui_fs.screens.report import CallTotals, ErrorsScreen, ReportScreen, call_row
from tui_fs.screens.run_history import MARK_WORDS, STARTED, RunHistory, Trends
from tui_fs.widgets.call_table import LIVE_WIDTHS, CallRow, CallTable
from tui_fs.widgets.cell_drawing import dots, eighth_blocks, fit_cells
from tui_fs.widgets.confirm_dialog import ConfirmDialog
from tui_fs.widgets.figure_layout import Line
from tui_fs.widgets.fitted_lines import FittedLines
from tui_fs.widgets.progress_line import ProgressLine
from tui_fs.widgets.rate_graph import RateGraph
from tui_fs.widgets.stats_line import Figure, StatsLine, Tone


def place_of(snapshot: Snapshot, state: JobState) -> tuple[str, str, str]:
    """Return the action, the path and the job."""
    started = snapshot.started
    if started is None:
        return "", f"starting{dots()}", ""
    if snapshot.cancel is not None:
        verb = "cancelling"
    elif snapshot.throttled is not None:
        verb = f"WAITING: {snapshot.throttled.resource} busy ·"
    elif state is JobState.PAUSED:
        verb = "PAUSED"
    else:
        verb = "deleting gently" if snapshot.pace.gentle else "deleting"
    return (
        verb,
        in_words(started.targets, started.share, is_filtered=started.is_filtered),
        f"{started.strategy} · job {started.job_id}",
    )


def progress_caption(snapshot: Snapshot) -> str:
    """Return the progress in entries, or the state before the first removal."""
    started = snapshot.started
    if started is None:
        return "starting"
    if snapshot.removed is None:
        return "not counted" if snapshot.calls or snapshot.at_s > 1 else "starting"
    about = "" if started.expected.complete else "~"
    if not snapshot.removed.entries:
        return f"reading the directory; {about}{count(snapshot.expected_entries)} to go"
    removed = count(snapshot.removed.entries)
    return f"{removed} of {about}{count(snapshot.expected_entries)}"


def figures_of(snapshot: Snapshot, state: JobState) -> tuple[Figure, ...]:
    """Return the rate, the time left and the elapsed time."""
    figures: list[Figure] = []
    if state is not JobState.PAUSED and snapshot.rate_per_s is not None:
        figures.append(Figure("/s", count(round(snapshot.rate_per_s))))
    if _only_reads(snapshot):
        figures.append(Figure("the rest of the tree", "reading"))
    elif snapshot.eta_s is not None:
        figures.append(Figure("left", duration_range(*snapshot.eta_s), label_first=True))
    figures.append(Figure("elapsed", clock(snapshot.elapsed_s), label_first=True))
    return tuple(figures)


def _only_reads(snapshot: Snapshot) -> bool:
    """Return whether all matches are deleted, and the tool reads on; the ETA is of deletions."""
    started, removed = snapshot.started, snapshot.removed
    if started is None or removed is None or not started.filters:
        return False
    return 0 < snapshot.expected_entries <= removed.entries


def more_figures_of(snapshot: Snapshot) -> tuple[Figure, ...]:
    """Return the entries left and failed, and the gain of free space."""
    figures: list[Figure] = []
    if snapshot.removed is not None and snapshot.started is not None:
        entries_left = max(0, snapshot.expected_entries - snapshot.removed.entries)
        about = "" if snapshot.started.expected.complete else "~"
        figures.append(Figure("to go", f"{about}{count(entries_left)}"))
    tone: Tone = "danger" if snapshot.failed else "normal"
    figures.append(Figure("failed", count(snapshot.failed), tone, label_first=True))
    freed = _freed(snapshot)
    if freed is not None:
        # Other processes write at the same time.
        gain = f"+{bytes_iec(freed)}" if freed > 0 else "no gain yet"
        figures.append(Figure("free space", gain, label_first=True))
    return tuple(figures)


def settings_lines(snapshot: Snapshot, width: int) -> list[Line]:
    """Return what the user has set: the filters and the pace; no line if nothing is set."""
    settings = []
    if snapshot.started is not None and snapshot.started.filters:
        settings.append(f"only {snapshot.started.filters}")
    if pace := snapshot.pace.in_words():
        settings.append(f"pace {pace}")
    lines = broken_at_dots(Text(" · ".join(settings)), width).plain.splitlines()
    return [(("", fit_cells(line, width)),) for line in lines]


def predicted_rate(snapshot: Snapshot) -> float:
    """Return the entries per second that the estimate and the pace allow; 0 without an estimate."""
    predicted = snapshot.started.predicted_seconds if snapshot.started else None
    if predicted is None or predicted[1] <= 0:
        return 0.0
    rate = snapshot.expected_entries / predicted[1]
    return min(rate, snapshot.pace.rate_per_s or rate)


def rate_caption(snapshot: Snapshot, marks: str = "") -> str:
    """Return the meaning of the graph's marks, the predicted rate and the highest so far."""
    lines = ["  ".join(f"{mark} {MARK_WORDS[mark]}" for mark in sorted(set(marks)))]
    if expected := predicted_rate(snapshot):
        lines.append(f"─ predicted {count(round(expected))} /s")
    if snapshot.peak_rate_per_s:
        lines.append(f"peak {count(round(snapshot.peak_rate_per_s))} /s")
    return "\n".join(lines)


def call_title(snapshot: Snapshot) -> str:
    """Return the panel's title, which names the source."""
    note = snapshot.started.source_note if snapshot.started else dots()
    return f"system calls · {note}"


def call_lines_of(snapshot: Snapshot) -> list[CallLine]:
    """Return predicted and counted calls by group."""
    started = snapshot.started
    if started is None:
        return []
    failures = Failures(
        failed_by_operation(snapshot.failures),
        bool(snapshot.tool_lines),
        started.confined_targets,
        is_final=False,
    )
    return call_lines(
        snapshot.calls, started.predicted_calls, started.predicted_other_calls, failures
    )


def call_rows(snapshot: Snapshot, trends: Trends) -> tuple[CallRow, ...]:
    """Return the rows of the table of calls."""
    lines = call_lines_of(snapshot)
    is_paused = snapshot.paused_at_s is not None
    return rows_of_calls(lines, {} if is_paused else snapshot.call_rates, trends.calls)


def rows_of_calls(
    lines: list[CallLine],
    rates: Mapping[str, float],
    trends: Mapping[str, tuple[float, ...]],
) -> tuple[CallRow, ...]:
    """Return the rows of a table of calls, with their present and earlier rates by name."""
    totals = CallTotals.of(lines)
    rows = []
    for line in lines:
        trend = trends.get(line.name, ())
        rate = rates.get(line.name, 0.0)
        if line.name == OTHER_CALLS_LABEL:
            rate = sum(of_call for name, of_call in rates.items() if name not in EXPLAINED_CALLS)
        done = ""
        if line.predicted:
            percent = 100 * line.counted.calls // line.predicted
            done = f"{percent} %" if percent <= 100 else ">100 %"
        shown_rate = count(round(rate)) if rate >= 1 else ""
        rows.append(call_row(line, totals, done, shown_rate, trend))
    return tuple(rows)


class TimeShares(NamedTuple):
    """Where the time of a job's processes went, in seconds; None where nothing measures it.

    Attributes:
        lock_s: asleep until a lock is free.
        other_s: neither running nor ready, and not in one of the waits before.
    """

    kernel_s: float
    user_s: float
    processor_s: float | None
    disk_s: float | None
    lock_s: float | None
    other_s: float | None

    @property
    def total_s(self) -> float:
        """The sum of what is measured."""
        return sum(part for part in self if part is not None)


def time_shares(snapshot: Snapshot) -> TimeShares | None:
    """Return where the time went; None before it is measured."""
    usage = snapshot.usage
    if usage is None or not usage.cpu_s:
        return None
    other_s = None
    if usage.alive_s is not None and not _has_stops(snapshot):
        waits = usage.processor_wait_s, usage.disk_wait_s, usage.lock_wait_s
        waits_s = sum(wait_s or 0.0 for wait_s in waits)
        other_s = max(0.0, usage.alive_s - usage.cpu_s - waits_s)
    return TimeShares(
        usage.system_s,
        max(0.0, usage.cpu_s - usage.system_s),
        usage.processor_wait_s,
        usage.disk_wait_s,
        usage.lock_wait_s,
        other_s,
    )


def _has_stops(snapshot: Snapshot) -> bool:
    """Return whether the tools were stopped, by a user, a limit or gentle mode.

    No part of `TimeShares` includes that time.
    """
    is_paused = snapshot.paused_at_s is not None or snapshot.paused_s > 0
    is_throttled = snapshot.throttled is not None or snapshot.held_s > 0
    return is_paused or is_throttled or snapshot.pace.rate_per_s > 0


def time_parts(snapshot: Snapshot) -> list[tuple[str, float]]:
    """Return where the time of the processes went, in seconds; nothing before it is measured."""
    shares = time_shares(snapshot)
    if shares is None:
        return []
    others = "other waits" if shares.disk_s is not None else "disk and other waits"
    parts = (
        ("kernel", shares.kernel_s),
        ("user", shares.user_s),
        ("wait for CPU", shares.processor_s),
        ("disk", shares.disk_s),
        ("locks", shares.lock_s),
        (others, shares.other_s),
    )
    return [(name, seconds) for name, seconds in parts if seconds is not None]


def call_footer(snapshot: Snapshot) -> str:
    """Return where the time of the processes went, in a line."""
    parts = [f"{name} {seconds:.1f} s" for name, seconds in time_parts(snapshot)]
    return "time: " + " · ".join(parts) if parts else ""


def aside_lines(snapshot: Snapshot, trends: Trends, width: int, height: int) -> list[Line]:
    """Return where the time went as bars, and what has happened; the newest fit into the height."""
    parts = time_parts(snapshot)
    without = ", without stops" if parts and _has_stops(snapshot) else ""
    lines: list[Line] = [(("strong", f"where the time goes{without}"),)]
    total_s = sum(seconds for _, seconds in parts) or 1.0
    names = max((len(name) for name, _ in parts), default=0)
    digits = 1 if total_s >= _MIN_MEANINGFUL_S else 2
    texts = [
        f"{seconds:,.{digits}f} s {round(100 * seconds / total_s):3} %" for _, seconds in parts
    ]
    figures = max(map(len, texts), default=0)
    bar = max(0, min(_MAX_BAR, width - names - figures - 6))
    for (name, seconds), text in zip(parts, texts, strict=True):
        cells = eighth_blocks(seconds / total_s, bar).ljust(bar)
        shown = f"  {text:>{figures}}"
        lines.append((("", f"  {name:{names}}  "), ("bar", cells), ("", shown)))
    if not parts:
        lines.append((("muted", "  not measured yet"),))
    times = [f"{label}: {text}" for label, text in removal_times(snapshot.calls)]
    for text in (*times, time_meaning(snapshot)):
        wrapped = textwrap.wrap(text, max(20, width - 2))
        lines += [(("muted", f"  {line}"),) for line in wrapped]
    lines += [(), (("strong", "what happened"),)]
    room = max(0, height - len(lines))
    incidents = [(clock(at_s), words) for at_s, words in trends.incidents]
    started = snapshot.started
    is_first_kept = bool(incidents) and incidents[0][1] == STARTED
    if is_first_kept and started is not None and started.predicted_seconds is not None:
        low_s, _, high_s = started.predicted_seconds
        is_limited_since = snapshot.pace.rate_per_s and not started.pace.rate_per_s
        limit = ", unlimited" if is_limited_since else ""
        predicted = f"predicted {duration_span(low_s, high_s)}{limit}"
        incidents[0] = (incidents[0][0], f"{incidents[0][1]}; {predicted}")
    happened: list[Line] = []
    for at, words in incidents:
        begin = f"  {at:>7}  "
        for line in textwrap.wrap(words, max(20, width - len(begin))):
            happened.append((("muted", begin), ("", line)))
            begin = " " * len(begin)
    return [*lines, *(happened[-room:] if room else ())][:height]


def paragraphs(title: str, sentences: Sequence[str], width: int, height: int) -> list[Line]:
    """Return a title and as many whole sentences as fit; nothing if none does."""
    lines: list[Line] = [(("strong", title),)]
    for sentence in sentences:
        wrapped = textwrap.wrap(sentence, max(20, min(width, _MAX_TEXT)))
        if len(lines) + len(wrapped) > height:
            break
        lines += [*((("muted", text),) for text in wrapped), ()]
    return lines[:height] if len(lines) > 1 else []


def time_meaning(snapshot: Snapshot) -> str:
    """Return the kernel time per entry, and what the times mean for the choice of strategy."""
    shares, words = time_shares(snapshot), []
    if shares is None or shares.total_s < _MIN_MEANINGFUL_S:
        return _limit_words(snapshot)
    per_entry_us = 1e6 * shares.kernel_s / max(1, snapshot.usage_entries)
    if per_entry_us >= _MIN_PER_ENTRY_US:
        words.append(f"{per_entry_us:.1f} µs kernel per entry")
    waits_s = (shares.disk_s or 0.0) + (shares.other_s or 0.0)
    if snapshot.pace.rate_per_s or snapshot.pace.gentle:
        limit = _limit_words(snapshot)
        words += [limit] if limit else []  # a stopped tool waits, too
    elif (shares.processor_s or 0.0) > _MANY * shares.total_s:
        words.append("CPUs are busy: every strategy is slower now")
    elif (shares.lock_s or 0.0) > _MANY * shares.total_s:
        words.append("it waits for locks: more threads would not help")
    elif waits_s > _MOST * shares.total_s:
        words.append(
            "it mostly waits for the disk"
            if snapshot.threads > 1
            else "it mostly waits: several threads may help"
        )
    elif shares.user_s > _MANY * shares.total_s:
        words.append("the tool is slow: try another strategy")
    elif shares.kernel_s > _MOST * shares.total_s:
        words.append(
            "kernel work: no tool would be much faster"
            if snapshot.threads > 1
            else "kernel work: only threads can be faster"
        )
    return " · ".join(words)


def _limit_words(snapshot: Snapshot) -> str:
    """Return that the times are those of a limited rate; empty if something else sets the pace."""
    limit, rate = snapshot.pace.rate_per_s, snapshot.rate_per_s
    is_stopped = snapshot.paused_at_s is not None or snapshot.throttled is not None
    if not limit or is_stopped or predicted_rate(snapshot) not in (0, limit):
        return ""
    if rate and rate < _NEARLY * limit:
        return f"slower than the limit of {count(limit)} /s"
    return f"the limit of {count(limit)} /s sets the pace"


def usage_line(snapshot: Snapshot, width: int) -> Text:
    """Return the resources that the strategy's processes use, as many as fit into the width."""
    usage = snapshot.usage
    if usage is None:
        return muted("processes not measured yet" if snapshot.started else "")
    line = Text(counted(usage.processes, "process", "processes"), no_wrap=True, overflow="ellipsis")
    line.append(f" ({usage.busiest})" if usage.busiest else "", "dim")
    parts = []
    if snapshot.threads:
        parts.append(counted(snapshot.threads, "thread", "threads"))
    if usage.cpu_percent is not None:
        parts.append(f"cpu {usage.cpu_percent:.0f} %")
    parts.append(f"memory {bytes_iec(usage.rss_bytes)}")
    if snapshot.io_pressure_percent is not None:
        parts.append(f"io pressure {snapshot.io_pressure_percent:.0f} %")
    if usage.read_bytes is not None and usage.written_bytes is not None:
        written = bytes_iec(usage.written_bytes)
        parts.append(f"read {bytes_iec(usage.read_bytes)}, wrote {written}")
    for part in parts:
        if line.cell_len + len(part) + 3 > width:
            break
        line.append(f" · {part}")
    return line


def missing_lines(snapshot: Snapshot) -> Text:
    """Return a line with the reason for each figure that cannot be measured."""
    missing = snapshot.started.missing_figures if snapshot.started else ()
    return Text("\n".join(figure.sentence for figure in missing), style="dim")


def _freed(snapshot: Snapshot) -> int | None:
    before = snapshot.started.space if snapshot.started else None
    if before is None or snapshot.space is None:
        return None
    return snapshot.space.free_bytes - before.free_bytes


_RANKS = {
    (0, IoPriority.NORMAL): (10, IoPriority.LOW),
    (10, IoPriority.LOW): (19, IoPriority.IDLE),
    (19, IoPriority.IDLE): (0, IoPriority.NORMAL),
}
"""Each key press selects the next rank."""

_MIN_MEANINGFUL_S, _MANY, _MOST = 2.0, 0.25, 0.5
"""From which time on, and from which shares of it, times say something about a strategy."""
_NEARLY = 0.8
"""The part of a limit from which on it is the limit that keeps the rate down."""
_MIN_PER_ENTRY_US = 0.05
"""Less is shown as 0.0."""

_MAX_BAR, _MAX_TEXT = 30, 96
_MAX_THREADS = 8
"""The command line allows more."""


class RunScreen(BaseScreen):
    """A view of a job; leaving it does not stop the job."""

    VERTICAL_BREAKPOINTS = [(0, "-low"), (16, "-short"), (32, "-tall"), (38, "-high")]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (160, "-wide")]

    KEYS: ClassVar = (
        ("p", "pause/resume"),
        ("c", "cancel…"),
        ("z", "gentle"),
        ("x", "errors"),
        ("q", "leave (job is kept)"),
        ("enter", "explain"),
        ("y", "copy"),
    )
    EXPLANATION = (
        "The progress of a job. The job runs in its own process and continues when you leave "
        "this screen, quit or lose the connection; J lists all jobs. The table compares every "
        "system call of the strategy's processes with the prediction; its title names the "
        "counter, and enter explains a call. All other calls, such as those of program "
        "start-up and of closing files, share one line. Below the table is where the time went: "
        "the waits for block devices are known only with the sysctl kernel.task_delayacct=1. A "
        "large terminal shows these "
        "times as bars, what has happened to the job, and in a wide one the explanation of the "
        "call under the cursor. In a tall terminal the graph "
        "has a line for the predicted rate, and marks when the job was paused (P), throttled "
        "(T) or failed to delete an entry (!)."
    )

    BINDINGS = [
        COPY_BINDING,
        Binding("p", "pause", tooltip="Pause or resume the strategy's processes"),
        Binding(
            "z",
            "gentle",
            tooltip="Gentle mode on or off: pause while others wait for disk or processors",
        ),
        Binding(
            "n", "nicer", tooltip="Lower the priority of the tools: low, idle, then normal again"
        ),
        Binding("t", "threads", tooltip="More threads (parallel): 1, 2, 4, 8, then automatic"),
        Binding("c", "cancel", tooltip="Cancel the job; it cannot be resumed (asks first)"),
        Binding("x", "errors", tooltip="Show what could not be deleted"),
        Binding("q,escape", "leave", tooltip="Leave; the job continues or stays paused"),
    ]

    def __init__(self, folder: JobFolder, settings: Settings) -> None:
        super().__init__(settings)
        self._folder = folder
        self._snapshot = Snapshot()
        self._state: JobState | None = None
        self._history = RunHistory(settings.interval_s)
        self._is_over = False

    def compose_body(self) -> ComposeResult:
        """Lay out progress above the table of calls."""
        yield ProgressLine(id="progress")
        yield StatsLine(id="figures")
        yield StatsLine(id="more-figures")
        yield FittedLines(lambda _: [], id="settings")
        yield RateGraph(id="rate")
        with Container(id="panels"):
            with Container(id="call-panel"):
                yield CallTable(LIVE_WIDTHS, can_focus=True, id="calls")
                yield FittedLines(lambda _: [], id="explained")
            yield FittedLines(lambda _: [], id="aside")
        yield Static(Text(""), id="time")
        yield Static(Text(""), id="usage")
        yield Static(Text(""), id="missing")

    def on_mount(self) -> None:
        """Start following the journal."""
        self.show_place("", f"starting{dots()}")
        self._show_keys()
        self.watch(self.query_one(CallTable), "cursor", self._explain_call)
        self._follow()

    @work(thread=True, exclusive=True, group="follow")
    def _follow(self) -> None:
        """Read the journal until the job is over or the screen is left."""
        worker = get_current_worker()
        try:
            view = JobView(self._folder)

            def note(event: Event) -> None:
                self._history.add(view.snapshot, event)

            while not worker.is_cancelled:
                has_news = view.poll_live(note)
                if view.is_over:
                    self.call_later(self._end)
                    return
                if has_news:
                    self._history.add(view.snapshot)
                    trends = self._history.trends()
                    self.call_later(self._show_job, view.snapshot, view.state, trends)
                time.sleep(self.settings.interval_s)
        except TuiFsError as error:
            self.post_message(Failed(error))
        except OSError as error:
            sentence = f"The journal of job {self._folder.job_id} cannot be read: {error.strerror}."
            self.post_message(
                Failed(
                    JobFailed(
                        sentence,
                        (
                            "The job continues, but its progress cannot be "
                            "shown. To try again, open it from the jobs (J)."
                        ),
                    )
                )
            )

    def _end(self) -> None:
        self._is_over = True
        self.on_screen_resume()

    def on_screen_resume(self) -> None:
        """Show the report of a job that has ended, as soon as this screen is on top."""
        if self._is_over and self.app.screen is self:
            self.app.switch_screen(ReportScreen(self._folder, self.settings))

    def _show_job(self, snapshot: Snapshot, state: JobState, trends: Trends) -> None:
        self._snapshot, self._state = snapshot, state
        self.show_place(*place_of(snapshot, state))
        progress = self.query_one(ProgressLine)
        progress.fraction = snapshot.fraction
        progress.caption = progress_caption(snapshot)
        self.query_one("#figures", StatsLine).figures = figures_of(snapshot, state)
        self.query_one("#more-figures", StatsLine).figures = more_figures_of(snapshot)
        self.query_one("#settings", FittedLines).lay_out_by(
            lambda width: settings_lines(snapshot, width)
        )
        graph = self.query_one(RateGraph)
        graph.values = trends.removals
        graph.reference = predicted_rate(snapshot)
        graph.marks = trends.marks
        graph.caption = rate_caption(snapshot, "".join(mark for _, mark in graph.marks))
        table = self.query_one(CallTable)
        table.title = call_title(snapshot)
        table.rows = call_rows(snapshot, trends)
        self._show_keys()
        self._explain_call()
        aside = self.query_one("#aside", FittedLines)
        aside.lay_out_by(
            lambda width: aside_lines(snapshot, trends, width, aside.content_size.height)
        )
        self._show_times()
        self.query_one("#usage", Static).update(usage_line(snapshot, self.size.width - 2))
        missing = missing_lines(snapshot)
        self.query_one("#missing", Static).update(missing)
        self.query_one("#missing").display = bool(missing)

    def _show_keys(self) -> None:
        idle = set() if self._snapshot.has_errors else {"x"}
        if not self.query_one(CallTable).rows:
            idle.add("enter")
        if self._snapshot.cancel is not None:
            idle |= {"p", "c", "z"}
        self.show_keys(without=idle)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:  # noqa: ARG002
        """Disable the key for errors before there are any."""
        return action != "errors" or self._snapshot.has_errors

    def on_resize(self) -> None:
        """Show the times once: beside the table, or below it."""
        self.call_after_refresh(self._show_times)

    def _show_times(self) -> None:
        is_aside = self.query_one("#aside").display
        has_footer = not is_aside and not self.has_class("-low")
        self.query_one(CallTable).footer = call_footer(self._snapshot) if has_footer else ""
        line = self.query_one("#time", Static)
        line.display = not is_aside
        line.update(muted(time_meaning(self._snapshot)))

    def _explain_call(self) -> None:
        """Explain the call under the cursor below the table, where a large terminal has room."""
        lines, started = call_lines_of(self._snapshot), self._snapshot.started
        if lines and started is not None:
            line = lines[min(self.query_one(CallTable).cursor, len(lines) - 1)]
            sentences = explanation(line, lines, started.strategy, self._snapshot)
            box = self.query_one("#explained", FittedLines)
            box.lay_out_by(
                lambda width: paragraphs(line.name, sentences, width, box.content_size.height)
            )

    def on_failed(self, message: Failed) -> None:
        """Report an error of the view or of a command."""
        self.notify(str(message.error), severity="warning", markup=False)

    def on_call_table_opened(self, message: CallTable.Opened) -> None:
        """Explain a call."""
        snapshot = self._snapshot
        if snapshot.started is not None:
            lines = call_lines_of(snapshot)
            dialog = CallDialog(lines, snapshot.started.strategy, snapshot, message.name)
            self.app.push_screen(dialog)

    def command_to_copy(self) -> Argv:
        """Return the command that follows this job."""
        return attach_command(self._folder.job_id)

    def action_pause(self) -> None:
        """Pause or resume."""
        self._send(Command("resume" if self._state is JobState.PAUSED else "pause"))

    def action_gentle(self) -> None:
        """Toggle gentle mode."""
        self._send(Command("gentle", "off" if self._snapshot.pace.gentle else "on"))

    def action_nicer(self) -> None:
        """Lower the rank of the tools; after the lowest, return to the normal one."""
        pace = self._snapshot.pace
        nice, io_priority = _RANKS.get((pace.nice, pace.io_priority), _RANKS[19, IoPriority.IDLE])
        self._send(Command("nice", str(nice)), Command("ionice", io_priority))

    def action_threads(self) -> None:
        """Set the threads of the engine: 1, 2, 4 and so on, then automatic."""
        threads = 2 * self._snapshot.pace.threads or 1
        self._send(Command("threads", "auto" if threads > _MAX_THREADS else str(threads)))

    def action_cancel(self) -> None:
        """Ask, then cancel."""
        if self._snapshot.cancel is not None:
            self.notify("The job is being cancelled already.", markup=False)
            return
        is_paused = self._snapshot.paused_at_s is not None
        text = "Entries already deleted stay deleted; the others remain."
        consequence = "The job cannot be resumed afterwards."
        if not is_paused:  # so short that both answers are whole in 40 columns and 15 lines
            text = "Deletion continues meanwhile. Entries already deleted stay deleted."
            consequence = "It cannot be resumed. To pause it, go back and press p."
        dialog = ConfirmDialog(
            f"Cancel job {self._folder.job_id}?",
            [text],
            consequence,
            None,
            yes_label="Cancel the job",
            no_label="No, do not cancel",  # another command may change its state meanwhile
        )
        self.app.push_screen(dialog, self._cancel_confirmed)

    def _cancel_confirmed(self, yes: bool | None) -> None:
        if yes:
            self._send(Command("cancel"))

    def action_errors(self) -> None:
        """List the failures so far."""
        self.app.push_screen(ErrorsScreen(self._snapshot, self.settings))

    def action_leave(self) -> None:
        """Go back; the job continues."""
        self.app.pop_screen()
        if self._state is not None and self._state.is_live:
            warning = ends_at_logout()
            is_paused = self._state is JobState.PAUSED
            stays = "The job stays paused" if is_paused else "The job continues"
            self.app.notify(f"{stays}; J lists the jobs. {warning or ''}", markup=False)

    @work(thread=True, group="control")
    def _send(self, *commands: Command) -> None:
        try:
            for command in commands:
                check_command(command, by_option=self.settings.read_only)
                send(self._folder, command)
        except JobFailed as error:  # its advice is a command, and this screen shows the same
            self.post_message(Failed(JobFailed(error.sentence)))
        except TuiFsError as error:
            self.post_message(Failed(error))
