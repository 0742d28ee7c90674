"""The report of a job in words, the same for the command line and the screen."""

from enum import Enum, auto
from typing import NamedTuple

from tui_fs.job.freed_space import TOLERANCE_BYTES
from tui_fs.job.report import Report
from tui_fs.model.calls import (
    HARMLESS_ERRORS,
    NORMAL,
    CallGroup,
    CallLine,
    Failures,
    about_text,
    call_lines,
    failed_by_operation,
    removal_times,
)
from tui_fs.model.errors import meaning
from tui_fs.model.events import JobStarted
from tui_fs.model.outcome import Outcome
from tui_fs.model.paths import displayable, harmless
from tui_fs.model.snapshot import FailureGroup
from tui_fs.model.strategy import confined_words
from tui_fs.model.units import bytes_iec, count, counted, duration, duration_span, more_or_less

_EXAMPLES = 3
"""Paths shown of each kind of failure."""

_TARGETS_LEFT = 10
"""Paths shown of the targets that are left."""

_TOOL_LINES = 5

_SMALLEST_SHARE = 0.01
"""A group of calls with less of all calls is left out of the figure."""


class Weight(Enum):
    """How strongly a line is drawn."""

    STRONG = auto()
    NORMAL = auto()
    WEAK = auto()


class Line(NamedTuple):
    """A line below the figures; an empty one separates paragraphs."""

    text: str
    weight: Weight = Weight.NORMAL


class Pair(NamedTuple):
    """A predicted range and the measured figure, with their texts."""

    label: str
    low: float
    high: float
    predicted_shown: str
    measured: float
    measured_shown: str


def pairs(report: Report) -> list[Pair]:
    """Return time, calls by group and freed bytes of a job that ended by itself.

    Groups with less than a hundredth of all calls are left out.
    """
    started = report.started
    if started is None or report.outcome not in (Outcome.DONE, Outcome.PARTIAL):
        return []
    compared = []
    if started.predicted_seconds is not None:
        low_s, _, high_s = started.predicted_seconds
        took_s = max(0.0, report.strategy_wall_s - report.paused_s - report.held_back_s)
        span = duration_span(low_s, high_s)
        compared.append(Pair("time", low_s, high_s, span, took_s, duration(took_s)))
    groups: dict[CallGroup, tuple[int, int]] = {}
    for line in call_lines_of(report, started):
        calls, expected = groups.get(line.guide.group, (0, 0))
        groups[line.guide.group] = calls + line.counted.calls, expected + line.predicted
    if CallGroup.START in groups:
        groups[CallGroup.START] = groups[CallGroup.START][0], started.predicted_other_calls or 0
    least = _SMALLEST_SHARE * sum(calls for calls, _ in groups.values())
    is_partial = started.predicted_other_calls is None  # of removals only, as with filters
    compared += [
        Pair(
            f"calls: {group}", expected, expected, _predicted(group, expected), calls, count(calls)
        )
        for group, (calls, expected) in groups.items()
        if max(calls, expected) >= least and started.predicted_calls and report.syscalls
        if expected or not is_partial
    ]
    freed = report.freed_bytes
    if freed is not None:
        low, high = started.expected.freed_bytes_min, started.expected.freed_bytes_most
        shown = bytes_iec(freed) if freed >= 0 else f"{bytes_iec(-freed)} less free"
        compared.append(Pair("freed", low, high, _bytes_span(low, high), freed, shown))
    return compared


def _predicted(group: CallGroup, calls: int) -> str:
    """Return the text of a predicted number of calls, as in the table of calls."""
    return about_text(calls) if group is CallGroup.START else count(calls)


