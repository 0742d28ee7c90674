"""Recreates directories and sets them aside: rules, record, action, the system's log."""

import contextlib
import errno
import os
import signal
import stat
import subprocess
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from tui_fs.job.aside_store import (
    Action,
    AsideRecord,
    AsideState,
    all_records,
    find,
    forgotten,
    is_recorded,
    keep,
    new_record,
    opened_parent,
    rewrite,
    state_in,
    state_of_record,
    undo_command,
)
from tui_fs.job.audit import caller_pairs, log_pair, send_to_syslog
from tui_fs.job.conflicts import check_conflicts, no_job_starting
from tui_fs.job.path_safety import open_pinned
from tui_fs.job.permission import check_targets, refuse_read_only
from tui_fs.job.store import all_jobs, load_plan
from tui_fs.job.view import JobView
from tui_fs.linux.descriptors import closing
from tui_fs.linux.directories import open_directory
from tui_fs.linux.external_uses import ExternalUses
from tui_fs.linux.host import current_caller
from tui_fs.linux.interpreter import module_command
from tui_fs.linux.mounts import has_lower_layers, mount_of, read_mounts
from tui_fs.linux.pins import pin_of
from tui_fs.maintenance import exchange
from tui_fs.maintenance.exchange import (
    INSIDE,
    MovedEntries,
    ReplacementDir,
    entry_ref,
    finish,
    finish_staging_dir,
    identity_of,
    move_entries_and_remove,
    open_directory_at,
    remove_if_empty,
)
from tui_fs.maintenance.open_users import OpenUsers, find_open_users
from tui_fs.model.errors import BadInput, JobFailed, Refused, TuiFsError
from tui_fs.model.outcome import JobState
from tui_fs.model.paths import PathStr, displayable, is_within, shell_quoted
from tui_fs.model.target import Pin, Target

_MAX_PATH_BYTES = 250


def refuse_begun_deletion(record: AsideRecord, target: Target) -> None:
    """Raise Refused if a job has begun to delete a directory that was set aside, or a part of it.

    Args:
        target: the directory that was set aside, with its current pin.
    """
    check_conflicts([target])
    for job in all_jobs():
        try:
            paths = [target.path for target in load_plan(job).targets]
        except BadInput:
            continue  # its targets are unknown; while it runs, `check_conflicts` refuses
        if not any(is_within(path, record.aside) for path in paths):
            continue
        view = JobView(job)
        view.poll()
        if view.state is not JobState.REFUSED:
            state = f"({view.state})"
            if view.state is JobState.ELSEWHERE:
                state = f"of host {displayable(view.origin.host.name)} has not reported its end"
            raise Refused(
                (
                    "The directory cannot be put back, because its deletion has begun: job "
                    f"{job.job_id} {state}."
                ),
                "Move the remaining entries back by hand.",
                rule="deletion-begun",
            )


def log_maintenance(action: str, path: PathStr, aside: PathStr, result: str) -> bool:
    """Send one line to the system's log; return whether the log accepted it.

    The line has the format of a job's lines, see `audit.audit_line`.
    """
    caller = current_caller()
    pairs = [
        log_pair("event", "maintenance"),
        log_pair("action", action),
        log_pair("result", result),
        *caller_pairs(caller),
        log_pair("aside", aside, _MAX_PATH_BYTES),
        log_pair("path", path, _MAX_PATH_BYTES),
    ]
    return send_to_syslog(" ".join(pairs)) is None


_KEPT_OFF = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP}


def checked(path: str) -> Target:
    (target,) = check_targets([path])
    return target


@contextlib.contextmanager
def opened(target: Target) -> Iterator[tuple[int, int]]:
    """Yield readable descriptors of the target's parent directory and of the target."""
    with contextlib.ExitStack() as stack:
        with reporting_errors(f"{displayable(target.path)} cannot be opened"):
            pair = [stack.enter_context(closing(fd)) for fd in open_pinned(target)]
            parent, target_fd = (
                stack.enter_context(closing(open_directory(".", path_fd))) for path_fd in pair
            )
        yield parent, target_fd


