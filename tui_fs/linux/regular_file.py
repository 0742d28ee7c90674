"""Opening a file that should be regular, where damage may have left something else."""

import errno
import os
import stat
from typing import BinaryIO


def open_regular(path: str) -> BinaryIO:
    """Open a regular file for reading; never wait for another process, as a FIFO would.

    Raises:
        OSError: it cannot be opened, is a symbolic link (ELOOP), or is not regular (EINVAL).
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "Not a regular file", path)
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise
