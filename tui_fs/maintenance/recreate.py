"""Recreating an emptied directory: ext4 never gives the index of a directory back."""

import contextlib
import errno
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from tui_fs.linux.pins import pin_of
from tui_fs.linux.statx import APPEND_ONLY, IMMUTABLE, inode_flags
from tui_fs.maintenance.attributes import Attributes, differences, give, read_attributes
from tui_fs.maintenance.renames import (
    DirEntryRef,
    cut_name,
    exchange_checked,
    identity_of,
    rename_new,
)
from tui_fs.model.errors import Refused
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.target import Pin
from tui_fs.model.units import counted

DEADLINE_S = 10.0
"""So long somebody may be faster than the moving and rmdir."""

LAST_DEADLINE_S = 600.0
"""So long it may take where giving up would leave entries in two directories."""

_TOKEN_BYTES = 4


def remove_drained(
    spot: DirEntryRef, old: int, new: int, deadline_s: float = LAST_DEADLINE_S
) -> "Drained":
    """Remove a directory; what is in it moves into another one of the same file system first.

    rmdir(2) removes only what is empty, and from then on nobody can make an entry in it: so every
    entry that could be made was moved, or its maker was told that it failed.

    Args:
        spot: the name of the old one; if it is another directory's by now, that stays.
        old, new: both open for reading.

    A signal that is held off, and comes in while somebody still writes, ends it as the deadline
    does.

    Raises:
        OSError: an entry cannot be moved (ENOSPC, EPERM of an immutable one, …), or somebody
            still writes into the old one after the deadline (ENOTEMPTY) or a signal (EINTR).
            The entries are in the two directories, and the old one stands where it stood.
    """
    drained = Drained()
    deadline = time.monotonic() + deadline_s
    pending = signal.sigpending()
    while True:
        if spot.identity() != identity_of(old):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        try:
            os.rmdir(spot.name, dir_fd=spot.directory)
        except OSError as error:
            is_late = time.monotonic() > deadline
            if is_late or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            if signal.sigpending() - pending:
                raise InterruptedError(errno.EINTR, os.strerror(errno.EINTR)) from error
            drained.move_all(old, new, deadline)
        else:
            return drained


class Drained:
    """What was moved.

    Attributes:
        moved: the number of entries.
        kept: pairs of a name that both directories had, and the name that the entry of the old
            one got.
    """

    def __init__(self) -> None:
        self.moved = 0
        self.kept: list[tuple[PathStr, PathStr]] = []

    def move_all(self, old: int, new: int, deadline: float) -> None:
        """Move the entries that are there until a time of the clock; OSError as rename(2)."""
        with os.scandir(old) as entries:
            for entry in entries:
                self._move(PathStr(entry.name), old, new)
                if time.monotonic() > deadline:
                    return

    def _move(self, name: PathStr, old: int, new: int) -> None:
        goal = name
        while True:
            try:
                rename_new(DirEntryRef(old, name), DirEntryRef(new, goal))
            except FileExistsError:
                goal = PathStr(cut_name("", name, f".tui-fs-kept-{os.urandom(_TOKEN_BYTES).hex()}"))
            except FileNotFoundError:
                return  # its maker has removed or renamed it meanwhile
            else:
                break
        self.moved += 1
        if goal != name:
            self.kept.append((name, goal))


def is_empty(descriptor: int) -> bool:
    """Tell whether an open directory has no entry; reads all of a long index (seconds)."""
    with os.scandir(descriptor) as entries:
        return next(iter(entries), None) is None


INSIDE = "twin"
"""The only name in the room."""

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
_OTHERS = 0o077


@dataclass(frozen=True, slots=True)
class ReplacementDir:
    """An empty directory with the owner, mode, ACL, attributes, flags and times of another one.

    It is made in a staging directory of mode 0700 beside the original. No other user can reach a
    name in there, so no other user can replace it while it still belongs to this user.

    Attributes:
        spot: its name in the staging directory.
        descriptor: the open directory.
    """

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


def refuse_changed(held: int, wanted: Attributes) -> None:
    """Raise Refused unless a directory still has the attributes that its twin got."""
    changed = differences(read_attributes(held), wanted)
    if changed:
        raise Refused(
            f"Somebody has changed the directory's {displayable(changed[0])} in this very moment.",
            "Try again.",
            rule="changed",
        )


def take_back(
    place: DirEntryRef, other: DirEntryRef, held: int, twin: ReplacementDir, why: OSError | Refused
) -> None:
    """Put a directory back, and with it what has come into its twin meanwhile; remove that.

    Args:
        place, other: the names of the twin and of the directory now.
        held: the directory, open for reading.
        why: what the caller is going to raise.

    Raises:
        OSError, Missing, Refused: it could not be put back or not all entries could be moved; or
            both had an entry of one name (rule "clash").
    """
    exchange_checked(place, other, twin.identity, identity_of(held))
    kept = remove_drained(other, twin.descriptor, held).kept
    if kept:
        name, new_name = kept[0]
        raise Refused(
            f"{why} Somebody made {counted(len(kept), 'name', 'names')} twice meanwhile.",
            f"Both entries are there: beside {displayable(name)} stands {displayable(new_name)}.",
            rule="clash",
        ) from why


def finish(left: DirEntryRef, place: DirEntryRef, known: Collection[Pin]) -> Drained:
    """Remove the directory that a killed run has left; its entries go to the one at the place.

    Args:
        known: the two directories that were to be exchanged; others are not touched.

    Raises:
        OSError: an entry cannot be moved.
        Refused: other directories stand there; nothing was changed.
    """
    with open_directory_at(left) as old, open_directory_at(place) as new:
        pins = pin_of(old), pin_of(new)
        are_known = all(any(pin.is_same_later(recorded) for recorded in known) for pin in pins)
        if pins[0] == pins[1] or not are_known:
            raise Refused(
                "Other directories stand there than those that were to be exchanged.",
                "Look at both, and move what you need yourself.",
                rule="changed",
            )
        return remove_drained(left, old, new)