def refuse_occupied(
    occupants: OpenUsers, *, are_accepted: bool = False, to_undo: bool = False
) -> None:
    """Raise Refused if a process uses a directory that is about to be removed.

    Args:
        are_accepted: such processes may be left in the removed directory.
    """
    if not occupants.users or are_accepted:
        return
    first = occupants.users[0]
    others = len({user.pid for user in occupants.users} - {first.pid})
    more = f" (and {others:,} more)" if others else ""
    raise Refused(
        f"Process {first.pid} ({displayable(first.name)}) {first.how}{more}: the process would be "
        "left in a removed directory.",
        "Stop every such process first."
        if to_undo
        else ("Stop every such process first, or add --accept-occupants."),
        rule="occupied",
    )


def refuse_used(path: PathStr) -> None:
    """Raise Refused if a directory that is about to be removed is used elsewhere.

    When a directory is removed, the kernel detaches what other mount namespaces have mounted on it.
    """
    mounts = read_mounts()
    mount = mount_of(path, mounts)
    for use in ExternalUses.read(mounts).of(path, mount) if mount is not None else ():
        raise Refused(use.sentence, use.advice, rule=use.kind.value)


@contextlib.contextmanager
def reporting_errors(failure: str, path: str = "") -> Iterator[None]:
    """Turn an OSError into Refused.

    Args:
        failure: the beginning of the sentence.
        path: the directory that is renamed, if there is one.
    """
    try:
        yield
    except OSError as error:
        if error.errno == errno.EXDEV and path:
            raise _cannot_be_renamed(path) from error
        reason = os.strerror(error.errno or 0)
        raise Refused(f"{failure}: {reason}.", rule="system-call") from error


def _cannot_be_renamed(path: str) -> Refused:
    """Return the refusal for EXDEV, although the directory stays on its file system."""
    shown = displayable(path)
    if has_lower_layers(path, read_mounts()):
        return Refused(
            f"{shown} is in a lower layer of an overlay, which cannot rename it; nothing was "
            "changed.",
            "Delete it where it is: tui-fs delete. Or copy it with cp -a, and delete the original.",
            rule="system-call",
        )
    compare = shell_quoted(("lsattr", "-pd", os.path.dirname(path), path))
    return Refused(
        f"The file system does not rename {shown} here (EXDEV): most likely its quota project "
        "differs from that of its parent directory. Nothing was changed.",
        f"Compare the projects: {compare}. Give it the project of the parent: chattr -p NUMBER "
        f"{shell_quoted((path,))}",
        rule="system-call",
    )


def sync(parent: int) -> None:
    try:
        os.fsync(parent)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise Refused(
            f"The directory was renamed, but the rename could not be synced to disk: {reason}.",
            "Check the kernel log: dmesg.",
            rule="sync",
        ) from error


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Block the signals that end a program while names are exchanged."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _KEPT_OFF)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Prospect(Struct, frozen=True):
    """A directory that may be recreated or set aside.

    Attributes:
        index_bytes: the size of the directory itself.
    """

    target: Target
    index_bytes: int
    occupants: OpenUsers


class RenamedAside(Struct, frozen=True):
    """A directory that was set aside; `was_logged`: the system's log accepted a line."""

    record: AsideRecord
    occupants: OpenUsers
    was_logged: bool


class RecreatedDirectory(Struct, frozen=True):
    """A directory that was recreated.

    Attributes:
        was_logged: whether the system's log accepted a line.
        warning: a sentence about what failed afterwards; empty if nothing did.
    """

    done: exchange.Recreated
    was_logged: bool
    warning: str


