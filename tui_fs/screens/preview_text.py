"""The words and rows of the preview, made from survey and forecast."""

import os
from collections.abc import Sequence

from rich.text import Text

from tui_fs.job.permission import PLAIN_WORD, word_to_type
from tui_fs.job.planning import Forecast
from tui_fs.model.calls import TraceSource
from tui_fs.model.estimate import Estimate
from tui_fs.model.paths import displayable
from tui_fs.model.quick_estimate import QuickEstimate, rounded
from tui_fs.model.space import LOWER_LAYER_WORDS
from tui_fs.model.strategy import Options, StrategyName
from tui_fs.model.survey import Survey
from tui_fs.model.target import command_lines, common_directory, in_words
from tui_fs.model.units import bytes_iec, count, counted, duration_span, short_count
from tui_fs.screens.options import Choices
from tui_fs.strategies.registry import STRATEGIES
from widgets.bar_table import BarRow, Column

COLUMNS = (
    Column("strategy", 8),
    Column("time", 15, right=True),
    Column("calls", 7, right=True),
    Column("memory", 9, right=True),
    Column("proc.", 6, right=True),
    Column("safe against", 0),
)
_LARGEST_SHOWN = 3
_LINES_SHOWN = 6
_CONFIRMED_SHOWN = 3


def about_estimate(survey: Survey, estimate: QuickEstimate) -> Text:
    """Return a quick estimate of the whole, and what is counted of it, in three lines."""
    entries, directories = estimate.entries, estimate.directories
    allocated = estimate.allocated_bytes
    text = Text()
    text.append(f"about {counted(rounded(entries.expected), 'entry', 'entries')}", "bold")
    text.append(f" · estimate, 90 % range {entries.in_words(count)}\n")
    number = counted(rounded(directories.expected), "directory", "directories")
    text.append(f"in about {number} · frees ")
    if survey.is_on_overlay:
        text.append(f"0 B to {bytes_iec(rounded(allocated.high))}", "bold")
        text.append(f" ({LOWER_LAYER_WORDS})\n")
    else:
        text.append(f"about {bytes_iec(rounded(allocated.expected))}", "bold")
        text.append(f" · {allocated.in_words(bytes_iec)}\n")
    text.append(f"counted so far: {counted(survey.totals.entries, 'entry', 'entries')}")
    return text


def about_targets(survey: Survey, found: Forecast) -> Text:
    """Return what is in the targets together and what comes back, in three lines."""
    totals = survey.totals
    so_far = "" if survey.finished else "~"
    text = Text()
    text.append(so_far + counted(totals.files, "file", "files"), "bold")
    text.append(" · ")
    text.append(so_far + counted(totals.directories, "directory", "directories"), "bold")
    symlinks = counted(totals.symlinks, "symlink", "symlinks")
    text.append(f" · {symlinks} · {counted(totals.other, 'other', 'others')}\n")
    text.append("frees ")
    text.append(found.expected.freed_words, "bold")
    names = counted(found.expected.totals.entries, "name", "names")
    text.append(f" · {names} · apparent {bytes_iec(totals.apparent_bytes)}\n")
    text.append(
        f"deepest level {count(survey.max_depth)} · largest directory "
        f"{counted(survey.max_entries_in_directory, 'entry', 'entries')}"
    )
    if survey.unreadable:
        text.append(f" · {count(survey.unreadable)} unreadable, not counted !", "bold")
    return text


def rows_of(found: Forecast) -> list[BarRow]:
    """Return one row for each strategy."""
    return [_row(estimate, found) for estimate in found.estimates]


def _row(estimate: Estimate, found: Forecast) -> BarRow:
    if not estimate.feasible:
        cells = (str(estimate.strategy), "–", "–", "–", "–", "cannot run: see below")
        return BarRow(estimate.strategy, cells, tone="muted")
    safe = " · ".join(
        word
        for word, holds in (("races", estimate.race_safe), ("mounts", estimate.mount_safe))
        if holds
    )
    recommended = estimate.strategy == found.recommended
    return BarRow(
        key=estimate.strategy,
        cells=(
            str(estimate.strategy),
            duration_span(estimate.seconds_low, estimate.seconds_high, "–").replace(" ", "\u00a0"),
            short_count(estimate.total_calls),
            estimate.memory_words,
            short_count(estimate.processes),
            safe,
        ),
        flag="best" if recommended else "" if estimate.race_safe else "! races",
        tone="warning" if not estimate.race_safe else "normal",
    )


