"""Recreate and set aside, as a user asks for them: rules, record, action, the system's log."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tui_fs.job.aside_state import AsideState, standing_in, state_of_record
from tui_fs.job.aside_store import (
    Action,
    AsideRecord,
    all_records,
    forgotten,
    keep,
    new_record,
    rewrite,
    undo_command,
)
from tui_fs.job.conflicts import alone, check_conflicts
from tui_fs.job.maintenance_frame import (
    checked,
    opened,
    refuse_occupied,
    spot,
    sync,
    told,
    undisturbed,
)
from tui_fs.job.maintenance_rules import tell_system_log
from tui_fs.linux.pins import pin_of
from tui_fs.maintenance import aside, recreate
from tui_fs.maintenance.open_users import OpenUsers, find_open_users
from tui_fs.maintenance.renames import identity_of
from tui_fs.maintenance.replacement_dir import ReplacementDir
from tui_fs.model.errors import Refused, TuiFsError
from tui_fs.model.paths import PathStr, displayable, shell_quoted
from tui_fs.model.target import Pin, Target


@dataclass(frozen=True, slots=True)
class Prospect:
    """A directory that may be recreated or put aside.

    Attributes:
        index_bytes: the size of the directory itself.
    """

    target: Target
    index_bytes: int
    occupants: OpenUsers


@dataclass(frozen=True, slots=True)
class RenamedAside:
    """A directory that was put aside; `was_logged` tells whether the system's log took a line."""

    record: AsideRecord
    occupants: OpenUsers
    was_logged: bool


@dataclass(frozen=True, slots=True)
class RecreatedDirectory:
    """A directory that was recreated.

    Attributes:
        was_logged: whether the system's log took a line.
        warning: a sentence about what failed afterwards; empty if nothing did.
    """

    done: recreate.Recreated
    was_logged: bool
    warning: str


def look(path: str, *, to_recreate: bool, pin: Pin | None = None) -> Prospect:
    """Return the directory at `path` and who stands in it.

    Args:
        pin: that of the directory that was confirmed; None if none was yet.

    Raises:
        BadInput, Refused: as `check_targets`; or it cannot be recreated or put aside.
    """
    target = checked(path)
    if pin is not None and target.pin != pin:
        raise _replaced(target.path)
    _refuse_unfinished(target.path)
    with opened(target) as (parent, held):
        recreate.refuse_locked(parent)
        recreate.refuse_locked(held)
        if to_recreate:
            recreate.refuse_full(held)
        found = find_open_users(target.path, identity_of(held))
        return Prospect(target, recreate.index_bytes(held), found)


def recreate_directory(prospect: Prospect, *, accept_occupants: bool) -> RecreatedDirectory:
    """Recreate an emptied directory.

    Args:
        accept_occupants: whoever stands in it may be left in the one that is removed.

    Raises:
        Refused, Missing, BadInput: it is as it was; or the sentence says where what is.
    """
    record = new_record(Action.RECREATE, prospect.target)
    with _acting(record) as act:
        refuse_occupied(
            find_open_users(record.path, identity_of(act.held)), are_accepted=accept_occupants
        )
        place, room = spot(act.parent, record.path), spot(act.parent, record.room)
        done = recreate.recreate(place, act.held, room, act.note_twin)
        sync(act.parent)
    return RecreatedDirectory(done, act.was_logged, act.warning)


def put_aside(prospect: Prospect, *, with_twin: bool) -> RenamedAside:
    """Rename a directory aside; an empty twin may take its place in the same step.

    Raises:
        Refused, Missing, BadInput: it is as it was; or the sentence says where what is.
    """
    record = new_record(Action.ASIDE, prospect.target)
    with _acting(record) as act:
        place, goal = spot(act.parent, record.path), spot(act.parent, record.aside)
        if with_twin:
            room = spot(act.parent, record.room)
            aside.put_twin_in_place(place, act.held, goal, room, act.note_twin)
        else:
            aside.put_aside(place, act.held, goal)
        sync(act.parent)
    return RenamedAside(act.record, prospect.occupants, act.was_logged)


class _Act:
    """An action with its record, on a directory and the one that holds it, both open."""

    def __init__(self, record: AsideRecord, parent: int, held: int) -> None:
        self.parent, self.held = parent, held
        self.record = record
        self.file = keep(record)
        self.was_logged = False
        self.warning = ""

    def note_twin(self, twin: ReplacementDir) -> None:
        """Write into the record which directory takes the place."""
        self.record = replace(self.record, twin=pin_of(twin.descriptor))
        rewrite(self.file, self.record)


@contextlib.contextmanager
def _acting(record: AsideRecord) -> Iterator[_Act]:
    """Hold off jobs and signals, write the record, and tell the system's log how it ended.

    Raises:
        TuiFsError: no OSError goes through.
    """
    target = Target(record.path, record.pin)
    with told("Nothing was changed"), alone(), undisturbed():
        try:
            check_conflicts([target])
            if checked(record.path) != target:
                raise _replaced(record.path)
            with opened(target) as (parent, held):
                act = _Act(record, parent, held)
                with _telling_where(act), told("Nothing could be exchanged", record.path):
                    yield act
        except (TuiFsError, OSError):
            tell_system_log(record.action.value, record.path, record.aside, "refused")
            raise
        if record.action is Action.RECREATE:
            act.warning = forgotten(act.file)
        act.was_logged = tell_system_log(record.action.value, record.path, record.aside, "done")


@contextlib.contextmanager
def _telling_where(act: _Act) -> Iterator[None]:
    """Complete the advice of what failed: all is as it was, or what is where."""
    try:
        yield
    except TuiFsError as why:
        record = act.record
        if standing_in(record, act.parent) is AsideState.GONE:
            forgotten(act.file)  # if that fails, the list says that nothing is left of it
            why.advice = why.advice or "Everything is as it was."
        else:
            order = shell_quoted(undo_command(record))
            why.advice = f"See what is in {displayable(record.aside)}: {order} goes on with it."
        raise


def _replaced(path: PathStr) -> Refused:
    return Refused(
        f"{displayable(path)} is not the directory that was confirmed: it was replaced or renamed.",
        "Check it and confirm again.",
        rule="changed",
    )


def _refuse_unfinished(path: PathStr) -> None:
    found, _ = all_records()
    for record in found:
        if record.path == path and state_of_record(record) is AsideState.INTERRUPTED:
            raise Refused(
                f"An earlier {record.action} of {displayable(path)} was interrupted.",
                f"{shell_quoted(undo_command(record))} puts that in order first.",
                rule="unfinished",
            )