def look(path: str, *, to_recreate: bool, pin: Pin | None = None) -> Prospect:
    """Return the directory at `path` and the processes that use it.

    Args:
        pin: the pin of the confirmed directory; None before a confirmation.

    Raises:
        BadInput, Refused: as `check_targets`; or it cannot be recreated or set aside.
    """
    target = checked(path)
    if pin is not None and target.pin != pin:
        raise _replaced(target.path)
    _refuse_unfinished(target.path)
    with opened(target) as (parent, target_fd):
        exchange.refuse_locked(parent)
        exchange.refuse_locked(target_fd)
        if to_recreate:
            exchange.refuse_full(target_fd)
        open_users = find_open_users(target.path, identity_of(target_fd))
        return Prospect(target, exchange.index_bytes(target_fd), open_users)


def recreate_directory(prospect: Prospect, *, accept_occupants: bool) -> RecreatedDirectory:
    """Recreate an emptied directory.

    Args:
        accept_occupants: processes that use the directory may be left in the removed one.

    Raises:
        Refused, Missing, BadInput: nothing changed, or the advice names what is where.
    """
    record = new_record(Action.RECREATE, prospect.target)
    with _action(record) as act:
        refuse_occupied(
            find_open_users(record.path, identity_of(act.target_fd)), are_accepted=accept_occupants
        )
        place, staging = (
            entry_ref(act.parent, record.path),
            entry_ref(act.parent, record.staging_dir),
        )
        done = exchange.recreate(place, act.target_fd, staging, act.note_replacement)
        sync(act.parent)
    return RecreatedDirectory(done, act.was_logged, act.warning)


def put_aside(prospect: Prospect, *, with_twin: bool) -> RenamedAside:
    """Rename a directory aside.

    Args:
        with_twin: an empty directory takes its place in the same step.

    Raises:
        Refused, Missing, BadInput: nothing changed, or the advice names what is where.
    """
    record = new_record(Action.ASIDE, prospect.target)
    with _action(record) as act:
        place, goal = entry_ref(act.parent, record.path), entry_ref(act.parent, record.aside)
        if with_twin:
            staging = entry_ref(act.parent, record.staging_dir)
            exchange.put_aside_with_replacement(
                place, act.target_fd, goal, staging, act.note_replacement
            )
        else:
            exchange.put_aside(place, act.target_fd, goal)
        sync(act.parent)
    return RenamedAside(act.record, prospect.occupants, act.was_logged)


class _Action:
    """An action on an open directory in its open parent directory, with the action's record."""

    def __init__(self, record: AsideRecord, parent: int, target_fd: int) -> None:
        self.parent, self.target_fd = parent, target_fd
        self.record = record
        self.file = keep(record)
        self.was_logged = False
        self.warning = ""

    def note_replacement(self, twin: ReplacementDir) -> None:
        """Add the replacement directory's pin to the record."""
        self.record = replace(self.record, twin=pin_of(twin.descriptor))
        rewrite(self.file, self.record)


@contextlib.contextmanager
def _action(record: AsideRecord) -> Iterator[_Action]:
    """Hold off jobs and signals, write the record, and log the result to the system's log.

    Raises:
        TuiFsError: also in place of an OSError.
    """
    target = Target(record.path, record.pin)
    with reporting_errors("Nothing was changed"), no_job_starting(), undisturbed():
        try:
            check_conflicts([target])
            if checked(record.path) != target:
                raise _replaced(record.path)
            with opened(target) as (parent, target_fd):
                act = _Action(record, parent, target_fd)
                with (
                    _with_location(act),
                    reporting_errors("The directory could not be renamed or replaced", record.path),
                ):
                    yield act
        except (TuiFsError, OSError):
            log_maintenance(record.action.value, record.path, record.aside, "refused")
            raise
        if record.action is Action.RECREATE:
            act.warning = forgotten(act.file)
        act.was_logged = log_maintenance(record.action.value, record.path, record.aside, "done")


