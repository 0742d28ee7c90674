"""Verifies what a strategy has left, and decides the outcome of a job."""

import errno
import os
import signal
import time
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tui_fs.linux.limits import cause_of, is_limit
from tui_fs.linux.pins import take_pin
from tui_fs.linux.statx import cached_links, current_links, exists_on_server, is_removed_on_overlay
from tui_fs.model.calls import TraceSource
from tui_fs.model.errors import TuiFsError
from tui_fs.model.finding import Finding
from tui_fs.model.outcome import Outcome
from tui_fs.model.paths import PathStr, displayable, harmless
from tui_fs.model.plan import Plan
from tui_fs.model.snapshot import Snapshot
from tui_fs.model.strategy import Argv, flatten, program_of
from tui_fs.model.survey import Totals
from tui_fs.model.target import Target, is_file
from tui_fs.model.units import counted
from tui_fs.strategies.rmtree import EXIT_EXCHANGED

COUNTING_LIMIT_S = 10.0
"""Survivors are counted for at most this long; more are reported as not counted."""

_RETRY_EVERY_S = 0.25
_NOTES_SHOWN = 3
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_FORGOTTEN = (errno.ESTALE, errno.ENOENT)
"""How NFS and FUSE answer for a descriptor of a directory that their server does not know."""


class Verification(Struct, frozen=True):
    """What is left of what was to be deleted.

    Attributes:
        left: the targets that are not known to be gone entirely. With `survivors` not None, each of
            them has something left.
        survivors: totals of what is left; None if counting took too long or was impossible.
        note: sentences for the user; empty if there is nothing to report.
        unknown: the part of `left` for which it is unknown whether anything is left.
        vanished: the targets that the job was to keep and that are gone.
        shared: the targets that still exist, because this job has deleted one share of them.
    """

    left: tuple[PathStr, ...]
    survivors: Totals | None
    note: str = ""
    unknown: tuple[PathStr, ...] = ()
    vanished: tuple[PathStr, ...] = ()
    shared: tuple[PathStr, ...] = ()

    @property
    def is_all_gone(self) -> bool:
        """Whether nothing of any target is left."""
        return not self.left


def verify(
    plan: Plan,
    target_fds: Sequence[int],
    *,
    is_share_deleted: bool = False,
    tool_status: int | None = None,
) -> Verification:
    """Return what is left of the plan's targets.

    Args:
        target_fds: a descriptor of each confirmed directory, opened before the start. With it a
            directory that another process has moved is not taken for deleted.
        is_share_deleted: the tools report that they have deleted the whole share of this job, so
            another machine, whose share was the last, may have removed a target.
        tool_status: exit status of the tool that removes a single file; None if it has not ended.
    """
    if is_file(plan.targets):
        return _verify_file(plan.targets[0], target_fds[0], tool_status)
    left: list[PathStr] = []
    unknown: list[PathStr] = []
    vanished: list[PathStr] = []
    shared: list[PathStr] = []
    notes: list[str] = []
    survivors: Totals | None = Totals()
    deadline_s = time.monotonic() + COUNTING_LIMIT_S
    for target, target_fd in zip(plan.targets, target_fds, strict=True):
        result = _verify_patiently(plan, target, target_fd, deadline_s)
        if result.left and is_share_deleted and _is_removed_elsewhere(target, target_fd):
            result = Verification((), Totals())
        left += result.left
        unknown += result.unknown
        vanished += result.vanished
        shared += result.shared
        notes += [result.note] if result.note else []
        survivors = _sum(survivors, result.survivors)
    if len(notes) > _NOTES_SHOWN:
        notes[_NOTES_SHOWN:] = [f"And {len(notes) - _NOTES_SHOWN:,} more."]
    return Verification(
        tuple(left), survivors, " ".join(notes), tuple(unknown), tuple(vanished), tuple(shared)
    )


def _verify_file(target: Target, target_fd: int, tool_status: int | None) -> Verification:
    """Return whether a file, or the name of a file with several names, is gone."""
    try:
        if is_deleted(target_fd):
            return Verification((), Totals())
        is_in_place = take_pin(target.path, any_kind=True) == target.pin
    except OSError as error:
        if error.errno not in _NOT_THERE:
            note = f"The file can no longer be examined: {cause_of(error)[0]}."
            return Verification((target.path,), None, note, (target.path,))
        is_in_place = False
    if is_in_place:
        return Verification((target.path,), Totals(files=1))
    if tool_status == 0:  # the tool has seen that the file lost this name; others remain
        return Verification((), Totals())
    place = _current_path(target_fd)
    note = f"The confirmed file still exists. It was moved to {place} during the deletion."
    if tool_status == EXIT_EXCHANGED:
        note += " The file that took its place at the last moment was removed instead of it."
    return Verification((target.path,), None, note)


