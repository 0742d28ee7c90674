"""What a job has come to: its outcome, its counts, and the sentence that explains them."""

import errno
import signal
from dataclasses import dataclass

from tui_fs.job.verification import Verification
from tui_fs.model.calls import TraceSource
from tui_fs.model.outcome import Outcome
from tui_fs.model.paths import displayable, harmless
from tui_fs.model.plan import Plan
from tui_fs.model.snapshot import Snapshot
from tui_fs.model.strategy import Argv, flatten
from tui_fs.model.units import counted

_LEFT_SHOWN = 3
_LONGEST_REPORTED = 300
_XARGS_SAW_A_KILL = 125  # xargs(1): the command is killed by a signal


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """See `JobFinished` for the counts."""

    outcome: Outcome
    explanation: str
    deleted_files: int | None
    deleted_directories: int | None
    split_is_exact: bool


def outcome_of_job(
    plan: Plan,
    snapshot: Snapshot,
    aftermath: Verification,
    problem: str,
    *,
    is_counted: bool = True,
) -> JobOutcome:
    """Return how the job ended.

    "Done" needs both: nothing is left, and no entry failed but by being gone already.

    Args:
        is_counted: the source has counted to the end.
    """
    is_whole = is_counted and _counts_are_whole(snapshot)
    files, directories, exact = _deleted(plan, snapshot, aftermath, is_whole=is_whole)
    failures = sum(g.number for g in snapshot.failures if g.error != errno.ENOENT)
    if aftermath.is_all_gone and not failures:
        outcome = Outcome.DONE
        sentence = _nothing_is_left(plan)
    elif snapshot.cancel is not None:
        outcome = Outcome.CANCELLED
        sentence = f"Stopped before the end: {snapshot.cancel.reason.rstrip('.')}."
    else:
        outcome = Outcome.PARTIAL
        sentence = "" if aftermath.is_all_gone else _what_is_left(plan, aftermath)
        if snapshot.failed:
            failed = counted(snapshot.failed, "entry", "entries")
            sentence += f" {failed} could not be deleted."
    notes = [sentence, problem, _killed(snapshot), aftermath.note]
    if outcome is Outcome.PARTIAL and not snapshot.failed:
        notes.append(_reported(snapshot))
    if not is_counted:
        notes.append(
            "The system call counter was killed or could not be read; the counts are incomplete."
        )
    elif outcome is Outcome.DONE:
        notes.append(_disagreement(plan, snapshot))
    explanation = " ".join(note.strip() for note in notes if note)
    return JobOutcome(outcome, explanation, files, directories, exact)


def _deleted(
    plan: Plan, snapshot: Snapshot, aftermath: Verification, *, is_whole: bool
) -> tuple[int | None, int | None, bool]:
    """Counted where a source counted; told apart by difference where it could not."""
    removed, expected = snapshot.removed, plan.expected
    if removed is not None and removed.directories is not None and is_whole:
        return removed.entries - removed.directories, removed.directories, True
    if not expected.complete or aftermath.survivors is None:
        return None, None, False  # so many entries, but nobody knows of which kind
    directories = max(0, expected.totals.directories - aftermath.survivors.directories)
    if removed is None:
        gone = expected.totals.non_directories - aftermath.survivors.non_directories
        return max(0, gone), directories, False
    if not is_whole:
        gone = expected.totals.entries - aftermath.survivors.entries
        return max(0, gone - directories), directories, False
    directories = min(directories, removed.entries)
    return removed.entries - directories, directories, False


def _counts_are_whole(snapshot: Snapshot) -> bool:
    """What a killed tool or strace had not written out yet is lost; the kernel loses nothing."""
    if snapshot.started is None or snapshot.started.source in (TraceSource.PERF, TraceSource.BPF):
        return True
    statuses = [status for step in snapshot.step_statuses for status in step]
    was_killed = any(status < 0 or status == _XARGS_SAW_A_KILL for status in statuses)
    return snapshot.cancel is None and not was_killed and not snapshot.is_cut_off


def _disagreement(plan: Plan, snapshot: Snapshot) -> str:
    """A number that does not add up is said, not smoothed over."""
    surveyed = plan.expected.totals.entries
    if snapshot.removed is None or not plan.expected.complete:
        return ""
    if snapshot.removed.entries == surveyed:
        return ""
    return (
        f"The survey had counted {counted(surveyed, 'entry', 'entries')}, the job removed "
        f"{snapshot.removed.entries:,}: somebody else wrote or deleted there too."
    )


def _nothing_is_left(plan: Plan) -> str:
    if plan.options.filters.active and plan.expected.complete and not plan.expected.totals.entries:
        return f"No entry matches the filters. {plan.expected.about_directories}"
    if plan.options.filters.active:
        return "Nothing that matched is left."
    is_one = len(plan.targets) == 1
    if plan.options.keep_root:
        return "The directory is empty." if is_one else "The directories are empty."
    return "Nothing of it is left." if is_one else "Nothing of them is left."


def _what_is_left(plan: Plan, aftermath: Verification) -> str:
    where = ""
    if len(plan.targets) > 1:
        shown = ", ".join(displayable(path) for path in aftermath.left[:_LEFT_SHOWN])
        more = len(aftermath.left) - _LEFT_SHOWN
        where = f" In {len(aftermath.left):,} of {len(plan.targets):,} directories: {shown}"
        where += f" and {more:,} more." if more > 0 else "."
    if aftermath.survivors is None:
        if set(aftermath.left) <= set(aftermath.unknown):
            return f"Whether everything is gone is not known.{where}"
        return f"Not everything is gone; what is left was not counted.{where}"
    number = aftermath.survivors.entries
    return f"{counted(number, 'entry is', 'entries are')} left.{where}"


def _reported(snapshot: Snapshot) -> str:
    """Return what a tool gave as its reason; no entry that failed explains what is left."""
    if not snapshot.tool_lines:
        return ""
    first = harmless(snapshot.tool_lines[0]).rstrip(".")
    return f"The tool reported: {first[:_LONGEST_REPORTED]}."


def _killed(snapshot: Snapshot) -> str:
    if snapshot.cancel is not None or snapshot.started is None:
        return ""
    argvs: tuple[Argv, ...] = snapshot.started.command
    statuses = [status for step in snapshot.step_statuses for status in step]
    for argv, status in zip(flatten((argvs,)), statuses, strict=False):
        if status < 0 and status != -signal.SIGPIPE:
            return f"{argv[0]} was ended by {_signal_name(-status)} from outside."
    return ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"  # real-time signals have no names
