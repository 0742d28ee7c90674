"""When a file was made, by statx(2), which Python does not have yet."""

import ctypes
import errno
import os
import struct

_AT_EMPTY_PATH = 0x1000
_STATX_BTIME = 0x800
_STATX_BYTES = 256
_MASK_AT, _BTIME_AT = 0, 0x50  # of struct statx: stx_mask, and stx_btime as seconds and nanoseconds


def birth_s(descriptor: int) -> float | None:
    """Return when an open file was made, in seconds since the epoch.

    Returns:
        None where the file system (NFS, tmpfs before Linux 6.6), the kernel (before 4.11) or a
        container does not tell.
    """
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.statx(descriptor, b"", _AT_EMPTY_PATH, _STATX_BTIME, buffer) != 0:
        number = ctypes.get_errno()
        if number in (errno.ENOSYS, errno.EPERM):
            return None
        raise OSError(number, os.strerror(number))
    (mask,) = struct.unpack_from("=I", buffer, _MASK_AT)
    if not mask & _STATX_BTIME:
        return None
    seconds, nanoseconds = struct.unpack_from("=qI", buffer, _BTIME_AT)
    return float(seconds + nanoseconds / 1e9)
