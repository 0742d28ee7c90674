"""A preview of a deletion: the cost of each strategy, and the confirmation."""

import os
import re
import time
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from itertools import accumulate, islice
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len
from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.geometry import Region
from textual.widgets import Static
from textual.worker import get_current_worker

from tui_fs.estimate.recommendation import recommended_as
from tui_fs.job.calibration.store import MEASURING, measure, needs_measuring
from tui_fs.job.command_line import delete_command
from tui_fs.job.conflicts import check_conflicts
from tui_fs.job.path_safety import keep_open
from tui_fs.job.permission import (
    PLAIN_WORD,
    check_plan,
    check_targets,
    read_only_reason,
    why_type_name,
    word_to_type,
)
from tui_fs.job.planning import (
    Forecast,
    Remainder,
    forecast,
    forecast_by_estimate,
    make_plan,
    remainder_of,
    with_times_of,
)
from tui_fs.job.start import start
from tui_fs.job.store import JobFolder
from tui_fs.model.calls import (
    OTHER_CALLS_LABEL,
    REMOVING_CALLS,
    CallCount,
    CallLine,
    TraceSource,
    about_text,
    line_order,
)
from tui_fs.model.errors import BadInput, Refused, TuiFsError, cannot_examine
from tui_fs.model.estimate import Estimate, TimeAxis
from tui_fs.model.filter_text import in_words as in_words_of_filters
from tui_fs.model.finding import Severity
from tui_fs.model.paths import displayable
from tui_fs.model.plan import Plan
from tui_fs.model.quick_estimate import QuickEstimate, rounded
from tui_fs.model.snapshot import Snapshot
from tui_fs.model.space import LOWER_LAYER_WORDS
from tui_fs.model.strategy import (
    Argv,
    Confine,
    Filters,
    Options,
    Pace,
    StrategyName,
    confined_words,
)
from tui_fs.model.survey import Survey
from tui_fs.model.target import Target, command_lines, common_directory, in_words, is_file
from tui_fs.model.units import bytes_iec, count, counted, duration_range, duration_span, short_count
from tui_fs.safety.confinement import MOST_LEVELS
from tui_fs.screens.base import (
    COPY_BINDING,
    LOW_LINES,
    SCROLL_BINDINGS,
    TEXT_BINDINGS,
    TEXT_HINT,
    BaseScreen,
    Failed,
    Settings,
    broken_at_dots,
    deleting_is_off,
    muted,
)
from tui_fs.screens.call_dialog import CallDialog
from tui_fs.screens.options import Choices, OptionsDialog
from tui_fs.screens.run import RunScreen
from tui_fs.screens.survey_client import SurveyClient, SurveyUpdated
from tui_fs.strategies.registry import STRATEGIES
from tui_fs.survey.findings.registry import activity_in
from tui_fs.survey.process import Update
from tui_fs.survey.quick_estimate import estimates
from tui_fs.survey.single_file import remarks_on, survey_file
from tui_fs.widgets.bar_table import HEADER_HEIGHT, BarRow, BarTable, Column, column_widths
from tui_fs.widgets.call_table import CallRow, CallTable
from tui_fs.widgets.cell_drawing import dots
from tui_fs.widgets.confirm_dialog import DIALOG_FRAME_CELLS, DIALOG_TEXT_CELLS, ConfirmDialog
from tui_fs.widgets.daemon_thread import in_daemon_thread
from tui_fs.widgets.footer import Footer

COLUMNS = (
    Column("strategy", 8, meaning="the way to delete"),
    Column(
        "time",
        15,
        right=True,
        meaning="the predicted time; the line below the table names its source",
    ),
    Column(
        "calls",
        7,
        right=True,
        is_optional=True,
        meaning="the predicted system calls of all processes; ≥: of those that remove",
    ),
    Column(
        "memory", 9, right=True, is_optional=True, meaning="the largest memory of its processes"
    ),
    Column("proc.", 6, right=True, is_optional=True, meaning="the processes that are started"),
    Column(
        "safe against",
        0,
        text_cells=len("races · mounts"),
        meaning="races: no other user can redirect it; mounts: it stays in this file system",
    ),
)
_RANGE_FROM_COLUMNS, _MIN_RANGE, _MAX_RANGE = 110, 27, 48
"""The terminal width from which the times have bars, and the cells of these."""
_LARGEST_SHOWN = 3
_LINES_SHOWN, _LINES_OF_SEVERAL, _OTHER_LINES = 6, 2, 28
_LINES_ON_LOW_SCREEN = 3
"""The lines of the totals above the strategies there."""
_LINES_BESIDE_PATHS = 17
"""The most lines of the confirmation, with its frame, besides the names of several targets."""
_LONG_PATH = 256
"""A longer path fills the confirmation on a small screen, and its end scrolls out of view."""


def about_estimate(survey: Survey, estimate: QuickEstimate) -> Text:
    """Return a quick estimate of the targets and the counts so far, in three lines."""
    entries, directories = estimate.entries, estimate.directories
    allocated = estimate.allocated_bytes
    text = Text()
    if entries.is_exact:
        text.append(counted(entries.low, "entry", "entries"), "bold")
        text.append(" · all names read, sizes estimated\n")
    else:
        text.append(f"about {counted(rounded(entries.expected), 'entry', 'entries')}", "bold")
        text.append(f" · estimate, 90 % range {entries.in_words(count)}\n")
    if directories.is_exact:
        number = counted(directories.low, "directory", "directories")
    else:
        number = f"about {counted(rounded(directories.expected), 'directory', 'directories')}"
    text.append(f"in {number} · frees ")
    if survey.is_on_overlay:
        text.append(f"0 B to {bytes_iec(rounded(allocated.high))}", "bold")
        text.append(f" ({LOWER_LAYER_WORDS})\n")
    else:
        text.append(f"about {bytes_iec(rounded(allocated.expected))}", "bold")
        text.append("\n" if allocated.is_exact else f" · {allocated.in_words(bytes_iec)}\n")
    text.append(f"counted so far: {counted(survey.totals.entries, 'entry', 'entries')}")
    return text


