"""Attributes of a directory: those that recreate copies, and those that it only compares."""

import errno
import fcntl
import os
import stat
import struct
from collections.abc import Callable

from msgspec import Struct

from tui_fs.model.errors import Refused
from tui_fs.model.paths import displayable

# linux/fs.h. FS_IOC_GETFLAGS writes an int, although its number encodes a long.
_GETFLAGS, _FSGETXATTR = 0x80086601, 0x801C581F
_FLAGS = struct.Struct("=I4x")
_FSXATTR = struct.Struct("=IIIII8x")  # flags, extent size, extents, project, copy extent size

# Flags by which the file system records how it stores a directory. ext4: dirty, compressed blocks,
# index, huge file, extents, attribute inode and inline data. xfs: "has preallocated blocks" and
# "has attributes".
_KEPT_BY_KERNEL = 0x100 | 0x200 | 0x1000 | 0x40000 | 0x80000 | 0x200000 | 0x10000000
_KEPT_BY_KERNEL_X = 0x2 | 0x80000000

_FLAGS_LABEL = "inode flags"
_HAS_NONE = (errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


class Attributes(Struct, frozen=True):
    """The attributes of a directory.

    Attributes:
        mode: the permission bits with setgid and sticky.
        extended: all extended attributes that this user can read, including access lists; only
            root can read ``trusted.*``.
        flags: from FS_IOC_GETFLAGS; None if the file system does not support it.
        further_flags: from FS_IOC_FSGETXATTR: flags, extent size, project, copy extent size; None
            if the file system does not support it.
    """

    uid: int
    gid: int
    mode: int
    extended: dict[str, bytes]
    flags: int | None
    further_flags: tuple[int, ...] | None
    accessed_ns: int
    modified_ns: int


def read_attributes(descriptor: int) -> Attributes:
    """Return the attributes of a directory that is open for reading.

    Raises:
        OSError: an attribute cannot be read.
    """
    status = os.fstat(descriptor)
    return Attributes(
        uid=status.st_uid,
        gid=status.st_gid,
        mode=stat.S_IMODE(status.st_mode),
        extended={name: os.getxattr(descriptor, name) for name in _names(descriptor)},
        flags=_read_flags(descriptor),
        further_flags=_read_further_flags(descriptor),
        accessed_ns=status.st_atime_ns,
        modified_ns=status.st_mtime_ns,
    )


def give(descriptor: int, wanted: Attributes) -> None:
    """Set these attributes on a new directory, and check the result.

    Inode flags and the quota project are compared, not copied: a new directory inherits its own.

    Raises:
        Refused: an attribute cannot be set; the sentence names it (rule "attribute").
    """
    # The owner comes first: chown may clear the setgid bit. The mode follows the access list,
    # which sets the group bits of the mode. The times come last.
    _try("owner", lambda: os.chown(descriptor, wanted.uid, wanted.gid))
    inherited = read_attributes(descriptor).extended
    for name in sorted(set(inherited) - set(wanted.extended)):
        if name in _names(descriptor):  # xfs lists an access list under two names
            _try(name, lambda name=name: os.removexattr(descriptor, name))  # type: ignore[misc]
    for name, value in wanted.extended.items():
        if inherited.get(name) != value:
            _try(name, lambda n=name, v=value: os.setxattr(descriptor, n, v))  # type: ignore[misc]
    _try("mode", lambda: os.chmod(descriptor, wanted.mode))
    times = (wanted.accessed_ns, wanted.modified_ns)
    _try("times", lambda: os.utime(descriptor, ns=times))
    lacking = differences(read_attributes(descriptor), wanted)
    if lacking and lacking[0].startswith(_FLAGS_LABEL):
        raise Refused(
            "The directory has inode flags that a new directory here does not get, or its quota "
            "project differs from that of its parent.",
            (
                "Nothing was changed. Compare it with its parent by lsattr -pd, and make them "
                "equal with chattr."
            ),
            rule="attribute",
        )
    if lacking:
        raise _cannot_copy(lacking[0], "the file system set another value")


def differences(first: Attributes, second: Attributes) -> tuple[str, ...]:
    """Return the names of the attributes that differ; the times are not compared."""
    pairs: list[tuple[str, object, object]] = [
        ("owner", first.uid, second.uid),
        ("group", first.gid, second.gid),
        ("mode", first.mode, second.mode),
        (_FLAGS_LABEL, first.flags, second.flags),
        (f"{_FLAGS_LABEL} or project", first.further_flags, second.further_flags),
    ]
    pairs += [
        (name, first.extended.get(name), second.extended.get(name))
        for name in sorted({*first.extended, *second.extended})
    ]
    return tuple(name for name, first_value, second_value in pairs if first_value != second_value)


def _try(name: str, action: Callable[[], None]) -> None:
    try:
        action()
    except OSError as error:
        raise _cannot_copy(name, os.strerror(error.errno or 0)) from error


def _cannot_copy(name: str, reason: str) -> Refused:
    return Refused(
        f"The directory's attribute {displayable(name)} cannot be copied: {reason}.",
        "Nothing was changed; only root can copy all attributes of every directory.",
        rule="attribute",
    )


def _names(descriptor: int) -> list[str]:
    try:
        return os.listxattr(descriptor)
    except OSError as error:
        if error.errno not in _HAS_NONE:
            raise
        return []


def _ioctl(descriptor: int, request: int, layout: struct.Struct) -> tuple[int, ...] | None:
    try:
        return layout.unpack(fcntl.ioctl(descriptor, request, bytes(layout.size)))
    except OSError as error:
        if error.errno not in _HAS_NONE:
            raise
        return None


def _read_flags(descriptor: int) -> int | None:
    fields = _ioctl(descriptor, _GETFLAGS, _FLAGS)
    return None if fields is None else fields[0] & ~_KEPT_BY_KERNEL


def _read_further_flags(descriptor: int) -> tuple[int, ...] | None:
    fields = _ioctl(descriptor, _FSGETXATTR, _FSXATTR)
    if fields is None:
        return None
    flags, extent_size_bytes, _, project, copy_extent_size_bytes = fields
    return flags & ~_KEPT_BY_KERNEL_X, extent_size_bytes, project, copy_extent_size_bytes
