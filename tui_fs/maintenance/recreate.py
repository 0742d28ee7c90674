"""Recreating an emptied directory: ext4 never gives the index of a directory back."""

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass

from tui_fs.linux.inode_flags import APPEND_ONLY, IMMUTABLE, inode_flags
from tui_fs.maintenance.attributes import read_attributes
from tui_fs.maintenance.move_contents import DEADLINE_S, Drained, is_empty, remove_drained
from tui_fs.maintenance.renames import DirEntryRef, exchange_checked, identity_of
from tui_fs.maintenance.replacement_dir import (
    INSIDE,
    ReplacementDir,
    make_twin,
    open_room,
    remove_if_empty,
    room_for_twin,
)
from tui_fs.maintenance.verify_exchange import finish, refuse_changed, take_back
from tui_fs.model.errors import Refused
from tui_fs.model.paths import PathStr
from tui_fs.model.target import Pin


@dataclass(frozen=True, slots=True)
class Recreated:
    """What recreating did.

    Attributes:
        index_bytes_before, index_bytes_after: the size of the directory itself.
        moved: entries that somebody made meanwhile, and that were moved over.
        kept: for names made in both directories: the name, and the one that the entry of the
            old directory has now.
    """

    index_bytes_before: int
    index_bytes_after: int
    moved: int
    kept: tuple[tuple[PathStr, PathStr], ...]


def index_bytes(descriptor: int) -> int:
    """Return the size of an open directory itself; on ext4 that is its index."""
    return os.fstat(descriptor).st_size


def refuse_full(descriptor: int) -> None:
    """Raise Refused if an open directory has entries; reads all of a long index (seconds)."""
    if not is_empty(descriptor):
        raise Refused(
            "The directory is not empty.",
            "Empty it first: tui-fs delete PATH --strategy rm --keep-root.",
            rule="not-empty",
        )


def refuse_locked(descriptor: int) -> None:
    """Raise Refused if an open directory is immutable or append-only."""
    if (inode_flags(descriptor) or 0) & (IMMUTABLE | APPEND_ONLY):
        raise Refused(
            "The directory, or the one that holds it, is immutable or append-only.",
            "Take the flag off first: chattr -i -a.",
            rule="locked",
        )


def recreate(
    place: DirEntryRef, old: int, room: DirEntryRef, made: Callable[[ReplacementDir], None]
) -> Recreated:
    """Put an empty twin in the place of an empty directory, and remove that.

    The name stands for a directory at every moment. Somebody who writes meanwhile loses nothing:
    see `remove_drained`.

    Args:
        place: the directory's name in the open directory that holds it.
        old: the directory, open for reading.
        room: a name beside it for the private directory in which the twin is made.
        made: called with the twin, before anything is exchanged.

    Raises:
        OSError, Refused, Missing: everything is as it was; or, if the room is still there, some
            entries that somebody made meanwhile are in it (see `finish_room`).
    """
    refuse_locked(old)
    wanted = read_attributes(old)
    before = index_bytes(old)
    with room_for_twin(room) as inside, make_twin(inside, wanted) as twin:
        refuse_full(old)
        made(twin)
        exchange_checked(place, twin.spot, identity_of(old))
        try:
            refuse_changed(old, wanted)
            if is_empty(twin.descriptor):  # xfs takes the exchange for a change of the directory
                os.utime(twin.descriptor, ns=(wanted.accessed_ns, wanted.modified_ns))
            drained = remove_drained(twin.spot, old, twin.descriptor, DEADLINE_S)
        except (OSError, Refused) as why:
            take_back(place, twin.spot, old, twin, why)
            raise
        return Recreated(before, index_bytes(twin.descriptor), drained.moved, tuple(drained.kept))


def finish_room(place: DirEntryRef, room: DirEntryRef, known: Collection[Pin]) -> Drained:
    """Finish what a killed run has left in its room: its entries go to the directory.

    Raises:
        OSError, Refused: as `finish`, or the room is not this user's alone.
    """
    drained = Drained()
    with open_room(room) as inside:
        left = DirEntryRef(inside, INSIDE)
        if not remove_if_empty(left):
            drained = finish(left, place, known)
    os.rmdir(room.name, dir_fd=room.directory)
    return drained
