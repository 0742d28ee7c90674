"""A place as it is shown: from the directory above it, or with its file system."""

from rich.text import Text

from tui_fs.linux.filesystem import FileSystem
from tui_fs.model.paths import displayable, is_within
from tui_fs.model.units import bytes_iec, short_count

_NEARLY_FULL = 0.95


def shown_below(path: str, base: str) -> str:
    """Return the way from a directory to something in it, displayable; else the whole path."""
    if path == base:
        return "./"
    return displayable(path[len(base.rstrip("/")) + 1 :] if is_within(path, base) else path)


def place_note(filesystem: FileSystem) -> Text:
    """Return type, source, free space and free inodes; what is nearly gone is marked with !."""
    source = displayable(filesystem.source)
    where = f"{filesystem.kind} on {source}" if source.startswith("/") else filesystem.kind
    note = Text(where)
    if filesystem.is_read_only:
        note.append(" · read-only !", "bold")
    available = filesystem.available_bytes
    if available is None or not filesystem.total_bytes:
        note.append(" · free space not known", "dim")
        return note
    used = 1 - available / filesystem.total_bytes
    _append(note, f"{bytes_iec(available)} free", used)
    if filesystem.total_inodes and filesystem.free_inodes is not None:
        used = 1 - filesystem.free_inodes / filesystem.total_inodes
        noun = "inode" if filesystem.free_inodes == 1 else "inodes"
        _append(note, f"{short_count(filesystem.free_inodes)} {noun}", used)
    return note


def _append(note: Text, words: str, used: float) -> None:
    note.append(" · ", "dim")
    note.append(words, "bold" if used >= _NEARLY_FULL else "")
    if used >= _NEARLY_FULL:
        note.append(" !", "bold")
