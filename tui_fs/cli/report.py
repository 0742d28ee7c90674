"""A report as text."""

from typing import Any

from tui_fs.cli.output import columns
from tui_fs.model.calls import CallCount, call_lines
from tui_fs.model.codec import shown_failure, shown_path
from tui_fs.model.figures import MissingFigure
from tui_fs.model.paths import harmless
from tui_fs.model.target import done_word, shown_commands, shown_targets
from tui_fs.model.units import bytes_iec, count, counted, duration, duration_span, more_or_less


def report_as_text(report: dict[str, Any]) -> str:
    """Return what a person wants to know after a job."""
    lines = [f"{report['outcome']}: {harmless(report['explanation'])}"]
    if "target" not in report:
        return "\n".join(lines)
    freed, inodes = report["freed_bytes"], report["freed_inodes"]
    rows: list[tuple[str, ...]] = [
        ("target", shown_targets(report)),
        ("strategy", report["strategy"]),
        ("deleted files", _count(report["deleted_files"], report["counts_are"])),
        ("deleted directories", _count(report["deleted_directories"], report["counts_are"])),
        ("failed", count(report["failed"])),
        ("time", _time(report)),
        ("free space", "not known" if freed is None else more_or_less(bytes_iec, freed)),
        ("free inodes", "not counted here" if inodes is None else more_or_less(count, inodes)),
        ("counted by", report["trace_note"]),
    ]
    lines.append(columns(rows, frozenset()))
    lines += _targets(report)
    lines += [MissingFigure(**figure).sentence for figure in report.get("missing_figures", [])]
    for cause in report["space_causes"]:
        lines += ["", f"space: {cause['sentence']}", f"  {cause['advice']}"]
    if report["syscalls"]:
        lines += ["", _calls(report)]
    if report["error_groups"]:
        lines += ["", _errors(report)]
    lines += [f"  {harmless(text)}" for text in report["tool_lines"][-5:]]
    lines += [""]
    lines += [f"$ {line}" for line in shown_commands(report, "command")]
    return "\n".join(lines)


def _targets(report: dict[str, Any]) -> list[str]:
    """Return how many of several targets are done, and which of them are not."""
    targets = report["targets"]
    if len(targets) == 1:
        return []
    left = [f"left: {shown_path(target, 'path')}" for target in targets if target["done"] is False]
    done = sum(target["done"] is True for target in targets)
    return ["", f"{done_word(report)}: {count(done)} of {count(len(targets))} directories", *left]


def _count(number: int | None, counts_are: str) -> str:
    if number is None:
        return "not counted"
    return count(number) if counts_are == "exact" else f"{count(number)} ({counts_are})"


def _time(report: dict[str, Any]) -> str:
    predicted = report["predicted"]
    working_s = max(0.0, report["strategy_wall_s"] - report["paused_s"])
    text = duration(working_s)
    deleted = (report["deleted_files"] or 0) + (report["deleted_directories"] or 0)
    if working_s > 0 and deleted:
        rate = counted(round(deleted / working_s), "entry", "entries")
        text += f", {rate}/s"
    if report["paused_s"]:
        text += f", and {duration(report['paused_s'])} paused"
    if report["held_back_s"]:
        text += f", held back {duration(report['held_back_s'])} of it"
    if predicted["seconds"] is not None:
        span = duration_span(predicted["seconds_low"], predicted["seconds_high"])
        text += f" (predicted {span})"
    return text


def _calls(report: dict[str, Any]) -> str:
    predicted = report["predicted"]
    rows: list[tuple[str, ...]] = [("system call", "calls", "predicted", "errors")]
    calls = {name: CallCount(**numbers) for name, numbers in report["syscalls"].items()}
    lines = call_lines(calls, predicted["syscalls"], predicted.get("other_calls"))
    for line in sorted(lines, key=lambda line: -line.counted.calls):
        errors = line.counted.errors
        rows.append(
            (
                line.name,
                count(line.counted.calls),
                line.predicted_text,
                count(errors) if errors else "",
            )
        )
    return columns(rows, frozenset({1, 2, 3}))


def _errors(report: dict[str, Any]) -> str:
    lines = []
    for group in report["error_groups"]:
        lines.append(f"{count(group['number'])} × {group['operation']}: {group['meaning']}")
        same = [
            error
            for error in report["errors"]
            if (error["operation"], error["errno"]) == (group["operation"], group["errno"])
        ]
        lines += [f"    {shown_failure(error)}" for error in same[:3]]
    return "\n".join(lines)
