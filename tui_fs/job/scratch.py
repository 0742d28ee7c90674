"""A private scratch directory that is removed even if its process is killed.

Calibration creates it next to a target, and the lab for a run. It is created only where no other
user can replace it, and used by its descriptor. A record is written before: the next process that
uses the same file system removes what a killed process left, if it still matches the record.
"""

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Callable, Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from tui_fs.job.store import (
    is_private,
    require_private,
    state_directory,
    sync_directory,
)
from tui_fs.linux.descriptors import closing
from tui_fs.linux.directories import open_directory
from tui_fs.linux.host import boot_id, current_host
from tui_fs.linux.permissions import may, protects_new_entries, replaceable_part
from tui_fs.linux.pins import open_by_path, open_path_fd
from tui_fs.linux.statx import APPEND_ONLY, IMMUTABLE, inode_flags, statx
from tui_fs.model.codec import decode, encode
from tui_fs.model.errors import BadInput, Refused
from tui_fs.model.host import Host, Locality, locality_of
from tui_fs.model.paths import PathStr, displayable, is_within, upwards

PREFIX = ".tui-fs-scratch-"
_NOT_IN = ("/boot", "/dev", "/etc", "/proc", "/sys", "/usr")
"""Other programs watch or read new entries in these directories."""
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class _Record(Struct, frozen=True):
    """A scratch directory that is about to be created, or was created.

    Attributes:
        boot: the boot id; without a birth time the record is valid only during that boot.
        inode: None before the creation: then there is at most an empty directory.
        host: the host that creates it; the path is valid only there.
    """

    path: PathStr
    device: int
    boot: str
    inode: int | None = None
    birth_ns: int | None = None
    host: Host = field(default_factory=Host)


def place_beside(target: str) -> PathStr | None:
    """Return the nearest suitable directory above on the same file system, None if none is.

    It is suitable if no other user can replace entries created in it, and if it is no system
    directory.
    """
    device = os.lstat(target).st_dev
    for place in upwards(os.path.dirname(target)):
        if os.lstat(place).st_dev != device:
            return None
        if not any(is_within(place, excluded) for excluded in _NOT_IN) and _is_safe(place):
            return PathStr(place)
    return None


def _is_safe(place: str) -> bool:
    uid, status = os.geteuid(), os.lstat(place)
    if place != "/" and replaceable_part(place, uid) is not None:
        return False
    is_writable = may(place, os.W_OK | os.X_OK)
    return is_writable and protects_new_entries(status, uid, place)


class Scratch:
    """A new empty directory at `path`, open as `descriptor`.

    Args:
        above: the canonical absolute path of its parent.
        device: the device that it must be on.

    Raises:
        OSError: it cannot be created there.
        Refused: it could not be removed again, or would not be private to this user.
    """

    def __init__(self, above: str, device: int) -> None:
        self.descriptor = -1
        self._name = PREFIX + os.urandom(6).hex()
        shown = displayable(above)
        self._above = open_by_path(above)
        if not protects_new_entries(os.fstat(self._above), os.geteuid(), self._above):
            raise Refused(
                f"Other users could replace directories made in {shown}.",
                "Check its owner and mode.",
                rule="races",
            )
        if (inode_flags(self._above) or 0) & (APPEND_ONLY | IMMUTABLE):
            raise Refused(
                f"Entries created in {shown} could not be removed again.",
                "Remove its append-only or immutable flag first: chattr -a -i.",
            )
        path = PathStr(os.path.join(above, self._name))
        made = _Record(path, device, boot_id(), host=current_host())
        self.path = made.path
        self._record, self._lock = _begun(made)
        try:
            os.mkdir(self._name, 0o700, dir_fd=self._above)
            self.descriptor = open_directory(self._name, self._above)
            status = os.fstat(self.descriptor)
            is_own = status.st_uid == os.geteuid() and status.st_mode & 0o777 == 0o700
            if not is_own or status.st_dev != device or os.listdir(self.descriptor):
                raise Refused(f"A directory created in {shown} was not private to you.")
            birth_ns = statx(self.descriptor).birth_ns
            _write(self._lock, replace(made, inode=status.st_ino, birth_ns=birth_ns))
        except BaseException:  # a signal, too
            with contextlib.suppress(OSError):  # not created, or not empty and so not ours
                os.rmdir(self._name, dir_fd=self._above)
            os.unlink(self._record)
            raise

    def remove(self) -> None:
        """Remove the directory and its contents; safe to repeat, also from a forked process.

        Raises:
            OSError: an entry could not be removed; the record stays.
        """
        empty_directory(self.descriptor)
        _remove_name(self._above, self._name, os.fstat(self.descriptor))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._record)


def remove_left_over(device: int) -> None:
    """Remove scratch directories that killed processes left on a device, if they match the record.

    Raises:
        Refused: an entry could not be removed; the record stays.
    """
    for record, made in _left_over():
        if made is not None and (made.device != device or _is_of_other_host(made)):
            continue  # do not touch it: its file system may not answer
        try:
            if made is not None:
                _remove_if_same(made)
        except OSError as error:
            shown, reason = displayable(made.path if made is not None else ""), error.strerror
            raise Refused(
                f"The left-over scratch directory {shown} cannot be removed: {reason or error}."
            ) from error
        with contextlib.suppress(FileNotFoundError):
            os.unlink(record)


