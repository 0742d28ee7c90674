"""Query the file system of a path: type, free space and inodes, subvolumes and caches."""

import contextlib
import ctypes
import errno
import os
import time
from collections.abc import Iterable

from msgspec import Struct

from tui_fs.linux.descriptors import closing
from tui_fs.linux.libc import LIBC, checked
from tui_fs.linux.limits import measured
from tui_fs.linux.mounts import MOUNTINFO, is_served, mount_of, read_mounts
from tui_fs.linux.timeouts import call_within
from tui_fs.model.paths import upwards
from tui_fs.model.space import Space
from tui_fs.model.target import Pin

SETTLE_LIMIT_S = 1.0
_SETTLE_STEP_S = 0.05
_NUMBERED_BY_DEVICE = frozenset(("xfs", "vfat", "exfat", "msdos"))
_ANY_NUMBER = 1 << 62
STATVFS_TIMEOUT_S = 2.0
"""Time limit of statvfs, which never returns on a dead network mount."""


class FileSystem(Struct, frozen=True):
    """Type and space of a file system; counts are None if it has none or did not answer.

    Attributes:
        identity: a string unique to the file system; empty if it did not answer.
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

    @property
    def used_share(self) -> float | None:
        """The used part of what can be used without root's reserve, 0 to 1, as df counts it."""
        if self.total_bytes is None or self.free_bytes is None or self.available_bytes is None:
            return None
        used = self.total_bytes - self.free_bytes
        return used / (used + self.available_bytes) if used + self.available_bytes > 0 else None

    @property
    def used_inodes_share(self) -> float | None:
        """The used part of the inodes, 0 to 1; None where they are not limited."""
        if not self.total_inodes or self.free_inodes is None:
            return None
        return 1 - self.free_inodes / self.total_inodes


_FULL_BY_NATURE = frozenset(("cramfs", "erofs", "iso9660", "romfs", "squashfs", "udf"))
"""Images that are written once; their free space is none, and says nothing."""


def mounted_file_systems(mountinfo: str = MOUNTINFO) -> list[FileSystem]:
    """Return the file systems that store files, the fullest by bytes or inodes first.

    Each appears once, at its first mount point. Those of the kernel's own objects, images, and
    mounts of single files are left out.
    """
    seen: set[str] = set()
    file_systems: list[FileSystem] = []
    mounts = read_mounts(mountinfo)
    for mount in mounts:
        if mount.is_pseudo or mount.filesystem in _FULL_BY_NATURE or mount.device in seen:
            continue
        is_hidden = mounts.visible_at(mount.mount_point) is not mount
        if is_hidden or not (mount.may_not_answer or os.path.isdir(mount.mount_point)):
            continue
        seen.add(mount.device)
        file_systems.append(file_system_of(mount.mount_point, mountinfo))
    stored = (each for each in file_systems if each.total_bytes != 0)
    return sorted(stored, key=_free_shares)


def _free_shares(filesystem: FileSystem) -> tuple[float, float, str]:
    """Return the smaller free share, of bytes or of inodes, before the other."""
    used = filesystem.used_share or 0.0, filesystem.used_inodes_share or 0.0
    return 1 - max(used), 1 - min(used), filesystem.mount_point


def file_system_of(path: str, mountinfo: str = MOUNTINFO) -> FileSystem:
    """Return the properties of the file system of the absolute `path`."""
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
    """Return f_fsid or a hash as identity; f_fsid of xfs is its device number, NFS has none."""
    if room.f_fsid and kind not in _NUMBERED_BY_DEVICE:
        return f"{kind.replace('/', '-')}-{room.f_fsid:016x}"
    import hashlib  # a slow import, and most file systems have f_fsid

    about = repr((source, room.f_blocks * room.f_frsize)).encode()
    return f"{kind.replace('/', '-')}-{hashlib.sha256(about).hexdigest()[:16]}"


def directory_id(path: str, pin: Pin) -> str:
    """Return an identity of a directory that is the same on every client of its server.

    Device and mount numbers differ between clients; the inode number, the birth time and the
    identity of the file system do not. 16 hexadecimal digits.
    """
    import hashlib  # a slow import, and few commands need an identity

    about = repr((file_system_of(path).identity, pin.inode, pin.birth_ns or 0))
    return hashlib.sha256(about.encode()).hexdigest()[:16]