@contextlib.contextmanager
def _with_location(act: _Action) -> Iterator[None]:
    """Add to an error's advice that nothing changed, or where the directory is now."""
    try:
        yield
    except TuiFsError as error:
        record = act.record
        if state_in(record, act.parent) is AsideState.GONE:
            forgotten(act.file)  # if that fails, the list shows the record as gone
            error.advice = error.advice or "Nothing was changed."
        else:
            order = shell_quoted(undo_command(record))
            error.advice = (
                f"Check the content of {displayable(record.aside)}. To repair it: {order}"
            )
        raise


def _replaced(path: PathStr) -> Refused:
    return Refused(
        f"{displayable(path)} is not the directory that was confirmed: it was replaced or renamed.",
        "Check it and confirm again.",
        rule="changed",
    )


def _refuse_unfinished(path: PathStr) -> None:
    stored_records, _ = all_records()
    for record in stored_records:
        if record.path == path and state_of_record(record) is AsideState.INTERRUPTED:
            raise Refused(
                f"An earlier 'tui-fs {record.action}' of {displayable(path)} was interrupted.",
                f"Repair that first: {shell_quoted(undo_command(record))}",
                rule="unfinished",
            )


_PREFIX = "tui-fs: "


def run_maintenance(*arguments: str) -> str:
    """Run a confirmed command of tui-fs; return its results and warnings as lines of text.

    Args:
        arguments: as for the command line, without --yes; a path comes last.

    Raises:
        TuiFsError: the command was refused or failed; the sentence is its own.
    """
    command, *further = arguments
    started = module_command("tui_fs.cli", command, "--yes", *further)
    try:
        ended = subprocess.run(
            started,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            start_new_session=True,
            check=False,
        )
    except OSError as error:
        raise JobFailed(f"tui-fs could not be started: {error.strerror}.") from error
    lines = ended.stderr.decode(errors="backslashreplace").splitlines()
    messages = [line.removeprefix(_PREFIX) for line in lines if line.startswith(_PREFIX)]
    if ended.returncode != 0:
        raise TuiFsError(
            messages[-1] if messages else (f"The command ended with exit code {ended.returncode}.")
        )
    results = ended.stdout.decode(errors="backslashreplace").splitlines()
    return "\n".join([*results, *messages])


class Undone(Struct, frozen=True):
    """The result of `undo`; `moved` and `kept` as in `MovedEntries`.

    Attributes:
        warning: a sentence about what failed afterwards; empty if nothing did.
    """

    record: AsideRecord
    standing_before: AsideState
    moved: int
    kept: tuple[tuple[PathStr, PathStr], ...]
    was_logged: bool
    warning: str


def undo(record_id: str) -> Undone:
    """Put a directory back that was set aside, or finish an interrupted action.

    Raises:
        BadInput: there is no such record, or its directory cannot be examined.
        JobFailed: another host made the record; its path has no meaning here.
        Refused: the directory was deleted, its deletion has begun, or its old path is taken; or
            the action failed, and the sentence and the advice name what is where.
    """
    refuse_read_only()
    file, record = find(record_id)
    refuse_other_host(record)
    with reporting_errors("The directory cannot be put back"), no_job_starting(), undisturbed():
        with opened_parent(record) as parent:
            standing = state_in(record, parent)
            if standing is AsideState.GONE:
                _refuse_gone(file, record, parent)
            try:
                with (
                    _with_undo_location(record, parent, standing),
                    reporting_errors("The directory cannot be put back", record.aside),
                ):
                    if standing is AsideState.ASIDE:
                        moved_entries = _put_back(record)
                    else:
                        moved_entries = _finish(record, parent)
                    sync(parent)
            except TuiFsError:
                log_maintenance("undo", record.path, record.aside, "refused")
                raise
        warning = forgotten(file)
    logged = log_maintenance("undo", record.path, record.aside, "done")
    return Undone(record, standing, moved_entries.moved, tuple(moved_entries.kept), logged, warning)


def refuse_other_host(record: AsideRecord) -> None:
    """Raise JobFailed if another host made the record."""
    if record.is_of_other_host:
        raise JobFailed(
            f"{displayable(record.path)} is a directory on host {displayable(record.host.name)}.",
            f"Run this on that host: {shell_quoted(undo_command(record))}",
        )


