"""The report of a job, made from its snapshot: the same for every view and every reader."""

import errno
from collections.abc import Sequence

from msgspec import Struct

from tui_fs.job.time_comment import time_comment
from tui_fs.linux.host import boot_id
from tui_fs.model.calls import CallCount
from tui_fs.model.codec import Json, encode
from tui_fs.model.errors import meaning
from tui_fs.model.events import EntryFailed, JobRefused, JobStarted
from tui_fs.model.outcome import JobState, Outcome
from tui_fs.model.paths import PathStr
from tui_fs.model.snapshot import FailureGroup, Snapshot, not_standing
from tui_fs.model.space import Discrepancy, Space
from tui_fs.model.target import target_fields

SCHEMA = 1
_WALL_DECIMALS = 4


class TargetState(Struct, frozen=True):
    """The final state of a target; None where that is unknown, as for a job that died.

    Attributes:
        done: everything that the job was to delete in it is gone.
    """

    gone: bool | None
    done: bool | None


class Report(Struct, frozen=True):
    """The report of an ended job. Numbers are None where nothing has counted them.

    Attributes:
        started: None if the job ended before it had started.
        targets: the state of each target of `started`.
        counts_are: how files and directories were counted, in words.
        sampled_memory_bytes: of all processes at once, the largest sample, if the job has no end.
        syscalls_are_whole: no calls were lost when the tools or their counter were stopped.
        elapsed_s: age of the job at its end.
        strategy_wall_s: time in which its tools ran, pauses included.
        time_comment: why the time was not as predicted, as a sentence; empty if it was.
    """

    outcome: Outcome
    explanation: str
    record_problem: str
    started: JobStarted | None
    targets: tuple[TargetState, ...]
    refused: JobRefused | None
    deleted_files: int | None
    deleted_directories: int | None
    deleted_entries: int | None
    counts_are: str
    surviving_entries: int | None
    failed: int
    elapsed_s: float
    strategy_wall_s: float
    held_back_s: float
    paused_s: float
    cpu_user_s: float
    cpu_system_s: float
    peak_memory_bytes: int | None
    sampled_memory_bytes: int | None
    syscalls: dict[str, CallCount]
    syscalls_are_whole: bool
    freed_bytes: int | None
    freed_inodes: int | None
    space_after: Space | None
    space_causes: tuple[Discrepancy, ...]
    error_groups: tuple[FailureGroup, ...]
    errors: tuple[EntryFailed, ...]
    tool_lines: tuple[str, ...]
    time_comment: str

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object."""
        fields: dict[str, Json] = encode(self)
        fields["error_groups"] = encode([_group_fields(group) for group in self.error_groups])
        fields["errors"] = encode([_entry_fields(failed) for failed in self.errors])
        started, states, refused = (fields.pop(n) for n in ("started", "targets", "refused"))
        report: dict[str, Json] = {"schema": SCHEMA, "type": "report"}
        report |= {name: fields.pop(name) for name in ("outcome", "explanation", "record_problem")}
        if self.started is not None:
            report |= {"id": started["job_id"], **target_fields(self.started.targets, states)}
            report |= {name: started[name] for name in _STARTED_FIELDS if name in started}
        if refused is not None:
            report["refusal"] = {name: refused[name] for name in ("rule", "sentence", "advice")}
        return report | fields | _prediction(self.started)


def _group_fields(group: FailureGroup) -> dict[str, Json]:
    return {
        "operation": group.operation,
        "errno": group.error,
        "meaning": meaning(group.error),
        "number": group.number,
    }


def _entry_fields(failed: EntryFailed) -> dict[str, Json]:
    return {
        "path": failed.path,
        "operation": failed.operation,
        "errno": failed.error,
        "errno_name": errno.errorcode.get(failed.error, ""),
        "meaning": meaning(failed.error),
        "cause": failed.cause,
    }


_STARTED_FIELDS = (
    "strategy",
    "keep_root",
    "is_filtered",
    "filters",
    "share",
    "command",
    "command_b64",
    "started_at",
    "expected",
    "confined_by",
)


def _prediction(started: JobStarted | None) -> dict[str, Json]:
    """Return the fields that were predicted or known at the start, None where there is none."""
    low, expected, high = (started and started.predicted_seconds) or (None, None, None)
    return {
        "trace_source": started.source.value if started else None,
        "trace_note": started.source_note if started else None,
        "missing_figures": encode(started.missing_figures) if started else [],
        "space_before": encode(started.space) if started else None,
        "predicted": {
            "seconds_low": low,
            "seconds": expected,
            "seconds_high": high,
            "syscalls": dict(started.predicted_calls) if started else {},
            "other_calls": started.predicted_other_calls if started else None,
            "peak_memory_bytes": started.predicted_peak_memory_bytes if started else None,
            "processes": started.predicted_processes if started else None,
        },
    }


def report_of(
    snapshot: Snapshot,
    state: JobState,
    errors: Sequence[EntryFailed],
    crash: str = "",
    *,
    is_gone: bool = False,
    is_unbegun: bool = False,
) -> Report:
    """Return the report of a job.

    Args:
        state: an ended state; `died` where the journal has no end.
        errors: the failed entries whose paths were kept.
        crash: the error that ended the supervisor, and where it is logged.
        is_gone: for a job that died: no target's path exists any more.
        is_unbegun: for a job that died: the supervisor ended before it could begin.
    """
    if snapshot.finished is None:
        snapshot = not_standing(snapshot, snapshot.at_s)  # a final pause does not count as work
    started, finished = snapshot.started, snapshot.finished
    removed = snapshot.removed
    before = started.space if started else None
    after = finished.space if finished else snapshot.space
    freed_bytes, freed_inodes = _freed(before, after)
    user_s, system_s = cpu_times(snapshot)
    if finished is not None:
        files, directories = finished.deleted_files, finished.deleted_directories
        entries = finished.reported_entries
        counts_are = "exact" if finished.split_is_exact else "by difference"
    else:
        directories = removed.directories or 0 if removed else 0
        files = removed.entries - directories if removed else 0
        entries = removed.entries if removed else None
        counts_are = "at least"
    return Report(
        outcome=Outcome(state.value),
        explanation=_explanation(snapshot, state, crash, is_gone, is_unbegun),
        record_problem=snapshot.record_problem,
        started=started,
        targets=_states(snapshot, started) if started else (),
        refused=snapshot.refused,
        deleted_files=files,
        deleted_directories=directories,
        deleted_entries=entries,
        counts_are=counts_are,
        surviving_entries=finished.surviving_entries if finished else None,
        failed=snapshot.failed,
        elapsed_s=round(snapshot.at_s, 3),
        strategy_wall_s=round(snapshot.elapsed_s, _WALL_DECIMALS),
        held_back_s=round(snapshot.held_s, 3),
        paused_s=round(snapshot.paused_s, 3),
        cpu_user_s=round(user_s, 3),
        cpu_system_s=round(system_s, 3),
        peak_memory_bytes=snapshot.peak_memory_bytes or None,  # 0: no process was seen
        sampled_memory_bytes=snapshot.sampled_memory_bytes or None if finished is None else None,
        syscalls=dict(snapshot.calls),
        syscalls_are_whole=finished is not None and finished.calls_are_whole,
        freed_bytes=freed_bytes,
        freed_inodes=freed_inodes,
        space_after=after,
        space_causes=finished.space_causes if finished else (),
        error_groups=snapshot.failures,
        errors=tuple(errors),
        tool_lines=tuple(snapshot.tool_lines),
        time_comment=time_comment(snapshot),
    )


def cpu_times(snapshot: Snapshot) -> tuple[float, float]:
    """Return the user and the kernel time of the tools so far, in seconds."""
    usage = snapshot.usage
    if (snapshot.finished is None or snapshot.is_cut_off) and usage is not None:
        return usage.cpu_s - usage.system_s, usage.system_s
    return snapshot.finished_user_s, snapshot.finished_system_s


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
    cause = "The supervisor was killed, and the tools with it."
    if started is not None and started.boot_id not in ("", boot_id()):
        cause = "The machine was restarted while the job ran."
    elif crash:
        cause = f"tui-fs itself failed: {crash}. The tools were killed with it."
    advice = f" tui-fs resume {started.job_id} continues with the rest." if started else ""
    if is_gone:
        advice = " No target exists any more: there is nothing to resume."
    return (
        f"{cause} The counts are those of the last sample: at least this much was deleted.{advice}"
    )


def _record_note(snapshot: Snapshot) -> str:
    if not snapshot.record_problem:
        return ""
    return (
        " The journal of this job is incomplete, because a write failed "
        f"({snapshot.record_problem}). The outcome and the counts are correct."
    )


def _states(snapshot: Snapshot, started: JobStarted) -> tuple[TargetState, ...]:
    finished = snapshot.finished
    if finished is None:
        is_done = False if snapshot.refused is not None else None
        return (TargetState(is_done, is_done),) * len(started.targets)
    left, unknown = frozenset(finished.left), frozenset(finished.unknown)
    vanished, shared = frozenset(finished.vanished), frozenset(finished.shared)
    stays = started.keep_root or started.is_filtered

    def state_of(path: PathStr) -> TargetState:
        done = None if path in unknown else path not in left
        if path in shared:
            return TargetState(False, done)
        return TargetState(path in vanished if stays and done is not None else done, done)

    return tuple(map(state_of, started.targets))


def _freed(before: Space | None, after: Space | None) -> tuple[int | None, int | None]:
    """Return freed bytes and inodes; None where one of the two readings is missing."""
    if before is None or after is None:
        return None, None
    inodes = None
    if before.free_inodes is not None and after.free_inodes is not None:
        inodes = after.free_inodes - before.free_inodes
    return after.free_bytes - before.free_bytes, inodes
