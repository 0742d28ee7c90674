"""Inode flags that forbid deleting, from the ioctl that lsattr uses (see ioctl_iflags(2))."""

import fcntl
import struct

_FS_IOC_GETFLAGS = 0x80086601
_IMMUTABLE, _APPEND_ONLY = 0x10, 0x20


def is_locked(descriptor: int) -> bool | None:
    """Tell whether nothing can be removed from an open directory: immutable or append-only.

    Returns:
        None where the file system has no such flags.
    """
    try:
        answer = fcntl.ioctl(descriptor, _FS_IOC_GETFLAGS, struct.pack("l", 0))
    except OSError:
        return None
    (flags,) = struct.unpack("l", answer)
    return bool(flags & (_IMMUTABLE | _APPEND_ONLY))
