"""No directory in two jobs at once or twice in one, and none inside another."""

import contextlib
import fcntl
import os
from collections.abc import Iterator, Sequence

from tui_fs.job.lock import SupervisorLock, is_occupied, no_locks
from tui_fs.job.store import (
    NO_ROOM,
    JobFolder,
    all_jobs,
    identity_at,
    load_origin,
    load_plan,
    state_directories,
)
from tui_fs.linux.host import current_host
from tui_fs.model.errors import BadInput, Refused
from tui_fs.model.host import Locality, locality_of
from tui_fs.model.paths import PathStr, displayable, upwards
from tui_fs.model.target import Target

_Identity = tuple[int, int]
"""Device and inode."""

_NOBODY = (-1, -1)


def register_or_refuse(
    folder: JobFolder, targets: Sequence[Target]
) -> tuple[SupervisorLock, Refused | None]:
    """Take the lock of a job; return with it why it may not run beside another one.

    One supervisor at a time does this, so of two that start together one sees the other.

    Raises:
        JobFailed: the file system of the job's folder has no locks.
    """
    with _start_lock(os.path.dirname(os.path.dirname(folder.path))):
        lock = SupervisorLock(folder.lock)
        try:
            check_conflicts(targets, folder)
        except Refused as why:
            return lock, why
    return lock, None


def check_nested(targets: Sequence[Target]) -> None:
    """Raise Refused if a target is another one or inside it, also under other names."""
    seen: dict[PathStr | _Identity, Target] = {}
    for target in targets:
        for key in (target.path, _identity(target)):
            if key in seen:
                shown, other = displayable(target.path), displayable(seen[key].path)
                raise Refused(
                    f"{shown} is named twice."
                    if shown == other
                    else f"{shown} and {other} are the same directory.",
                    "Name it once.",
                    rule="overlap",
                )
        seen |= {target.path: target, _identity(target): target}
    for target in targets:
        for path, identity in _upwards(os.path.dirname(target.path)):
            holder = seen.get(path) or seen.get(identity)
            if holder is not None:
                raise Refused(
                    f"{displayable(target.path)} lies in {displayable(holder.path)}.",
                    "Name the outer one alone: what is inside goes with it.",
                    rule="overlap",
                )


def check_conflicts(targets: Sequence[Target], folder: JobFolder | None = None) -> None:
    """Raise Refused if another job than that of `folder` is at work in a target or around it.

    Raises:
        JobFailed: a file system with jobs has no locks.
    """
    # The same folder can have two paths, and a job's own lock would look like another job's.
    own = identity_at(folder.path) if folder is not None else None
    for other in all_jobs():
        if (own is not None and identity_at(other.path) == own) or not is_occupied(other.lock):
            continue
        try:
            if locality_of(load_origin(other).host, current_host()) is Locality.EARLIER_BOOT:
                continue  # an NFS server can keep the lock of a machine that has crashed
            theirs = load_plan(other).targets
        except BadInput as why:
            raise Refused(
                f"Job {other.job_id} runs, and its plan cannot be read: nobody knows where.",
                f"Wait until it has ended. {why}",
                rule="busy",
            ) from why
        if (overlapping := _overlapping(theirs, targets)) is not None:
            raise Refused(
                f"Job {other.job_id} is at work in {displayable(overlapping.path)} already.",
                f"Wait for it (tui-fs attach {other.job_id}), or cancel it.",
                rule="busy",
            )


def _overlapping(theirs: Sequence[Target], ours: Sequence[Target]) -> Target | None:
    """Return one of theirs that is, contains or is inside one of ours, also under other names."""
    return next((container for container, _ in _containing(theirs, ours)), None) or next(
        (contained for _, contained in _containing(ours, theirs)), None
    )


def _containing(
    holders: Sequence[Target], targets: Sequence[Target]
) -> Iterator[tuple[Target, Target]]:
    """Yield each of the holders that is or holds a target, with that target."""
    by_path = {holder.path: holder for holder in holders}
    by_identity = {_identity(holder): holder for holder in holders}
    devices = {holder.pin.device for holder in holders}
    for target in targets:
        # No tool goes from one device to another, so there only the path is compared: stat on a
        # file system that does not answer would block this job.
        is_near = target.pin.device in devices
        for path, identity in _upwards(target.path) if is_near else _unseen(target.path):
            holder = by_path.get(path) or by_identity.get(identity)
            if holder is not None:
                yield holder, target


def _identity(target: Target) -> _Identity:
    return target.pin.device, target.pin.inode


def _unseen(path: str) -> Iterator[tuple[PathStr, _Identity]]:
    for place in upwards(path):
        yield PathStr(place), _NOBODY


def _upwards(path: str) -> Iterator[tuple[PathStr, _Identity]]:
    """Yield a directory and all above it, with their identities as far as they can be seen."""
    for place in upwards(path):
        identity = _NOBODY
        with contextlib.suppress(OSError):  # gone by now
            status = os.lstat(place)
            identity = status.st_dev, status.st_ino
        yield PathStr(place), identity


@contextlib.contextmanager
def no_job_starting() -> Iterator[None]:
    """Let no job start meanwhile, wherever it is kept: each takes the same lock at its start.

    A state directory that has no room for the lock has none for a job either. Places that are one
    directory are locked once: flock(2) conflicts also between two descriptors of one process.

    Raises:
        OSError: a lock cannot be taken.
        JobFailed: the file system of a state directory has no locks.
    """
    locked: list[tuple[int, int] | None] = []
    with contextlib.ExitStack() as stack:
        for state in state_directories():
            try:
                os.makedirs(os.path.dirname(state), mode=0o755, exist_ok=True)
                with contextlib.suppress(FileExistsError):
                    os.mkdir(state, 0o700)
                if (identity := identity_at(state)) in locked:
                    continue
                locked.append(identity)
                stack.enter_context(_start_lock(state))
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise
        yield


@contextlib.contextmanager
def _start_lock(state: str) -> Iterator[None]:
    path = os.path.join(state, "starting")
    flags = os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags | os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        try:
            descriptor = os.open(path, flags | os.O_RDONLY)
        except FileNotFoundError:
            raise error from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            raise no_locks(path, error) from error
        yield
    finally:
        os.close(descriptor)
