"""Reading one directory: its names by scandir, what they are by lstat, all in pieces."""

import os
import stat
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from tui_fs.linux.access import may
from tui_fs.linux.inode_flags import APPEND_ONLY, IMMUTABLE, inode_flags
from tui_fs.linux.permissions import others_may_write
from tui_fs.survey.records import DirectoryFlag, Piece
from tui_fs.survey.tally import DirectoryTally, Predicate

_BTRFS_SUBVOLUME_INODE = 256


class Steps:
    """The way from a root: a chain, so that a deep one costs one link a level."""

    __slots__ = ("above", "depth", "name")

    def __init__(self, above: "Steps | None" = None, name: bytes = b"", depth: int = 0) -> None:
        self.above = above
        self.name = name
        self.depth = depth

    def below(self, name: bytes) -> "Steps":
        """Return the way one level further down."""
        return Steps(self, name, self.depth + 1)

    def names(self) -> tuple[bytes, ...]:
        """Return the names from the root."""
        names: list[bytes] = []
        step = self
        while step.above is not None:
            names.append(step.name)
            step = step.above
        return tuple(reversed(names))


@dataclass(slots=True)
class Directory:
    """A directory that is being walked; its subdirectories in `waiting` are still to be read."""

    number: int
    steps: Steps
    device: int
    inode: int
    waiting: list[bytes] = field(default_factory=list)
    descriptor: int = -1

    def close(self) -> None:
        """Close its descriptor; harmless if that is closed."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class Reading:
    """One directory being read, or a part of one.

    Args:
        parent: number of the directory above.
        name: of the directory in that one; the whole path of a root.
        is_part: somebody else tells the directory itself.
    """

    def __init__(
        self, directory: Directory, parent: int, name: bytes, status: os.stat_result, is_part: bool
    ) -> None:
        self.directory = directory
        self.tally = DirectoryTally(directory.number, status.st_uid)
        self.flags = 0
        self._parent, self._name, self._status = parent, name, status
        self._is_part = self._is_told = is_part
        self._waiting_told = 0

    def piece(self, *, is_last: bool, given: int = 0) -> tuple[Any, ...]:
        """Return what was read since the last time.

        Args:
            given: parts of the directory that others read.
        """
        tally, status = self.tally, self._status
        is_first, self._is_told = not self._is_told, True
        waiting = len(self.directory.waiting)
        pending = waiting - self._waiting_told + given + int(is_first) - int(is_last)
        self._waiting_told = waiting
        piece = (
            tally.number,
            self._parent,
            self._name if is_first else b"",
            tally.subdirectories,
            tally.files,
            tally.symlinks,
            tally.other,
            tally.apparent,
            tally.allocated,
            status.st_size if is_first else 0,
            status.st_blocks * 512 if is_first else 0,
            tally.oldest,
            tally.newest,
            tally.name_bytes,
            tally.record_bytes,
            tally.longest,
            pending,
            self.flags | tally.flags,
        )
        tally.restart()
        return piece


class Reader:
    """Looks at names and directories for a walker.

    Attributes:
        elsewhere: pieces of directories that are not entered, to be told.
        vanished: names that were gone when looked at.
    """

    def __init__(self, mounts: Collection[bytes], matches: Predicate | None) -> None:
        self._mounts = frozenset(mounts)
        self._mount_names = frozenset(os.path.basename(mount) for mount in mounts)
        self._matches = matches
        self._uid = os.geteuid()
        self._without_flags: int | None = None
        self.elsewhere: list[tuple[int, bytes, int]] = []
        self.vanished = 0

    def flags_of(self, descriptor: int, status: os.stat_result) -> int:
        """Return what is special about an open directory in which the process stands."""
        flags = 0
        if self._without_flags != status.st_dev:
            found = inode_flags(descriptor)
            if found is None:
                self._without_flags = status.st_dev
            else:
                flags |= DirectoryFlag.IMMUTABLE if found & IMMUTABLE else 0
                flags |= DirectoryFlag.APPEND_ONLY if found & APPEND_ONLY else 0
        if others_may_write(status, self._uid, descriptor):
            flags |= DirectoryFlag.SHARED
        if self._uid != 0:
            if status.st_mode & stat.S_ISVTX and status.st_uid != self._uid:
                flags |= DirectoryFlag.STICKY
            if not may(".", os.W_OK | os.X_OK):
                flags |= DirectoryFlag.UNWRITABLE
        return flags

    def add(self, reading: Reading, names: Sequence[bytes], root: bytes, device: int) -> None:
        """Add names of the directory in which the process stands."""
        try:
            statuses = list(map(os.lstat, names))
        except OSError:
            names, statuses = self._stat_one_by_one(reading, names)
        if not names:
            return
        directory = reading.directory
        for name, status in reading.tally.add(names, statuses, self._matches):
            if status.st_dev == device and not (
                name in self._mount_names and self._is_mounted(directory, name, root)
            ):
                directory.waiting.append(name)
                continue
            flags = DirectoryFlag.ELSEWHERE
            if status.st_ino == _BTRFS_SUBVOLUME_INODE and not self._is_mounted(
                directory, name, root
            ):
                flags |= DirectoryFlag.SUBVOLUME
            self.elsewhere.append((directory.number, name, flags))

    def _stat_one_by_one(
        self, reading: Reading, names: Sequence[bytes]
    ) -> tuple[list[bytes], list[os.stat_result]]:
        found: list[bytes] = []
        statuses: list[os.stat_result] = []
        for name in names:
            try:
                statuses.append(os.lstat(name))
            except FileNotFoundError:
                self.vanished += 1
            except OSError:
                reading.flags |= DirectoryFlag.UNREADABLE
            else:
                found.append(name)
        return found, statuses

    def _is_mounted(self, directory: Directory, name: bytes, root: bytes) -> bool:
        path = b"/".join((root.rstrip(b"/"), *directory.steps.names(), name))
        return path in self._mounts


def closed_piece(above: Directory, number: int, name: bytes, flags: int) -> tuple[Any, ...]:
    """Return the piece of a directory that was not entered; its own size is told if known."""
    own_bytes = own_allocated = 0
    if flags & DirectoryFlag.UNREADABLE and above.descriptor >= 0:
        try:
            status = os.stat(name, dir_fd=above.descriptor, follow_symlinks=False)
        except OSError:
            pass  # its size is not known; that it could not be read is told all the same
        else:
            own_bytes, own_allocated = status.st_size, status.st_blocks * 512
    piece = Piece(
        number,
        above.number,
        name,
        own_bytes=own_bytes,
        own_allocated_bytes=own_allocated,
        flags=flags,
    )
    return tuple(piece)
