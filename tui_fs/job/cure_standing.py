"""What is there now of what was set aside or begun."""

import contextlib
import enum
import os
from collections.abc import Iterator

from tui_fs.cures import aside
from tui_fs.job.cure_frame import spot
from tui_fs.job.set_aside import Action, Damaged, Record, all_records
from tui_fs.linux.pins import open_directory
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable


class Standing(enum.StrEnum):
    """What is there now of something that was set aside or begun."""

    ASIDE = "aside"
    INTERRUPTED = "interrupted"
    GONE = "gone"


def records() -> tuple[list[tuple[Record, Standing | None]], list[Damaged]]:
    """Return all records with what is there now, the newest first, and those that are damaged.

    None stands for a place that is out of reach.
    """
    listed: list[tuple[Record, Standing | None]] = []
    found, damaged = all_records()
    for record in found:
        try:
            listed.append((record, standing_of(record)))
        except BadInput:
            listed.append((record, None))
    return listed, damaged


def standing_of(record: Record) -> Standing:
    """Return what is there now; BadInput if the place cannot be looked at."""
    with opened_above(record) as parent:
        return standing_in(record, parent)


def standing_in(record: Record, parent: int) -> Standing:
    device = os.fstat(parent).st_dev
    at_aside = spot(parent, record.aside).identity()
    if record.action is Action.ASIDE and at_aside == (device, record.pin.inode):
        return Standing.ASIDE
    has_room = spot(parent, record.room).identity() is not None
    return Standing.GONE if at_aside is None and not has_room else Standing.INTERRUPTED


@contextlib.contextmanager
def opened_above(record: Record) -> Iterator[int]:
    """Give a descriptor for reading of the directory that holds what was set aside."""
    directory = os.path.dirname(record.path)
    try:
        held = open_directory(directory)
        try:
            descriptor = aside.reopened(held)
        finally:
            os.close(held)
    except OSError as error:
        raise BadInput(
            f"{displayable(directory)} cannot be looked at: {os.strerror(error.errno or 0)}."
        ) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)
