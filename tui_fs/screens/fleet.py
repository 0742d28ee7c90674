"""The screen of many hosts: where it is full, what is there, and the deletion on some of them."""

import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

from msgspec import Struct
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from tui_fs.fleet.answers import (
    HostEstimate,
    HostPlan,
    HostSurvey,
    ListedJob,
    StrategySum,
    strategy_sums,
    understood,
    with_times_of,
)
from tui_fs.fleet.connections import CONNECTION_FAILED
from tui_fs.fleet.deletion import (
    FleetDeletion,
    HostJob,
    Phase,
    deletion_argv,
    new_job_ids,
)
from tui_fs.fleet.fleet import Answer
from tui_fs.fleet.hosts import folded
from tui_fs.job.permission import read_only_reason, word_to_type
from tui_fs.model.calls import (
    CallCount,
    CallLine,
    Failures,
    call_lines,
    failed_by_operation,
)
from tui_fs.model.paths import displayable, harmless, is_within
from tui_fs.model.strategy import Argv
from tui_fs.model.units import (
    bytes_iec,
    count,
    counted,
    duration_range,
    duration_span,
    percent_done,
    percent_used,
    short_count,
)
from tui_fs.screens.base import (
    COPY_BINDING,
    NARROW_COLUMNS,
    TEXT_BINDINGS,
    TEXT_HINT,
    BaseScreen,
    LinePart,
    Settings,
    deleting_is_off,
    fitted_line,
)
from tui_fs.screens.browser.details import NEARLY_FULL, within_lines
from tui_fs.screens.browser.screen import BrowserScreen
from tui_fs.screens.fleet_client import Asked, Fetched, FleetClient, Heard, Progressed
from tui_fs.screens.run import rows_of_calls
from tui_fs.widgets.bar_table import HEADER_HEIGHT, BarRow, BarTable, Column, LazyRows
from tui_fs.widgets.call_table import LIVE_WIDTHS, CallTable
from tui_fs.widgets.cell_drawing import dots, eighth_blocks, fit_cells
from tui_fs.widgets.confirm_dialog import ConfirmDialog
from tui_fs.widgets.footer import Footer
from tui_fs.widgets.ordered_input import OrderedInput
from tui_fs.widgets.progress_line import ProgressLine

_WIDTHS = (*LIVE_WIDTHS[:-1], 0)
"""No host sends its rates from the start, so there is no graph of them."""

_CONNECTING = re.compile(r"(ssh: )?connect to host \S+ port \d+: ")
"""What ssh writes before the reason; the row names the host."""

_BAR_CELLS = ((150, 14), (110, 6), (0, 0))
"""Columns of the terminal, and the cells of a bar from there on."""

_PERCENT_CELLS = len("100 % !")
_HOST_CELLS, _ROOMY_COLUMNS = 16, 110
"""For the names of the hosts, and from which width on also if they are shorter."""
_JOB_CELLS = len("deleting 100 %, left 40 min to 1.2 h")
"""For the state of a host with a running job."""
_MOST_LISTED = 8


class HostRow(Struct):
    """What is known of one host.

    Attributes:
        problem: why it is not reached, or did not count; empty without one.
        job: the present or last deletion there; None before the first.
        live: jobs that run in the directory already, the newest first.
        is_counting: it has not answered yet.
        counts_again: as soon as it has.
    """

    host: str
    problem: str = ""
    survey: HostSurvey | None = None
    job: HostJob | None = None
    live: tuple[ListedJob, ...] = ()
    is_counting: bool = False
    counts_again: bool = False

    @property
    def shares(self) -> tuple[float | None, float | None]:
        """The used parts of bytes and inodes, 0 to 1."""
        if self.survey is None:
            return None, None
        room = self.survey.file_system
        return room.used_share, room.used_inodes_share


