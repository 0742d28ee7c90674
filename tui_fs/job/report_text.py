"""The report of a job in words, the same for the command line and the screen.

A report is the JSON object that `tui_fs.job.report` writes.
"""

from enum import Enum, auto
from typing import Any, NamedTuple

from tui_fs.job.freed_space import TOLERANCE_BYTES
from tui_fs.model.calls import (
    HARMLESS_ERRORS,
    CallCount,
    CallGroup,
    CallLine,
    Failures,
    call_lines,
    removal_times,
)
from tui_fs.model.codec import decode, shown_failure, shown_path
from tui_fs.model.figures import MissingFigure
from tui_fs.model.outcome import Outcome
from tui_fs.model.paths import harmless
from tui_fs.model.strategy import Mechanism, confined_words
from tui_fs.model.target import done_word
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


def pairs(report: dict[str, Any]) -> list[Pair]:
    """Return time, calls by group and freed bytes of a job that ended by itself.

    Groups with less than a hundredth of all calls are left out.
    """
    if report["outcome"] not in (Outcome.DONE, Outcome.PARTIAL):
        return []
    compared = []
    predicted = report["predicted"]
    low, high = predicted["seconds_low"], predicted["seconds_high"]
    if low is not None:
        took_s = max(0.0, report["strategy_wall_s"] - report["paused_s"] - report["held_back_s"])
        span = duration_span(low, high)
        compared.append(Pair("time", low, high, span, took_s, duration(took_s)))
    groups: dict[CallGroup, tuple[int, int]] = {}
    for line in call_lines_of(report):
        calls, expected = groups.get(line.guide.group, (0, 0))
        groups[line.guide.group] = calls + line.counted.calls, expected + line.predicted
    if CallGroup.START in groups:
        groups[CallGroup.START] = groups[CallGroup.START][0], predicted["other_calls"] or 0
    least = _SMALLEST_SHARE * sum(calls for calls, _ in groups.values())
    is_partial = predicted["other_calls"] is None  # of removals only, as with filters
    compared += [
        Pair(f"calls: {group}", expected, expected, count(expected), calls, count(calls))
        for group, (calls, expected) in groups.items()
        if max(calls, expected) >= least and predicted["syscalls"] and report["syscalls"]
        if expected or not is_partial
    ]
    freed = report["freed_bytes"]
    if freed is not None:
        low, high = (report["expected"][f"freed_bytes_{end}"] for end in ("min", "max"))
        shown = bytes_iec(freed) if freed >= 0 else f"{bytes_iec(-freed)} less free"
        compared.append(Pair("freed", low, high, _bytes_span(low, high), freed, shown))
    return compared


