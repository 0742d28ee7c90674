"""Removing a directory into which somebody may still write, without losing what he wrote."""

import errno
import os
import signal
import time

from tui_fs.maintenance.renames import DirEntryRef, cut_name, identity_of, rename_new
from tui_fs.model.paths import PathStr

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
