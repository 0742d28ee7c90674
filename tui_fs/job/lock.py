"""Locks that show whether a job's starter, supervisor or tools still run.

The kernel releases a lock when its processes end.

The lock file has three bytes, each with an open-file-description lock (fcntl_locking(2)):

- Byte 0 belongs to the supervisor alone: a forked child closes that descriptor at once. Views
  show a job as died when this byte is free.
- Byte 1 is inherited by the launcher, and by its forked tools until they execute. It stays locked
  after the supervisor was killed, until the launcher has killed the tools. No other job enters
  the targets meanwhile.
- Byte 2 belongs to the starter, from before the job is listed until the supervisor is ready or has
  failed. A job whose bytes 0 and 2 are free has no process that could begin it.

A POSIX record lock does not suffice: it is dropped when its process closes any descriptor of the
file, as every list of jobs does. The kernel reports -1 as the holder of an open-file-description
lock; the supervisor's process id is in the first line of the journal.
"""

import fcntl
import os
import struct

from tui_fs.model.errors import JobFailed
from tui_fs.model.paths import displayable

_FLOCK = "hhqqi4x"  # struct flock: l_type, l_whence, l_start, l_len, l_pid (must be 0)
_SUPERVISOR_BYTE, _TOOLS_BYTE, _STARTER_BYTE = 0, 1, 2


class SupervisorLock:
    """The lock of one job's supervisor.

    Raises:
        BlockingIOError: another process has it.
        JobFailed: the file system has no locks.
    """

    def __init__(self, path: str) -> None:
        self._tools = _open_locked(path, _TOOLS_BYTE)
        try:
            self._supervisor = _open_locked(path, _SUPERVISOR_BYTE)
        except BaseException:
            os.close(self._tools)
            raise
        os.register_at_fork(after_in_child=self._close_supervisor)

    def release(self) -> None:
        """Unlock both bytes at the end of the supervisor."""
        self._close_supervisor()
        if self._tools >= 0:
            os.close(self._tools)
            self._tools = -1

    def _close_supervisor(self) -> None:
        if self._supervisor >= 0:
            os.close(self._supervisor)
            self._supervisor = -1  # the hook for forks stays registered


class StarterLock:
    """The lock of the process that starts a job; a context that releases it."""

    def __init__(self) -> None:
        self._descriptor = -1

    def take(self, path: str) -> None:
        """Create the lock file of a new job and lock the starter's byte.

        Raises:
            OSError: the file cannot be created.
            JobFailed: the file system has no locks.
        """
        self._descriptor = _open_locked(path, _STARTER_BYTE)

    def __enter__(self) -> "StarterLock":
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def has_starter(path: str) -> bool:
    """Return whether the job with this lock file is being started.

    Raises:
        JobFailed: the file system has no locks.
    """
    return _is_locked(path, _STARTER_BYTE, 1)


def has_supervisor(path: str) -> bool:
    """Return whether the supervisor of the job with this lock file runs.

    Raises:
        JobFailed: the file system has no locks.
    """
    return _is_locked(path, _SUPERVISOR_BYTE, 1)


def is_occupied(path: str) -> bool:
    """Return whether the supervisor, the launcher or a forked tool of the job runs.

    Raises:
        JobFailed: the file system has no locks.
    """
    return _is_locked(path, _SUPERVISOR_BYTE, 2)


def no_locks(path: str, error: OSError) -> JobFailed:
    """Return the error for a file that cannot be locked, as on NFS without a lock service."""
    return JobFailed(
        f"{displayable(path)} cannot be locked: {os.strerror(error.errno or 0)}.",
        "Set XDG_STATE_HOME to a directory on a local file system, or start the lock service "
        "of the network file system.",
    )


def _open_locked(path: str, byte: int) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        lock = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, lock)
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError as error:
        os.close(descriptor)
        raise no_locks(path, error) from error
    return descriptor


def _is_locked(path: str, first: int, length: int) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise JobFailed(
            f"{displayable(path)} cannot be opened: {os.strerror(error.errno or 0)}."
        ) from error
    try:
        query = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, first, length, 0)
        answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, query)
    except OSError as error:
        raise no_locks(path, error) from error
    finally:
        os.close(descriptor)
    kind = struct.unpack(_FLOCK, answer)[0]
    return bool(kind != fcntl.F_UNLCK)
