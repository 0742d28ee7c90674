"""Set access control lists on files, without setfacl."""

import os
import struct
from pathlib import Path

from tui_fs.linux.permissions import XATTR

NAMED_USER, NAMED_GROUP = 0x02, 0x08
_USER_OBJ, _GROUP_OBJ, _MASK, _OTHER = 0x01, 0x04, 0x10, 0x20
_NO_ID = 0xFFFFFFFF


def acl(tag: int, identifier: int, permissions: int = 7, mask: int = 7) -> bytes:
    """Return the attribute of a list with one named entry."""
    entries = [(_USER_OBJ, 7, _NO_ID), (_GROUP_OBJ, 5, _NO_ID), (_MASK, mask, _NO_ID)]
    entries += [(_OTHER, 5, _NO_ID), (tag, permissions, identifier)]
    packed = b"".join(struct.pack("<HHI", *entry) for entry in sorted(entries))
    return struct.pack("<I", 2) + packed


def grant(path: Path, tag: int, identifier: int, permissions: int = 7, mask: int = 7) -> None:
    """Set an access control list with one named entry on a file."""
    os.setxattr(path, XATTR, acl(tag, identifier, permissions, mask))