def about_targets(survey: Survey, prediction: Forecast, filters: Filters) -> Text:
    """Return the totals of the targets and the space they free, in three lines."""
    totals = survey.totals
    prefix = "" if survey.finished else "~"
    text = Text()
    if survey.matched is not None:
        matched = prefix + counted(survey.matched.non_directories, "file matches", "files match")
        text.append(matched, "bold")
        text.append(f" {in_words_of_filters(filters, time.time())}\n")
        text.append("frees " if survey.finished else "frees so far ")
        text.append(prediction.expected.freed_words, "bold")
        text.append(" · all directories stay\n")
        files = counted(totals.non_directories, "file", "files")
        directories = counted(totals.directories, "directory", "directories")
        text.append(f"searched: {prefix}{files} in {prefix}{directories}")
        text.append_text(_unreadable(survey))
        if prediction.expected.about_directories:
            text.append(f"\n{prediction.expected.about_directories}", "dim")
        return text
    text.append(prefix + counted(totals.files, "file", "files"), "bold")
    text.append(" · ")
    text.append(prefix + counted(totals.directories, "directory", "directories"), "bold")
    symlinks = counted(totals.symlinks, "symlink", "symlinks")
    others = counted(totals.other, "other", "others")
    text.append(f" · {prefix}{symlinks} · {prefix}{others}\n")
    text.append("frees " if survey.finished else "frees so far ")
    text.append(prediction.expected.freed_words, "bold")
    names = counted(prediction.expected.totals.entries, "name", "names")
    text.append(f" · {prefix}{names} · apparent {prefix}{bytes_iec(totals.apparent_bytes)}\n")
    text.append(
        f"deepest level {prefix}{count(survey.max_depth)} · largest directory "
        f"{prefix}{counted(survey.max_entries_in_directory, 'entry', 'entries')}"
    )
    return text.append_text(_unreadable(survey))


def about_file(survey: Survey, prediction: Forecast) -> Text:
    """Return the size of a single file, the space that it frees, and what is special about it."""
    totals = survey.totals
    kind = "symbolic link" if totals.symlinks else "special file" if totals.other else "file"
    text = Text(f"one {kind}", "bold")
    text.append(f" · allocated {bytes_iec(totals.allocated_bytes)}", "not bold")
    text.append(f" · apparent {bytes_iec(totals.apparent_bytes)}\n", "not bold")
    text.append("frees ", "not bold").append(prediction.expected.freed_words, "bold")
    for remark in remarks_on(survey):
        text.append(f"\n! {remark}", "bold")
    return text


def _unreadable(survey: Survey) -> Text:
    if not survey.unreadable:
        return Text("")
    return Text(f" · {count(survey.unreadable)} unreadable, not counted !", "bold")


def activity_lines(survey: Survey) -> list[Text]:
    """Return what others do in the targets meanwhile, one paragraph each."""
    return [
        Text(f"! {finding.meaning}", "bold" if finding.severity is not Severity.INFO else "")
        for finding in activity_in(survey)
    ]


def columns_for(width: int, axis: TimeAxis) -> tuple[Column, ...]:
    """Return the columns of the table of strategies.

    Args:
        width: of the terminal.
        axis: of the predicted times, for the bars.
    """
    if width < _RANGE_FROM_COLUMNS:
        return COLUMNS
    cells = min(_MAX_RANGE, _MIN_RANGE + width - _RANGE_FROM_COLUMNS)
    meaning = "the predicted range, with a mark at the middle; dense for the recommended strategy"
    bars = Column(axis.title(cells), cells, has_range=True, meaning=meaning)
    return (*COLUMNS[:2], bars, *COLUMNS[2:])


def rows_of(prediction: Forecast, width: int, *, is_growing: bool = False) -> list[BarRow]:
    """Return one row for each strategy, for `columns_for` the width of the terminal.

    Args:
        is_growing: what is predicted is that of the entries counted so far.
    """
    axis = TimeAxis.of(prediction.estimates)
    room = column_widths(columns_for(width, axis), width)[-1]
    bars = axis if width >= _RANGE_FROM_COLUMNS else None
    sign = "~" if is_growing else ""
    return [_row(estimate, prediction, bars, room, sign) for estimate in prediction.estimates]


def _row(
    estimate: Estimate, prediction: Forecast, axis: TimeAxis | None, room: int, sign: str
) -> BarRow:
    bars = () if axis is None else ("",)
    if not estimate.feasible:
        reason = estimate.reasons[0]
        without_name = reason.removeprefix(f"{estimate.strategy} ").removeprefix("is ")
        words = without_name if without_name != reason else f"cannot run: {reason}"
        if cell_len(words) > room:
            words = "cannot run; ↑↓: why"
        cells = (str(estimate.strategy), "–", *bars, "–", "–", "–", words)
        return BarRow(estimate.strategy, cells, tone="muted")
    safe = " · ".join(
        word
        for word, holds in (("races", estimate.race_safe), ("mounts", estimate.mount_safe))
        if holds
    )
    flag = "" if estimate.race_safe else "! races"
    if estimate.strategy == prediction.recommended:
        flag = recommended_as(prediction.estimates)
    return BarRow(
        key=estimate.strategy,
        cells=(
            str(estimate.strategy),
            sign
            + duration_range(estimate.seconds_low, estimate.seconds_high).replace(" ", "\u00a0"),
            *bars,
            (sign or estimate.at_least) + short_count(estimate.total_calls),
            estimate.memory_words,
            short_count(estimate.processes),
            safe,
        ),
        span=axis.span(estimate) if axis is not None else None,
        strong=estimate.strategy == prediction.recommended,
        flag=flag,
        flag_tone="muted" if estimate.race_safe else "warning",
    )


