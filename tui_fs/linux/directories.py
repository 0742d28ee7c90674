"""Walk and read directories by descriptors: no link is followed, descriptors are bounded."""

import ctypes
import errno
import os
import struct
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct, field

OPEN_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK

MAX_OPEN_DIRECTORIES = 64


def open_directory(name: bytes | str, parent: int | None = None) -> int:
    """Open a directory for reading.

    Raises:
        OSError: it cannot be opened, or is a symbolic link (ENOTDIR).
    """
    return os.open(name, OPEN_FLAGS, dir_fd=parent)


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


class DirectoryStack(Generic[_Directory]):
    """The directories on the path from the root of a walk to its current directory.

    The innermost ones are open. `reopen_top` opens a closed directory by ``..`` from the one left
    last, else by its names from the root, and compares device and inode. So the time of a walk is
    linear in the number of directories, independent of their depth.

    Args:
        root: a descriptor of the root; it stays open and belongs to the caller.
    """

    def __init__(self, root: int, max_open: int = MAX_OPEN_DIRECTORIES) -> None:
        self._root = root
        self._max_open = max_open
        self._directories: list[_Directory] = []
        self._closed = 0
        """Number of directories at the bottom of the stack without a descriptor."""
        self._left, self._left_depth = -1, 0
        """Descriptor and depth of the outermost directory left since the top was closed."""

    def __len__(self) -> int:
        return len(self._directories)

    @property
    def top(self) -> _Directory:
        """The current directory. It may be closed, see `reopen_top`."""
        return self._directories[-1]

    def names(self) -> list[bytes]:
        """Return the names from the root (excluded) to the top."""
        return [directory.name for directory in self._directories[1:]]

    def push(self, directory: _Directory) -> None:
        """Enter an open directory; the stack takes ownership of its descriptor."""
        self._directories.append(directory)
        if len(self._directories) - self._closed > self._max_open:
            _close(self._directories[self._closed])
            self._closed += 1

    def pop(self) -> _Directory:
        """Leave the top; return it, closed."""
        left = self._directories.pop()
        self._closed = min(self._closed, len(self._directories))
        if left.descriptor >= 0:
            self._set_left(left.descriptor)
            left.descriptor = -1
        return left

    def reopen_top(self) -> _Directory:
        """Return the top, open.

        Raises:
            OSError: it cannot be reopened, or another directory has its path (ESTALE).
        """
        if self.top.descriptor < 0:
            self.top.descriptor = self._reopened()
            self._closed = len(self._directories) - 1
        self._set_left(-1)
        return self.top

    def close(self) -> None:
        """Close all directories."""
        self._set_left(-1)
        while self._directories:
            _close(self._directories.pop())

    def _set_left(self, descriptor: int) -> None:
        if self._left >= 0:
            os.close(self._left)
        self._left, self._left_depth = descriptor, len(self._directories)

    def _reopened(self) -> int:
        if self._left >= 0:
            descriptor = os.dup(self._left)
            for _ in range(self._left_depth - len(self._directories) + 1):
                try:
                    upper = open_directory(b"..", descriptor)
                except OSError:
                    break  # so it is not the expected directory
                os.close(descriptor)
                descriptor = upper
            if os.path.samestat(os.fstat(descriptor), self.top.status):
                return descriptor
            os.close(descriptor)
        descriptor = os.dup(self._root)
        for name in self.names():
            try:
                lower = open_directory(name, descriptor)
            finally:
                os.close(descriptor)
            descriptor = lower
        if os.path.samestat(os.fstat(descriptor), self.top.status):
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
        self._getdents64 = ctypes.CDLL(None, use_errno=True).getdents64
        self._getdents64.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
        self._getdents64.restype = ctypes.c_ssize_t

    def read(self, descriptor: int) -> list[Dirent] | None:
        """Return the next names of an open directory, without ``.`` and ``..``.

        Returns:
            None at the end of the directory. The list may be empty before that.

        Raises:
            OSError: the directory cannot be read, or was removed.
        """
        filled = self._getdents64(descriptor, self._view, BUFFER_BYTES)
        if filled < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        if filled == 0:
            return None
        return parsed(self._buffer, filled)


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
