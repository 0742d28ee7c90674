"""Walk and read directories by descriptors: no link is followed, descriptors are bounded."""

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Collection, Iterator
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct, field

from tui_fs.linux.libc import LIBC, checked

OPEN_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK

MAX_OPEN_DIRECTORIES = 64


def open_directory(name: bytes | str, parent: int | None = None) -> int:
    """Open a directory for reading.

    Raises:
        OSError: it cannot be opened, or is a symbolic link (ENOTDIR).
    """
    return os.open(name, OPEN_FLAGS, dir_fd=parent)


def open_unnoticed(name: bytes | str, flags: int = OPEN_FLAGS, parent: int | None = None) -> int:
    """Open a file or a directory, without changing its access time if this user may do so.

    Raises:
        OSError: it cannot be opened.
    """
    try:
        return os.open(name, flags | os.O_NOATIME, dir_fd=parent)
    except PermissionError:  # O_NOATIME is for the owner and root only
        return os.open(name, flags, dir_fd=parent)


class Directory(Struct, eq=False):
    """A directory on the path from the root of a walk to its current directory.

    Attributes:
        name: in the directory above; any name for the root.
        status: at the time of opening.
        descriptor: -1 while it is closed.
        pending: subdirectories that have not been entered.
    """

    name: bytes
    status: os.stat_result
    descriptor: int
    pending: list[bytes] = field(default_factory=list)


_Directory = TypeVar("_Directory", bound=Directory)


class Entered(Struct, Generic[_Directory]):
    """A walk has opened a directory; `above` is None for the root.

    The reader adds to its `pending` what the walk is to enter.
    """

    directory: _Directory
    above: _Directory | None


class Skipped(Struct, Generic[_Directory]):
    """A walk cannot enter a subdirectory.

    Attributes:
        above: closed if it could not be opened again itself.
        error: None if another file system was mounted there since its name was read.
    """

    above: _Directory
    name: bytes
    error: OSError | None


class Left(Struct, Generic[_Directory]):
    """A walk has finished a directory and everything below it."""

    directory: _Directory


class TreeWalk(Generic[_Directory]):
    """A walk through the directories of one file system, depth first, with few descriptors.

    The innermost directories are open. A closed one is opened again by ``..`` from the one left
    last, else by its names from the root, and its device and inode are compared. So the time of a
    walk is linear in the number of directories, independent of their depth.

    Args:
        path: the absolute path of the root.
        root: a descriptor of it; it stays open and belongs to the caller.
        mounts: absolute paths of mount points, for `is_mounted`.
        make: makes the record of an open directory from its name, status and descriptor.
    """

    def __init__(
        self,
        path: bytes,
        root: int,
        mounts: Collection[bytes],
        make: Callable[[bytes, os.stat_result, int], _Directory],
        max_open: int = MAX_OPEN_DIRECTORIES,
    ) -> None:
        self.device = os.fstat(root).st_dev
        self._path, self._root, self._make, self._max_open = path, root, make, max_open
        self._mounts = frozenset(mounts)
        self._mount_names = frozenset(map(os.path.basename, mounts))
        self._stack: list[_Directory] = []
        self._closed = 0
        """Number of directories at the bottom of the stack without a descriptor."""
        self._left, self._left_depth = -1, 0
        """Descriptor and depth of the outermost directory left since the top was closed."""

    def steps(self) -> Iterator[Entered[_Directory] | Skipped[_Directory] | Left[_Directory]]:
        """Walk; an abandoned walk closes its descriptors."""
        try:
            yield self._enter(self._path, os.fstat(self._root), os.dup(self._root))
            while self._stack:
                above = self._stack[-1]
                if not above.pending:
                    yield Left(self._leave())
                    continue
                try:
                    self._reopen_top()
                except OSError as error:
                    while above.pending:
                        yield Skipped(above, above.pending.pop(), error)
                    continue
                name = above.pending.pop()
                try:
                    descriptor = open_directory(name, above.descriptor)
                except OSError as error:
                    yield Skipped(above, name, error)
                    continue
                status = os.fstat(descriptor)
                if status.st_dev == self.device:
                    yield self._enter(name, status, descriptor)
                else:
                    os.close(descriptor)
                    yield Skipped(above, name, None)
        finally:
            self.close()

    def path_of(self, name: bytes) -> bytes:
        """Return the path of an entry of the current directory."""
        names = (directory.name for directory in self._stack[1:])
        return b"/".join((self._path.rstrip(b"/"), *names, name))

    def is_mounted(self, name: bytes) -> bool:
        """Return whether an entry of the current directory is a mount point."""
        return name in self._mount_names and self.path_of(name) in self._mounts

    def close(self) -> None:
        """Close all directories but the root."""
        self._set_left(-1)
        while self._stack:
            _close(self._stack.pop())

    def _enter(self, name: bytes, status: os.stat_result, descriptor: int) -> Entered[_Directory]:
        above = self._stack[-1] if self._stack else None
        directory = self._make(name, status, descriptor)
        self._stack.append(directory)
        if len(self._stack) - self._closed > self._max_open:
            _close(self._stack[self._closed])
            self._closed += 1
        return Entered(directory, above)

    def _leave(self) -> _Directory:
        left = self._stack.pop()
        self._closed = min(self._closed, len(self._stack))
        if left.descriptor >= 0:
            self._set_left(left.descriptor)
            left.descriptor = -1
        return left

    def _reopen_top(self) -> None:
        """Open the top unless it is open.

        Raises:
            OSError: it cannot be reopened, or another directory has its path (ESTALE).
        """
        top = self._stack[-1]
        if top.descriptor < 0:
            top.descriptor = self._reopened(top.status)
            self._closed = len(self._stack) - 1
        self._set_left(-1)

    def _set_left(self, descriptor: int) -> None:
        if self._left >= 0:
            os.close(self._left)
        self._left, self._left_depth = descriptor, len(self._stack)

    def _reopened(self, status: os.stat_result) -> int:
        if self._left >= 0:
            descriptor = os.dup(self._left)
            for _ in range(self._left_depth - len(self._stack) + 1):
                try:
                    upper = open_directory(b"..", descriptor)
                except OSError:
                    break  # so it is not the expected directory
                os.close(descriptor)
                descriptor = upper
            if os.path.samestat(os.fstat(descriptor), status):
                return descriptor
            os.close(descriptor)
        descriptor = os.dup(self._root)
        for directory in self._stack[1:]:
            try:
                lower = open_directory(directory.name, descriptor)
            finally:
                os.close(descriptor)
            descriptor = lower
        if os.path.samestat(os.fstat(descriptor), status):
            return descriptor
        os.close(descriptor)
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def _close(directory: Directory) -> None:
    if directory.descriptor >= 0:
        os.close(directory.descriptor)
        directory.descriptor = -1


