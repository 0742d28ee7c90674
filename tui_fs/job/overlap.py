"""No two jobs at work on one directory, or on one inside the other."""

import contextlib
import fcntl
import os
from collections.abc import Iterator

from tui_fs.job.lock import SupervisorLock, holder_of
from tui_fs.job.store import JobFolder, all_jobs, load_plan
from tui_fs.model.errors import BadInput, Refused
from tui_fs.model.paths import displayable, is_within
from tui_fs.model.target import Target


def enlist(folder: JobFolder, target: Target) -> tuple[SupervisorLock, Refused | None]:
    """Take the lock of a job; return with it why it may not run beside another one.

    One supervisor at a time does this, so of two that start together one sees the other.
    """
    with _alone(os.path.dirname(os.path.dirname(folder.path))):
        lock = SupervisorLock(folder.lock)
        try:
            _refuse_overlap(folder, target)
        except Refused as why:
            return lock, why
    return lock, None


def _refuse_overlap(folder: JobFolder, target: Target) -> None:
    for other in all_jobs():
        if other.path == folder.path or holder_of(other.lock) is None:
            continue
        try:
            theirs = load_plan(other).target
        except BadInput as why:
            raise Refused(
                f"Job {other.job_id} runs, and its plan cannot be read: nobody knows where.",
                f"Wait until it has ended. {why}",
                rule="busy",
            ) from why
        if _touch(theirs, target):
            raise Refused(
                f"Job {other.job_id} is at work in {displayable(theirs.path)} already.",
                f"Wait for it (tui-fs attach {other.job_id}), or cancel it.",
                rule="busy",
            )


def _touch(one: Target, other: Target) -> bool:
    """Tell whether two targets are or hold each other, also under other names."""
    if is_within(one.path, other.path) or is_within(other.path, one.path):
        return True
    pins = [(target.pin.device, target.pin.inode) for target in (one, other)]
    return pins[0] in _upwards(other.path) or pins[1] in _upwards(one.path)


def _upwards(path: str) -> Iterator[tuple[int, int]]:
    """Yield device and inode of a directory and of all above it, as far as they can be seen."""
    while True:
        with contextlib.suppress(OSError):  # gone by now
            status = os.lstat(path)
            yield status.st_dev, status.st_ino
        if path == "/":
            return
        path = os.path.dirname(path)


@contextlib.contextmanager
def _alone(state: str) -> Iterator[None]:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(os.path.join(state, "starting"), flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
