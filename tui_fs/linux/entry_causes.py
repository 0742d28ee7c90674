"""Determine why the kernel refuses to delete an entry, from the entry and its directory."""

import errno
import itertools
import os
import re
import stat
from collections.abc import Callable, Sequence

from tui_fs.linux.descriptors import closing
from tui_fs.linux.directories import open_directory
from tui_fs.linux.external_uses import swap_files
from tui_fs.linux.filesystem import ROOT_INODE
from tui_fs.linux.mounts import MOUNTINFO, mount_of, read_mounts
from tui_fs.linux.open_files import OpenFileScan, scan_open_files
from tui_fs.linux.statx import APPEND_ONLY, IMMUTABLE, MOUNT_ROOT, attributes_at
from tui_fs.model.paths import PATH_MAX_BYTES, displayable
from tui_fs.model.units import counted

_DIRECTORY_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
_CONFINED = (errno.EACCES, errno.EROFS)
_BELONGS_ELSEWHERE = (errno.EXDEV, errno.EBUSY, errno.ENOTEMPTY)

_SILLY_NAME = re.compile(r"\.nfs[0-9a-f]{24}")
"""New name of a file that is deleted while this NFS client has it open: inode number and counter
(nfs_sillyrename in fs/nfs/unlink.c)."""
_NFS_TYPES = ("nfs", "nfs4")
_ENTRIES_READ = 1_000
_HOLDERS_NAMED = 3

FindHolders = Callable[[Sequence[str], int], OpenFileScan | None]
"""Return the holders of files on a file system (st_dev); None if they are not searched."""


def cause_of_failure(
    path: str,
    error: int,
    find_holders: FindHolders = scan_open_files,
    mountinfo: str = MOUNTINFO,
) -> str:
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
    with closing(os.open(above, _DIRECTORY_FLAGS)) as directory:
        if error == errno.EPERM:
            return _forbidden(directory, name, path)
        return _belongs_elsewhere(directory, name) or _kept_open(
            directory, path, error, find_holders, mountinfo
        )


def confinement_cause(path: str, error: int) -> str:
    """Return whether the confinement of a tool is the cause, as a clause; empty if it is not.

    Args:
        path: canonical and absolute, as the tool knew it.
        error: the errno with which its removal failed; reading is not confined.
    """
    if error not in _CONFINED or len(os.fsencode(path)) >= PATH_MAX_BYTES:
        return ""
    if not os.path.lexists(path):
        return "it was moved out of the target, and the kernel refused to delete it there"
    # rm reports a directory that it may not read as one that it cannot remove.
    needed = os.R_OK | os.W_OK | os.X_OK
    if os.path.isdir(path) and not os.access(path, needed, effective_ids=True):
        return ""
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


def _kept_open(
    directory: int, path: str, error: int, find_holders: FindHolders, mountinfo: str
) -> str:
    """Return whether NFS keeps the entry, or one in it, because a process has it open."""
    name = os.path.basename(path)
    if error == errno.EBUSY and _SILLY_NAME.fullmatch(name):
        device = os.stat(name, dir_fd=directory, follow_symlinks=False).st_dev
        return (
            "it is a deleted file that a process still has open: NFS keeps it under this name "
            f"until it is closed{_holders((path,), device, find_holders)}"
        )
    if error != errno.ENOTEMPTY:
        return ""
    with closing(open_directory(name, directory)) as descriptor:
        with os.scandir(descriptor) as entries:
            names = [entry.name for entry in itertools.islice(entries, _ENTRIES_READ)]
        device = os.fstat(descriptor).st_dev
    kept = sorted(filter(_SILLY_NAME.fullmatch, names))
    mount = mount_of(path, read_mounts(mountinfo)) if kept else None
    if mount is None or mount.filesystem not in _NFS_TYPES:
        return ""
    more = f" and {len(kept) - 1:,} more" if len(kept) > 1 else ""
    holders = _holders([os.path.join(path, name) for name in kept], device, find_holders)
    return (
        f"it contains {kept[0]}{more}: NFS keeps a deleted file under such a name until it is "
        f"closed{holders}"
    )


def _holders(paths: Sequence[str], device: int, find_holders: FindHolders) -> str:
    """Return who has deleted files open, and what to do, as the rest of a clause."""
    scan = find_holders(paths, device)
    if scan is None:
        return ""
    holders = {
        holder.pid: f"{displayable(holder.command)} ({holder.pid})"
        for holder in (
            *(holder for file in scan.held_files for holder in file.holders),
            *(resident.holder for resident in scan.living),
        )
    }
    if holders:
        shown = ", ".join(itertools.islice(holders.values(), _HOLDERS_NAMED))
        more = len(holders) - _HOLDERS_NAMED
        shown += f" and {more:,} more" if more > 0 else ""
        verb = "has" if len(holders) == 1 else "have"
        return f"; {shown} {verb} it open (stop the program: NFS then deletes the file by itself)"
    unseen = ""
    if scan.unseen_processes:
        number = counted(scan.unseen_processes, "process", "processes")
        unseen = f" ({number} could not be inspected)"
    elif not scan.complete:
        unseen = " (not all could be inspected in time)"
    return (
        f"; no process visible here has it open{unseen}: it is open in a container or on another "
        "client, or the name is left over (close the file there, or delete the name again)"
    )


def _is_swap_file(path: str, status: os.stat_result) -> bool:
    for text in swap_files():
        try:
            if text == path or os.path.samestat(os.lstat(text), status):
                return True
        except OSError:
            continue  # its path belongs to another mount namespace
    return False
