"""Refuses targets that overlap each other or the targets of a running job."""

import contextlib
import fcntl
import json
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
from tui_fs.linux.descriptors import closing
from tui_fs.linux.host import current_host
from tui_fs.linux.memory import children_of
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
    """Take the lock of a job; return it, and why the job conflicts with a running one, if it does.

    One supervisor at a time does this, so of two that start together one sees the other.

    Raises:
        JobFailed: the file system of the job's folder has no locks.
    """
    with _start_lock(os.path.dirname(os.path.dirname(folder.path))):
        lock = SupervisorLock(folder.lock)
        try:
            check_conflicts(targets, folder)
        except Refused as error:
            return lock, error
    return lock, None


def check_nested(targets: Sequence[Target]) -> None:
    """Raise Refused if a target is the same as, or inside, another one, also by another path."""
    seen: dict[PathStr | _Identity, Target] = {}
    for target in targets:
        for key in (target.path, _identity(target)):
            if key in seen:
                shown, earlier = displayable(target.path), displayable(seen[key].path)
                raise Refused(
                    f"{shown} is named twice."
                    if shown == earlier
                    else f"{shown} and {earlier} are the same directory.",
                    "Name it once.",
                    rule="overlap",
                )
        seen |= {target.path: target, _identity(target): target}
    for target in targets:
        for path, identity in _upwards(os.path.dirname(target.path)):
            holder = seen.get(path) or seen.get(identity)
            if holder is not None:
                raise Refused(
                    f"{displayable(target.path)} is inside {displayable(holder.path)}.",
                    "Name only the outer one; everything inside is deleted with it.",
                    rule="overlap",
                )


def check_conflicts(targets: Sequence[Target], folder: JobFolder | None = None) -> None:
    """Raise Refused if a running job, other than that of `folder`, overlaps a target.

    Raises:
        JobFailed: the file system of a jobs directory has no locks.
    """
    # A folder can have two paths; do not take a job's own lock for that of another job.
    own = identity_at(folder.path) if folder is not None else None
    for job in all_jobs():
        if not is_occupied(job.lock) or (own is not None and identity_at(job.path) == own):
            continue
        try:
            if locality_of(load_origin(job).host, current_host()) is Locality.EARLIER_BOOT:
                continue  # an NFS server can keep the lock of a crashed machine
            theirs = load_plan(job).targets
        except BadInput as error:
            raise Refused(
                f"Job {job.job_id} is running, but its plan is unreadable, so it may overlap "
                "this one.",
                f"Wait until it has ended. {error}",
                rule="busy",
            ) from error
        if (overlapping := _overlapping(theirs, targets)) is not None:
            raise Refused(
                f"Job {job.job_id} is already working in {displayable(overlapping.path)}.",
                f"Wait for it (tui-fs attach {job.job_id}), or cancel it.",
                rule="busy",
            )


def tools_of_running_jobs() -> frozenset[int]:
    """Return the processes of this user's running jobs on this machine that run tools.

    Confined tools have their targets mounted in private mount namespaces.
    """
    tools: set[int] = set()
    for job in all_jobs():
        try:
            if not is_occupied(job.lock):
                continue
            if locality_of(load_origin(job).host, current_host()) is not Locality.THIS_BOOT:
                continue
            with open(job.journal, "rb") as journal:
                supervisor = json.loads(journal.readline())["supervisor_pid"]
        except (OSError, ValueError, KeyError, TypeError, BadInput):
            continue  # it has not begun, or its journal is damaged: it has no tools that count
        for launcher in children_of(supervisor):
            for tool in children_of(launcher):
                tools.update((tool, *children_of(tool)))
    return frozenset(tools)


def _overlapping(theirs: Sequence[Target], ours: Sequence[Target]) -> Target | None:
    """Return one of `theirs` that is, contains or is in one of `ours`, also by another path."""
    return next((container for container, _ in _containing(theirs, ours)), None) or next(
        (contained for _, contained in _containing(ours, theirs)), None
    )


def _containing(
    holders: Sequence[Target], targets: Sequence[Target]
) -> Iterator[tuple[Target, Target]]:
    """Yield each holder that is or contains a target, with that target."""
    by_path = {holder.path: holder for holder in holders}
    by_identity = {_identity(holder): holder for holder in holders}
    devices = {holder.pin.device for holder in holders}
    for target in targets:
        # No tool crosses devices, so on another device only the path is compared: stat on a file
        # system that does not answer would block this job.
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
    """Yield a directory and all above it, with the identities that lstat(2) returns."""
    for place in upwards(path):
        identity = _NOBODY
        with contextlib.suppress(OSError):  # gone or unreachable
            status = os.lstat(place)
            identity = status.st_dev, status.st_ino
        yield PathStr(place), identity


@contextlib.contextmanager
def no_job_starting() -> Iterator[None]:
    """Hold the locks that every job takes at its start, in all state directories.

    A state directory without room for the lock has none for a job either. Two paths of the same
    directory are locked once: flock(2) conflicts between two descriptors of one process, too.

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
    with closing(descriptor):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            raise no_locks(path, error) from error
        yield