def about_command(
    estimate: Estimate, prediction: Forecast, levels: int, lines_shown: int = _LINES_SHOWN
) -> Text:
    """Return the first of the highlighted strategy's command lines, and its notes.

    Args:
        levels: of the tree.
    """
    text = Text()
    lines = command_lines(estimate.command, prediction.directories)
    for line in lines[:lines_shown]:
        text.append("$ ", "dim")
        text.append(f"{line}\n")
    if len(lines) > lines_shown:
        more = counted(len(lines) - lines_shown, "more command line", "more command lines")
        text.append(f"{dots()} {more}\n", "dim")
    if estimate.feasible:
        text.append(f"confined by: {confined_words(estimate.confined_by)}", "dim")
        if not estimate.confined_by and levels > MOST_LEVELS:
            text.append(
                f"; the kernel would check each of {count(levels)} levels for every entry", "dim"
            )
        text.append("\n")
    for reason in estimate.reasons:
        text.append(f"! {reason}\n", "bold")
    if estimate.strategy == prediction.recommended:
        text.append("recommended: ", "bold")
    if estimate.feasible:
        text.append(f"{estimate.advice}\n")
    if estimate.feasible and estimate.memory_reason:
        text.append(f"memory: {estimate.memory_reason}\n", "dim")
    text.append(f"time based on {estimate.rests_on}", "dim")
    for figure in prediction.missing_figures:
        text.append(f"\n{figure.sentence}", "dim")
    return text


def about_options(choices: Choices, strategy: StrategyName) -> Text:
    """Return the options in force."""
    options = choices.options
    words = [f"keep directory {'[x]' if options.keep_root else '[ ]'}"]
    if options.filters.active:
        words = [f"only {in_words_of_filters(options.filters, time.time())}"]
    words += STRATEGIES[strategy].options_in_words(options)
    words += [f"gentle {'[x]' if options.pace.gentle else '[ ]'}", *options.pace.limits]
    if options.confine is not Confine.AUTO:
        words.append(f"confine {options.confine}")
    text = Text("options  ", style="dim")
    text.append(" · ".join(words), "not dim")
    match choices.trace:
        case TraceSource.STRACE:
            text.append(" · strace counts: 5 to 7 times slower !", "not dim bold")
        case TraceSource.BPF:
            text.append(" · bpftrace counts: 5 to 10 % slower", "not dim")
        case TraceSource.OFF:
            text.append(" · calls are not counted", "not dim")
    return text


def largest_directories(survey: Survey) -> Text:
    """Return the directories with the most direct entries."""
    text = Text("", no_wrap=True, overflow="ellipsis")
    for directory in survey.largest[:_LARGEST_SHOWN]:
        if directory.entries:
            if not text:
                text.append("most entries in one directory\n", "dim")
            below = directory.path.removeprefix(survey.path).lstrip("/")
            text.append(f"{count(directory.entries):>13}", "bold")
            text.append(f"  {displayable(below) or 'in the directory itself'}\n", "dim")
    text.rstrip()
    return text


def listed(paths: Sequence[str]) -> Text:
    """Return the targets, one per line, relative to their common directory."""
    text = Text("the directories", style="dim", no_wrap=True, overflow="ellipsis")
    above = common_directory(paths)
    for path in paths:
        text.append(f"\n  {displayable(os.path.relpath(path, above))}", "not dim")
    return text


def confirmation(
    paths: Sequence[str],
    survey: Survey,
    estimate: Estimate,
    options: Options,
    reason: str | None,
    lines_for_paths: int,
    freed: str | None = None,
    cells: int = DIALOG_TEXT_CELLS,
) -> list[str | Text]:
    """Return the lines of the confirmation.

    Args:
        freed: the space that a single file frees, in words; None for directories.
        reason: why the name must be typed; None if it need not.
        lines_for_paths: the lines on the screen for the names of several targets.
        cells: of a line.
    """
    filters = options.filters
    lines: list[str | Text] = [
        *_confirmed(paths, lines_for_paths, cells, "delete in" if filters.active else "")
    ]
    if freed is not None:
        lines.append(Text(f"{bytes_iec(survey.totals.allocated_bytes)} allocated; frees {freed}"))
        lines += [Text(f"! {remark}", "bold") for remark in remarks_on(survey)]
    else:
        lines += _contents(paths, survey, estimate, options)
    noun = "file" if freed is not None else "directory"
    if reason is not None:
        label = "the word below" if word_to_type(paths) == PLAIN_WORD else f"the {noun}'s name"
        lines.append(Text(f"Type {label}, because {reason}."))
    if _is_long(paths):
        lines.append(_folded(f"The {noun} is in", os.path.dirname(paths[0]), cells))
    return lines


def _contents(
    paths: Sequence[str], survey: Survey, estimate: Estimate, options: Options
) -> list[Text]:
    """Return what is deleted in directories, and how long that takes."""
    totals, filters = survey.matched or survey.totals, options.filters
    at_least = "" if survey.finished else "at least "
    allocated = bytes_iec(totals.allocated_bytes)
    if filters.active:
        nouns = ("file in it that matches", "files in it that match")
        if len(paths) > 1:
            nouns = ("file in them that matches", "files in them that match")
        matches = counted(totals.non_directories, *nouns)
        contents = Text(f"only {at_least}{matches}:\n", "bold")
        contents.append(in_words_of_filters(filters, time.time()), "bold")
        contents.append(f"\n{at_least}{allocated}; all directories stay", "not bold")
    else:
        files = counted(totals.non_directories, "file", "files")
        emptied = totals.directories - len(paths) * options.keep_root
        directories = counted(emptied, "directory", "directories")
        comma = " and" if at_least else ","
        contents = Text(f"{at_least}{files}, {directories}{comma} {allocated}")
    rate_per_s = options.pace.rate_per_s
    limit = f", limit {counted(rate_per_s, 'entry', 'entries')} per second" if rate_per_s else ""
    how = f"with {estimate.strategy}"
    if survey.finished:  # what is not yet counted also takes time
        how += f" in {duration_span(estimate.seconds_low, estimate.seconds_high)}"
    lines = [contents, Text(how + limit)]
    lines += activity_lines(survey)
    if options.keep_root and not filters.active:
        kept = "the directory itself is" if len(paths) == 1 else "the directories themselves are"
        lines.append(Text(f"{kept} kept, empty"))
    return lines