def figures(report: Report, started: JobStarted) -> list[tuple[str, str]]:
    """Return labels and values: counts, time, memory and space, each beside what was expected."""
    expected, filters = started.expected.totals, started.filters
    rows = [("only", f"{filters}; directories stay")] if filters else []
    rows.append(("files", _deleted(report, report.deleted_files, expected.non_directories)))
    if expected.directories or filters:  # else the target is a single file
        directories = _deleted(report, report.deleted_directories, expected.directories)
        rows.append(("directories", directories))
    if report.surviving_entries:
        rows.append(("left", counted(report.surviving_entries, "entry", "entries")))
    if len(report.targets) > 1:
        done = sum(target.done is True for target in report.targets)
        number = f"{count(done)} of {count(len(report.targets))} directories"
        rows.append((_done_word(started), number))
    rows += [
        ("failed", count(report.failed)),
        ("time", _time(report, started)),
        ("cpu", _cpu(report)),
        ("space", _space(report, started)),
        ("inodes", _inodes(report, started)),
        *removal_times(report.syscalls),
        ("confined by", confined_words(started.confined_by)),
    ]
    return rows if report.syscalls else [*rows, ("counted by", started.source_note)]


def _done_word(started: JobStarted) -> str:
    """Return the word for a target whose deletion is complete."""
    if started.is_filtered:
        return "matches gone"
    if started.share is not None:
        return "share deleted"
    return "emptied" if started.keep_root else "gone"


def remarks(report: Report, started: JobStarted) -> list[Line]:
    """Return what is left, what could not be measured, why space is missing, and the failures."""
    comment = report.time_comment
    lines = [*([Line(comment)] if comment else []), *_left(report, started)]
    lines += [Line(missing.sentence, Weight.WEAK) for missing in started.missing_figures]
    if report.syscalls and not report.syscalls_are_whole:
        lines.append(Line("The last system calls before the end are not counted.", Weight.WEAK))
    for cause in report.space_causes:
        lines += [Line(""), Line(cause.sentence, Weight.STRONG)]
        lines.append(Line(f"   {cause.advice}", Weight.WEAK))
    for group in report.error_groups:
        lines += [Line(""), *_failures(report, group)]
    tool_lines = report.tool_lines[-_TOOL_LINES:]
    if tool_lines:
        lines.append(Line(""))
    return lines + [Line(f"   {harmless(text)}", Weight.WEAK) for text in tool_lines]


def calls_title(report: Report, started: JobStarted) -> str:
    """Return the title of the table of calls, which names the source.

    An exact source is not called so after a job whose last calls are not counted.
    """
    note = started.source_note
    if not report.syscalls_are_whole:
        note = note.replace(", exact", "")
    return f"system calls · {note}"


def call_lines_of(report: Report, started: JobStarted) -> list[CallLine]:
    """Return predicted and counted calls by group."""
    failed = failed_by_operation(report.error_groups)
    is_left = any(target.done is False for target in report.targets)
    failures = Failures(
        failed, bool(report.tool_lines), started.confined_targets, is_target_left=is_left
    )
    other_calls = started.predicted_other_calls
    return call_lines(report.syscalls, started.predicted_calls, other_calls, failures)


def harmless_errors(lines: list[CallLine]) -> list[str]:
    """Return sentences on the errors of these calls that are no failures, without duplicates."""
    notes = [line.note for line in lines]
    explained = {note: HARMLESS_ERRORS.get(note.removeprefix(NORMAL)) for note in notes}
    return [f"{note}. {sentence}" for note, sentence in explained.items() if sentence]


def _left(report: Report, started: JobStarted) -> list[Line]:
    if len(report.targets) == 1:
        return []  # the first line of a report names it
    states = zip(started.targets, report.targets, strict=True)
    left = [path for path, state in states if state.done is False]
    shown = left[:_TARGETS_LEFT]
    lines = [Line(f"   left: {displayable(path)}", Weight.STRONG) for path in shown]
    if len(left) > _TARGETS_LEFT:
        lines.append(Line(f"   and {count(len(left) - _TARGETS_LEFT)} more", Weight.STRONG))
    return lines