def one_of_each(paths: Iterable[str], mountinfo: str = MOUNTINFO) -> tuple[str, ...]:
    """Return the first path on each file system.

    Subvolumes of one btrfs and datasets of one zfs pool share their free space. They count as one
    file system, although each has its own st_dev.
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
    """Return the free space and inodes at `path`; may block forever on a dead network mount.

    Raises:
        OSError: statvfs failed.
    """
    room = os.statvfs(path)
    reserved_blocks = max(0, room.f_bfree - room.f_bavail)
    return Space(room.f_bavail * room.f_frsize, _inodes(room)[1], reserved_blocks * room.f_frsize)


def settle(path: str) -> None:
    """Wait until the file system counts freed space that it frees late (btrfs, xfs)."""
    mount = mount_of(path, read_mounts())
    if mount is None or mount.filesystem not in ("btrfs", "xfs"):
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return  # renamed meanwhile; report the count as it is
    with closing(descriptor), contextlib.suppress(OSError):  # report the count as it is
        write_out(descriptor)
    # xfs inactivates inodes in the background; statvfs accelerates that.
    before, deadline = None, time.monotonic() + SETTLE_LIMIT_S
    while (current := space_of(path)) != before and time.monotonic() < deadline:
        before = current
        time.sleep(_SETTLE_STEP_S)


def whole_file_system_entries(path: str, mountinfo: str = MOUNTINFO) -> int | None:
    """Return about how many entries are in the tree at an absolute path; None if unknown.

    They are known for the root of a local file system that counts its inodes. The file system
    below an overlay has other entries, and a server may export a part of its own.
    """
    mount = mount_of(path, read_mounts(mountinfo))
    if mount is None or (mount.mount_point, mount.root) != (path, "/"):
        return None
    if mount.has_lower_layers or is_served(mount.filesystem):
        return None
    filesystem = file_system_of(path, mountinfo)
    if filesystem.total_inodes is None or filesystem.free_inodes is None:
        return None
    return filesystem.total_inodes - filesystem.free_inodes


def _inodes(room: os.statvfs_result) -> tuple[int | None, int | None]:
    """Return total and free inodes; None if the file system does not count them.

    btrfs reports 0. Network and FUSE file systems report 2^64-1, or a number near it, for "any".
    """
    if not 0 < room.f_files < _ANY_NUMBER or room.f_ffree >= _ANY_NUMBER:
        return None, None
    return room.f_files, room.f_ffree


ROOT_INODE = 256
"""BTRFS_FIRST_FREE_OBJECTID of linux/btrfs_tree.h: the inode of each subvolume's directory."""

_AT_FDCWD = -100


def is_read_only(directory: str | int) -> bool:
    """Return whether a directory is on a read-only mount or in a read-only subvolume.

    The mount table does not show that a subvolume is read-only. faccessat(2) returns EROFS for
    it, with or without permission.

    Args:
        directory: its path, or a descriptor of it.
    """
    descriptor, path = (directory, ".") if isinstance(directory, int) else (_AT_FDCWD, directory)
    answer = LIBC.faccessat(descriptor, os.fsencode(path), os.W_OK, 0)
    return answer != 0 and ctypes.get_errno() == errno.EROFS


def subvolume_above(path: str) -> str:
    """Return the btrfs subvolume that contains a canonical path, or the path if none is found."""
    for place in upwards(path):
        try:
            if os.lstat(place).st_ino == ROOT_INODE:
                return place
        except OSError:
            break  # renamed meanwhile
    return path


DROP_CACHES = "/proc/sys/vm/drop_caches"


def write_out(descriptor: int) -> None:
    """Write all dirty data of a file system to its disk (syncfs).

    Args:
        descriptor: any open file on the file system.

    Raises:
        OSError: writing failed.
    """
    checked(LIBC.syncfs(descriptor))


def drop_caches(descriptor: int, path: str = DROP_CACHES) -> None:
    """Write out a file system, and drop the clean page cache, dentries and inodes of the machine.

    Afterwards every process of the machine reads its data from disk again.

    Args:
        descriptor: any open file on the file system.

    Raises:
        OSError: not permitted (root only), or writing failed.
    """
    write_out(descriptor)
    with open(path, "w", encoding="ascii") as file:
        file.write("3\n")