def _verify_patiently(
    plan: Plan, target: Target, target_fd: int, deadline_s: float
) -> Verification:
    """Return what is left of a target; retry while a limit of this process prevents it."""
    while True:
        try:
            return _verify_target(plan, target, target_fd, deadline_s)
        except (OSError, MemoryError, RuntimeError, ImportError, TuiFsError) as error:
            cause = error.__cause__ if isinstance(error, TuiFsError) else error
            if is_limit(cause) and time.monotonic() < deadline_s:
                time.sleep(_RETRY_EVERY_S)
                continue
            if not isinstance(error, OSError) and not is_limit(cause):
                raise
            directory = "The directory" if len(plan.targets) == 1 else displayable(target.path)
            if isinstance(cause, OSError) and cause.errno in _FORGOTTEN:
                note = (
                    f"The file system no longer knows {displayable(target.path)} "
                    f"({cause.strerror}), and this machine has not removed it: it was deleted or "
                    "renamed elsewhere. Search for it on the server."
                )
            else:
                note = f"{directory} can no longer be examined: {cause_of(cause or error)[0]}."
            return Verification((target.path,), None, note, (target.path,))


def _verify_target(plan: Plan, target: Target, target_fd: int, deadline_s: float) -> Verification:
    directory = "The directory" if len(plan.targets) == 1 else displayable(target.path)
    keep_root = plan.options.keep_root or plan.options.filters.active
    if is_deleted(target_fd) and not _is_still_at_path(target):
        if not keep_root:
            return Verification((), Totals())
        itself = "The directory itself" if len(plan.targets) == 1 else displayable(target.path)
        note = f"{itself} was deleted, although it should have been kept."
        return Verification((), Totals(), note, vanished=(target.path,))
    try:
        is_in_place = take_pin(target.path) == target.pin
    except OSError as error:
        if error.errno not in _NOT_THERE:
            raise
        is_in_place = False
    if not is_in_place:
        note = f"{directory} was moved to {_current_path(target_fd)} during the deletion."
        if len(plan.targets) > 1:
            note += " Another directory at its old path may have been deleted instead."
        return Verification((target.path,), None, note)
    totals, complete, note = _count(plan, target, deadline_s)
    if complete and totals.entries == 0 and (not note or plan.options.filters.active):
        is_share = plan.options.filters.share is not None
        still_there = (target.path,) if is_share and not keep_root else ()
        return Verification((), totals, note, shared=still_there)
    if complete:
        return Verification((target.path,), totals, note)
    # The directory itself still exists, which counts as left unless the job was to keep it.
    unknown = (target.path,) if keep_root and not note else ()
    return Verification((target.path,), None, note, unknown)


def _is_removed_elsewhere(target: Target, target_fd: int) -> bool:
    """Return whether neither a target nor its path exists on the server any more.

    A server that was restarted may have forgotten a directory that exists.
    """
    try:
        if exists_on_server(target.path):
            return False
    except OSError:
        return False  # not known
    try:
        return current_links(target_fd) == 0
    except OSError as error:
        return error.errno in _FORGOTTEN


def _is_still_at_path(target: Target) -> bool:
    """Return whether a target is at its path, on a file system without link counts."""
    try:
        return os.lstat(target.path).st_nlink == 0 and take_pin(target.path) == target.pin
    except OSError as error:
        if is_limit(error):
            raise
        return False


def _current_path(target_fd: int) -> str:
    try:
        return displayable(os.readlink(f"/proc/self/fd/{target_fd}"))
    except OSError:  # the path is longer than the kernel reports
        return "an unknown location (path too long)"


def is_deleted(target_fd: int) -> bool:
    """Return whether an open directory has been removed, judging by its link count.

    Raises:
        OSError: its file system fails. With ESTALE or ENOENT a server does not know the directory,
            and this machine has not removed it: it may have been renamed on the server.
    """
    # Read the cache first: the answer of a server would replace it.
    if cached_links(target_fd) == 0:
        return True
    return os.fstat(target_fd).st_nlink == 0 or is_removed_on_overlay(target_fd)


