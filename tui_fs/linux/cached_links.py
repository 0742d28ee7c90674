"""What the kernel itself knows of a directory whose server does not know it any more."""

import ctypes
import struct

_AT_EMPTY_PATH, _AT_STATX_DONT_SYNC = 0x1000, 0x4000
_STATX_NLINK = 0x4
_STATX_BYTES = 256
_MASK_AT, _NLINK_AT = 0, 0x10  # of struct statx


def cached_links(descriptor: int) -> int | None:
    """Return the number of links of an open file without asking a server; None if not known.

    A network or FUSE file system sets it to 0 in the kernel's inode when this machine removes the
    directory, and knows nothing of what other machines do (clear_nlink in fs/nfs/dir.c and
    fs/fuse/dir.c).
    """
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    libc = ctypes.CDLL(None, use_errno=True)
    flags = _AT_EMPTY_PATH | _AT_STATX_DONT_SYNC
    if libc.statx(descriptor, b"", flags, _STATX_NLINK, buffer) != 0:
        return None
    (mask,) = struct.unpack_from("=I", buffer, _MASK_AT)
    (links,) = struct.unpack_from("=I", buffer, _NLINK_AT)
    return int(links) if mask & _STATX_NLINK else None
