"""The words and rows of the report screen, made from a report."""

from typing import Any

from rich.text import Text

from tui_fs.model.calls import REMOVING_CALLS, CallCount, call_lines
from tui_fs.model.codec import shown_failure, shown_path
from tui_fs.model.figures import MissingFigure
from tui_fs.model.paths import displayable
from tui_fs.model.target import command_lines, shown_targets
from tui_fs.model.units import bytes_iec, count, counted, duration, duration_span, more_or_less
from widgets.call_table import CallRow

_LABEL_CELLS = 13
_PATHS_SHOWN = 3
_HEADLINES = {
    "done": "DONE",
    "partial": "PARTIAL: not everything is gone",
    "cancelled": "CANCELLED",
    "refused": "REFUSED: nothing was touched",
    "died": "DIED: the job ended without a report",
}


def headline(report: dict[str, Any]) -> Text:
    """Return the outcome and its explanation."""
    text = Text(_HEADLINES[report["outcome"]], style="bold")
    if "target" in report:
        text.append(f"  {shown_targets(report)}", "not bold")
    text.append(f"\n{displayable(report['explanation'])}", "not bold")
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
        gone = sum(target["gone"] is True for target in targets)
        _line(text, "gone", f"{count(gone)} of {count(len(targets))} directories")
        left = [target for target in targets if target["gone"] is False]
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
    counted = {name: CallCount(**numbers) for name, numbers in report["syscalls"].items()}
    total_s = sum(one.seconds or 0.0 for one in counted.values())
    lines = call_lines(counted, predicted["syscalls"], predicted.get("other_calls"))
    rows = []
    for line in sorted(lines, key=lambda line: (-line.counted.calls, line.name)):
        one, share = line.counted, ""
        if one.seconds is not None and total_s > 0:
            share = f"{100 * one.seconds / total_s:.1f} %"
        rows.append(
            CallRow(
                name=line.name,
                calls=count(one.calls),
                predicted=line.predicted_text,
                errors=count(one.errors) if one.errors else "",
                share=share,
                emphasised=line.name in REMOVING_CALLS,
            )
        )
    return tuple(rows)


def where_kept(report: dict[str, Any], path: str) -> Text:
    """Return the command lines that ran and where the record lies."""
    text = Text()
    for line in command_lines(report.get("command", [])):
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
    how = "" if report["counts_are"] == "exact" else f" ({report['counts_are']})"
    return f"{count(number)} of {count(expected)} deleted{how}"


def _peak_memory(report: dict[str, Any]) -> str:
    """A tool that ends within milliseconds is not seen."""
    peak_bytes = report["peak_memory_bytes"]
    return bytes_iec(peak_bytes) if peak_bytes else "not seen"


def _time(report: dict[str, Any]) -> str:
    working_s = max(0.0, report["strategy_wall_s"] - report["paused_s"])
    deleted = (report["deleted_files"] or 0) + (report["deleted_directories"] or 0)
    words = [duration(working_s)]
    if report["paused_s"]:
        words[0] += f" and {duration(report['paused_s'])} paused"
    if report["held_back_s"]:
        words[0] += f", {duration(report['held_back_s'])} of it held back"
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
