"""What one entry of a file in ncdu's format says, checked: it may say anything."""

import math
import os
import stat

from tui_fs.model.errors import BadInput
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.survey import Child, EntryKind, Totals
from tui_fs.survey.ncdu_format import Item

LARGEST_NUMBER = (1 << 63) - 1
"""No file is larger (loff_t); a sum of sizes beyond it is no sum of sizes on one machine."""

NAME_BYTES = 4_096
"""Linux has 255 at most; other systems have more."""

_UNKNOWN_LINKS = (1 << 31) - 1
"""Of a hard link of whose names the file does not tell how many there are (ncdu before 1.16)."""

BLOCK_BYTES = 512
"""The unit of st_blocks; a dsize that is no multiple of it is rounded up."""

_TYPE_BITS = 0o170000
"""S_IFMT of inode(7); stat.S_IFMT raises OverflowError for numbers beyond 32 bits."""

_KINDS = {stat.S_IFREG: EntryKind.FILE, stat.S_IFLNK: EntryKind.SYMLINK}


def root_name_of(item: Item, shown: str) -> bytes:
    """Return the absolute path of the top directory; a relative one is put below /."""
    name = _text_bytes(item.get("name"))
    if not name or b"\0" in name:
        raise BadInput(f"{shown} is damaged: its top directory has no name.", "Export it anew.")
    return os.path.normpath(b"/" + name.lstrip(b"/"))


def name_of(item: Item) -> bytes:
    """Return the name; BadInput if no file can be called so."""
    name = _text_bytes(item.get("name"))
    is_wrong = b"/" in name or b"\0" in name or name in (b"", b".", b"..")
    if is_wrong or len(name) > NAME_BYTES:
        wrong = f"{displayable(name[:100])} is not a valid name" if name else "an entry has no name"
        raise BadInput(f"The imported file is damaged: {wrong}.", "Export it anew.")
    return name


def _text_bytes(text: object) -> bytes:
    if not isinstance(text, str):
        return b""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a character, which JSON can spell
        return text.encode("utf-8", "replace")


def number_of(value: object, otherwise: int = 0) -> int:
    """Return a number from 0 to what 63 bits hold; `otherwise` if it is none."""
    if type(value) is int:
        if 0 <= value <= LARGEST_NUMBER:
            return value
        return 0 if value < 0 else LARGEST_NUMBER
    if type(value) is float and math.isfinite(value):
        return min(max(int(value), 0), LARGEST_NUMBER)
    return otherwise


def blocks_of(item: Item) -> int:
    """Return the allocated size in blocks of `BLOCK_BYTES`."""
    return -(-number_of(item.get("dsize")) // BLOCK_BYTES)


def mode_of(item: Item) -> int:
    """Return the type of an entry that is no directory, as far as the file tells it."""
    kind = number_of(item.get("mode")) & _TYPE_BITS
    if kind in _KINDS:
        return kind
    is_seen = not item.get("excluded") and item.get("read_error") is not True
    is_plain = kind == 0 and item.get("notreg") is not True
    return stat.S_IFREG if is_seen and is_plain else stat.S_IFIFO


def status_of(mode: int, item: Item, device: int, owner: int) -> os.stat_result:
    """Return what stat would have said where this was exported."""
    links, inode = 1, number_of(item.get("ino"))
    if inode and mode != stat.S_IFDIR:
        links = max(1, number_of(item.get("nlink")))
        if links == 1 and item.get("hlnkc") is True:
            links = _UNKNOWN_LINKS
    modified_s = number_of(item.get("mtime"))
    return os.stat_result(
        (mode, inode, device, links, owner, 0, number_of(item.get("asize")), 0, modified_s, 0),
        {"st_blocks": blocks_of(item)},
    )


def child_of(item: Item) -> Child:
    """Return an entry that is no directory as it is listed."""
    kind = _KINDS.get(mode_of(item), EntryKind.OTHER)
    modified_s = number_of(item.get("mtime")) or None
    return Child(
        PathStr(os.fsdecode(name_of(item))),
        kind,
        Totals(
            files=int(kind is EntryKind.FILE),
            symlinks=int(kind is EntryKind.SYMLINK),
            other=int(kind is EntryKind.OTHER),
            apparent_bytes=number_of(item.get("asize")),
            allocated_bytes=blocks_of(item) * BLOCK_BYTES,
        ),
        True,
        oldest_s=modified_s,
        newest_s=modified_s,
    )
