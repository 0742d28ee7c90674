"""The report of a job, made from its snapshot: the same for every view and every reader."""

import errno
from collections.abc import Sequence
from dataclasses import dataclass

from tui_fs.model.calls import CallCount, TraceSource
from tui_fs.model.codec import Json, argv_fields, decode, encode, path_fields
from tui_fs.model.errors import BadInput, meaning
from tui_fs.model.events import EntryFailed, Space
from tui_fs.model.outcome import JobState, Outcome
from tui_fs.model.paths import PathStr
from tui_fs.model.plan import Expected
from tui_fs.model.snapshot import Snapshot
from tui_fs.model.strategy import Argv, StrategyName

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class _Predicted:
    seconds_low: float | None
    seconds: float | None
    seconds_high: float | None
    syscalls: dict[str, int]


@dataclass(frozen=True, slots=True)
class _ErrorGroup:
    operation: str
    errno: int
    meaning: str
    number: int


@dataclass(frozen=True, slots=True)
class _Error:
    path: PathStr
    operation: str
    errno: int
    errno_name: str
    meaning: str


@dataclass(frozen=True, slots=True)
class _Refusal:
    rule: str
    sentence: str
    advice: str


@dataclass(frozen=True, slots=True)
class _Report:
    """The fields of every report; readers may rely on them."""

    schema: int
    type: str
    outcome: Outcome
    explanation: str
    deleted_files: int | None
    deleted_directories: int | None
    counts_are: str
    surviving_entries: int | None
    failed: int
    elapsed_s: float
    strategy_wall_s: float
    held_back_s: float
    paused_s: float
    cpu_user_s: float
    cpu_system_s: float
    peak_memory_bytes: int
    syscalls: dict[str, CallCount]
    trace_source: TraceSource | None
    trace_note: str | None
    freed_bytes: int | None
    freed_inodes: int | None
    space_before: Space | None
    space_after: Space | None
    predicted: _Predicted
    error_groups: tuple[_ErrorGroup, ...]
    errors: tuple[_Error, ...]
    tool_lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _StartedReport(_Report):
    """The further fields of a job that was started."""

    id: str
    target: PathStr
    strategy: StrategyName
    keep_root: bool
    command: tuple[Argv, ...]
    started_at: float
    expected: Expected
    trace_source: TraceSource
    trace_note: str


def checked_report(value: dict[str, Json]) -> dict[str, Json]:
    """Return a report that was read from a file; BadInput if it is none that `report_of` makes."""
    fields = {name: item for name, item in value.items() if name != "refusal"}
    if "refusal" in value:
        decode(_Refusal, value["refusal"])
    report = decode(_StartedReport if "target" in value else _Report, fields)
    if encode(report) != fields:
        raise BadInput("The report has a field too many or too few.")
    before, after, predicted = report.space_before, report.space_after, report.predicted
    seconds = (predicted.seconds_low, predicted.seconds, predicted.seconds_high)
    if (
        report.freed_bytes != _difference(before and before.free_bytes, after and after.free_bytes)
        or report.freed_inodes
        != _difference(before and before.free_inodes, after and after.free_inodes)
        or seconds.count(None) not in (0, 3)
    ):
        raise BadInput("The report contradicts itself.")
    return value


def report_of(
    snapshot: Snapshot, state: JobState, errors: Sequence[EntryFailed]
) -> dict[str, Json]:
    """Return the report as a JSON object.

    Args:
        state: an ended state; `died` where the journal has no end.
        errors: the failed entries whose paths were kept.
    """
    started, finished = snapshot.started, snapshot.finished
    before = started.space if started else None
    after = finished.space if finished else snapshot.space
    report: dict[str, Json] = {
        "schema": SCHEMA,
        "type": "report",
        "outcome": Outcome(state.value).value,
        "explanation": _explanation(snapshot, state),
    }
    if started is not None:
        report |= {
            "id": started.job_id,
            **path_fields("target", started.target),
            "strategy": started.strategy.value,
            "keep_root": started.keep_root,
            **argv_fields("command", started.command),
            "started_at": started.started_at,
            "expected": encode(started.expected),
        }
    if snapshot.refused is not None:
        report["refusal"] = {
            "rule": snapshot.refused.rule,
            "sentence": snapshot.refused.sentence,
            "advice": snapshot.refused.advice,
        }
    removed, usage = snapshot.removed, snapshot.usage
    user_s, system_s = snapshot.finished_user_s, snapshot.finished_system_s
    if finished is None and usage is not None:
        user_s, system_s = usage.cpu_s - usage.system_s, usage.system_s
    seconds = started.predicted_seconds if started else None
    report |= {
        "deleted_files": finished.deleted_files if finished else _files_at_least(snapshot),
        "deleted_directories": finished.deleted_directories
        if finished
        else (removed.directories or 0 if removed else 0),
        "counts_are": "exact"
        if finished and finished.split_is_exact
        else "by difference"
        if finished
        else "at least",
        "surviving_entries": finished.surviving_entries if finished else None,
        "failed": snapshot.failed,
        "elapsed_s": round(snapshot.at_s, 3),
        "strategy_wall_s": round(snapshot.elapsed_s, 4),
        "held_back_s": round(snapshot.held_s, 3),
        "paused_s": round(snapshot.paused_s, 3),
        "cpu_user_s": round(user_s, 3),
        "cpu_system_s": round(system_s, 3),
        "peak_memory_bytes": snapshot.peak_memory_bytes,
        "syscalls": encode(snapshot.calls),
        "trace_source": started.source.value if started else None,
        "trace_note": started.source_note if started else None,
        "freed_bytes": _difference(before and before.free_bytes, after and after.free_bytes),
        "freed_inodes": _difference(before and before.free_inodes, after and after.free_inodes),
        "space_before": encode(before),
        "space_after": encode(after),
        "predicted": {
            "seconds_low": seconds[0] if seconds else None,
            "seconds": seconds[1] if seconds else None,
            "seconds_high": seconds[2] if seconds else None,
            "syscalls": dict(started.predicted_calls) if started else {},
        },
        "error_groups": [
            {
                "operation": group.operation,
                "errno": group.error,
                "meaning": meaning(group.error),
                "number": group.number,
            }
            for group in snapshot.failures
        ],
        "errors": [
            {
                **path_fields("path", error.path),
                "operation": error.operation,
                "errno": error.error,
                "errno_name": errno.errorcode.get(error.error, ""),
                "meaning": meaning(error.error),
            }
            for error in errors
        ],
        "tool_lines": list(snapshot.tool_lines),
    }
    return report


def _explanation(snapshot: Snapshot, state: JobState) -> str:
    if snapshot.finished is not None:
        return snapshot.finished.explanation
    if snapshot.refused is not None:
        return f"{snapshot.refused.sentence} {snapshot.refused.advice}".rstrip()
    assert state is JobState.DIED
    return (
        "The supervisor ended without a report (killed, or the machine went down), and the "
        "strategy with it. The counts are those of its last sample: at least this much is gone."
    )


def _files_at_least(snapshot: Snapshot) -> int | None:
    removed = snapshot.removed
    return removed.entries - (removed.directories or 0) if removed else 0


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before
