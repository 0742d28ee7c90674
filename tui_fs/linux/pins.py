"""Take the identity of a directory without following symlinks."""

import os

from tui_fs.linux.statx import statx
from tui_fs.model.errors import Missing, TuiFsError
from tui_fs.model.paths import displayable
from tui_fs.model.target import Pin

_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


def take_pin(path: str) -> Pin:
    """Return the pin of the directory at `path`.

    Raises:
        OSError: it cannot be opened, is a symlink (ELOOP) or not a directory (ENOTDIR).
    """
    descriptor = open_path_fd(path)
    try:
        return pin_of(descriptor)
    finally:
        os.close(descriptor)


def open_path_fd(path: str) -> int:
    """Return an O_PATH descriptor of a directory; raises like `take_pin`.

    Args:
        path: canonical and absolute; a symbolic link anywhere in it is an error.
    """
    descriptor = os.open("/", _FLAGS)
    for name in filter(None, path.split("/")):
        above = descriptor
        try:
            descriptor = os.open(name, _FLAGS, dir_fd=above)
        finally:
            os.close(above)
    return descriptor


def pin_of(descriptor: int) -> Pin:
    """Return the pin of an open directory."""
    status, more = os.fstat(descriptor), statx(descriptor)
    mount_id = _mount_id(descriptor) if more.mount_id is None else more.mount_id
    return Pin(status.st_dev, status.st_ino, mount_id, more.birth_ns)


def _mount_id(descriptor: int) -> int:
    """Return the mount id of a descriptor if statx lacks it (from fdinfo, Linux 3.15)."""
    path = f"/proc/self/fdinfo/{descriptor}"
    try:
        with open(path, encoding="ascii") as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if name == "mnt_id":
                    return int(value)
    except FileNotFoundError as error:
        raise Missing(
            "Neither statx(2) nor /proc reports the mount of a directory.",
            "Mount /proc: mount -t proc proc /proc.",
        ) from error
    raise TuiFsError(f"The kernel reports no mount ID in {displayable(path)}.")
