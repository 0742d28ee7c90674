"""Subvolumes and snapshots of btrfs: file systems of their own that need not be mounted."""

import ctypes
import errno
import os

from tui_fs.model.paths import upwards

ROOT_INODE = 256
"""BTRFS_FIRST_FREE_OBJECTID of linux/btrfs_tree.h: the inode of each subvolume's directory."""

_AT_FDCWD = -100
_LIBC = ctypes.CDLL(None, use_errno=True)


def is_read_only(directory: str | int) -> bool:
    """Return whether a directory is on a read-only mount or in a read-only subvolume.

    The mount table does not have the property of a subvolume. The kernel answers EROFS for it,
    whatever the user may do.

    Args:
        directory: its path, or a descriptor of it.
    """
    descriptor, path = (directory, ".") if isinstance(directory, int) else (_AT_FDCWD, directory)
    answer = _LIBC.faccessat(descriptor, os.fsencode(path), os.W_OK, 0)
    return answer != 0 and ctypes.get_errno() == errno.EROFS


def subvolume_above(path: str) -> str:
    """Return the subvolume that holds a canonical path on btrfs, or the path if none is found."""
    for place in upwards(path):
        try:
            if os.lstat(place).st_ino == ROOT_INODE:
                return place
        except OSError:
            break  # moved away meanwhile
    return path