def _count(plan: Plan, target: Target, deadline_s: float) -> tuple[Totals, bool, str]:
    """Return what is left, whether the count is complete, and a note on unexaminable names."""
    if time.monotonic() > deadline_s:
        return Totals(), False, ""
    # Imported late because it takes time: usually nothing is left to count.
    from tui_fs.survey.findings.listed_only import LISTED_ONLY
    from tui_fs.survey.runner import SurveyRunner

    filters, pin = plan.options.filters, target.pin
    totals, complete, note = Totals(), False, ""
    try:
        survey = SurveyRunner([target.path], filters, interval_s=0.1, checks_surroundings=False)
        for so_far in survey.run():
            totals = so_far.totals if so_far.matched is None else so_far.matched
            roots = [(root.device, root.inode) for root in so_far.roots]
            is_target = roots == [(pin.device, pin.inode)]
            complete = so_far.finished and not so_far.unreadable and is_target
            listed_only = [f for f in so_far.findings if f.kind == LISTED_ONLY.kind]
            note = _about_listed_only(listed_only)
            if time.monotonic() > deadline_s:
                break
    except (OSError, TuiFsError) as error:
        if is_limit(error.__cause__ if isinstance(error, TuiFsError) else error):
            raise
        return totals, False, ""  # reported as not counted
    if (plan.options.keep_root or filters.share is not None) and not filters.active:
        totals = without_roots(totals, 1)
    return totals, complete, note


def _about_listed_only(findings: Sequence[Finding]) -> str:
    """Return sentences on entries that are listed but cannot be examined; empty if none."""
    sentences = [f"{displayable(f.path)}: {f.meaning}" for f in findings[:_NOTES_SHOWN]]
    return " ".join(sentences)


def without_roots(totals: Totals, number: int) -> Totals:
    """Return the totals without `number` target directories; the bytes of these stay included."""
    return replace(totals, directories=totals.directories - number)


def _sum(first: Totals | None, second: Totals | None) -> Totals | None:
    if first is None or second is None:
        return None
    return Totals(
        first.files + second.files,
        first.directories + second.directories,
        first.symlinks + second.symlinks,
        first.other + second.other,
        first.apparent_bytes + second.apparent_bytes,
        first.allocated_bytes + second.allocated_bytes,
    )


_LEFT_SHOWN = 3
_LONGEST_REPORTED = 300
_XARGS_SAW_A_KILL = 125  # xargs(1): the command is killed by a signal


class JobOutcome(Struct, frozen=True):
    """The result of a job; see `JobFinished` for the counts."""

    outcome: Outcome
    explanation: str
    deleted_files: int | None
    deleted_directories: int | None
    split_is_exact: bool
    calls_are_whole: bool


def outcome_of_job(
    plan: Plan,
    snapshot: Snapshot,
    verification: Verification,
    problem: str,
    *,
    is_counted: bool = True,
) -> JobOutcome:
    """Return the outcome of the job.

    DONE requires both: nothing is left, and no entry failed except with ENOENT.

    Args:
        is_counted: the source has counted to the end.
    """
    is_whole = is_counted and _counts_are_whole(snapshot)
    files, directories, exact = _deleted(plan, snapshot, verification, is_whole=is_whole)
    if verification.is_all_gone and not snapshot.failed:
        outcome = Outcome.DONE
        sentence = _nothing_is_left(plan, verification.shared)
    elif snapshot.cancel is not None:
        outcome = Outcome.CANCELLED
        sentence = f"Stopped before the end: {snapshot.cancel.reason.rstrip('.')}."
    else:
        outcome = Outcome.PARTIAL
        sentence = "" if verification.is_all_gone else _what_is_left(plan, verification)
        if snapshot.failed:
            failed = counted(snapshot.failed, "entry", "entries")
            sentence += f" {failed} could not be deleted."
    notes = [sentence, problem, _killed(snapshot), verification.note]
    if outcome is Outcome.PARTIAL and not snapshot.failed:
        notes.append(_reported(snapshot))
    if not is_counted:
        notes.append(
            "The system call counter was killed or could not be read; the counts are incomplete."
        )
    elif outcome is Outcome.DONE:
        notes.append(_disagreement(plan, snapshot))
    explanation = " ".join(note.strip() for note in notes if note)
    return JobOutcome(outcome, explanation, files, directories, exact, is_whole)


