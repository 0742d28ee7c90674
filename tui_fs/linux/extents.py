"""How many pieces a file is stored in, by the FIEMAP ioctl (see fiemap.rst of the kernel)."""

import fcntl
import os
import struct

from tui_fs.linux.pins import open_directory

_FS_IOC_FIEMAP = 0xC020660B
_HEADER = struct.Struct("=QQLLLL")
"""struct fiemap: start, length, flags, mapped_extents, extent_count, reserved."""

_WHOLE_FILE = (1 << 64) - 1


def extents_of(path: str) -> int | None:
    """Return the number of extents of a regular file.

    Returns:
        None where the file cannot be opened without following links, or its file system does
        not tell.
    """
    above, name = os.path.split(path)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    question = _HEADER.pack(0, _WHOLE_FILE, 0, 0, 0, 0)
    try:
        directory = open_directory(above)
        try:
            file = os.open(name, flags, dir_fd=directory)
        finally:
            os.close(directory)
        try:
            answer = fcntl.ioctl(file, _FS_IOC_FIEMAP, question)
        finally:
            os.close(file)
    except OSError:
        return None
    _, _, _, mapped_extents, _, _ = _HEADER.unpack(answer)
    return int(mapped_extents)
