"""Cures besides deleting, as a person asks for them: rules, record, action, the system's log."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tui_fs.cures import aside, recreate
from tui_fs.cures.occupants import Occupants, occupants_of
from tui_fs.cures.renames import identity_of
from tui_fs.cures.twin import Twin
from tui_fs.job.cure_frame import checked, opened, refuse_occupied, spot, sync, told, undisturbed
from tui_fs.job.cure_rules import alone, refuse_busy, tell_system_log
from tui_fs.job.cure_standing import Standing, standing_of
from tui_fs.job.set_aside import (
    Action,
    Record,
    Stage,
    all_records,
    forget,
    keep,
    new_record,
    rewrite,
    undo_command,
)
from tui_fs.linux.pins import pin_of
from tui_fs.model.errors import BadInput, Missing, Refused
from tui_fs.model.paths import PathStr, displayable, shell_quoted
from tui_fs.model.target import Target


@dataclass(frozen=True, slots=True)
class Prospect:
    """A directory that may be recreated or put aside.

    Attributes:
        index_bytes: the size of the directory itself.
    """

    target: Target
    index_bytes: int
    occupants: Occupants


@dataclass(frozen=True, slots=True)
class PutAside:
    """A directory that was put aside; `was_logged` tells whether the system's log took a line."""

    record: Record
    occupants: Occupants
    was_logged: bool


def look(path: str, *, to_recreate: bool) -> Prospect:
    """Return the directory at `path` and who stands in it.

    Raises:
        BadInput, Refused: as `check_targets`; or it cannot be recreated or put aside.
    """
    target = checked(path)
    _refuse_unfinished(target.path)
    with opened(target) as (parent, held):
        recreate.refuse_locked(parent)
        recreate.refuse_locked(held)
        if to_recreate:
            recreate.refuse_full(held)
        found = occupants_of(target.path, identity_of(held))
        return Prospect(target, recreate.index_bytes(held), found)


def recreate_directory(
    prospect: Prospect, *, accept_occupants: bool
) -> tuple[recreate.Recreated, bool]:
    """Recreate an emptied directory; return with it whether the system's log took a line.

    Args:
        accept_occupants: whoever stands in it may be left in the one that is removed.

    Raises:
        Refused, Missing, BadInput: it is as it was; or the sentence says where what is.
    """
    record = new_record(Action.RECREATE, prospect.target)
    with _acting(record) as act, opened(prospect.target) as (parent, held):
        if not accept_occupants:
            refuse_occupied(occupants_of(record.path, identity_of(held)))
        room = spot(parent, record.room)
        done = recreate.recreate(spot(parent, record.path), held, room, act.note_twin)
        sync(parent)
    return done, act.was_logged


def put_aside(prospect: Prospect, *, with_twin: bool) -> PutAside:
    """Rename a directory aside; an empty twin may take its place in the same step.

    Raises:
        Refused, Missing, BadInput: it is as it was; or the sentence says where what is.
    """
    record = new_record(Action.ASIDE, prospect.target)
    with _acting(record) as act, opened(prospect.target) as (parent, held):
        place, goal = spot(parent, record.path), spot(parent, record.aside)
        if with_twin:
            aside.put_twin_in_place(place, held, goal, spot(parent, record.room), act.note_twin)
        else:
            aside.put_aside(place, held, goal)
        sync(parent)
    return PutAside(act.record, prospect.occupants, act.was_logged)


class _Act:
    """An action with its record."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.file = keep(record)
        self.was_logged = False

    def note_twin(self, twin: Twin) -> None:
        """Write into the record which directory takes the place."""
        self.record = replace(self.record, twin=pin_of(twin.descriptor))
        rewrite(self.file, self.record)


@contextlib.contextmanager
def _acting(record: Record) -> Iterator[_Act]:
    """Write the record, hold off signals and jobs, and tell the system's log how it ended."""
    with undisturbed():
        act = _Act(record)
        try:
            with alone():
                refuse_busy(record.path, record.pin)
                if checked(record.path) != Target(record.path, record.pin):
                    raise Refused(
                        f"{displayable(record.path)} was replaced or renamed in the meantime.",
                        "Look at it again.",
                        rule="changed",
                    )
                with told("Nothing could be exchanged"):
                    yield act
        except (Refused, Missing, BadInput) as why:
            tell_system_log(record.action.value, record.path, record.aside, "refused")
            if standing_of(act.record) is Standing.GONE:
                forget(act.file)
                why.advice = why.advice or "Everything is as it was."
            else:
                order = shell_quoted(undo_command(record))
                why.advice = f"See what is in {displayable(record.aside)}: {order} goes on with it."
            raise
        if record.action is Action.RECREATE:
            forget(act.file)
        else:
            act.record = replace(act.record, stage=Stage.ASIDE)
            with contextlib.suppress(OSError):  # what was written before tells all that undo needs
                rewrite(act.file, act.record)
        act.was_logged = tell_system_log(record.action.value, record.path, record.aside, "done")


def _refuse_unfinished(path: PathStr) -> None:
    for file, record in all_records():
        if record.path != path:
            continue
        standing = standing_of(record)
        if standing is Standing.INTERRUPTED:
            raise Refused(
                f"An earlier {record.action} of {displayable(path)} was interrupted.",
                f"{shell_quoted(undo_command(record))} puts that in order first.",
                rule="unfinished",
            )
        if standing is Standing.GONE and record.action is Action.RECREATE:
            forget(file)