def _failures(report: Report, group: FailureGroup) -> list[Line]:
    kind = group.operation, group.error
    same = [error for error in report.errors if (error.operation, error.error) == kind]
    shown = [
        displayable(error.path) + (f": {error.cause}" if error.cause else "")
        for error in same[:_EXAMPLES]
    ]
    lines = [
        Line(f"{count(group.number)} × {group.operation}: {meaning(group.error)}", Weight.STRONG),
        *(Line(f"   {words}", Weight.WEAK) for words in shown),
    ]
    more = group.number - len(shown)
    if same and more:
        lines.append(Line(f"   and {count(more)} more", Weight.WEAK))
    return lines


def _deleted(report: Report, number: int | None, expected: int) -> str:
    if number is None:
        return f"not counted; the survey found {count(expected)}"
    accuracy = "" if report.counts_are == "exact" else f" ({report.counts_are})"
    if number > expected:  # others created some, or the last share's directory itself
        return f"{count(number)} deleted, {count(expected)} expected{accuracy}"
    return f"{count(number)} of {count(expected)} deleted{accuracy}"


def _time(report: Report, started: JobStarted) -> str:
    working_s = max(0.0, report.strategy_wall_s - report.paused_s)
    deleted = (report.deleted_files or 0) + (report.deleted_directories or 0)
    words = [duration(working_s)]
    if report.held_back_s:
        words[0] += f", {duration(report.held_back_s)} of it throttled"
    if report.paused_s:
        words[0] += f", plus {duration(report.paused_s)} paused"
    if working_s > 0 and deleted:  # after the prediction it would read as the predicted rate
        words.append(f"{count(round(deleted / working_s))} /s")
    if started.predicted_seconds is not None:
        low_s, _, high_s = started.predicted_seconds
        words.append(f"predicted {duration_span(low_s, high_s)}{_for_all(report)}")
    return " · ".join(words)


def _for_all(report: Report) -> str:
    """Return that a prediction is of everything, where only a part was deleted."""
    return " for all" if report.outcome is not Outcome.DONE else ""


def _cpu(report: Report) -> str:
    peak_bytes, sampled_bytes = report.peak_memory_bytes, report.sampled_memory_bytes
    # A tool that exits within milliseconds is never sampled.
    peak = bytes_iec(peak_bytes) if peak_bytes else "not measured"
    if sampled_bytes:
        peak = f"sampled {bytes_iec(sampled_bytes)}"
    return (
        f"kernel {report.cpu_system_s:.1f} s · user {report.cpu_user_s:.1f} s · peak memory {peak}"
    )


def _space(report: Report, started: JobStarted) -> str:
    before, after = started.space, report.space_after
    if before is None or after is None or report.freed_bytes is None:
        return "the file system did not answer"
    span = _bytes_span(started.expected.freed_bytes_min, started.expected.freed_bytes_most)
    gained = more_or_less(bytes_iec, report.freed_bytes)
    # Freed blocks fill the space reserved for root first, before df shows any of them.
    for_root = after.reserved_bytes - before.reserved_bytes
    # Beside "less free" a bare amount would read as less, too.
    more = " more" if report.freed_bytes < 0 else ""
    reserve = f", {bytes_iec(for_root)} more only for root" if for_root >= TOLERANCE_BYTES else ""
    return (
        f"{gained} free{reserve} · expected {span}{more}{_for_all(report)} · "
        f"{bytes_iec(before.free_bytes)} → {bytes_iec(after.free_bytes)}"
    )


def _inodes(report: Report, started: JobStarted) -> str:
    before, after = started.space, report.space_after
    free = [space.free_inodes for space in (before, after) if space is not None]
    if report.freed_inodes is None or len(free) < 2 or free[0] is None or free[1] is None:
        return "this file system does not count them"
    return f"{more_or_less(count, report.freed_inodes)} free · {count(free[0])} → {count(free[1])}"


def _bytes_span(least: int, most: int) -> str:
    low, high = bytes_iec(least), bytes_iec(most)
    return high if low == high else f"{low} to {high}"
