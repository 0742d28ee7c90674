"""Putting back what was put aside, and finishing what was interrupted."""

import contextlib
import os
import stat
from dataclasses import dataclass

from tui_fs.cures import aside, recreate
from tui_fs.cures.drain import Drained
from tui_fs.cures.occupants import occupants_of
from tui_fs.cures.twin import open_directory_at, remove_if_empty
from tui_fs.job.cure_frame import checked, opened, refuse_occupied, spot, sync, told, undisturbed
from tui_fs.job.cure_rules import alone, refuse_begun_deletion, tell_system_log
from tui_fs.job.cure_standing import Standing, opened_above, standing_in
from tui_fs.job.set_aside import Action, Record, find, forget
from tui_fs.model.errors import BadInput, Missing, Refused
from tui_fs.model.paths import PathStr, displayable, shell_quoted


@dataclass(frozen=True, slots=True)
class Undone:
    """What putting back or finishing did; `moved` and `kept` as in `Drained`."""

    record: Record
    standing_before: Standing
    moved: int
    kept: tuple[tuple[PathStr, PathStr], ...]
    was_logged: bool


def undo(record_id: str) -> Undone:
    """Put back what was put aside, or finish what was interrupted.

    Raises:
        BadInput: there is no such record, or its place cannot be looked at.
        Refused: it was deleted, its deletion has begun, or something stands in its old place.
    """
    file, record = find(record_id)
    with undisturbed(), alone():
        with opened_above(record) as parent:
            standing = standing_in(record, parent)
            if standing is Standing.GONE:
                _refuse_gone(file, record, parent)
            try:
                with told("It cannot be put back"):
                    if standing is Standing.ASIDE:
                        drained = _put_back(record)
                    else:
                        drained = _finish(record, parent)
                sync(parent)
            except (Refused, Missing, BadInput):
                tell_system_log("undo", record.path, record.aside, "refused")
                raise
        forget(file)
    logged = tell_system_log("undo", record.path, record.aside, "done")
    return Undone(record, standing, drained.moved, tuple(drained.kept), logged)


def _put_back(record: Record) -> Drained:
    target = checked(record.aside)
    refuse_begun_deletion(record)
    with opened(target) as (parent, held):
        place, there = spot(parent, record.path), spot(parent, record.aside)
        remove_if_empty(spot(parent, record.room))  # left by a run that was killed at its end
        here = place.identity()
        if here is None:
            try:
                aside.put_back(place, held, there)
            except FileExistsError as error:
                raise _occupied_place(record) from error
            return Drained()
        if record.twin is None or here != (os.fstat(parent).st_dev, record.twin.inode):
            raise _occupied_place(record)
        with open_directory_at(place) as twin:
            refuse_occupied(occupants_of(record.path, here), to_undo=True)
            aside.refuse_changed_twin(twin, held)
            return aside.put_back_for_twin(place, held, there, twin)


def _finish(record: Record, parent: int) -> Drained:
    """Put in order what a killed run has left."""
    checked(record.path)
    device = os.fstat(parent).st_dev
    place = spot(parent, record.path)
    drained = Drained()
    there = spot(parent, record.aside)
    known = {(device, pin.inode) for pin in (record.pin, record.twin) if pin is not None}
    if record.action is Action.ASIDE and there.identity() is not None:
        if record.twin is None or there.identity() != (device, record.twin.inode):
            raise Refused(
                f"Another directory than that which was put aside is in {displayable(there.name)}.",
                "Somebody exchanged it in that moment; look at it, and rename it yourself.",
                rule="changed",
            )
        drained = aside.remove_leftover(place, there)
    room = spot(parent, record.room)
    if room.identity() is not None:
        more = recreate.finish(place, room, tuple(known))
        drained.moved += more.moved
        drained.kept += more.kept
    return drained


def _refuse_gone(file: str, record: Record, parent: int) -> None:
    if os.fstat(parent).st_dev == record.pin.device:
        forget(file)
        advice = "Its record is forgotten."
    else:
        advice = "If its file system is not mounted now, mount it and try again."
    raise Refused(
        f"Nothing is left to put back at {displayable(record.aside)}.", advice, rule="gone"
    )


def _occupied_place(record: Record) -> Refused:
    shown = displayable(record.path)
    path = record.path
    advice = f"Rename it first, for instance: {shell_quoted(('mv', '-T', path, f'{path}.new'))}"
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(os.lstat(path).st_mode):
            advice = f"If it is empty: {shell_quoted(('rmdir', path))}; else r{advice[1:]}"
    return Refused(f"Something else stands at {shown} by now.", advice, rule="in-the-way")