def about_command(estimate: Estimate, found: Forecast) -> Text:
    """Return the highlighted strategy's command lines and what to know about it."""
    text = Text()
    lines = command_lines(estimate.command, found.directories)
    for line in lines[:_LINES_SHOWN]:
        text.append("$ ", "dim")
        text.append(f"{line}\n")
    if len(lines) > _LINES_SHOWN:
        text.append(f"… {count(len(lines) - _LINES_SHOWN)} more command lines\n", "dim")
    for reason in estimate.reasons:
        text.append(f"! {reason}\n", "bold")
    if estimate.strategy == found.recommended:
        text.append("recommended: ", "bold")
    if estimate.feasible:
        text.append(f"{estimate.advice}\n")
    if estimate.feasible and estimate.memory_reason:
        text.append(f"memory: {estimate.memory_reason}\n", "dim")
    text.append(f"time rests on {estimate.rests_on}", "dim")
    for one in found.missing_figures:
        text.append(f"\n{one.sentence}", "dim")
    return text


def about_options(choices: Choices, strategy: StrategyName) -> Text:
    """Return the options in force."""
    options = choices.options
    words = [f"keep directory {'[x]' if options.keep_root else '[ ]'}"]
    words += STRATEGIES[strategy].options_in_words(options)
    pace = options.pace
    words.append(f"gentle {'[x]' if pace.gentle else '[ ]'}")
    if pace.nice:
        words.append(f"nice {pace.nice}")
    if pace.rate_per_s:
        words.append(f"at most {count(pace.rate_per_s)} /s")
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
    """Return the directories with the most names of their own."""
    text = Text("", no_wrap=True, overflow="ellipsis")
    for directory in survey.largest[:_LARGEST_SHOWN]:
        if directory.entries:
            below = directory.path.removeprefix(survey.path).lstrip("/")
            text.append(f"{count(directory.entries):>13}", "bold")
            text.append(f"  {displayable(below) or 'in the directory itself'}\n", "dim")
    return text


def listed(paths: Sequence[str]) -> Text:
    """Return several targets, one a line, as they lie below the directory that holds them."""
    text = Text("", no_wrap=True, overflow="ellipsis")
    above = common_directory(paths)
    for path in paths:
        text.append(f"  {displayable(os.path.relpath(path, above))}\n")
    return text


def confirmation(
    paths: Sequence[str], survey: Survey, estimate: Estimate, options: Options, reason: str | None
) -> tuple[Sequence[str | Text], str]:
    """Return the lines and the consequence of the confirmation."""
    totals = survey.totals
    at_least = "" if survey.finished else "at least "
    directories = totals.directories - len(paths) * options.keep_root
    lines: list[str | Text] = [
        *_confirmed(paths),
        Text(
            f"{at_least}{counted(totals.non_directories, 'file', 'files')}, "
            f"{counted(directories, 'directory', 'directories')}, "
            f"{bytes_iec(totals.allocated_bytes)}"
        ),
        Text(
            f"with {estimate.strategy} in "
            f"{duration_span(estimate.seconds_low, estimate.seconds_high)}"
        ),
    ]
    if options.keep_root:
        kept = "the directory itself is" if len(paths) == 1 else "the directories themselves are"
        lines.append(Text(f"{kept} kept, empty"))
    if reason is not None:
        what = "the word" if word_to_type(paths) == PLAIN_WORD else "its name"
        lines.append(Text(f"Type {what} because {reason}."))
    return lines, "What is deleted cannot be brought back."


def _confirmed(paths: Sequence[str]) -> list[Text]:
    if len(paths) == 1:
        return [Text(displayable(paths[0]), style="bold")]
    lines = [Text(f"delete {in_words(paths)}", style="bold")]
    above = common_directory(paths)
    for path in paths[:_CONFIRMED_SHOWN]:
        lines.append(Text(f"  {displayable(os.path.relpath(path, above))}", style="bold"))
    if len(paths) > _CONFIRMED_SHOWN:
        lines.append(Text(f"  … and {count(len(paths) - _CONFIRMED_SHOWN)} more"))
    return lines
