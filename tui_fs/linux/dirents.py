"""Directory entries with their positions, by getdents64(2), which Python does not have."""

import ctypes
import os
import struct
from typing import NamedTuple

BUFFER_BYTES = 32_768

DT_UNKNOWN, DT_DIR, DT_REG, DT_LNK = 0, 4, 8, 10
"""Kinds in a record, of dirent.h; a file system may leave all of them unknown."""

_RECORD = struct.Struct("=QqHB")
"""struct linux_dirent64: d_ino, d_off, d_reclen, d_type; the name follows, with a NUL."""
_DOTS = (b".", b"..")


class Dirent(NamedTuple):
    """One name in a directory.

    Attributes:
        kind: DT_DIR and so on.
        next_position: where reading goes on after it (d_off), for `os.lseek`.
    """

    name: bytes
    kind: int
    inode: int
    next_position: int


class DirentReader:
    """Reads directories, a buffer at a time. Not for several threads at once."""

    def __init__(self) -> None:
        # One buffer for all directories: ctypes would clear a new one each time.
        self._buffer = bytearray(BUFFER_BYTES)
        self._view = (ctypes.c_char * BUFFER_BYTES).from_buffer(self._buffer)
        self._getdents64 = ctypes.CDLL(None, use_errno=True).getdents64
        self._getdents64.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
        self._getdents64.restype = ctypes.c_ssize_t

    def read(self, descriptor: int) -> list[Dirent] | None:
        """Return the next names of an open directory, ``.`` and ``..`` left out.

        Returns:
            None at the end of the directory. The list may be empty before that.

        Raises:
            OSError: the directory cannot be read, or is gone.
        """
        filled = self._getdents64(descriptor, self._view, BUFFER_BYTES)
        if filled < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        if filled == 0:
            return None
        return parsed(self._buffer, filled)


def parsed(buffer: bytes | bytearray, filled: int) -> list[Dirent]:
    """Return the records in the first `filled` bytes, ``.`` and ``..`` left out."""
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
