"""Call statx(2) and the ioctls of lsattr, for which Python has no bindings."""

import contextlib
import ctypes
import errno
import fcntl
import os
import struct
from functools import lru_cache

from msgspec import Struct

from tui_fs.linux.libc import LIBC, checked

_AT_EMPTY_PATH, _AT_STATX_FORCE_SYNC, _AT_STATX_DONT_SYNC = 0x1000, 0x2000, 0x4000
_AT_SYMLINK_NOFOLLOW, _AT_NO_AUTOMOUNT, _AT_FDCWD = 0x100, 0x800, -100
_STATX_NLINK, _STATX_BTIME, _STATX_MNT_ID = 0x4, 0x800, 0x1000
_STATX_BYTES = 256
_STATX_NUMBERS = {"x86_64": 332, "aarch64": 291, "riscv64": 291, "ppc64le": 383, "s390x": 379}
# Offsets in struct statx: stx_mask, stx_nlink, stx_btime (seconds and nanoseconds), stx_mnt_id.
_MASK_AT, _NLINK_AT, _BTIME_AT, _MNT_ID_AT = 0, 0x10, 0x50, 0x90
_ATTRIBUTES_AT, _ATTRIBUTES_MASK_AT = 0x8, 0x38
_STATFS_BYTES = 256
_OVERLAYFS_MAGIC = 0x794C7630  # linux/magic.h
_DELETED = " (deleted)"  # d_path in fs/d_path.c

IMMUTABLE, APPEND_ONLY, MOUNT_ROOT = 0x10, 0x20, 0x2000
"""STATX_ATTR_* of linux/stat.h; the first two equal FS_*_FL of linux/fs.h."""


class FileStatx(Struct, frozen=True):
    """The result of statx; None for values that the kernel or the file system does not report.

    Attributes:
        birth_ns: creation time in nanoseconds since the epoch. NFS before Linux 6.16, tmpfs before
            6.6 and ext4 with inodes of 128 bytes do not record it. On overlayfs it is None: a
            directory gets the birth time of its copy when an entry in it is deleted.
        mount_id: as in /proc/self/mountinfo (Linux 5.8).
    """

    birth_ns: int | None
    mount_id: int | None


def statx(descriptor: int) -> FileStatx:
    """Return the statx values of an open file.

    Raises:
        OSError: the descriptor is not open, or the file system fails.
    """
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    wanted = _STATX_BTIME | _STATX_MNT_ID
    if not _statx_into(buffer, descriptor, b"", _AT_EMPTY_PATH, wanted):
        return FileStatx(None, None)
    (mask,) = struct.unpack_from("=I", buffer, _MASK_AT)
    birth_ns: int | None = None
    if mask & _STATX_BTIME and not _is_on_overlay(descriptor):
        seconds, nanoseconds = struct.unpack_from("=qI", buffer, _BTIME_AT)
        birth_ns = seconds * 1_000_000_000 + nanoseconds
    (mount_id,) = struct.unpack_from("=Q", buffer, _MNT_ID_AT)
    return FileStatx(birth_ns, mount_id if mask & _STATX_MNT_ID else None)


def attributes_at(directory: int, name: str) -> int:
    """Return the attributes of an entry of an open directory, without following a link.

    Args:
        name: empty for the directory itself.

    Returns:
        Bits such as `IMMUTABLE`; 0 if the kernel or the file system reports none.

    Raises:
        OSError: the entry does not exist, or the file system fails.
    """
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    flags = _AT_SYMLINK_NOFOLLOW | _AT_NO_AUTOMOUNT | (0 if name else _AT_EMPTY_PATH)
    if not _statx_into(buffer, directory, os.fsencode(name), flags, 0):
        return 0
    (attributes,) = struct.unpack_from("=Q", buffer, _ATTRIBUTES_AT)
    (mask,) = struct.unpack_from("=Q", buffer, _ATTRIBUTES_MASK_AT)
    return int(attributes & mask)


def _statx_into(
    buffer: "ctypes.Array[ctypes.c_char]", directory: int, name: bytes, flags: int, wanted: int
) -> bool:
    """Call statx; return False if it is not available."""
    function = getattr(LIBC, "statx", None)  # glibc 2.28, musl 1.2.5
    if function is None:
        return False
    if function(directory, name, flags, wanted, buffer) == 0:
        return True
    number = ctypes.get_errno()
    if not has_statx():
        return False
    raise OSError(number, os.strerror(number))


