"""Writing out what the kernel keeps of files, and forgetting it, to see what the disk costs."""

import ctypes
import os

DROP_CACHES = "/proc/sys/vm/drop_caches"


def write_out(descriptor: int) -> None:
    """Wait until all of a file system that was changed is on its disk.

    Args:
        descriptor: of anything open on the file system.

    Raises:
        OSError: something could not be written.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syncfs(descriptor) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def drop_caches(descriptor: int, path: str = DROP_CACHES) -> None:
    """Write a file system out, and drop all pages, names and inodes that are not in use.

    The whole machine reads anew what it needs after this.

    Args:
        descriptor: of anything open on the file system.

    Raises:
        OSError: only root may.
    """
    write_out(descriptor)
    with open(path, "w", encoding="ascii") as file:
        file.write("3\n")