BUFFER_BYTES = 32_768

DT_UNKNOWN, DT_DIR, DT_REG, DT_LNK = 0, 4, 8, 10
"""Values of d_type (dirent.h); some file systems return only DT_UNKNOWN."""

_RECORD = struct.Struct("=QqHB")
"""struct linux_dirent64: d_ino, d_off, d_reclen, d_type; the name follows, with a NUL."""
_DOTS = (b".", b"..")


class Dirent(NamedTuple):
    """One name in a directory.

    Attributes:
        kind: DT_DIR and so on.
        next_position: offset of the next record (d_off), for `os.lseek`.
    """

    name: bytes
    kind: int
    inode: int
    next_position: int


class DirentReader:
    """Read directories, one buffer at a time. Not thread-safe."""

    def __init__(self) -> None:
        # One buffer for all directories, because ctypes would zero a new one each time.
        self._buffer = bytearray(BUFFER_BYTES)
        self._view = (ctypes.c_char * BUFFER_BYTES).from_buffer(self._buffer)
        self._getdents64 = LIBC.getdents64
        self._getdents64.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
        self._getdents64.restype = ctypes.c_ssize_t

    def read(self, descriptor: int) -> list[Dirent] | None:
        """Return the next names of an open directory, without ``.`` and ``..``.

        Returns:
            None at the end of the directory. The list may be empty before that.

        Raises:
            OSError: the directory cannot be read, or was removed.
        """
        filled = checked(self._getdents64(descriptor, self._view, BUFFER_BYTES))
        return parsed(self._buffer, filled) if filled else None


def parsed(buffer: bytes | bytearray, filled: int) -> list[Dirent]:
    """Return the records in the first `filled` bytes, without ``.`` and ``..``."""
    records, at, header = [], 0, _RECORD.size
    unpack, make = _RECORD.unpack_from, Dirent._make
    while at < filled:
        inode, next_position, record_bytes, kind = unpack(buffer, at)
        start = at + header
        name = bytes(buffer[start : buffer.index(0, start)])
        if name not in _DOTS:
            records.append(make((name, kind, inode, next_position)))
        at += record_bytes
    return records
