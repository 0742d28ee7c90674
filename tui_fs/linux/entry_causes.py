"""Determine why the kernel refuses to delete an entry, from the entry and its directory."""

import errno
import os
import stat

from tui_fs.linux.external_uses import swap_files
from tui_fs.linux.filesystem import ROOT_INODE
from tui_fs.linux.statx import APPEND_ONLY, IMMUTABLE, MOUNT_ROOT, attributes_at
from tui_fs.model.paths import PATH_MAX_BYTES

_DIRECTORY_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
_CONFINED = (errno.EACCES, errno.EROFS)
_BELONGS_ELSEWHERE = (errno.EXDEV, errno.EBUSY, errno.ENOTEMPTY)


def cause_of_failure(path: str, error: int) -> str:
    """Return the cause and the command that removes it, as a clause; empty if unknown.

    Args:
        path: canonical and absolute.
        error: the errno with which its deletion failed.

    Raises:
        OSError: the entry cannot be examined, for example because it no longer exists.
    """
    if error != errno.EPERM and error not in _BELONGS_ELSEWHERE:
        return ""
    if len(os.fsencode(path)) >= PATH_MAX_BYTES:
        return ""
    above, name = os.path.split(path)
    directory = os.open(above, _DIRECTORY_FLAGS)
    try:
        if error == errno.EPERM:
            return _forbidden(directory, name, path)
        return _belongs_elsewhere(directory, name)
    finally:
        os.close(directory)


def confinement_cause(path: str, error: int) -> str:
    """Return whether the confinement of a tool is the cause, as a clause; empty if it is not.

    Args:
        path: canonical and absolute, as the tool knew it.
        error: the errno with which its deletion failed.
    """
    if error not in _CONFINED or len(os.fsencode(path)) >= PATH_MAX_BYTES:
        return ""
    if not os.path.lexists(path):
        return "it was moved out of the target, and the kernel refused to delete it there"
    if os.access(os.path.dirname(path), os.W_OK | os.X_OK, effective_ids=True):
        return "its path led out of the target, and the kernel refused to delete it there"
    return ""


def _forbidden(directory: int, name: str, path: str) -> str:
    own, above = attributes_at(directory, name), attributes_at(directory, "")
    for bit, word, letter in ((IMMUTABLE, "immutable", "i"), (APPEND_ONLY, "append-only", "a")):
        if own & bit:
            return f"it is {word} (chattr -{letter})"
        if above & bit:
            return f"its directory is {word} (chattr -{letter})"
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if stat.S_ISREG(status.st_mode) and _is_swap_file(path, status):
        return "it is an active swap file (swapoff)"
    holder = os.fstat(directory)
    if holder.st_mode & stat.S_ISVTX and os.geteuid() not in (status.st_uid, holder.st_uid):
        return "its directory is sticky, and you own neither the entry nor the directory"
    return ""


def _belongs_elsewhere(directory: int, name: str) -> str:
    if attributes_at(directory, name) & MOUNT_ROOT:
        return "something is mounted on it (umount)"
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if status.st_ino == ROOT_INODE and status.st_dev != os.fstat(directory).st_dev:
        return "it is a btrfs subvolume (btrfs subvolume delete)"
    return ""


def _is_swap_file(path: str, status: os.stat_result) -> bool:
    for text in swap_files():
        try:
            if text == path or os.path.samestat(os.lstat(text), status):
                return True
        except OSError:
            continue  # its path belongs to another mount namespace
    return False
