"""Putting a directory aside in one step, and putting it back."""

import os
from collections.abc import Callable

from tui_fs.maintenance.attributes import differences, read_attributes
from tui_fs.maintenance.recreate import (
    ReplacementDir,
    is_empty,
    make_twin,
    refuse_changed,
    room_for_twin,
    take_back,
)
from tui_fs.maintenance.renames import DirEntryRef, exchange_checked, identity_of, rename_new
from tui_fs.model.errors import Refused

_CHANGED = "Look who else renames directories there."


def put_aside(place: DirEntryRef, held: int, goal: DirEntryRef) -> None:
    """Rename a directory to a name that nothing has; nothing has its old name then.

    Args:
        held: a descriptor of the directory.

    Raises:
        OSError, Missing, Refused: everything is as it was. Refused with the rule "changed":
            another directory had the name.
    """
    rename_new(place, goal)
    if goal.identity() != identity_of(held):
        rename_new(goal, place)
        raise Refused(
            "Somebody put something else in the directory's place in this very moment.",
            _CHANGED,
            rule="changed",
        )


def put_twin_in_place(
    place: DirEntryRef,
    held: int,
    goal: DirEntryRef,
    room: DirEntryRef,
    made: Callable[[ReplacementDir], None],
) -> None:
    """Rename a directory to a name that nothing has; an empty twin takes its name in that step.

    Args:
        held: the directory, open for reading.
        room: a name beside it for the private directory in which the twin is made.
        made: called with the twin, before anything is renamed.

    Raises:
        OSError, Missing, Refused: as `put_aside`, or no twin could be made, or what `take_back`
            tells. Refused with the rule "changed" also if somebody changed its attributes.
    """
    wanted = read_attributes(held)
    with room_for_twin(room) as inside, make_twin(inside, wanted) as twin:
        made(twin)
        rename_new(twin.spot, goal)
        try:
            exchange_checked(place, goal, identity_of(held), twin.identity)
        except (OSError, Refused):
            if goal.identity() == twin.identity:
                rename_new(goal, twin.spot)
            raise
        try:
            refuse_changed(held, wanted)
        except (OSError, Refused) as why:
            take_back(place, goal, held, twin, why)
            raise


def put_back(place: DirEntryRef, held: int, aside: DirEntryRef) -> None:
    """Rename a directory back; FileExistsError if anything has its old name by now."""
    put_aside(aside, held, place)


def refuse_changed_twin(twin: int, original: int) -> None:
    """Raise Refused unless a twin is empty and as it was made; both are open for reading."""
    if not is_empty(twin):
        raise Refused(
            "The directory that took its place is not empty any more.",
            "Move its entries away first, or into the one that was put aside.",
            rule="not-empty",
        )
    changed = differences(read_attributes(twin), read_attributes(original))
    if changed:
        raise Refused(
            f"Somebody has changed the {changed[0]} of the directory that took its place.",
            "Remove that with rmdir if it is not needed, and try again.",
            rule="changed",
        )


def exchange_back(place: DirEntryRef, held: int, aside: DirEntryRef, twin: int) -> None:
    """Exchange a directory with its twin, which has the other name then.

    Raises:
        OSError, Missing, Refused: everything is as it was.
    """
    exchange_checked(place, aside, identity_of(twin), identity_of(held))


def reopened(held: int) -> int:
    """Return a descriptor for reading of a directory that is held by O_PATH.

    Raises:
        OSError: this user may not read or search it.
    """
    return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=held)