def _is_long(paths: Sequence[str]) -> bool:
    """Return whether the confirmation shows the name of the only target before its directory."""
    return len(paths) == 1 and len(displayable(paths[0])) > _LONG_PATH


def _folded(words: str, path: str, cells: int, style: str = "") -> Text:
    """Return words and a path, folded after slashes, so that no name is torn that fits."""
    lines = [f"{words} ".lstrip()]
    for part in re.findall("[^/]*/|[^/]+", displayable(path)):
        if lines[-1].strip() and cell_len(lines[-1] + part) > cells:
            lines.append("  ")
        lines[-1] += part
    return Text("\n".join(lines), style)


def _confirmed(paths: Sequence[str], lines_for_paths: int, cells: int, verb: str) -> list[Text]:
    """Return the targets.

    Args:
        verb: what is done to them; empty to delete them.
    """
    if len(paths) == 1:
        shown = os.path.basename(paths[0]) if _is_long(paths) else paths[0]
        return [_folded(verb, shown, cells, "bold")]
    lines = [Text(f"{verb or 'delete'} {in_words(paths)}", style="bold")]
    above = common_directory(paths)
    names = [f"  {displayable(os.path.relpath(path, above))}" for path in paths]
    ends = list(accumulate(-(-cell_len(name) // DIALOG_TEXT_CELLS) for name in names))
    if ends[-1] > lines_for_paths:  # one line for the number of the others
        names = names[: max(1, bisect_right(ends, lines_for_paths - 1))]
    lines += [Text(name, style="bold") for name in names]
    if len(names) < len(paths):
        lines.append(Text(f"  {dots()} and {count(len(paths) - len(names))} more"))
    return lines


_PATIENCE_S = 3.0
"""After this time without an answer the screen reports that there is none."""

_NEED_TARGETS = ("options", "filter", "more", "copy", "recommended")
"""Actions that do nothing on a refusal."""

_MAX_QUICK_ESTIMATES = 3
"""The estimates take 1, 2 and 4 seconds."""


class ForecastUpdated(SurveyUpdated):
    """An update, the forecast computed from it, and the options of the forecast."""

    def __init__(self, update: Update, forecast: Forecast, choices: Choices) -> None:
        super().__init__(update)
        self.forecast = forecast
        self.choices = choices


class _Question(Struct):
    """An open confirmation, and what it shows.

    Attributes:
        reason: why the name must be typed; None if it need not.
    """

    dialog: ConfirmDialog
    estimate: Estimate
    choices: Choices
    reason: str | None
    survey: Survey


class PreviewScreen(BaseScreen):
    """The counts of the targets, and a table of the strategies."""

    KEYS: ClassVar = (
        ("enter", "confirm…"),
        TEXT_HINT,
        ("esc", "back"),
        ("↑↓", "strategy"),
        ("o", "options"),
        ("f", "filter"),
        ("m", "calls"),
        ("y", "copy"),
    )
    EXPLANATION = (
        "The content of the directories, and the cost of deleting it with each strategy. Enter "
        "asks for confirmation; nothing is deleted before that. f sets or changes a filter, for "
        "example *.log >100M >30d: then only the files that match are counted and deleted. y "
        "copies the tui-fs command with the same targets, strategy, options and filters; it asks "
        "for confirmation as well. The ages of its filters count from its start."
    )

    VERTICAL_BREAKPOINTS = [(0, "-low"), (LOW_LINES, "-high"), (36, "-tall")]
    OPENS = "Ask for confirmation of the highlighted strategy"
    OPENS_FOR = "delete"
    BINDINGS = [
        Binding("escape,left,h,q", "app.pop_screen", tooltip="Go back; nothing is deleted"),
        Binding(
            "o",
            "options",
            tooltip=("Options: keep directory, pace, batch size, processes, counter"),
        ),
        Binding("f", "filter", tooltip="Filter by name, size or age, and count again"),
        Binding("m", "more", tooltip="Predicted system calls in detail"),
        *SCROLL_BINDINGS,  # for a refusal, which has no table
        *TEXT_BINDINGS,
        # Before the table, which is too short for pages
        Binding("pagedown,ctrl+f", "scroll(5)", priority=True, tooltip="Scroll the text down"),
        Binding("pageup,ctrl+b", "scroll(-5)", priority=True, tooltip="Scroll the text up"),
        COPY_BINDING,
        Binding("r", "recommended", tooltip="Go to the recommended strategy"),
    ]

    def __init__(
        self,
        paths: tuple[str, ...],
        settings: Settings,
        died: Plan | None = None,
        *,
        is_gentle: bool = False,
        filters: Filters | None = None,
        filter_text: str = "",
        allows_file: bool = False,
    ) -> None:
        """Preview directories, a single file, or the rest of a dead job.

        Args:
            allows_file: the only path may be that of a file or a symbolic link.
            is_gentle: start with the gentle pace selected.
            filters: what is deleted in the directories; None for everything, and themselves.
            filter_text: these filters as the user has typed them.
        """
        super().__init__(settings)
        self._paths = paths
        self._died = died
        self._allows_file = allows_file
        self._gone = self._note = ""
        self._about = Text("")
        self._is_refused = False
        self._read_only: str | None = None  # the reason
        self._targets: tuple[Target, ...] = ()
        self._client = SurveyClient(self, settings.interval_s, self._make_forecast)
        self._survey: Survey | None = None
        self._quick_estimate: QuickEstimate | None = None
        self._forecast: Forecast | None = None
        options = Options(pace=Pace(gentle=is_gentle), filters=filters or Filters())
        self._choices = Choices(options, filter_text=filter_text)
        if died is not None:
            self._choices = Choices(died.options, died.trace)
        self._recommended: StrategyName | None = None  # the one that the user has seen
        self._question: _Question | None = None
        self._is_asking = False  # the targets are examined for the confirmation
        self._open_targets = ExitStack()

    def compose_body(self) -> ComposeResult:
        """Lay out counts, strategies, and the highlighted strategy's command."""
        yield Static(Text(f"counting{dots()}"), id="about")
        yield BarTable(COLUMNS, empty_text="counting…", id="strategies")
        with VerticalScroll(id="body", can_focus=False):
            yield Static(Text(""), id="news")
            yield Static(Text(""), id="options")
            yield Static(Text(""), id="command")
            yield Static(Text(""), id="more-about")
            if len(self._paths) > 1:
                yield Static(listed(self._paths), id="targets")
            yield Static(Text(""), id="largest")
            yield CallTable(id="calls")

    def on_mount(self) -> None:
        """Check the safety rules first; refused targets are not counted."""
        self._show_targets(f"checking{dots()}")
        self.query_one(BarTable).focus()
        self._read_only = read_only_reason(by_option=self.settings.read_only)
        self._show_keys()
        self.set_timer(_PATIENCE_S, self._show_no_answer)
        if self._died is not None and self._died.options.filters.share is not None:
            error = BadInput(
                "This job deletes only a share of the entries, and this screen cannot count that.",
                f"tui-fs resume {self._died.job_id} continues it.",
            )
            self._refuse(error)
            return
        self._check()

    def _show_keys(self) -> None:
        """Show the keys that do something here; a single file has one strategy and no options."""
        left_out = {"enter"} if self._read_only is not None or self._forecast is None else set()
        if self._targets and is_file(self._targets):
            left_out |= {"↑↓", "o", "f"}
        keys = (hint for hint in self.KEYS if hint[0] not in left_out)
        self.query_one("#keys", Footer).keys = (*keys, ("?", "help"))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:  # noqa: ARG002
        """Disable what needs the targets once they are refused."""
        return not self._is_refused or action not in _NEED_TARGETS

    def on_unmount(self) -> None:
        """End the survey and close the targets, so that their file systems can be unmounted."""
        self._client.stop()
        self._open_targets.close()

    def _show_no_answer(self) -> None:
        if self._survey is None and not self._is_refused:
            about = "The file system has not answered yet. Nothing was deleted; esc goes back."
            self.query_one("#about", Static).update(Text(about, style="bold"))

    @work(thread=True, exclusive=True, group="check")
    def _check(self) -> None:
        """Check the safety rules; a thousand directories take two seconds."""
        rest = Remainder((), "")
        try:
            if self._died is not None:
                rest = remainder_of(self._died)
            else:
                rest = Remainder(
                    check_targets(self._paths, to_look=True, allows_file=self._allows_file), ""
                )
                check_conflicts(rest.targets)
            self._open_targets.enter_context(keep_open(rest.targets))
        except TuiFsError as error:
            self.post_message(Failed(error))
            return
        self.app.call_from_thread(self._checked, rest)

    def _checked(self, rest: Remainder) -> None:
        if not self.is_attached:
            self._open_targets.close()
            return
        self._targets, self._gone = rest.targets, rest.gone
        self._paths = tuple(target.path for target in self._targets)
        for about in self.query("#targets").results(Static):
            about.update(listed(self._paths))
        self._show_keys()
        if is_file(self._targets):
            self._examine_file()
        else:
            self._count()

    def _count(self) -> None:
        """Count the targets with the present filters."""
        self._client.start(self._paths, filters=self._filters)
        if not self._filters.active:  # a sample does not say how many entries match
            self._estimate_quickly(self._paths)

    @work(thread=True, exclusive=True, group="examine")
    def _examine_file(self) -> None:
        """Examine a single file in place of a survey."""
        path = self._targets[0].path
        try:
            survey = survey_file(path)
        except OSError as error:
            self.post_message(Failed(cannot_examine(path, error)))
            return
        self._survey = survey
        self._predict(survey)

    @work(thread=True, exclusive=True, group="quick estimate")
    def _estimate_quickly(self, paths: tuple[str, ...]) -> None:
        """Estimate the targets repeatedly, each time with more time, while the survey counts."""
        worker = get_current_worker()
        try:
            for estimate in islice(estimates(paths), _MAX_QUICK_ESTIMATES):
                if worker.is_cancelled or (self._survey is not None and self._survey.finished):
                    return
                self._quick_estimate = estimate
        except (OSError, TuiFsError):
            return  # the survey fails with the same error, and reports it

    def _show_targets(self, note: Text | str) -> None:
        number = len(self._paths)
        verb = "Delete matches in" if self._filters.active else "Delete"
        if number > 1:
            verb += f" {count(number)} directories in"
        self.show_place(verb, displayable(common_directory(self._paths)), note)

    @property
    def _filters(self) -> Filters:
        return self._choices.options.filters

    def _make_forecast(self, update: Update) -> ForecastUpdated:
        """Predict the costs from the counts; runs in the thread that reads the survey."""
        choices = self._choices
        return ForecastUpdated(update, self._forecast_of(update.survey), choices)

    def on_forecast_updated(self, message: ForecastUpdated) -> None:
        """Show the counts so far and the forecast; ignore those of the filters before."""
        if message.survey_number != self._client.number:
            return
        self._survey = survey = message.update.survey
        if message.choices == self._choices:
            self._forecast = message.forecast
            self._show()
        else:
            self._predict_again(survey)
        if survey.finished and self._targets:
            self._measure(survey)

    @work(thread=True, exclusive=True, group="measure")
    def _measure(self, survey: Survey) -> None:
        """Calibrate this file system, unless its calibration is recent."""
        if not needs_measuring(self._paths[0], survey.totals.entries):
            return
        if self.settings.read_only:
            self._note = "--read-only allows no writes"
        else:
            self._note = MEASURING
            self._predict(survey)
            worker = get_current_worker()
            self._note = measure(self._paths[0], lambda: not worker.is_cancelled)
        self._predict(survey)

    def _predict(self, survey: Survey) -> None:
        """Predict with the present options in a thread, and show the result."""
        choices = self._choices
        prediction = self._forecast_of(survey)
        self.app.call_from_thread(self._predicted, survey, prediction, choices)

    def _predicted(self, survey: Survey, prediction: Forecast, choices: Choices) -> None:
        if self.is_attached and choices == self._choices and survey is self._survey:
            self._forecast = prediction
            self._show()

    @work(thread=True, exclusive=True, group="predict")
    def _predict_again(self, survey: Survey) -> None:
        self._predict(survey)

    def _current_estimate(self, survey: Survey) -> QuickEstimate | None:
        """Return the quick estimate while it exceeds the counts."""
        if survey.finished or self._quick_estimate is None or self._filters.active:
            return None
        estimate = self._quick_estimate.with_counted(survey.totals)
        return estimate if estimate.entries.expected > survey.totals.entries else None

    def _forecast_of(self, survey: Survey) -> Forecast:
        choices, estimate = self._choices, self._current_estimate(survey)
        asked = choices.options, choices.trace
        pins = [target.pin for target in self._targets]
        if estimate is not None:
            return forecast_by_estimate(self._paths, estimate, *asked, pins=pins)
        return forecast(self._paths, survey, *asked, pins=pins, note=self._note)

    def on_failed(self, message: Failed) -> None:
        """Show why the targets cannot be counted or the job cannot start."""
        self._refuse(message.error)

    def _refuse(self, error: TuiFsError) -> None:
        self._targets, self._is_refused = (), True
        words = "Refused: " if isinstance(error, Refused) else "Not possible: "
        text = Text(f"{words}{error.sentence}\n", style="bold")
        text.append(error.advice, "not bold")
        text.append("\n\nnothing was deleted; esc goes back", "not bold")
        self.query_one(BarTable).set_rows(())
        for name in ("#about", "#strategies"):
            self.query_one(name).display = False
        body = self.query_one("#body")
        for part in body.children:
            part.display = part.id == "more-about"
        self.query_one("#more-about", Static).update(text)
        self.add_class("refused")
        self._show_targets(words.rstrip(": ").lower())
        self.query_one("#keys", Footer).keys = (("esc", "back"), ("?", "help"))

    def _show(self) -> None:
        survey, prediction = self._survey, self._forecast
        if survey is None or prediction is None or not self._targets:
            return
        estimate = self._current_estimate(survey)
        if estimate is not None:
            is_early = prediction.expected.totals.entries < estimate.entries.low
        else:
            is_early = not survey.finished and survey.totals.entries <= len(self._paths)
        if is_early:
            return  # it rests on nothing, or on the counts before the estimate; the next follows
        counted = Text("counted" if survey.complete else "not complete !")
        if not survey.finished:
            counted = Text("counting ~", style="bold")
        if self._read_only is not None:
            counted.append(" · read-only", "bold")
        self._show_targets(counted)
        about = about_targets(survey, prediction, self._filters)
        if is_file(self._targets):
            about = about_file(survey, prediction)
        if estimate is not None:
            about = about_estimate(survey, estimate)
        if self._gone:
            about.append(f"\n{self._gone}", "bold")
        for activity in () if is_file(self._targets) else activity_lines(survey):
            about.append("\n").append(activity)
        self._show_about(about)
        rows = self.query_one(BarTable)
        self._show_rows(survey, prediction)
        self._show_keys()
        if self._recommended is None and prediction.recommended is not None:
            self._recommended = prediction.recommended
            rows.move_to(self._died.strategy if self._died is not None else self._recommended)
        self._show_strategy()
        self._update_question()

    def _show_about(self, about: Text) -> None:
        """Show the totals above the strategies; on a low screen, most of them below these."""
        self._about = about
        width = max(1, self.size.width - 2)
        lines = broken_at_dots(about, width).wrap(self.app.console, width)
        above = _LINES_ON_LOW_SCREEN if self.size.height < LOW_LINES else len(lines)
        if above < len(lines):
            lines[above - 1].append(" …")
            lines[above - 1].truncate(width, overflow="ellipsis")
        self.query_one("#about", Static).update(Text("\n").join(lines[:above]))
        rest = self.query_one("#more-about", Static)
        rest.update(Text("\n").join(lines[above:]))
        rest.display = above < len(lines)

    def _show_rows(self, survey: Survey, prediction: Forecast) -> None:
        rows, width = self.query_one(BarTable), self.app.size.width
        axis = TimeAxis.of(prediction.estimates)
        rows.set_columns(columns_for(width, axis))
        is_growing = not survey.finished and self._current_estimate(survey) is None
        rows.set_rows(rows_of(prediction, width, is_growing=is_growing))
        rows.styles.max_height = HEADER_HEIGHT + len(prediction.estimates)

    def _show_strategy(self) -> None:
        strategy, survey = self._strategy(), self._survey
        if strategy is None or survey is None or self._forecast is None:
            return
        recommended = self._forecast.recommended
        if strategy == recommended:
            self._recommended = recommended
        is_new = recommended is not None and recommended != self._recommended
        news = self.query_one("#news", Static)
        news.display = is_new
        news.update(Text.assemble((f"new recommendation: {recommended} (r)", "bold")))
        lines_shown = _LINES_SHOWN
        if len(self._paths) > 1:
            lines_shown = max(_LINES_OF_SEVERAL, (self.size.height - _OTHER_LINES) // 2)
        about = about_command(
            self._forecast.of(strategy),
            self._forecast,
            survey.max_depth,
            lines_shown,
        )
        if self._read_only is not None:
            about = Text.assemble((f"{deleting_is_off(self._read_only)}\n", "bold"), about)
        self.query_one("#command", Static).update(about)
        table = self.query_one(CallTable)
        table.title = f"system calls of {strategy} · predicted"
        table.rows = predicted_rows(predicted_lines(self._forecast.of(strategy)))
        table.footer = uncounted_words(self._forecast.of(strategy))
        options = self.query_one("#options", Static)
        options.update(about_options(self._choices, strategy))
        options.display = not is_file(self._targets)
        largest = Text("") if self._filters.active else largest_directories(survey)
        self.query_one("#largest", Static).update(largest)

    def on_bar_table_highlighted(self) -> None:
        """Show the command of the strategy under the cursor."""
        self._show_strategy()

    def on_bar_table_opened(self) -> None:
        """Ask for confirmation of the highlighted strategy."""
        strategy, survey, prediction = self._strategy(), self._survey, self._forecast
        if not self._targets or strategy is None or survey is None or prediction is None:
            return
        estimate = prediction.of(strategy)
        reason = read_only_reason(by_option=self.settings.read_only)
        if reason is not None:
            self.notify(deleting_is_off(reason), markup=False)
            return
        if not estimate.feasible:
            self.notify(estimate.reasons[0], title=f"{strategy} cannot run", markup=False)
            return
        if survey.finished and survey.matched is not None and not survey.matched.entries:
            self.notify("Nothing matches: there is nothing to delete.", markup=False)
            return
        if not self._is_asking:
            self._is_asking = True
            self._ask_for_confirmation(survey, estimate, self._targets, self._choices)

    def _say_what_is_awaited(self) -> None:
        self.notify(
            "The file system has not answered yet; the confirmation waits for it.", markup=False
        )

    @work(group="ask")
    async def _ask_for_confirmation(
        self,
        survey: Survey,
        estimate: Estimate,
        targets: tuple[Target, ...],
        choices: Choices,
    ) -> None:
        """Ask for confirmation once it is known whether the name must be typed."""
        options = choices.options
        totals = survey.totals if survey.matched is None else survey.matched
        needed = partial(why_type_name, self._paths, totals.entries)
        overdue = self.set_timer(_PATIENCE_S, self._say_what_is_awaited)
        try:
            reason = await in_daemon_thread(needed)  # examines the targets
        except TuiFsError as error:
            self._refuse(error)
            return
        finally:
            overdue.stop()
            self._is_asking = False
        is_shown = self.is_attached and self.app.screen is self
        if not is_shown or targets is not self._targets or choices is not self._choices:
            return  # the user has moved on
        if not survey.finished:
            reason = "you asked before counting was complete"
        word = word_to_type(self._paths) if reason is not None else None
        label = "Empty it" if options.keep_root and not options.filters.active else "Delete"
        consequence = "A deletion cannot be undone."
        dialog = ConfirmDialog("Delete permanently?", (), consequence, word, yes_label=label)
        question = self._question = _Question(dialog, estimate, choices, reason, survey)
        self._update_question()

        def answered(yes: bool | None) -> None:
            # Start the plan that was shown; the cursor may have moved since.
            self._question = None
            if yes:
                self.workers.cancel_group(self, "measure")  # calibration would disturb the job
                self._show_about(Text(f"starting the job{dots()}", style="bold"))
                name_typed = word is not None
                self._start(targets, question.survey, question.estimate, choices, name_typed)

        self.app.push_screen(dialog, answered)

    def on_resize(self) -> None:
        """Use the room for bars, and for the names of an open confirmation."""
        if self._survey is not None and self._forecast is not None and self._targets:
            self._show_about(self._about)
            self._show_rows(self._survey, self._forecast)
            self._show_strategy()
        self._update_question()

    def _update_question(self) -> None:
        """Show the present figures in the open confirmation."""
        question, survey, prediction = self._question, self._survey, self._forecast
        if question is None or survey is None or prediction is None:
            return
        if question.choices is not self._choices:
            return  # the prediction is of other options
        question.survey, question.estimate = survey, prediction.of(question.estimate.strategy)
        lines = confirmation(
            self._paths,
            survey,
            question.estimate,
            question.choices.options,
            question.reason,
            max(3, self.app.size.height - _LINES_BESIDE_PATHS),
            prediction.expected.freed_words if is_file(self._targets) else None,
            min(DIALOG_TEXT_CELLS, self.app.size.width - DIALOG_FRAME_CELLS),
        )
        question.dialog.replace_lines(lines)

    @work(thread=True, exclusive=True, group="start")
    def _start(
        self,
        targets: tuple[Target, ...],
        survey: Survey,
        shown: Estimate,
        choices: Choices,
        name_typed: bool,
    ) -> None:
        app = self.app  # a closed screen has no app any more
        try:
            plan = make_plan(targets, survey, shown.strategy, choices.options, choices.trace)
            continues = self._died.job_id if self._died is not None else ""
            plan = replace(plan, name_typed=name_typed, continues=continues)
            plan = with_times_of(plan, shown)
            check_plan(plan)
            folder = start(plan, lambda: self.is_attached)
        except TuiFsError as error:
            self.post_message(Failed(error))
            return
        finally:
            self._open_targets.close()
        app.call_from_thread(self._watch, app, folder)

    def _watch(self, app: App[None], folder: JobFolder | None) -> None:
        if folder is None:
            app.notify("You left before the job began: nothing was deleted.", markup=False)
        elif self.is_attached and self.is_current:
            app.switch_screen(RunScreen(folder, self.settings))
        else:
            app.push_screen(RunScreen(folder, self.settings))

    def _strategy(self) -> StrategyName | None:
        row = self.query_one(BarTable).cursor_row
        return StrategyName(row.key) if row is not None else None

    def command_to_copy(self) -> Argv:
        """Return the tui-fs command for the highlighted strategy with the present options."""
        strategy, prediction = self._strategy(), self._forecast
        if not self._targets or strategy is None or prediction is None:
            raise BadInput("There is no command yet. Press y when the strategies are listed.")
        if self._died is not None:
            present = strategy, self._choices.options, self._choices.trace
            if present != (self._died.strategy, self._died.options, self._died.trace):
                raise BadInput(
                    "tui-fs resume keeps strategy and options of the job; you changed them."
                )
            return ("tui-fs", "resume", self._died.job_id)
        if not prediction.of(strategy).feasible:
            raise BadInput(f"{strategy} cannot run: {prediction.of(strategy).reasons[0]}.")
        options, trace = self._choices.options, self._choices.trace
        return delete_command(self._paths, strategy, options, trace, time.time())

    def action_options(self) -> None:
        """Change the options."""
        self._ask_for_options(at_filter=False)

    def action_filter(self) -> None:
        """Change the filters."""
        if self._died is None:
            self._ask_for_options(at_filter=True)
        else:
            sentence = "The rest of a job has its filter. Preview the directory again for another."
            self.notify(sentence, markup=False)

    def _ask_for_options(self, *, at_filter: bool) -> None:
        if self._targets and is_file(self._targets):
            self.notify("These options apply to directories, not to a single file.", markup=False)
            return
        can_filter = self._died is None
        dialog = OptionsDialog(self._choices, can_filter=can_filter, at_filter=at_filter)
        self.app.push_screen(dialog, self._options_chosen)

    def _options_chosen(self, choices: Choices | None) -> None:
        if choices is None:
            return
        is_same_count = choices.options.filters == self._filters
        self._choices = replace(choices)
        self._forecast = None  # the old prediction belongs to other options
        self._show_keys()
        if not is_same_count:
            self._count_again()
        elif self._survey is not None:
            self._predict_again(self._survey)

    def _count_again(self) -> None:
        """Discard the counts of the former filters, and count with the present ones."""
        self._survey = self._quick_estimate = self._recommended = None
        for group in ("measure", "predict", "quick estimate"):
            self.workers.cancel_group(self, group)
        if not self._targets:
            return  # the check of the targets has not ended; it begins to count
        self._show_targets("counting ~")
        self.query_one(BarTable).set_rows(())
        self._show_about(Text(f"counting{dots()}"))
        for name in ("#command", "#options", "#largest"):
            self.query_one(name, Static).update(Text(""))
        self.query_one(CallTable).rows = ()
        self._count()

    def action_recommended(self) -> None:
        """Move the cursor to the recommended strategy."""
        if self._forecast is not None and self._forecast.recommended is not None:
            self.query_one(BarTable).move_to(self._forecast.recommended)
            self._show_strategy()

    def action_more(self) -> None:
        """Show the predicted calls of the highlighted strategy."""
        strategy = self._strategy()
        if strategy is not None and self._forecast is not None:
            self.app.push_screen(CallsScreen(self._forecast.of(strategy), self.settings))


def predicted_lines(estimate: Estimate) -> list[CallLine]:
    """Return the predicted calls by group, the most frequent first; none without a prediction."""
    lines = [
        CallLine(name, CallCount(0), number, count(number))
        for name, number in estimate.syscalls.items()
    ]
    lines.sort(key=line_order)
    if estimate.other_calls is not None:
        text = about_text(estimate.other_calls)
        lines.append(CallLine(OTHER_CALLS_LABEL, CallCount(0), 0, text))
    return lines


def predicted_rows(lines: Sequence[CallLine]) -> tuple[CallRow, ...]:
    """Return the rows of a table of predicted calls."""
    return tuple(
        CallRow(
            line.name,
            line.predicted_text,
            group=line.guide.group,
            emphasised=line.name in REMOVING_CALLS,
        )
        for line in lines
    )


def uncounted_words(estimate: Estimate) -> str:
    """Return how many calls are predicted that will not be counted; nothing if all are."""
    number = estimate.uncounted_calls
    return (
        f"  and {about_text(number)} to start the processes, which the engine does not count"
        if number
        else ""
    )


class CallsScreen(BaseScreen):
    """Predicted calls by group, the most frequent first."""

    KEYS: ClassVar = (("enter", "explain"), ("esc", "back"))
    EXPLANATION = (
        "The expected number of each system call, summed over all processes of the strategy. "
        "Calls for program start-up, memory and closing files share one approximate line."
    )

    BINDINGS = [Binding("escape,q,m,left,h", "app.pop_screen", tooltip="Go back")]

    def __init__(self, estimate: Estimate, settings: Settings) -> None:
        super().__init__(settings)
        self._estimate = estimate
        self._lines = predicted_lines(estimate)

    def compose_body(self) -> ComposeResult:
        """Lay out the table."""
        with VerticalScroll(id="body", can_focus=False):
            yield CallTable(id="calls", can_focus=True)
            yield Static(muted(f"predicted from {self._estimate.calls_rest_on}"), id="harmless")

    def on_mount(self) -> None:
        """Fill the table."""
        self.show_place("Calls of", self._estimate.strategy)
        table = self.query_one(CallTable)
        table.title = "system calls · predicted"
        table.rows = predicted_rows(self._lines)
        table.footer = uncounted_words(self._estimate)
        self.watch(table, "cursor", self._follow_cursor)

    def _follow_cursor(self, cursor: int) -> None:
        lines_above = 2 if cursor else 0  # title and header are shown again with the first row
        region = Region(0, cursor + lines_above, 1, 1)
        self.query_one("#body").scroll_to_region(region, animate=False)

    def on_call_table_opened(self, message: CallTable.Opened) -> None:
        """Explain a call."""
        dialog = CallDialog(self._lines, self._estimate.strategy, Snapshot(), message.name)
        self.app.push_screen(dialog)