def _deleted(
    plan: Plan, snapshot: Snapshot, verification: Verification, *, is_whole: bool
) -> tuple[int | None, int | None, bool]:
    """Return deleted files and directories, and whether the split is counted, not inferred."""
    removed, expected = snapshot.removed, plan.expected
    if removed is not None and removed.directories is not None and is_whole:
        return removed.entries - removed.directories, removed.directories, True
    if not expected.complete or verification.survivors is None:
        return None, None, False  # the number may be known, but not the kinds
    directories = max(0, expected.totals.directories - verification.survivors.directories)
    if removed is None:
        gone = expected.totals.non_directories - verification.survivors.non_directories
        return max(0, gone), directories, False
    if not is_whole:
        gone = expected.totals.entries - verification.survivors.entries
        return max(0, gone - directories), directories, False
    directories = min(directories, removed.entries)
    return removed.entries - directories, directories, False


def _counts_are_whole(snapshot: Snapshot) -> bool:
    """Return False if a killed tool or strace lost counts; the kernel's counters lose none."""
    if snapshot.started is None or snapshot.started.source in (TraceSource.PERF, TraceSource.BPF):
        return True
    statuses = [status for step in snapshot.step_statuses for status in step]
    was_killed = any(status < 0 or status == _XARGS_SAW_A_KILL for status in statuses)
    return snapshot.cancel is None and not was_killed and not snapshot.is_cut_off


def _disagreement(plan: Plan, snapshot: Snapshot) -> str:
    """Return a sentence if the job removed another number of entries than the survey counted."""
    surveyed = plan.expected.totals.entries
    if snapshot.removed is None or not plan.expected.complete:
        return ""
    removed = snapshot.removed.entries
    if plan.options.filters.share is not None and removed > surveyed:
        removed -= min(removed - surveyed, len(plan.targets))  # the targets themselves
    if removed == surveyed:
        return ""
    return (
        f"The survey counted {counted(surveyed, 'entry', 'entries')}, but the job removed "
        f"{snapshot.removed.entries:,}: another process created or deleted entries there, too."
    )


def _nothing_is_left(plan: Plan, shared: Sequence[PathStr]) -> str:
    if is_file(plan.targets):
        has_other_names = plan.expected.linked_names > 0
        return f"The {'name' if has_other_names else 'file'} is gone."
    if plan.options.filters.active and plan.expected.complete and not plan.expected.totals.entries:
        return f"No entry matches the filters. {plan.expected.about_directories}"
    if plan.options.filters.active:
        return "Nothing that matched is left."
    is_single = len(plan.targets) == 1
    share = plan.options.filters.share
    if share is not None and (shared or plan.options.keep_root):
        others = "until the other shares are deleted, too" if shared else "as requested"
        directories = "The directory itself stays" if is_single else "The directories stay"
        return f"Share {share} is deleted. {directories} {others}."
    if plan.options.keep_root:
        return "The directory is empty." if is_single else "The directories are empty."
    return "The directory is gone." if is_single else "The directories are gone."


def _what_is_left(plan: Plan, verification: Verification) -> str:
    if is_file(plan.targets):
        if verification.unknown:
            return "It is not known whether the file was deleted."
        return "The file was not deleted."
    where = ""
    if len(plan.targets) > 1:
        shown = ", ".join(displayable(path) for path in verification.left[:_LEFT_SHOWN])
        more = len(verification.left) - _LEFT_SHOWN
        where = f" In {len(verification.left):,} of {len(plan.targets):,} directories: {shown}"
        where += f" and {more:,} more." if more > 0 else "."
    if verification.survivors is None:
        if set(verification.left) <= set(verification.unknown):
            return f"It is not known whether everything was deleted.{where}"
        return f"Not everything was deleted; the remaining entries were not counted.{where}"
    number = verification.survivors.entries
    return f"{counted(number, 'entry is', 'entries are')} left.{where}"


def _reported(snapshot: Snapshot) -> str:
    """Return the first message of a tool, for a job without failed entries."""
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
            return f"{program_of(argv)} was killed by {_signal_name(-status)}, not by tui-fs."
    return ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"  # real-time signals have no names
