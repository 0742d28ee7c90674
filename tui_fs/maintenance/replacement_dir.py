"""An empty twin of a directory: same owner, mode, access lists, attributes, flags and times.

It is made in a directory of mode 0700 beside the original. Nobody else can reach a name in
there, so nobody can put a directory of his choice in the twin's place while it is given away.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

from tui_fs.maintenance.attributes import Attributes, give
from tui_fs.maintenance.renames import DirEntryRef, identity_of
from tui_fs.model.errors import Refused

INSIDE = "twin"
"""The only name in the room."""

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
_OTHERS = 0o077


@dataclass(frozen=True, slots=True)
class ReplacementDir:
    """A twin in its room: `spot` is its name there, `descriptor` the open twin."""

    spot: DirEntryRef
    descriptor: int

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        return identity_of(self.descriptor)


@contextlib.contextmanager
def open_directory_at(spot: DirEntryRef) -> Iterator[int]:
    """Open the directory that has a name; OSError if it is none, ELOOP if it is a link."""
    descriptor = os.open(spot.name, _FLAGS, dir_fd=spot.directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def room_for_twin(room: DirEntryRef) -> Iterator[int]:
    """Make the private directory, give its descriptor, and remove it at the end if it is empty.

    Raises:
        OSError: it cannot be made.
        Refused: somebody put another directory in its place.
    """
    os.mkdir(room.name, 0o700, dir_fd=room.directory)
    try:
        with open_room(room) as descriptor:
            yield descriptor
    finally:
        remove_if_empty(room)


@contextlib.contextmanager
def open_room(room: DirEntryRef) -> Iterator[int]:
    """Open a room; Refused if it is not this user's alone."""
    with open_directory_at(room) as descriptor:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & _OTHERS:
            raise Refused(
                "Somebody put another directory in the place of the new one in this very moment.",
                "Look who else writes there.",
                rule="changed",
            )
        yield descriptor


@contextlib.contextmanager
def make_twin(room: int, wanted: Attributes) -> Iterator[ReplacementDir]:
    """Make a twin with these attributes; it is removed at the end if it is still here and empty.

    Raises:
        OSError: it cannot be made.
        Refused: it cannot be given one of the attributes.
    """
    spot = DirEntryRef(room, INSIDE)
    os.mkdir(INSIDE, 0o700, dir_fd=room)
    with open_directory_at(spot) as descriptor:
        twin = ReplacementDir(spot, descriptor)
        try:
            give(descriptor, wanted)
            yield twin
        finally:
            if spot.identity() == twin.identity:
                remove_if_empty(spot)


def remove_if_empty(spot: DirEntryRef) -> bool:
    """Remove an empty directory; return whether nothing has that name now."""
    try:
        os.rmdir(spot.name, dir_fd=spot.directory)
    except FileNotFoundError:
        return True
    except OSError:
        return spot.identity() is None  # not empty: it stays, and the caller tells of it
    return True
