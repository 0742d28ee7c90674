"""Take the identity of a directory or file without following symlinks."""

import os
import stat

from tui_fs.linux.descriptors import closing
from tui_fs.linux.directories import open_directory
from tui_fs.linux.statx import statx
from tui_fs.model.errors import Missing, TuiFsError
from tui_fs.model.paths import displayable
from tui_fs.model.target import Pin

_ANY_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_FLAGS = _ANY_FLAGS | os.O_DIRECTORY


def path_flags(*, any_kind: bool) -> int:
    """Return the flags of open(2) for a target, which must be a directory without `any_kind`."""
    return _ANY_FLAGS if any_kind else _FLAGS


def take_pin(path: str, *, any_kind: bool = False) -> Pin:
    """Return the pin of the directory at `path`.

    Args:
        any_kind: it may be a file or a symbolic link, too.

    Raises:
        OSError: it cannot be opened, is a symlink (ELOOP) or not a directory (ENOTDIR).
    """
    with closing(open_path_fd(path, any_kind=any_kind)) as descriptor:
        return pin_of(descriptor)


def open_path_fd(path: str, *, any_kind: bool = False) -> int:
    """Return an O_PATH descriptor of a directory; raises like `take_pin`.

    Args:
        path: canonical and absolute; a symbolic link anywhere in it is an error.
        any_kind: the last component may be a file or a symbolic link, too.
    """
    descriptor = os.open("/", _FLAGS)
    names = [name for name in path.split("/") if name]
    for number, name in enumerate(names, 1):
        above = descriptor
        flags = path_flags(any_kind=any_kind and number == len(names))
        with closing(above):
            descriptor = os.open(name, flags, dir_fd=above)
    return descriptor


def open_by_path(path: str) -> int:
    """Open a directory for reading by a path of any length; raises like `take_pin`."""
    with closing(open_path_fd(path)) as descriptor:
        return open_directory(".", descriptor)


def pin_of(descriptor: int) -> Pin:
    """Return the pin of an open directory or file."""
    status, more = os.fstat(descriptor), statx(descriptor)
    mount_id = _mount_id(descriptor) if more.mount_id is None else more.mount_id
    is_file = not stat.S_ISDIR(status.st_mode)
    return Pin(status.st_dev, status.st_ino, mount_id, more.birth_ns, is_file)


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