def figures(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return labels and values: counts, time, memory and space, each beside what was expected."""
    expected = report["expected"]["totals"]
    files_expected = expected["files"] + expected["symlinks"] + expected["other"]
    rows = [("only", f"{report['filters']}; directories stay")] if report.get("filters") else []
    rows.append(("files", _deleted(report, "deleted_files", files_expected)))
    if expected["directories"] or report.get("filters"):  # else the target is a single file
        directories = _deleted(report, "deleted_directories", expected["directories"])
        rows.append(("directories", directories))
    if report["surviving_entries"]:
        rows.append(("left", counted(report["surviving_entries"], "entry", "entries")))
    targets = report["targets"]
    if len(targets) > 1:
        done = sum(target["done"] is True for target in targets)
        rows.append((done_word(report), f"{count(done)} of {count(len(targets))} directories"))
    rows += [
        ("failed", count(report["failed"])),
        ("time", _time(report)),
        ("cpu", _cpu(report)),
        ("space", _space(report)),
        ("inodes", _inodes(report)),
    ]
    rows += removal_times(_counts(report))
    confined_by = tuple(map(Mechanism, report.get("confined_by", ())))
    rows.append(("confined by", confined_words(confined_by)))
    return rows if report["syscalls"] else [*rows, ("counted by", report["trace_note"])]


def remarks(report: dict[str, Any]) -> list[Line]:
    """Return what is left, what could not be measured, why space is missing, and the failures."""
    comment = report.get("time_comment")
    lines = [*([Line(comment)] if comment else []), *_left(report)]
    lines += [
        Line(decode(MissingFigure, missing).sentence, Weight.WEAK)
        for missing in report.get("missing_figures", [])
    ]
    for cause in report["space_causes"]:
        lines += [Line(""), Line(cause["sentence"], Weight.STRONG)]
        lines.append(Line(f"   {cause['advice']}", Weight.WEAK))
    for group in report["error_groups"]:
        lines += [Line(""), *_failures(report, group)]
    tool_lines = report["tool_lines"][-_TOOL_LINES:]
    if tool_lines:
        lines.append(Line(""))
    return lines + [Line(f"   {harmless(text)}", Weight.WEAK) for text in tool_lines]


def calls_title(report: dict[str, Any]) -> str:
    """Return the title of the table of calls, which names the source."""
    return f"system calls · {report['trace_note']}"


def call_lines_of(report: dict[str, Any]) -> list[CallLine]:
    """Return predicted and counted calls by group."""
    predicted = report["predicted"]
    failed: dict[str, int] = {}
    for group in report["error_groups"]:
        failed[group["operation"]] = failed.get(group["operation"], 0) + group["number"]
    # A tool that deletes a single file removes the target itself.
    is_confined = report.get("confined_by") and report["expected"]["totals"]["directories"]
    confined_targets = len(report["targets"]) if is_confined else 0
    failures = Failures(failed, bool(report["tool_lines"]), confined_targets)
    other_calls = predicted.get("other_calls")
    return call_lines(_counts(report), predicted["syscalls"], other_calls, failures)


def _counts(report: dict[str, Any]) -> dict[str, CallCount]:
    return {name: CallCount(**numbers) for name, numbers in report["syscalls"].items()}


def harmless_errors(lines: list[CallLine]) -> list[str]:
    """Return sentences on the errors of these calls that are no failures, without duplicates."""
    words = dict.fromkeys(line.note.removeprefix("normal: ") for line in lines)
    return [f"normal: {word}. {HARMLESS_ERRORS[word]}" for word in words if word in HARMLESS_ERRORS]


def _left(report: dict[str, Any]) -> list[Line]:
    if len(report["targets"]) == 1:
        return []  # the first line of a report names it
    left = [target for target in report["targets"] if target["done"] is False]
    shown = left[:_TARGETS_LEFT]
    lines = [Line(f"   left: {shown_path(target, 'path')}", Weight.STRONG) for target in shown]
    if len(left) > _TARGETS_LEFT:
        lines.append(Line(f"   … {count(len(left) - _TARGETS_LEFT)} more", Weight.STRONG))
    return lines


def _failures(report: dict[str, Any], group: dict[str, Any]) -> list[Line]:
    key = (group["operation"], group["errno"])
    same = [error for error in report["errors"] if (error["operation"], error["errno"]) == key]
    lines = [
        Line(f"{count(group['number'])} × {group['operation']}: {group['meaning']}", Weight.STRONG),
        *(Line(f"   {shown_failure(error)}", Weight.WEAK) for error in same[:_EXAMPLES]),
    ]
    more = group["number"] - min(len(same), _EXAMPLES)
    if same and more:
        lines.append(Line(f"   … {count(more)} more", Weight.WEAK))
    return lines


def _deleted(report: dict[str, Any], key: str, expected: int) -> str:
    number = report[key]
    if number is None:
        return f"not counted; the survey found {count(expected)}"
    accuracy = "" if report["counts_are"] == "exact" else f" ({report['counts_are']})"
    if number > expected:  # others created some, or the last share's directory itself
        return f"{count(number)} deleted, {count(expected)} expected{accuracy}"
    return f"{count(number)} of {count(expected)} deleted{accuracy}"


def _time(report: dict[str, Any]) -> str:
    working_s = max(0.0, report["strategy_wall_s"] - report["paused_s"])
    deleted = (report["deleted_files"] or 0) + (report["deleted_directories"] or 0)
    words = [duration(working_s)]
    if report["held_back_s"]:
        words[0] += f", {duration(report['held_back_s'])} of it throttled"
    if report["paused_s"]:
        words[0] += f", plus {duration(report['paused_s'])} paused"
    low, high = report["predicted"]["seconds_low"], report["predicted"]["seconds_high"]
    if low is not None:
        words.append(f"predicted {duration_span(low, high)}")
    if working_s > 0 and deleted:
        words.append(f"{count(round(deleted / working_s))} /s")
    return " · ".join(words)


def _cpu(report: dict[str, Any]) -> str:
    peak_bytes = report["peak_memory_bytes"]
    # A tool that exits within milliseconds is never sampled.
    peak = bytes_iec(peak_bytes) if peak_bytes else "not measured"
    return (
        f"kernel {report['cpu_system_s']:.1f} s · user {report['cpu_user_s']:.1f} s · "
        f"peak memory {peak}"
    )


def _space(report: dict[str, Any]) -> str:
    before, after = report["space_before"], report["space_after"]
    if before is None or after is None:
        return "the file system did not answer"
    expected = report["expected"]
    span = _bytes_span(expected["freed_bytes_min"], expected["freed_bytes_max"])
    gained = more_or_less(bytes_iec, report["freed_bytes"])
    # Freed blocks fill the space reserved for root first, before df shows any of them.
    for_root = after.get("reserved_bytes", 0) - before.get("reserved_bytes", 0)
    reserve = f", {bytes_iec(for_root)} more only for root" if for_root >= TOLERANCE_BYTES else ""
    return (
        f"{gained} free{reserve} · expected {span} · "
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


def _bytes_span(least: int, most: int) -> str:
    low, high = bytes_iec(least), bytes_iec(most)
    return high if low == high else f"{low} to {high}"