class FleetScreen(BaseScreen):
    """The hosts, with what each has below a directory.

    Args:
        path: the directory, the same on all hosts.
    """

    KEYS: ClassVar = (
        ("enter", "browse"),
        ("space", "mark"),
        ("d", "delete…"),
        ("s", "sort"),
        ("f", "filter"),
        ("r", "count again"),
        ("q", "quit"),
    )
    EXPLANATION = (
        "One line for each host: how full its file system is, what is below the directory, and "
        "the worst finding there. Enter shows the directory of a host as a survey in which nothing "
        "can be changed. Mark hosts with space, then d previews the deletion on all of them; "
        "without a mark, on the one under the cursor. Every rule is checked on the host itself. A "
        "lost connection changes nothing there: the job continues."
    )
    OPENS = "Show the directory of this host"
    VERTICAL_BREAKPOINTS = [(0, "-low"), (22, "-tall")]
    BINDINGS = [
        COPY_BINDING,
        Binding("d", "delete", tooltip="Preview the deletion on the marked hosts"),
        Binding("A", "mark_all", tooltip="Mark all hosts that have answered"),
        Binding("u", "unmark_all", tooltip="Remove all marks"),
        Binding("s", "sort", tooltip="Sort by the next column"),
        Binding("S", "reverse", tooltip="Reverse the order"),
        Binding("w", "watch", tooltip="Follow the jobs that run in the directory already"),
        Binding("c", "cancel", tooltip="Cancel the followed deletions (asks first)"),
        Binding("r", "recount", tooltip="Count again on all hosts"),
        Binding(
            "f",
            "filter",
            tooltip="Show only hosts whose name or state contains a text",
            priority=True,
        ),
        Binding("escape", "leave", tooltip="Show all hosts again"),
        Binding("q", "app.quit", tooltip="Quit; jobs continue on their hosts"),
    ]

    def __init__(self, client: FleetClient, path: str, settings: Settings) -> None:
        super().__init__(settings)
        self._client, self._path = client, path
        self._rows = {host: HostRow(host) for host in client.hosts}
        self._marked: set[str] = set()
        self._sort, self._is_reversed = next(iter(_ORDERS)), False
        self._deletion: FleetDeletion | None = None
        self._asks_canary = self._is_draw_due = False
        self._files: tempfile.TemporaryDirectory[str] | None = None

    def compose_body(self) -> ComposeResult:
        """Lay out the hosts above the sum of a running deletion."""
        yield Static(Text(""), id="totals")
        yield BarTable(_columns(0), toggle_mark=self._toggle_mark, id="hosts")
        yield Static(Text(""), id="about-host")
        yield ProgressLine(id="progress")
        yield CallTable(_WIDTHS, id="calls")
        field = OrderedInput(placeholder="a part of a host's name or state", id="host-filter")
        field.border_title = "filter"
        field.display = False
        yield field

    def on_mount(self) -> None:
        """Start to reach the hosts."""
        self.show_place("", displayable(self._path), counted(len(self._rows), "host", "hosts"))
        self.query_one("#hosts", BarTable).focus()
        self._show_deletion()
        self._draw()
        self._client.start(self.post_message)
        self._count()

    def on_unmount(self) -> None:
        """Remove the surveys of the hosts."""
        if self._files is not None:
            self._files.cleanup()

    def on_resize(self) -> None:
        """Fit the columns."""
        self._draw()

    def action_filter(self) -> None:
        """Open the field for the filter."""
        field = self._field
        field.display = True
        self.set_focus(field)
        self._show_keys()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:  # noqa: ARG002
        """Let the field have the letters while it is open."""
        return not (action == "filter" and self._is_typing)

    def on_input_changed(self) -> None:
        """Show the hosts that match so far."""
        self._draw()

    def on_input_submitted(self) -> None:
        """Return to the hosts that match."""
        self._close_field(is_kept=bool(self._filter))

    def action_leave(self) -> None:
        """Remove the filter."""
        if not self._field.display:
            self.notify("q quits.", markup=False)
        self._field.value = ""
        self._close_field(is_kept=False)

    def _close_field(self, *, is_kept: bool) -> None:
        self._field.display = is_kept
        self.set_focus(self.query_one("#hosts", BarTable))
        self._show_keys()

    def _show_keys(self) -> None:
        keys: tuple[tuple[str, str], ...] = (*self.KEYS, ("?", "help"))
        if self._is_typing:
            keys = (("enter", "accept"), ("esc", "show all hosts"))
        elif self._is_deleting:  # no other deletion begins until its end
            keys = (("c", "cancel…"), *(key for key in keys if key[0] not in ("d", "space", "r")))
        self.query_one("#keys", Footer).keys = keys

    @property
    def _is_typing(self) -> bool:
        # The field's own has_focus is still the old one while the focus changes.
        return self.focused is self._field

    @property
    def _field(self) -> OrderedInput:
        return self.query_one("#host-filter", OrderedInput)

    @property
    def _filter(self) -> str:
        return self._field.value.strip().casefold()

    def action_recount(self) -> None:
        """Count on all hosts."""
        if not self._is_kept_waiting():
            self._count()

    def _count(self) -> None:
        """Count on all hosts; where a count still runs, after it."""
        for row in self._rows.values():
            row.counts_again = row.is_counting
        self._survey([row for row in self._rows.values() if not row.is_counting])
        # On its own: a survey may take minutes
        self._client.ask(self._client.hosts, ("jobs", "--json"))

    def _survey(self, rows: Sequence[HostRow]) -> None:
        for row in rows:
            row.is_counting = True
        if hosts := tuple(row.host for row in rows):
            self._client.ask(hosts, ("survey", "--json", "--", self._path))

    def _is_kept_waiting(self) -> bool:
        """Say that a deletion is running, if one is."""
        if self._is_deleting:
            self.notify("A deletion is running. Wait for its end, or cancel it.", markup=False)
        return self._is_deleting

    def action_watch(self) -> None:
        """Follow the jobs that run in the directory."""
        if self._is_kept_waiting():
            return
        live = [row for row in self._rows.values() if row.live]
        job_ids = {row.host: [job.id for job in row.live] for row in live}
        if job_ids:
            self._client.follow(job_ids)
        else:
            self.notify("No job is running in this directory.", markup=False)

    def on_heard(self, message: Heard) -> None:
        """Take the answer of a host."""
        self._take_answer(message)
        if not self._is_draw_due:  # hundreds of hosts may answer at once
            self._is_draw_due = True
            self.set_timer(self.settings.interval_s, self._draw)
        for screen in self._previews():
            screen.take_answer(message)

    def on_asked(self, message: Asked) -> None:
        """Let the preview go on."""
        for screen in self._previews():
            screen.take_answers(message)

    def on_progressed(self, message: Progressed) -> None:
        """Show the deletion."""
        self._take_progress(message.deletion)
        self._draw()

    def on_fetched(self, message: Fetched) -> None:
        """Open the survey of a host."""
        if message.problem:
            self.notify(f"{message.host}: {message.problem}", markup=False)
            return
        settings = Settings(self.settings.interval_s, True)
        self.app.push_screen(BrowserScreen("", settings, message.file, origin=message.host))

    def _previews(self) -> "list[FleetPreviewScreen]":
        return [each for each in self.app.screen_stack if isinstance(each, FleetPreviewScreen)]

    def _take_answer(self, message: Heard) -> None:
        row = self._rows[message.answer.host]
        if message.purpose == "jobs":
            listed = understood(list[ListedJob], message.answer)
            jobs = [] if isinstance(listed, str) else listed
            place = displayable(os.path.normpath(self._path))
            row.live = tuple(job for job in jobs if job.is_live and _is_below(job, place))
            if row.live and row.job is not None and row.job.exit_code == CONNECTION_FAILED:
                row.job = None  # the lost job is found
        if message.purpose != "survey":
            return
        row.is_counting = False
        if row.counts_again:
            row.counts_again = False
            self._survey([row])
        survey = understood(HostSurvey, message.answer)
        if isinstance(survey, str):
            row.survey, row.problem = None, survey
        else:
            row.survey, row.problem = survey, ""

    def _take_progress(self, deletion: FleetDeletion) -> None:
        self._deletion = deletion
        # Of several jobs on a host, one that is not over, or has failed
        for job in sorted(
            deletion.jobs.values(), key=lambda job: (not job.is_over, job.has_failed)
        ):
            row = self._rows[job.host]
            row.job, row.live = job, ()
            if job.phase is Phase.OVER:
                row.survey = None  # of before the deletion
        self._show_deletion()
        if (canary := deletion.canary) is not None and not self._asks_canary:
            self._asks_canary = True
            others = [job.host for job in deletion.jobs.values() if job is not canary]
            self._ask_canary(canary, list(dict.fromkeys(others)))
        if deletion.is_over:
            self._asks_canary = False
            self._marked.clear()
            self._count()

    def _ask_canary(self, canary: HostJob, others: list[str]) -> None:
        outcome = _failure(canary) if canary.has_failed else "done, without a failure"
        jobs = self._deletion.jobs.values() if self._deletion is not None else ()
        entries = sum(self._expected_entries(job) for job in jobs if job.host in others)
        dialog = ConfirmDialog(
            f"Continue on the {counted(len(others), 'other host', 'other hosts')}?",
            (
                f"{canary.host}: {outcome}",
                f"next on {folded(others)}: {counted(entries, 'entry', 'entries')} in",
                displayable(self._path),
            ),
            "The directory will be deleted there, too.",
            None,
            yes_label="Continue",
            no_label="No, stop here",
            opens_by_itself=True,
        )

        def answered(goes_on: bool | None) -> None:
            if goes_on:
                self._client.order(FleetDeletion.go_on)
            else:
                self._client.order(
                    lambda deletion: deletion.skip_waiting("Not started after the first host.")
                )

        self.app.push_screen(dialog, answered)

    def _toggle_mark(self, row: BarRow) -> bool:
        self._marked ^= {row.key}
        self._draw()
        return True

    def action_mark_all(self) -> None:
        """Mark all hosts that have answered."""
        self._marked = {host for host, row in self._rows.items() if row.survey is not None}
        self._draw()

    def action_unmark_all(self) -> None:
        """Remove all marks."""
        self._marked.clear()
        self._draw()

    def action_sort(self) -> None:
        """Sort by the next column."""
        sorts = list(_ORDERS)
        self._sort = sorts[(sorts.index(self._sort) + 1) % len(sorts)]
        self._draw()

    def action_reverse(self) -> None:
        """Reverse the order."""
        self._is_reversed = not self._is_reversed
        self._draw()

    def on_bar_table_highlighted(self) -> None:
        """Show all that is known of the state of the host under the cursor."""
        self._draw_about()

    def on_bar_table_opened(self, message: BarTable.Opened) -> None:
        """Show the directory of a host."""
        row = self._rows[message.row.key]
        if row.survey is None:
            self.notify(row.problem or f"{row.host} has not answered yet.", markup=False)
            return
        if self._files is None:
            try:
                self._files = tempfile.TemporaryDirectory(prefix="tui-fs-fleet-")
            except OSError as error:
                self.notify(f"There is no place for its survey: {error.strerror}.", markup=False)
                return
        self.notify(f"Reading the directory of {row.host}{dots()}", markup=False)
        file = os.path.join(self._files.name, f"{row.host}.json")
        self._client.fetch(row.host, self._path, file)

    def action_delete(self) -> None:
        """Preview the deletion on the marked hosts, or on the one under the cursor."""
        reason = read_only_reason()
        if self.settings.read_only or reason:
            self.notify(deleting_is_off(reason or "--read-only"), markup=False)
            return
        if self._is_kept_waiting():
            return
        chosen = [host for host in self._rows if host in self._marked]
        cursor = self.query_one("#hosts", BarTable).cursor_row
        if not chosen and cursor is not None:
            chosen = [cursor.key]
        ready = [host for host in chosen if self._rows[host].survey is not None]
        if not ready:
            self.notify("None of these hosts has answered.", markup=False)
            return
        left_out = {
            host: self._rows[host].problem or "It has not answered yet."
            for host in chosen
            if host not in ready
        }
        screen = FleetPreviewScreen(self._client, ready, self._path, self.settings, left_out)
        self.app.push_screen(screen)

    def action_cancel(self) -> None:
        """Cancel the running deletions."""
        if not self._is_deleting:
            self.notify("No deletion is running here.", markup=False)
            return
        dialog = ConfirmDialog(
            "Cancel the deletion on all hosts?",
            ("What is deleted stays deleted.", "Jobs that wait do not start."),
            "A cancelled job cannot be continued.",
            None,
            yes_label="Cancel the jobs",
            no_label="No, continue",
        )
        self.app.push_screen(
            dialog, lambda yes: self._client.order(FleetDeletion.cancel) if yes else None
        )

    def command_to_copy(self) -> Argv:
        """Return the command that counts on these hosts."""
        hosts, options = folded(self._client.hosts), self._client.options
        return ("tui-fs", "fleet", "survey", *options, hosts, self._path)

    @property
    def _is_deleting(self) -> bool:
        return self._deletion is not None and not self._deletion.is_over

    def _draw(self) -> None:
        self._is_draw_due = False
        if not self.is_attached:
            return
        table = self.query_one("#hosts", BarTable)
        cells = next(cells for columns, cells in _BAR_CELLS if self.size.width >= columns)
        is_narrow = self.size.width < NARROW_COLUMNS
        has_jobs = self._is_deleting or any(row.live for row in self._rows.values())
        columns = _columns(
            cells,
            self._sort,
            is_reversed=self._is_reversed,
            is_narrow=is_narrow,
            host_cells=self._host_cells(),
            state_cells=_JOB_CELLS if has_jobs and not is_narrow else 0,
        )
        table.set_columns(columns)
        chosen = [row for row in self._rows.values() if self._is_shown(row)]
        rows = sorted(chosen, key=_ORDERS[self._sort])
        if self._is_reversed:
            rows.reverse()

        def row_at(index: int) -> BarRow:
            return _row(rows[index], cells, is_marked=rows[index].host in self._marked)

        table.set_rows(LazyRows([row.host for row in rows], row_at))
        totals = _totals(self._rows.values(), self._marked)
        if brought := len(self._client.brought_to):
            words = f" · tui-fs is in memory of {counted(brought, 'host', 'hosts')}"
            totals.append((3, words, ""))
        if not self._is_deleting and (busy := sum(bool(row.live) for row in self._rows.values())):
            words = f" · jobs run on {counted(busy, 'host', 'hosts')}: w follows them"
            totals.append((1, words, ""))
        self.set_line("#totals", fitted_line(totals, self.size.width - 2))
        self._draw_about()

    def _host_cells(self) -> int:
        """Return the cells for the names: all that they need if each state has room beside them."""
        names = min(max(map(len, self._rows)), max(_HOST_CELLS, self.size.width // 3))
        return names if self.size.width < _ROOMY_COLUMNS else max(_HOST_CELLS, names)

    def _draw_about(self) -> None:
        cursor = self.query_one("#hosts", BarTable).cursor_row
        about = Text("" if cursor is None else _about(self._rows[cursor.key]))
        width, height = self.query_one("#about-host").content_size
        self.set_line("#about-host", within_lines(about, self.app.console, width, height))

    def _is_shown(self, row: HostRow) -> bool:
        wanted = self._filter
        return not wanted or wanted in f"{row.host} {_state(row)}".casefold()

    def _show_deletion(self) -> None:
        self._show_keys()
        progress, calls = self.query_one("#progress", ProgressLine), self.query_one(CallTable)
        progress.display = self._deletion is not None
        calls.set_class(self._deletion is not None, "-shown")
        if self._deletion is None:
            return
        jobs = list(self._deletion.jobs.values())
        removed = sum(job.deleted_entries for job in jobs)
        expected = sum(map(self._expected_entries, jobs))
        progress.fraction = min(1.0, removed / expected) if expected else None
        rate = sum(job.snapshot.rate_per_s or 0 for job in jobs if not job.is_over)
        caption = f"{self._deletion.progress}, {count(removed)} deleted"
        if rate and not self._deletion.is_over:
            caption += f", {count(round(rate))} /s"
        progress.caption = caption
        rates: Counter[str] = Counter()
        for job in jobs:
            if not job.is_over:
                rates.update(job.snapshot.call_rates)
        started = {job.host for job in jobs if job.snapshot.started is not None}
        calls.title = f"system calls of {counted(len(started), 'host', 'hosts')}"
        calls.rows = rows_of_calls(sum_of_calls(jobs), rates, {})

    def _expected_entries(self, job: HostJob) -> int:
        """Return what a job has to delete: by its survey as long as it has not begun."""
        survey = self._rows[job.host].survey
        if job.snapshot.started is None and survey is not None and not job.is_over:
            return survey.entries
        return job.snapshot.expected_entries


def sum_of_calls(jobs: Sequence[HostJob]) -> list[CallLine]:
    """Return the calls of all hosts, counted and predicted."""
    calls: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    for job in jobs:
        calls.update({name: each.calls for name, each in job.snapshot.calls.items()})
        errors.update({name: each.errors for name, each in job.snapshot.calls.items()})
    starts = [job.snapshot.started for job in jobs if job.snapshot.started is not None]
    for started in starts:
        predicted.update(started.predicted_calls)
    other = [started.predicted_other_calls for started in starts]
    known = [number for number in other if number is not None]
    failures = Failures(
        failed_by_operation(group for job in jobs for group in job.snapshot.failures),
        any(job.snapshot.tool_lines for job in jobs),
        sum(started.confined_targets for started in starts),
        is_final=all(job.is_over for job in jobs),
    )
    return call_lines(
        {name: CallCount(number, errors[name]) for name, number in calls.items()},
        predicted,
        sum(known) if len(known) == len(other) else None,
        failures,
    )


_ORDERS: dict[str, Callable[[HostRow], float]] = {
    "host": lambda _: 0,  # as given
    "entries": lambda row: -row.survey.entries if row.survey else 1,
    "allocated": lambda row: -row.survey.allocated_bytes if row.survey else 1,
    "used": lambda row: -(row.shares[0] or 0),
    "inodes": lambda row: -(row.shares[1] or 0),
    "state": lambda row: -1 if row.live or (row.job is not None and not row.job.is_over) else 0,
}
"""The columns by which the rows can be sorted, and how."""

_OPTIONAL = ("inodes", "allocated")


def _columns(
    bar_cells: int,
    sort: str = "host",
    *,
    is_reversed: bool = False,
    is_narrow: bool = False,
    host_cells: int = 0,
    state_cells: int = 0,
) -> tuple[Column, ...]:
    cells = bar_cells + bool(bar_cells) + _PERCENT_CELLS
    arrow = " ▲" if is_reversed else " ▼"

    def title(name: str) -> str:
        return name + arrow if name == sort else name

    optional = (*_OPTIONAL, "used", "entries") if is_narrow or sort in _OPTIONAL else _OPTIONAL

    def column(name: str, width: int, meaning: str, *, right: bool = False) -> Column:
        is_optional = name != sort and name in optional
        return Column(title(name), width, right=right, is_optional=is_optional, meaning=meaning)

    return (
        column("host", max(host_cells, len("host ▼")), "its name for ssh"),
        column("used", cells, "the used part of the bytes, as df counts it"),
        column("inodes", cells + 2, "the used part of the inodes"),
        column("entries", 11, "entries below the directory", right=True),
        column("allocated", 11, "bytes below the directory", right=True),
        Column(
            title("state"),
            0,
            least=state_cells,
            meaning="why a host does not answer, its job, or the worst finding",
        ),
    )


def _share(share: float | None, cells: int) -> str:
    if share is None:
        return f"{'–':>{cells + bool(cells) + 3}}"
    bar = fit_cells(eighth_blocks(share, cells), cells) + " " * bool(cells)
    return f"{bar}{percent_used(share):>5}{' !' if share >= NEARLY_FULL else ''}"


def _row(row: HostRow, bar_cells: int, *, is_marked: bool) -> BarRow:
    used, inodes = row.shares
    survey, has_failed = row.survey, row.job is not None and row.job.has_failed
    return BarRow(
        key=row.host,
        cells=(
            row.host,
            _share(used, bar_cells),
            _share(inodes, bar_cells),
            "" if survey is None else count(survey.entries),
            "" if survey is None else bytes_iec(survey.allocated_bytes),
            _state(row),
        ),
        marked=is_marked,
        tone="muted" if row.problem and not has_failed else "normal",
        flag_tone="danger" if has_failed else "muted",
    )


def _is_below(job: ListedJob, place: str) -> bool:
    """Return whether a job deletes in a directory, given as it is shown."""
    return any(is_within(path, place) for path in job.paths)


def _live_state(jobs: Sequence[ListedJob]) -> str:
    newest, words = jobs[0], str(jobs[0].state)
    if newest.deleted_entries is not None and newest.expected_entries:
        words += f" {100 * min(1.0, newest.deleted_entries / newest.expected_entries):.0f} %"
    return words + (f", and {len(jobs) - 1} more" if len(jobs) > 1 else "")


def _state(row: HostRow) -> str:
    job = row.job
    if row.live and (job is None or (job.is_over and not job.has_failed)):
        return _live_state(row.live)
    if job is not None and not (job.phase is Phase.OVER and job.exit_code == 0):
        if job.has_failed:
            return _failure(job)
        if job.problem:
            return harmless(job.problem)
        snapshot = job.snapshot
        if snapshot.fraction is not None:
            left = f", left {duration_span(*snapshot.eta_s)}" if snapshot.eta_s else ""
            return f"deleting {percent_done(snapshot.fraction)}{left}"
        return str(job.phase)
    if job is not None:
        return "deleted"
    if row.problem:
        return _CONNECTING.sub("", harmless(row.problem))
    if row.survey is None:
        return f"counting{dots()}"
    worst = row.survey.worst
    return "" if worst is None else harmless(f"{worst.severity}: {worst.kind}".replace("-", " "))


def _failure(job: HostJob) -> str:
    reason = f": {harmless(job.problem)}" if job.problem else ""
    return f"! {job.ending}{reason}"


def _about(row: HostRow) -> str:
    """Return the state of a host in full, and what its jobs or its worst finding mean."""
    if row.live and _state(row) == _live_state(row.live):
        places = (f"job {job.id} in {', '.join(job.paths)}" for job in row.live)
        return harmless(f"{row.host}: {_state(row)}: {'; '.join(places)}")
    worst = None if row.survey is None else row.survey.worst
    meaning = "" if worst is None or row.job is not None else f". {harmless(worst.meaning)}"
    state = harmless(row.problem) if row.problem and row.job is None else _state(row)
    return f"{row.host}: {state}{meaning}".rstrip(": ")


def _totals(rows: Iterable[HostRow], marked: set[str]) -> list[LinePart]:
    """Return the sums of all hosts, or of the marked ones."""
    known = [row for row in rows if row.survey is not None]
    chosen = [row for row in known if row.host in marked] if marked else known
    surveys = [row.survey for row in chosen if row.survey is not None]
    entries = sum(survey.entries for survey in surveys)
    return [
        (0, f"{count(len(marked))} marked" if marked else f"{count(len(known))} counted", ""),
        (1, f" · {counted(entries, 'entry', 'entries')}", ""),
        (2, f" · {bytes_iec(sum(survey.allocated_bytes for survey in surveys))}", ""),
    ]


_PREVIEW_COLUMNS = (
    Column("strategy", 9, meaning="how it deletes"),
    Column("hosts", 6, right=True, is_optional=True, meaning="on which it can run"),
    Column("time in all", 17, right=True, meaning="for all hosts, some of them at the same time"),
    Column("on one host", 17, right=True, is_optional=True, meaning="shortest to longest"),
    Column("calls", 8, right=True, is_optional=True, meaning="system calls on all hosts"),
    Column("processes", 9, right=True, is_optional=True, meaning="on all hosts"),
    Column("", 0, least=len("best")),
)


class FleetPreviewScreen(BaseScreen):
    """What each strategy would cost on the chosen hosts.

    Args:
        hosts: those that have counted the directory.
        left_out: why other marked hosts are not asked.
    """

    KEYS: ClassVar = (
        ("enter", "confirm…"),
        TEXT_HINT,
        ("↑↓", "strategy"),
        ("o", "first host alone"),
        ("esc", "back"),
        ("y", "copy"),
    )
    EXPLANATION = (
        "The cost of each strategy, added up over the hosts. Before anything is deleted, each "
        "host checks its own rules again, and refuses a directory that is not the one counted "
        "here. The first host is deleted alone, and you are asked before the others follow; o "
        "switches that off."
    )
    OPENS = "Ask for confirmation"
    OPENS_FOR = "delete"
    BINDINGS = [
        COPY_BINDING,
        Binding("o", "options", tooltip="Delete on the first host alone, then ask: on or off"),
        Binding("escape,q", "app.pop_screen", tooltip="Go back"),
        *TEXT_BINDINGS,
    ]

    def __init__(
        self,
        client: FleetClient,
        hosts: Sequence[str],
        path: str,
        settings: Settings,
        left_out: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(settings)
        self._client, self._hosts, self._path = client, list(hosts), path
        self._left_out = left_out or {}
        self._estimates: dict[str, HostEstimate] = {}
        self._refused: dict[str, str] = {}
        self._has_canary = len(hosts) > 1
        self._dry_run: tuple[list[str], Argv] | None = None

    def compose_body(self) -> ComposeResult:
        """Lay out the hosts, the strategies, and what is refused."""
        yield Static(Text(""), id="about")
        yield BarTable(_PREVIEW_COLUMNS, empty_text="asking the hosts…", id="strategies")
        yield Static(Text(""), id="options")
        with VerticalScroll(id="body", can_focus=False):
            yield Static(Text(""), id="refusals")

    def on_mount(self) -> None:
        """Ask for the estimates."""
        number = counted(len(self._hosts), "host", "hosts")
        self.show_place("delete", displayable(self._path), number)
        self.query_one(BarTable).focus()
        self._show()
        self._client.ask(self._hosts, ("estimate", "--json", "--no-measuring", "--", self._path))

    def take_answer(self, message: Heard) -> None:
        """Take the estimates of a host."""
        host, estimate = message.answer.host, understood(HostEstimate, message.answer)
        if message.purpose != "estimate" or host not in self._hosts:  # of an earlier preview
            return
        if isinstance(estimate, str):
            self._refused[host] = estimate
        elif estimate.refused:
            self._refused[host] = estimate.refused
        else:
            self._estimates[host] = estimate
        self._show()

    def take_answers(self, message: Asked) -> None:
        """Confirm what the dry runs say."""
        if self._dry_run == (list(message.answers), message.arguments):
            self._dry_run = None
            self._confirm(message.answers)

    def _show(self) -> None:
        sums = self._sums(self._hosts)
        answered = len(self._estimates) + len(self._refused)
        estimates = self._estimates.values()
        entries = count(sum(each.entries for each in estimates))
        frees = bytes_iec(sum(each.freed_bytes_max for each in estimates))
        about = Text(f"{answered} of {counted(len(self._hosts), 'host', 'hosts')} answered · ")
        about.append(f"{entries} entries", "bold").append(f" · frees up to {frees}", "not bold")
        self.query_one("#about", Static).update(about)
        recommended = Counter(each.recommended for each in self._estimates.values())
        best = recommended.most_common(1)[0][0] if recommended else None
        rows = [_strategy_row(each, is_best=each.strategy == best) for each in sums if each.hosts]
        table = self.query_one(BarTable)
        is_first = not table.cursor_row
        table.set_rows(rows)
        table.styles.max_height = HEADER_HEIGHT + max(2, len(rows))
        if is_first and best is not None:
            table.move_to(best)
        box = "[x]" if self._has_canary else "[ ]"
        words = f"first host alone, then ask {box}"
        if self._client.at_once < len(self._hosts):
            words += f" · at most {self._client.at_once} at the same time"
        if self._client.max_failures:
            failures = counted(self._client.max_failures, "failure", "failures")
            words += f" · stop after {failures}"
        self.query_one("#options", Static).update(Text(words))
        missing = {**self._left_out, **self._refused}
        lines = [f"! not on {host}: {harmless(reason)}" for host, reason in missing.items()]
        self.query_one("#refusals", Static).update(Text("\n".join(lines)))

    def _sums(self, hosts: Iterable[str]) -> list[StrategySum]:
        # The first host is deleted alone: the first in the list, not the quickest to answer.
        estimates = {h: self._estimates[h] for h in hosts if h in self._estimates}
        return strategy_sums(estimates, self._client.at_once, canary=self._has_canary)

    def action_options(self) -> None:
        """Delete on the first host alone, or on all at once."""
        self._has_canary = not self._has_canary and len(self._hosts) > 1
        self._show()

    def command_to_copy(self) -> Argv:
        """Return the command that deletes on these hosts."""
        row = self.query_one(BarTable).cursor_row
        strategy = () if row is None else ("--strategy", row.key)
        canary = ("--canary",) if self._has_canary else ()
        hosts = folded(list(self._estimates))
        limit = self._client.max_failures
        order = (f"--serial={self._client.at_once}", *((f"--max-failures={limit}",) * bool(limit)))
        options = (*self._client.options, *strategy, *order, *canary)
        return ("tui-fs", "fleet", "delete", *options, hosts, self._path)

    def on_bar_table_opened(self, message: BarTable.Opened) -> None:
        """Ask each host for a dry run, then for the confirmation."""
        if self._dry_run is not None or len(self._estimates) + len(self._refused) < len(
            self._hosts
        ):
            self.notify("Not all hosts have answered yet.", markup=False)
            return
        self.notify(f"Each host checks its rules{dots()}", markup=False)
        strategy = f"--strategy={message.row.key}"
        arguments = ("delete", "--dry-run", "--json", strategy, "--", self._path)
        # The first host is deleted alone: the first in the list, not the quickest to answer.
        hosts = [host for host in self._hosts if host in self._estimates]
        self._dry_run = hosts, arguments
        self._client.ask(hosts, arguments)

    def _confirm(self, answers: Mapping[str, Answer]) -> None:
        read = {host: understood(HostPlan, answer) for host, answer in answers.items()}
        plans = {h: plan for h, plan in read.items() if isinstance(plan, HostPlan)}
        refused = {h: reason for h, reason in read.items() if isinstance(reason, str)}
        if not plans:
            self._refused |= refused
            self._show()
            self.notify("Every host refuses.", markup=False)
            return
        entries = sum(plan.expected.totals.entries for plan in plans.values())
        frees = sum(plan.expected.freed_bytes_max for plan in plans.values())
        strategy = next(iter(plans.values())).strategy
        # The load of the hosts has changed since the estimates: show one span of time, the later.
        self._estimates |= {h: with_times_of(plan, self._estimates[h]) for h, plan in plans.items()}
        self._show()
        (times,) = (each for each in self._sums(plans) if each.strategy == strategy)
        lines = [
            displayable(self._path),
            f"on {folded(list(plans))}",
            f"{count(entries)} entries, up to {bytes_iec(frees)}",
            f"with {strategy} in {duration_span(times.seconds_low, times.seconds_high)}",
            "the first host alone, then you are asked"
            if self._has_canary
            else "no stop after the first host",
        ]
        shown = list(refused.items())[:_MOST_LISTED]
        lines += [f"not on {host}: {harmless(reason)}" for host, reason in shown]
        if len(refused) > len(shown):
            lines.append(f"not on {len(refused) - len(shown)} more hosts")
        dialog = ConfirmDialog(
            f"Delete on {counted(len(plans), 'host', 'hosts')}?",
            lines,
            "A deletion cannot be undone.",
            f"{len(plans)} {self._word}",
        )

        def answered(is_confirmed: bool | None) -> None:
            if is_confirmed:
                self._start(plans)

        self.app.push_screen(dialog, answered)

    @property
    def _word(self) -> str:
        return word_to_type([os.path.normpath(self._path)])

    def _start(self, plans: Mapping[str, HostPlan]) -> None:
        job_ids = new_job_ids(plans)
        arguments = {
            host: deletion_argv(plan, job_ids[host], [self._path], self._word, ())
            for host, plan in plans.items()
        }
        self._client.delete(arguments, job_ids, canary=self._has_canary)
        self.app.pop_screen()


def _strategy_row(each: StrategySum, *, is_best: bool) -> BarRow:
    def span(low_s: float, high_s: float) -> str:
        return duration_range(low_s, high_s).replace(" ", "\u00a0")

    return BarRow(
        key=each.strategy,
        cells=(
            each.strategy,
            count(each.hosts),
            span(each.seconds_low, each.seconds_high),
            span(each.quickest_seconds_low, each.slowest_seconds_high),
            each.at_least + short_count(each.calls),
            short_count(each.processes),
            "best" if is_best else "",
        ),
    )