def _is_of_other_host(made: _Record) -> bool:
    return locality_of(made.host, current_host()) is Locality.OTHER_HOST


def _begun(record: _Record) -> tuple[str, int]:
    """Write the record of a new directory; return its path and its locked descriptor."""
    place = _records()
    require_private(place)
    path = os.path.join(place, f"{os.path.basename(record.path).removeprefix(PREFIX)}.json")
    lock = os.open(path, _NEW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.fstat(lock).st_nlink:  # another process took it for left over and removed it
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        _write(lock, record)
        sync_directory(place)
    except BaseException:  # a signal, too
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        raise
    return path, lock


def _write(descriptor: int, record: _Record) -> None:
    """Append a line: the line before stays valid if this one is torn."""
    os.write(descriptor, json.dumps(encode(record)).encode() + b"\n")
    os.fsync(descriptor)


def _left_over() -> Iterator[tuple[str, _Record | None]]:
    """Yield the files of ended processes with their records, None if a record is incomplete."""
    place = _records()
    if not is_private(place):
        return  # do not trust records that another user may have written
    for name in sorted(os.listdir(place)):
        path = os.path.join(place, name)
        with contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(open(path, "rb"))
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (FileNotFoundError, BlockingIOError):
                continue  # its process has just removed it, or still runs
            yield path, _last_whole(file.read())


def _last_whole(content: bytes) -> _Record | None:
    for line in reversed(content.split(b"\n")):
        with contextlib.suppress(ValueError, RecursionError, BadInput):
            return decode(_Record, json.loads(line))
    return None


def _remove_if_same(made: _Record) -> None:
    above, name = os.path.split(made.path)
    if not name.startswith(PREFIX) or "\0" in made.path or not os.path.isabs(above):
        return
    try:
        above_fd = open_path_fd(above)
    except (FileNotFoundError, NotADirectoryError):
        return  # gone with its parent
    with closing(above_fd):
        if made.inode is None:
            with contextlib.suppress(OSError):  # never created, or not empty
                os.rmdir(name, dir_fd=above_fd)
            return
        try:
            directory_fd = open_directory(name, above_fd)
        except (FileNotFoundError, NotADirectoryError):
            return
        with closing(directory_fd):
            if _is_same(directory_fd, made):
                empty_directory(directory_fd)
                _remove_name(above_fd, name, os.fstat(directory_fd))


def _is_same(directory_fd: int, made: _Record) -> bool:
    status, birth_ns = os.fstat(directory_fd), statx(directory_fd).birth_ns
    return (
        (status.st_dev, status.st_ino) == (made.device, made.inode)
        and status.st_uid == os.geteuid()
        and status.st_mode & 0o777 == 0o700
        and birth_ns == made.birth_ns
        and (birth_ns is not None or made.boot == boot_id())
    )


def empty_directory(directory: int) -> None:
    """Remove the contents of an open directory; follow neither links nor mounts.

    Deeper directories are first moved up into the directory itself, so there is no depth limit.

    Raises:
        OSError: an entry could not be removed, or something is mounted there.
    """
    device = os.fstat(directory).st_dev

    def thin_out(name: str) -> None:
        with closing(open_directory(name, directory)) as directory_fd:
            if os.fstat(directory_fd).st_dev != device:
                raise OSError(f"something is mounted at {displayable(name)}")
            if not _sift(directory_fd, lambda below: move_up(below, directory_fd)):
                os.rmdir(name, dir_fd=directory)  # succeeds if it is empty, else raises

    def move_up(name: str, above: int) -> None:
        fresh = os.urandom(8).hex()
        os.rename(name, fresh, src_dir_fd=above, dst_dir_fd=directory)

    while _sift(directory, thin_out):
        pass


def _sift(directory: int, on_full: Callable[[str], object]) -> bool:
    """Remove the files and empty directories in an open directory; pass the rest to `on_full`.

    Returns:
        Whether anything was in it.
    """
    has_entries = False
    # On btrfs a descriptor lists only the entries that existed when it was opened.
    with closing(open_directory(".", directory)) as fresh, os.scandir(fresh) as entries:
        for entry in entries:
            has_entries = True
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.name, dir_fd=fresh)
            elif not _is_removed(entry.name, fresh):
                on_full(entry.name)
    return has_entries


def _is_removed(name: str, above: int) -> bool:
    try:
        os.rmdir(name, dir_fd=above)
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise OSError(f"something is mounted at {displayable(name)}") from error
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


def _remove_name(above: int, name: str, status: os.stat_result) -> None:
    with contextlib.suppress(FileNotFoundError):  # removed already
        now = os.stat(name, dir_fd=above, follow_symlinks=False)
        if (now.st_dev, now.st_ino) == (status.st_dev, status.st_ino):
            os.rmdir(name, dir_fd=above)


def _records() -> str:
    return os.path.join(state_directory(), "scratch")
