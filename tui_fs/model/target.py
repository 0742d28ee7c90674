"""What the user chose, and how it is recognised again."""

from dataclasses import dataclass

from tui_fs.model.paths import PathStr


@dataclass(frozen=True, slots=True)
class Pin:
    """The identity of a directory at the moment of confirming."""

    device: int
    inode: int
    mount_id: int


@dataclass(frozen=True, slots=True)
class Target:
    """A directory that may be deleted: its canonical absolute path and its pin."""

    path: PathStr
    pin: Pin
