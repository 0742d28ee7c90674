"""A file that appears whole or not at all, and never in the place of another one."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable

_BUFFER_BYTES = 1 << 20
_WITHOUT_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""What link says on file systems that have no hard links (vfat, some network file systems)."""


def refuse_taken(path: str, *, overwrites: bool) -> None:
    """Refuse a place where something stands that may not be replaced.

    Raises:
        BadInput: a file stands there and `overwrites` is false, or it is no regular file; or
            nothing can be made there.
    """
    shown = displayable(path)
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        if not os.path.basename(path):
            raise BadInput(f"'{shown}' is not the name of a file.", "Name a file.") from None
        directory = os.path.dirname(path) or "."
        if not os.access(directory, os.W_OK | os.X_OK):
            missing = errno.EACCES if os.path.isdir(directory) else errno.ENOENT
            raise BadInput(f"{shown} cannot be written: {os.strerror(missing)}.") from None
        return
    except (OSError, ValueError) as error:
        raise BadInput(f"{shown} cannot be written: {_reason(error)}.") from error
    if not stat.S_ISREG(status.st_mode):
        raise BadInput(f"{shown} exists and is not a regular file.", "Name another file.")
    if not overwrites:
        raise BadInput(f"{shown} exists already.", "--force replaces it.")


@contextlib.contextmanager
def new_file(path: str, *, overwrites: bool = False) -> Iterator[BinaryIO]:
    """Give a file to write; it takes its name, mode 0600, when all is written and on the disk.

    Nothing is left of it where the block ends with an exception.

    Raises:
        BadInput: see `refuse_taken`; or the directory cannot be written in.
        OSError: writing failed.
    """
    refuse_taken(path, overwrites=overwrites)
    directory, name = os.path.split(path)
    partial = f".tui-fs-export-{os.getpid()}"
    try:
        place = os.open(directory or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise BadInput(f"{displayable(path)} cannot be written: {_reason(error)}.") from error
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(partial, flags, 0o600, dir_fd=place)
        except OSError as error:
            raise BadInput(f"{displayable(path)} cannot be written: {_reason(error)}.") from error
        try:
            with open(descriptor, "wb", buffering=_BUFFER_BYTES) as file:
                yield file
                file.flush()
                os.fsync(descriptor)
            _name(place, partial, name, path, overwrites)
        finally:
            with contextlib.suppress(FileNotFoundError):  # it has its name
                os.unlink(partial, dir_fd=place)
        os.fsync(place)
    finally:
        os.close(place)


def _name(place: int, partial: str, name: str, path: str, overwrites: bool) -> None:
    """Give the written file its name."""
    if not overwrites:
        try:
            os.link(partial, name, src_dir_fd=place, dst_dir_fd=place, follow_symlinks=False)
            return
        except FileExistsError as error:
            raise BadInput(f"{displayable(path)} has appeared meanwhile.", "Try again.") from error
        except OSError as error:
            if error.errno not in _WITHOUT_LINKS:
                raise
    refuse_taken(path, overwrites=overwrites)
    os.rename(partial, name, src_dir_fd=place, dst_dir_fd=place)


def _reason(error: OSError | ValueError) -> str:
    return os.strerror(error.errno or 0) if isinstance(error, OSError) else "it is no path"