@lru_cache(maxsize=1)
def has_statx() -> bool:
    """Return whether statx works; it does not behind a seccomp filter or on a kernel before 4.11.

    Only the system call itself returns EFAULT for an unreadable address; a filter returns another
    errno. The function of the C library is unsuitable, because glibc emulates a missing statx by
    fstatat. On an architecture whose call number is unknown, statx is assumed to work.
    """
    number = _STATX_NUMBERS.get(os.uname().machine)
    if number is None:
        return True
    zero = ctypes.c_long(0)
    LIBC.syscall(ctypes.c_long(number), zero, None, zero, zero, None)
    return ctypes.get_errno() == errno.EFAULT


def cached_links(descriptor: int) -> int | None:
    """Return the cached link count of an open file without a request to a server; None if unknown.

    Network and FUSE file systems set it to 0 in the cached inode when this machine removes the
    directory, but not when another machine does (clear_nlink in fs/nfs/dir.c and fs/fuse/dir.c).
    """
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    function = getattr(LIBC, "statx", None)
    flags = _AT_EMPTY_PATH | _AT_STATX_DONT_SYNC
    if function is None or function(descriptor, b"", flags, _STATX_NLINK, buffer) != 0:
        return None
    (mask,) = struct.unpack_from("=I", buffer, _MASK_AT)
    (links,) = struct.unpack_from("=I", buffer, _NLINK_AT)
    return int(links) if mask & _STATX_NLINK else None


def current_links(descriptor: int) -> int:
    """Return the link count of an open file; a server is asked even if its last answer is fresh.

    Raises:
        OSError: the file system fails; with ESTALE or ENOENT a server no longer has the file.
    """
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    flags = _AT_EMPTY_PATH | _AT_STATX_FORCE_SYNC
    if not _statx_into(buffer, descriptor, b"", flags, _STATX_NLINK):
        return os.fstat(descriptor).st_nlink
    (links,) = struct.unpack_from("=I", buffer, _NLINK_AT)
    return int(links)


def exists_on_server(path: str) -> bool:
    """Return whether a path leads to something; a server is asked even if its last answer is fresh.

    Raises:
        OSError: the file system fails.
    """
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    flags = _AT_SYMLINK_NOFOLLOW | _AT_NO_AUTOMOUNT | _AT_STATX_FORCE_SYNC
    try:
        is_known = _statx_into(buffer, _AT_FDCWD, os.fsencode(path), flags, _STATX_NLINK)
    except FileNotFoundError:
        return False
    return is_known or os.path.lexists(path)


def is_removed_on_overlay(descriptor: int) -> bool:
    """Return whether an open directory of an overlay has been removed.

    The link count is still that of the layer, so this checks for the suffix that the kernel appends
    to the path. A directory whose real name ends in that suffix exists at that path.
    """
    if not _is_on_overlay(descriptor):
        return False
    path = os.readlink(f"/proc/self/fd/{descriptor}")
    if not path.endswith(_DELETED):
        return False
    try:
        return not os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return True


def _is_on_overlay(descriptor: int) -> bool:
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    checked(LIBC.fstatfs(descriptor, buffer))
    (kind,) = struct.unpack_from("@l", buffer)  # f_type, a long on all architectures but s390
    return bool(kind == _OVERLAYFS_MAGIC)


_FS_IOC_GETFLAGS = 0x80086601
_FS_IOC_SETFLAGS = 0x40086602
_TOP_OF_TREES = 0x20000
"""FS_TOPDIR_FL of linux/fs.h."""


def inode_flags(descriptor: int) -> int | None:
    """Return the inode flags of an open file, None if the file system has none."""
    try:
        answer = fcntl.ioctl(descriptor, _FS_IOC_GETFLAGS, b"\0\0\0\0\0\0\0\0")
    except OSError:
        return None
    (flags,) = struct.unpack("=I4x", answer)
    return int(flags)


def spread_subdirectories(directory: int) -> None:
    """Have ext4 spread new subdirectories over its block groups.

    With this flag ext4 chooses the group by the name of the subdirectory. Without it, new files get
    inodes next to those just deleted. Without a journal ext4 does not reuse recently deleted inodes
    and tests them one by one: creating twenty directories of 10,000 files took 46 s instead of 4.
    Other file systems have no such flag.
    """
    flags = inode_flags(directory)
    if flags is not None:
        with contextlib.suppress(OSError):
            fcntl.ioctl(directory, _FS_IOC_SETFLAGS, struct.pack("=I4x", flags | _TOP_OF_TREES))
