"""Disk space for the end of a job, allocated with its folder.

A journal may be cut off: the disk is full, or the process has reached its limit for the size of a
file. The outcome is then written here, in place, which needs no further space.
"""

import contextlib
import errno
import json
import os
import resource

from tui_fs.job.journal import event_lines, events_in
from tui_fs.linux.limits import measured
from tui_fs.linux.regular_file import open_regular
from tui_fs.model.errors import BadInput
from tui_fs.model.events import Event
from tui_fs.model.plan import Plan

_BASE_BYTES = 16 << 10
_PATHS_FACTOR = 3
"""The last event names targets at most so many times: left, unknown, and in its sentences."""
_MAX_BYTES = 64 << 20
"""More than a reserve has; what is behind it is damage."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)


def create_reserve(path: str, plan: Plan) -> None:
    """Allocate the reserve of a job.

    Raises:
        OSError: there is no room for it.
    """
    size = _BASE_BYTES + _PATHS_FACTOR * len(json.dumps(plan.paths))
    limits = measured(lambda: resource.getrlimit(resource.RLIMIT_FSIZE))
    if limits is not None and limits[0] != resource.RLIM_INFINITY:
        size = min(size, limits[0])
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        # Also on file systems that copy on write, the first write goes to what was allocated.
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise
        _write_at_start(descriptor, bytes(size))
    finally:
        os.close(descriptor)


class EndReserve:
    """The reserve of a running job."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def write(self, events: list[Event]) -> None:
        """Write the end of a job.

        Raises:
            OSError: it cannot be written, or is longer than what was allocated (ENOSPC).
        """
        lines = event_lines(events)
        if len(lines) > os.fstat(self._descriptor).st_size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        _write_at_start(self._descriptor, lines)
        os.fsync(self._descriptor)

    def release(self) -> None:
        """Give the space back: the journal has the end."""
        os.close(self._descriptor)
        with contextlib.suppress(OSError):  # the blank file has no meaning for a reader
            os.unlink(self._path)


def read_reserve(path: str) -> list[Event]:
    """Return the events in the reserve of a job that is over; none if nothing is written there."""
    try:
        with open_regular(path) as file:
            content = file.read(_MAX_BYTES).rstrip(b"\0")
    except OSError:
        return []
    if not content.endswith(b"\n"):
        return []  # empty, or cut off by the end of the machine
    try:
        return events_in(content)
    except BadInput:
        return []


def _write_at_start(descriptor: int, content: bytes) -> None:
    offset = 0
    while offset < len(content):
        offset += os.pwrite(descriptor, content[offset:], offset)