@contextlib.contextmanager
def _with_undo_location(record: AsideRecord, parent: int, before: AsideState) -> Iterator[None]:
    """Add to an error whether the directory is back all the same, and where the rest is."""
    try:
        yield
    except TuiFsError as error:
        is_back = is_recorded(entry_ref(parent, record.path), record.pin)
        if before is AsideState.ASIDE and is_back:
            error.sentence = f"{displayable(record.path)} is back. {error.sentence}"
            if state_in(record, parent) is AsideState.INTERRUPTED:
                order = shell_quoted(undo_command(record))
                error.advice = (
                    f"Its replacement is now {displayable(record.aside)}. To finish: {order}"
                )
        raise


def _put_back(record: AsideRecord) -> MovedEntries:
    target = checked(record.aside)
    refuse_begun_deletion(record, target)
    with opened(target) as (parent, target_fd):
        if not pin_of(target_fd).is_same_later(record.pin):
            raise _another_at(record.aside)
        place, there = entry_ref(parent, record.path), entry_ref(parent, record.aside)
        # A run that was killed at its end leaves this directory.
        remove_if_empty(entry_ref(parent, record.staging_dir))
        here = place.identity()
        if here is None:
            try:
                exchange.put_aside(there, target_fd, place)
            except FileExistsError as error:
                raise _occupied_place(record) from error
            return MovedEntries()
        if record.twin is None or not is_recorded(place, record.twin):
            raise _occupied_place(record)
        with open_directory_at(place) as twin:
            refuse_used(record.path)
            refuse_occupied(find_open_users(record.path, here), to_undo=True)
            exchange.refuse_changed_replacement(twin, target_fd)
            exchange.exchange_checked(place, there, identity_of(twin), identity_of(target_fd))
            with reporting_errors("The directory that took its place cannot be removed"):
                return move_entries_and_remove(there, twin, target_fd)


def _finish(record: AsideRecord, parent: int) -> MovedEntries:
    """Finish the action of a killed run."""
    place, there = entry_ref(parent, record.path), entry_ref(parent, record.aside)
    staging = entry_ref(parent, record.staging_dir)
    known = [pin for pin in (record.pin, record.twin) if pin is not None]
    is_known = any(is_recorded(there, pin) for pin in known)
    if record.action is Action.ASIDE and not is_known and there.identity() is not None:
        raise _another_at(record.aside)
    checked(record.path)
    moved_entries = MovedEntries()
    if record.action is Action.ASIDE and there.identity() is not None:
        refuse_used(record.aside)
        moved_entries = finish(there, place, known)
    if staging.identity() is not None:
        refuse_used(PathStr(os.path.join(record.staging_dir, INSIDE)))
        more = finish_staging_dir(place, staging, known)
        moved_entries.moved += more.moved
        moved_entries.kept += more.kept
    return moved_entries


def _another_at(aside_path: PathStr) -> Refused:
    return Refused(
        f"{displayable(aside_path)} is not the directory that was set aside.",
        "Another process replaced it. Check its content and move it by hand.",
        rule="changed",
    )


def _refuse_gone(file: str, record: AsideRecord, parent: int) -> None:
    if os.fstat(parent).st_dev == record.pin.device:
        advice = forgotten(file) or "Its record was removed."
    else:
        advice = "If its file system is not mounted now, mount it and try again."
    raise Refused(
        f"{displayable(record.aside)} does not exist, so nothing can be put back.",
        advice,
        rule="gone",
    )


def _occupied_place(record: AsideRecord) -> Refused:
    shown = displayable(record.path)
    path = record.path
    advice = f"Rename it first, for instance: {shell_quoted(('mv', '-T', path, f'{path}.new'))}"
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(os.lstat(path).st_mode):
            advice = f"If it is empty: {shell_quoted(('rmdir', path))}; else r{advice[1:]}"
    return Refused(f"There is something else at {shown}.", advice, rule="in-the-way")
