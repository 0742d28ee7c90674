"""The report of a job, made from its snapshot: the same for every view and every reader."""

import errno
from collections.abc import Sequence

from tui_fs.linux.host import boot_id
from tui_fs.model.codec import Json, argv_fields, encode, path_fields
from tui_fs.model.errors import meaning
from tui_fs.model.events import (
    EntryFailed,
)
from tui_fs.model.outcome import JobState, Outcome
from tui_fs.model.snapshot import Snapshot, not_standing
from tui_fs.model.space import Space
from tui_fs.model.target import target_fields

SCHEMA = 1
_WALL_DECIMALS = 4


def report_of(
    snapshot: Snapshot,
    state: JobState,
    errors: Sequence[EntryFailed],
    crash: str = "",
    *,
    is_gone: bool = False,
    is_unbegun: bool = False,
) -> dict[str, Json]:
    """Return the report as a JSON object.

    Args:
        state: an ended state; `died` where the journal has no end.
        errors: the failed entries whose paths were kept.
        crash: the error of its own that ended the supervisor, and where it is logged.
        is_gone: nothing is at the path of any target any more (of a job that died).
        is_unbegun: the supervisor ended before it could begin (of a job that died).
    """
    if snapshot.finished is None:
        snapshot = not_standing(snapshot, snapshot.at_s)  # a pause in which it died was no work
    started, finished = snapshot.started, snapshot.finished
    before = started.space if started else None
    after = finished.space if finished else snapshot.space
    freed_bytes, freed_inodes = _freed(before, after)
    report: dict[str, Json] = {
        "schema": SCHEMA,
        "type": "report",
        "outcome": Outcome(state.value).value,
        "explanation": _explanation(snapshot, state, crash, is_gone, is_unbegun),
        "record_problem": snapshot.record_problem,
    }
    if started is not None:
        report |= {
            "id": started.job_id,
            **target_fields(started.targets, _states(snapshot)),
            "strategy": started.strategy,
            "keep_root": started.keep_root,
            "is_filtered": started.is_filtered,
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
    if (finished is None or snapshot.is_cut_off) and usage is not None:
        user_s, system_s = usage.cpu_s - usage.system_s, usage.system_s
    seconds = started.predicted_seconds if started else None
    report |= {
        "deleted_files": finished.deleted_files if finished else _files_at_least(snapshot),
        "deleted_directories": finished.deleted_directories
        if finished
        else (removed.directories or 0 if removed else 0),
        "deleted_entries": removed.entries if removed else None,
        "counts_are": "exact"
        if finished and finished.split_is_exact
        else "by difference"
        if finished
        else "at least",
        "surviving_entries": finished.surviving_entries if finished else None,
        "failed": snapshot.failed,
        "elapsed_s": round(snapshot.at_s, 3),
        "strategy_wall_s": round(snapshot.elapsed_s, _WALL_DECIMALS),
        "held_back_s": round(snapshot.held_s, 3),
        "paused_s": round(snapshot.paused_s, 3),
        "cpu_user_s": round(user_s, 3),
        "cpu_system_s": round(system_s, 3),
        "peak_memory_bytes": snapshot.peak_memory_bytes or None,  # None: no process was seen
        "syscalls": encode(snapshot.calls),
        "trace_source": started.source.value if started else None,
        "trace_note": started.source_note if started else None,
        "missing_figures": encode(started.missing_figures) if started else [],
        "freed_bytes": freed_bytes,
        "freed_inodes": freed_inodes,
        "space_before": encode(before),
        "space_after": encode(after),
        "space_causes": encode(finished.space_causes) if finished else [],
        "predicted": {
            "seconds_low": seconds[0] if seconds else None,
            "seconds": seconds[1] if seconds else None,
            "seconds_high": seconds[2] if seconds else None,
            "syscalls": dict(started.predicted_calls) if started else {},
            "other_calls": started.predicted_other_calls if started else None,
            "peak_memory_bytes": started.predicted_peak_memory_bytes if started else None,
            "processes": started.predicted_processes if started else None,
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
                "cause": error.cause,
            }
            for error in errors
        ],
        "tool_lines": list(snapshot.tool_lines),
    }
    return report


def _explanation(
    snapshot: Snapshot, state: JobState, crash: str, is_gone: bool, is_unbegun: bool
) -> str:
    if snapshot.finished is not None:
        return snapshot.finished.explanation + _record_note(snapshot)
    if snapshot.refused is not None:
        sentence = f"{snapshot.refused.sentence} {snapshot.refused.advice}".rstrip()
        return sentence + _record_note(snapshot)
    assert state is JobState.DIED
    if is_unbegun:
        cause = f"tui-fs itself failed: {crash}. " if crash else ""
        return f"{cause}The supervisor ended before the job began, and nothing was deleted."
    started = snapshot.started
    cause = "The supervisor was killed, and the strategy with it."
    if started is not None and started.boot_id not in ("", boot_id()):
        cause = "The machine was restarted while the job ran."
    elif crash:
        cause = f"tui-fs itself failed: {crash}. The strategy was ended with it."
    advice = f" tui-fs resume {started.job_id} goes on with the rest." if started else ""
    if is_gone:
        advice = " Nothing is at the path of the target any more: there is nothing to resume."
    return f"{cause} The counts are those of its last sample: at least this much is gone.{advice}"


def _record_note(snapshot: Snapshot) -> str:
    if not snapshot.record_problem:
        return ""
    return (
        f" The record of this job is incomplete: its journal could not be written to the end "
        f"({snapshot.record_problem}). The outcome and the counts are right."
    )


def _states(snapshot: Snapshot) -> list[dict[str, bool | None]]:
    """Return of each target whether it is gone, and whether all is that was to be deleted of it.

    None means that it is not known, as of a job that died.
    """
    started, finished = snapshot.started, snapshot.finished
    assert started is not None
    if finished is None:
        state = None if snapshot.refused is None else False
        return [{"gone": state, "done": state} for _ in started.targets]
    left, unknown = frozenset(finished.left), frozenset(finished.unknown)
    vanished = frozenset(finished.vanished)
    stays = started.keep_root or started.is_filtered
    states: list[dict[str, bool | None]] = []
    for path in started.targets:
        is_done = None if path in unknown else path not in left
        is_gone = path in vanished if stays and is_done is not None else is_done
        states.append({"gone": is_gone, "done": is_done})
    return states


def _files_at_least(snapshot: Snapshot) -> int | None:
    removed = snapshot.removed
    return removed.entries - (removed.directories or 0) if removed else 0


def _freed(before: Space | None, after: Space | None) -> tuple[int | None, int | None]:
    """Return bytes and inodes; None where one of the two moments is not known."""
    if before is None or after is None:
        return None, None
    inodes = None
    if before.free_inodes is not None and after.free_inodes is not None:
        inodes = after.free_inodes - before.free_inodes
    return after.free_bytes - before.free_bytes, inodes
