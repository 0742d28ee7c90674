"""Read the extents of a file with the FIEMAP ioctl (Documentation/filesystems/fiemap.rst)."""

import fcntl
import os
import struct

from tui_fs.linux.descriptors import closing
from tui_fs.linux.pins import open_path_fd

_FS_IOC_FIEMAP = 0xC020660B
_HEADER = struct.Struct("=QQLLLL")
"""struct fiemap: start, length, flags, mapped_extents, extent_count, reserved."""

_EXTENT = struct.Struct("=QQQ16xL12x")
"""struct fiemap_extent: logical, physical, length, two reserved, flags, three reserved."""

_WHOLE_FILE = (1 << 64) - 1
_EXTENTS_AT_ONCE = 512
_LAST, _SHARED = 0x1, 0x2000  # fe_flags


def extents_of(path: str) -> int | None:
    """Return the number of extents of a regular file.

    Returns:
        None if the file cannot be opened without following links, or its file system does not
        report extents.
    """
    above, name = os.path.split(path)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    question = _HEADER.pack(0, _WHOLE_FILE, 0, 0, 0, 0)
    try:
        with closing(open_path_fd(above)) as directory:
            file = os.open(name, flags, dir_fd=directory)
        with closing(file):
            answer = fcntl.ioctl(file, _FS_IOC_FIEMAP, question)
    except OSError:
        return None
    _, _, _, mapped_extents, _, _ = _HEADER.unpack(answer)
    return int(mapped_extents)


def shared_bytes(descriptor: int) -> int:
    """Return the bytes of an open file in blocks that are shared with other files.

    Returns:
        0 if the file system does not report extents.
    """
    shared, start = 0, 0
    request = bytearray(_HEADER.size + _EXTENTS_AT_ONCE * _EXTENT.size)
    while True:
        _HEADER.pack_into(request, 0, start, _WHOLE_FILE - start, 0, 0, _EXTENTS_AT_ONCE, 0)
        try:
            fcntl.ioctl(descriptor, _FS_IOC_FIEMAP, request)
        except OSError:
            return shared
        number = _HEADER.unpack_from(request)[3]
        end, flags = start, 0
        for position in range(number):
            at = _HEADER.size + position * _EXTENT.size
            logical, _, length, flags = _EXTENT.unpack_from(request, at)
            shared += length if flags & _SHARED else 0
            end = logical + length
        if not number or flags & _LAST or end <= start:
            return shared
        start = end
