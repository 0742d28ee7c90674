"""Attributes of a directory besides its entries: what recreate copies, and what it refuses."""

import errno
import fcntl
import os
import stat
import struct
from collections.abc import Callable
from dataclasses import dataclass

from tui_fs.model.errors import Refused
from tui_fs.model.paths import displayable

# linux/fs.h; the argument of the first is an int in spite of the long in its number.
_GETFLAGS, _FSGETXATTR = 0x80086601, 0x801C581F
_FLAGS = struct.Struct("=I4x")
_FSXATTR = struct.Struct("=IIIII8x")  # flags, extent size, extents, project, copy extent size

# Flags that tell how a directory is stored, kept by the file system itself: ext4's dirty,
# compressed blocks, index, huge file, extents, attribute inode and inline data; xfs's "has
# preallocated blocks" and "has attributes".
_KEPT_BY_KERNEL = 0x100 | 0x200 | 0x1000 | 0x40000 | 0x80000 | 0x200000 | 0x10000000
_KEPT_BY_KERNEL_X = 0x2 | 0x80000000

_FLAGS_LABEL = "inode flags"
_HAS_NONE = (errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


@dataclass(frozen=True, slots=True)
class Attributes:
    """The attributes of a directory.

    Attributes:
        mode: the permission bits with setgid and sticky.
        extended: all extended attributes that this user may see, access lists among them
            (``trusted.*`` only root sees).
        flags: of FS_IOC_GETFLAGS; None where the file system has none.
        further_flags: of FS_IOC_FSGETXATTR: flags, extent size, project, copy extent size; None
            likewise.
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
    """Give a new directory these attributes, and check that it has them.

    Inode flags and the quota project are not copied, only compared: a new directory has those it
    inherits.

    Raises:
        Refused: one of them cannot be given; the sentence names it (rule "attribute").
    """
    # The owner comes first, as a change of it may clear the setgid bit; the mode after the
    # access list, which sets its middle bits; the times last.
    _try("owner", lambda: os.chown(descriptor, wanted.uid, wanted.gid))
    inherited = read_attributes(descriptor).extended
    for name in sorted(set(inherited) - set(wanted.extended)):
        if name in _names(descriptor):  # xfs shows an access list under two names
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
            "It has inode flags that a new directory does not get here, or its quota project is "
            "not that of the directory that holds it.",
            "Nothing was changed. Compare both with lsattr -pd, and make them equal with chattr.",
            rule="attribute",
        )
    if lacking:
        raise _cannot_copy(lacking[0], "the file system gave it another one")


def differences(one: Attributes, other: Attributes) -> tuple[str, ...]:
    """Return the names of the attributes that differ, times left out."""
    pairs: list[tuple[str, object, object]] = [
        ("owner", one.uid, other.uid),
        ("group", one.gid, other.gid),
        ("mode", one.mode, other.mode),
        (_FLAGS_LABEL, one.flags, other.flags),
        (f"{_FLAGS_LABEL} or project", one.further_flags, other.further_flags),
    ]
    pairs += [
        (name, one.extended.get(name), other.extended.get(name))
        for name in sorted({*one.extended, *other.extended})
    ]
    return tuple(name for name, mine, theirs in pairs if mine != theirs)


def _try(name: str, action: Callable[[], None]) -> None:
    try:
        action()
    except OSError as error:
        raise _cannot_copy(name, os.strerror(error.errno or 0)) from error


def _cannot_copy(name: str, reason: str) -> Refused:
    return Refused(
        f"Its attribute {displayable(name)} cannot be copied: {reason}.",
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


def _ask(descriptor: int, request: int, room: struct.Struct) -> tuple[int, ...] | None:
    try:
        return room.unpack(fcntl.ioctl(descriptor, request, bytes(room.size)))
    except OSError as error:
        if error.errno not in _HAS_NONE:
            raise
        return None


def _read_flags(descriptor: int) -> int | None:
    answer = _ask(descriptor, _GETFLAGS, _FLAGS)
    return None if answer is None else answer[0] & ~_KEPT_BY_KERNEL


def _read_further_flags(descriptor: int) -> tuple[int, ...] | None:
    answer = _ask(descriptor, _FSGETXATTR, _FSXATTR)
    if answer is None:
        return None
    flags, extent_size_bytes, _, project, copy_extent_size_bytes = answer
    return flags & ~_KEPT_BY_KERNEL_X, extent_size_bytes, project, copy_extent_size_bytes
