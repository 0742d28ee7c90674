"""Putting back what was put aside, and finishing what was interrupted."""

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from tui_fs.job.aside_store import (
    Action,
    AsideRecord,
    AsideState,
    find,
    forgotten,
    is_recorded,
    opened_above,
    standing_in,
    undo_command,
)
from tui_fs.job.conflicts import alone
from tui_fs.job.maintenance import (
    checked,
    opened,
    refuse_begun_deletion,
    refuse_occupied,
    refuse_used,
    reporting_errors,
    sync,
    tell_system_log,
    undisturbed,
)
from tui_fs.job.permission import refuse_read_only
from tui_fs.linux.pins import pin_of
from tui_fs.maintenance import aside
from tui_fs.maintenance.open_users import find_open_users
from tui_fs.maintenance.recreate import (
    INSIDE,
    Drained,
    finish,
    finish_room,
    open_directory_at,
    remove_drained,
    remove_if_empty,
)
from tui_fs.maintenance.renames import entry_ref
from tui_fs.model.errors import JobFailed, Refused, TuiFsError
from tui_fs.model.paths import PathStr, displayable, shell_quoted


@dataclass(frozen=True, slots=True)
class Undone:
    """What putting back or finishing did; `moved` and `kept` as in `Drained`.

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
    """Put back what was put aside, or finish what was interrupted.

    Raises:
        BadInput: there is no such record, or its place cannot be looked at.
        JobFailed: another host made the record; its path has no meaning here.
        Refused: it was deleted, its deletion has begun, or something stands in its old place;
            or it failed, and the sentence says what stands where.
    """
    refuse_read_only()
    file, record = find(record_id)
    refuse_other_host(record)
    with reporting_errors("It cannot be put back"), alone(), undisturbed():
        with opened_above(record) as parent:
            standing = standing_in(record, parent)
            if standing is AsideState.GONE:
                _refuse_gone(file, record, parent)
            try:
                with (
                    _with_location(record, parent, standing),
                    reporting_errors("It cannot be put back", record.aside),
                ):
                    if standing is AsideState.ASIDE:
                        drained = _put_back(record)
                    else:
                        drained = _finish(record, parent)
                    sync(parent)
            except TuiFsError:
                tell_system_log("undo", record.path, record.aside, "refused")
                raise
        warning = forgotten(file)
    logged = tell_system_log("undo", record.path, record.aside, "done")
    return Undone(record, standing, drained.moved, tuple(drained.kept), logged, warning)


def refuse_other_host(record: AsideRecord) -> None:
    """Raise JobFailed if another host made the record."""
    if record.is_of_other_host:
        raise JobFailed(
            f"{displayable(record.path)} is a directory of host {displayable(record.host.name)}.",
            f"Run this on that host: {shell_quoted(undo_command(record))}",
        )


@contextlib.contextmanager
def _with_location(record: AsideRecord, parent: int, before: AsideState) -> Iterator[None]:
    """Say in what failed whether the directory is back all the same, and where the rest is."""
    try:
        yield
    except TuiFsError as why:
        is_back = is_recorded(entry_ref(parent, record.path), record.pin)
        if before is AsideState.ASIDE and is_back:
            why.sentence = f"{displayable(record.path)} is back. {why.sentence}"
            if standing_in(record, parent) is AsideState.INTERRUPTED:
                order = shell_quoted(undo_command(record))
                why.advice = f"It is {displayable(record.aside)} now; {order} goes on with it."
        raise


def _put_back(record: AsideRecord) -> Drained:
    target = checked(record.aside)
    refuse_begun_deletion(record, target)
    with opened(target) as (parent, held):
        if not pin_of(held).is_same_later(record.pin):
            raise _another_at(record.aside)
        place, there = entry_ref(parent, record.path), entry_ref(parent, record.aside)
        remove_if_empty(entry_ref(parent, record.room))  # left by a run that was killed at its end
        here = place.identity()
        if here is None:
            try:
                aside.put_back(place, held, there)
            except FileExistsError as error:
                raise _occupied_place(record) from error
            return Drained()
        if record.twin is None or not is_recorded(place, record.twin):
            raise _occupied_place(record)
        with open_directory_at(place) as twin:
            refuse_used(record.path)
            refuse_occupied(find_open_users(record.path, here), to_undo=True)
            aside.refuse_changed_twin(twin, held)
            aside.exchange_back(place, held, there, twin)
            with reporting_errors("The directory that took its place cannot be removed"):
                return remove_drained(there, twin, held)


def _finish(record: AsideRecord, parent: int) -> Drained:
    """Put in order what a killed run has left."""
    place, there = entry_ref(parent, record.path), entry_ref(parent, record.aside)
    room = entry_ref(parent, record.room)
    known = [pin for pin in (record.pin, record.twin) if pin is not None]
    is_known = any(is_recorded(there, pin) for pin in known)
    if record.action is Action.ASIDE and not is_known and there.identity() is not None:
        raise _another_at(record.aside)
    checked(record.path)
    drained = Drained()
    if record.action is Action.ASIDE and there.identity() is not None:
        refuse_used(record.aside)
        drained = finish(there, place, known)
    if room.identity() is not None:
        refuse_used(PathStr(os.path.join(record.room, INSIDE)))
        more = finish_room(place, room, known)
        drained.moved += more.moved
        drained.kept += more.kept
    return drained


def _another_at(aside_path: PathStr) -> Refused:
    return Refused(
        f"{displayable(aside_path)} is not the directory that was set aside.",
        "Another process replaced it. Check its content and move it by hand.",
        rule="changed",
    )


def _refuse_gone(file: str, record: AsideRecord, parent: int) -> None:
    if os.fstat(parent).st_dev == record.pin.device:
        advice = forgotten(file) or "Its record is forgotten."
    else:
        advice = "If its file system is not mounted now, mount it and try again."
    raise Refused(
        f"Nothing is left to put back at {displayable(record.aside)}.", advice, rule="gone"
    )


def _occupied_place(record: AsideRecord) -> Refused:
    shown = displayable(record.path)
    path = record.path
    advice = f"Rename it first, for instance: {shell_quoted(('mv', '-T', path, f'{path}.new'))}"
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(os.lstat(path).st_mode):
            advice = f"If it is empty: {shell_quoted(('rmdir', path))}; else r{advice[1:]}"
    return Refused(f"Something else stands at {shown} by now.", advice, rule="in-the-way")
