"""The file system of a path: its type, free space and inodes, subvolumes and caches."""

import contextlib
import ctypes
import errno
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass

from tui_fs.linux.limits import measured
from tui_fs.linux.mounts import MOUNTINFO, mount_of, read_mounts
from tui_fs.linux.timeouts import call_within
from tui_fs.model.paths import upwards
from tui_fs.model.space import Space

SETTLE_LIMIT_S = 1.0
_SETTLE_STEP_S = 0.05
_NUMBERED_BY_DEVICE = frozenset(("xfs", "vfat", "exfat", "msdos"))
_ANY_NUMBER = 1 << 62
STATVFS_TIMEOUT_S = 2.0
"""statvfs on a dead network mount never returns; this long is waited for it."""


@dataclass(frozen=True, slots=True)
class FileSystem:
    """Type and room of a file system; counts are None where it has none or did not answer.

    Attributes:
        identity: a word that differs from that of any other; empty if it did not answer.
    """

    kind: str
    source: str
    mount_point: str
    is_read_only: bool
    total_bytes: int | None = None
    free_bytes: int | None = None
    available_bytes: int | None = None
    total_inodes: int | None = None
    free_inodes: int | None = None
    identity: str = ""


def file_system_of(path: str, mountinfo: str = MOUNTINFO) -> FileSystem:
    """Return what is known about the file system of the absolute `path`."""
    mount = mount_of(path, read_mounts(mountinfo))
    kind, source, mount_point, read_only = (
        (mount.filesystem, mount.source, mount.mount_point, mount.is_read_only)
        if mount
        else ("unknown", "unknown", "", False)
    )
    answer = measured(
        lambda: call_within(lambda: (os.statvfs(path), is_read_only(path)), STATVFS_TIMEOUT_S)
    )
    if answer is None:
        return FileSystem(kind, source, mount_point, read_only)
    room, refuses_changes = answer
    total_inodes, free_inodes = _inodes(room)
    return FileSystem(
        kind,
        source,
        mount_point,
        read_only or refuses_changes,
        total_bytes=room.f_blocks * room.f_frsize,
        free_bytes=room.f_bfree * room.f_frsize,
        available_bytes=room.f_bavail * room.f_frsize,
        total_inodes=total_inodes,
        free_inodes=free_inodes,
        identity=_identity(kind, source, room),
    )


def _identity(kind: str, source: str, room: os.statvfs_result) -> str:
    """Return a word for one file system; that of xfs is the number of its device, NFS has none."""
    if room.f_fsid and kind not in _NUMBERED_BY_DEVICE:
        return f"{kind.replace('/', '-')}-{room.f_fsid:016x}"
    import hashlib  # loading it takes time: mostly there is a number

    about = repr((source, room.f_blocks * room.f_frsize)).encode()
    return f"{kind.replace('/', '-')}-{hashlib.sha256(about).hexdigest()[:16]}"


def one_of_each(paths: Iterable[str], mountinfo: str = MOUNTINFO) -> tuple[str, ...]:
    """Return the first path on each file system.

    Subvolumes of one btrfs and datasets of one zfs pool share their room: they count as one,
    although each has a st_dev of its own.
    """
    mounts = read_mounts(mountinfo)
    first: dict[str, str] = {}
    for path in paths:
        mount = mount_of(path, mounts)
        key = path if mount is None else mount.device
        if mount is not None and mount.filesystem == "zfs":
            key = mount.source.partition("/")[0]
        first.setdefault(key, path)
    return tuple(first.values())


def space_of(path: str) -> Space | None:
    """Return the free space and inodes at `path`, None if the file system does not answer."""
    return measured(lambda: call_within(lambda: read_space(path), STATVFS_TIMEOUT_S))


def read_space(path: str) -> Space:
    """Return the free space and inodes at `path`; may never return on a dead network mount.

    Raises:
        OSError: the file system gives no figures.
    """
    room = os.statvfs(path)
    reserved_blocks = max(0, room.f_bfree - room.f_bavail)
    return Space(room.f_bavail * room.f_frsize, _inodes(room)[1], reserved_blocks * room.f_frsize)


def settle(path: str) -> None:
    """Make the file system count what was freed, where it does so late (btrfs, xfs)."""
    mount = mount_of(path, read_mounts())
    if mount is None or mount.filesystem not in ("btrfs", "xfs"):
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return  # moved away meanwhile; the count is reported as it is
    try:
        with contextlib.suppress(OSError):  # the count is reported as it is, too
            write_out(descriptor)
    finally:
        os.close(descriptor)
    # xfs inactivates inodes in the background, and statvfs itself makes it hurry.
    before, deadline = None, time.monotonic() + SETTLE_LIMIT_S
    while (now := space_of(path)) != before and time.monotonic() < deadline:
        before = now
        time.sleep(_SETTLE_STEP_S)


def _inodes(room: os.statvfs_result) -> tuple[int | None, int | None]:
    """Return all inodes and the free ones; None where the file system does not count them.

    btrfs reports 0. Network and FUSE file systems report 2^64-1, or a number near it, as "any".
    """
    if not 0 < room.f_files < _ANY_NUMBER or room.f_ffree >= _ANY_NUMBER:
        return None, None
    return room.f_files, room.f_ffree


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


DROP_CACHES = "/proc/sys/vm/drop_caches"


def write_out(descriptor: int) -> None:
    """Wait until all of a file system that was changed is on its disk.

    Args:
        descriptor: of anything open on the file system.

    Raises:
        OSError: something could not be written.
    """
    if _LIBC.syncfs(descriptor) != 0:
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
