"""What is there now of what was set aside or begun."""

import contextlib
import enum
import os
from collections.abc import Iterator

from tui_fs.job.aside_store import Action, AsideRecord, Damaged, all_records
from tui_fs.job.maintenance_frame import spot
from tui_fs.linux.pins import open_directory, pin_of
from tui_fs.maintenance import aside
from tui_fs.maintenance.renames import DirEntryRef
from tui_fs.model.errors import BadInput, cannot_examine
from tui_fs.model.target import Pin


class AsideState(enum.StrEnum):
    """What is there now of something that was set aside or begun."""

    ASIDE = "aside"
    INTERRUPTED = "interrupted"
    GONE = "gone"
    ELSEWHERE = "elsewhere"
    """Another host made the record; this one cannot know."""


def records() -> tuple[list[tuple[AsideRecord, AsideState | None]], list[Damaged]]:
    """Return all records with what is there now, the newest first, and those that are damaged.

    None stands for a place that is out of reach.
    """
    listed: list[tuple[AsideRecord, AsideState | None]] = []
    found, damaged = all_records()
    for record in found:
        try:
            listed.append((record, state_of_record(record)))
        except BadInput:
            listed.append((record, None))
    return listed, damaged


def state_of_record(record: AsideRecord) -> AsideState:
    """Return what is there now; BadInput if the place cannot be looked at."""
    if record.is_of_other_host:
        return AsideState.ELSEWHERE
    with opened_above(record) as parent:
        return standing_in(record, parent)


def standing_in(record: AsideRecord, parent: int) -> AsideState:
    aside_spot = spot(parent, record.aside)
    if record.action is Action.ASIDE and is_recorded(aside_spot, record.pin):
        return AsideState.ASIDE
    has_room = spot(parent, record.room).identity() is not None
    is_gone = aside_spot.identity() is None and not has_room
    return AsideState.GONE if is_gone else AsideState.INTERRUPTED


def is_recorded(place: DirEntryRef, recorded: Pin) -> bool:
    """Return whether a name stands for the directory that was recorded, maybe before a restart.

    Raises:
        OSError: it cannot be opened.
    """
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
    try:
        descriptor = os.open(place.name, flags, dir_fd=place.directory)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        return pin_of(descriptor).is_same_later(recorded)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def opened_above(record: AsideRecord) -> Iterator[int]:
    """Give a descriptor for reading of the directory that holds what was set aside."""
    directory = os.path.dirname(record.path)
    try:
        held = open_directory(directory)
        try:
            descriptor = aside.reopened(held)
        finally:
            os.close(held)
    except OSError as error:
        raise cannot_examine(directory, error) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)
