"""Create a file atomically, without replacing an existing one by accident."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

from tui_fs.linux.descriptors import closing
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable

_BUFFER_BYTES = 1 << 20
_WITHOUT_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""Errors of link(2) on file systems without hard links (vfat, some network file systems)."""


def refuse_taken(path: str, *, overwrites: bool) -> None:
    """Raise BadInput if the file may not be created or replaced.

    Raises:
        BadInput: the file exists and `overwrites` is false, or it is not a regular file; or the
            directory does not allow a new file.
    """
    shown = displayable(path)
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        if not os.path.basename(path):
            raise BadInput(f"'{shown}' is not a file name.", "Name a file.") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{shown} cannot be written: {_reason(error)}.") from error
    else:
        if not stat.S_ISREG(status.st_mode):
            raise BadInput(f"{shown} exists and is not a regular file.", "Name another file.")
        if not overwrites:
            raise BadInput(f"{shown} exists already.", "--force replaces it.")
    directory = os.path.dirname(path) or "."
    if not os.access(directory, os.W_OK | os.X_OK):
        missing = errno.EACCES if os.path.isdir(directory) else errno.ENOENT
        raise BadInput(f"{shown} cannot be written: {os.strerror(missing)}.")


@contextlib.contextmanager
def new_file(path: str, *, overwrites: bool = False) -> Iterator[BinaryIO]:
    """Yield a file to write; it gets its name, mode 0600, after the block and an fsync.

    If the block raises an exception, no file remains.

    Raises:
        BadInput: see `refuse_taken`; or the directory is not writable.
        OSError: writing failed.
    """
    refuse_taken(path, overwrites=overwrites)
    directory, name = os.path.split(path)
    partial = f".tui-fs-export-{os.getpid()}"
    try:
        place = os.open(directory or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise BadInput(f"{displayable(path)} cannot be written: {_reason(error)}.") from error
    with closing(place):
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
            with contextlib.suppress(FileNotFoundError):  # it has been renamed to its final name
                os.unlink(partial, dir_fd=place)
        os.fsync(place)


def _name(place: int, partial: str, name: str, path: str, overwrites: bool) -> None:
    """Link or rename the written file to its final name."""
    if not overwrites:
        try:
            os.link(partial, name, src_dir_fd=place, dst_dir_fd=place, follow_symlinks=False)
            return
        except FileExistsError as error:
            raise BadInput(
                f"Another process created {displayable(path)} meanwhile.",
                "Check that file, or name another one.",
            ) from error
        except OSError as error:
            if error.errno not in _WITHOUT_LINKS:
                raise
    refuse_taken(path, overwrites=overwrites)
    os.rename(partial, name, src_dir_fd=place, dst_dir_fd=place)


def _reason(error: OSError | ValueError) -> str:
    return os.strerror(error.errno or 0) if isinstance(error, OSError) else "it is not a valid path"
