"""Inode flags that forbid deleting, from the ioctl that lsattr uses (see ioctl_iflags(2))."""

import fcntl
import struct

_FS_IOC_GETFLAGS = 0x80086601
IMMUTABLE, APPEND_ONLY = 0x10, 0x20
"""Flags of linux/fs.h with which nothing can be removed from a directory."""


def inode_flags(descriptor: int) -> int | None:
    """Return the flags of an open file, None where the file system has none."""
    try:
        answer = fcntl.ioctl(descriptor, _FS_IOC_GETFLAGS, b"\0\0\0\0\0\0\0\0")
    except OSError:
        return None
    (flags,) = struct.unpack("=I4x", answer)
    return int(flags)
