"""Read POSIX access control lists: who may write besides the owner and the owning group."""

import errno
import os
import struct
from dataclasses import dataclass

XATTR = "system.posix_acl_access"

_VERSION = 2  # POSIX_ACL_XATTR_VERSION of linux/posix_acl_xattr.h
_HEADER = struct.Struct("<I")
_ENTRY = struct.Struct("<HHI")
"""Tag, permissions, user or group ID."""
_NAMED_USER, _NAMED_GROUP, _MASK = 0x02, 0x08, 0x10
_WRITE = 0x02
_WITHOUT_ACL = (errno.ENODATA, errno.EOPNOTSUPP)


@dataclass(frozen=True, slots=True)
class NamedWriters:
    """The users and groups to which an access control list grants write access by name."""

    uids: tuple[int, ...] = ()
    gids: tuple[int, ...] = ()


def named_writers(location: str | int) -> NamedWriters | None:
    """Return who may write by name, None if that is unknown.

    Args:
        location: a path, or a descriptor that is not opened with O_PATH. A symbolic link at the
            end of a path is not followed.
    """
    try:
        if isinstance(location, int):
            value = os.getxattr(location, XATTR)
        else:
            value = os.getxattr(location, XATTR, follow_symlinks=False)
    except OSError as error:
        return NamedWriters() if error.errno in _WITHOUT_ACL else None
    return parse(value)


def parse(value: bytes) -> NamedWriters | None:
    """Return who may write according to the value of the attribute, None if it is malformed."""
    body = value[_HEADER.size :]
    if len(value) < _HEADER.size or len(body) % _ENTRY.size:
        return None
    if _HEADER.unpack_from(value)[0] != _VERSION:
        return None
    entries = list(_ENTRY.iter_unpack(body))
    mask = next((permissions for tag, permissions, _ in entries if tag == _MASK), _WRITE)

    def writers(wanted: int) -> tuple[int, ...]:
        return tuple(
            identifier
            for tag, permissions, identifier in entries
            if tag == wanted and permissions & mask & _WRITE
        )

    return NamedWriters(writers(_NAMED_USER), writers(_NAMED_GROUP))
