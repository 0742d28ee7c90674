"""Stores jobs: one folder each, readable only by its owner."""

import contextlib
import errno
import json
import os
import pwd
import stat
from collections.abc import Callable, Iterator
from typing import Any

from tui_fs.job.journal import create_reserve
from tui_fs.linux.descriptors import closing
from tui_fs.linux.host import boottime_s, current_host
from tui_fs.linux.limits import is_limit
from tui_fs.linux.permissions import others_may_write, protects_new_entries, replaceable_part
from tui_fs.linux.resolve_path import open_regular, resolve
from tui_fs.model.codec import decode, encode, why_no_json
from tui_fs.model.errors import BadInput, JobFailed, Refused
from tui_fs.model.host import Origin
from tui_fs.model.paths import PathStr, displayable, upwards
from tui_fs.model.plan import Plan

_ID_BYTES = 3
_SCHEMA = 2
MAX_JSON_BYTES = 64 << 20
"""More than any plan or report has; a larger file is damage."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)
"""Errors after which the directory in memory is tried."""
_NO_HOME = "/nonexistent"
"""An unusable home for a user who has none in HOME or passwd(5)."""

_SHORTEST_ID = 3
"""Characters of an abbreviated id; fewer are rather a slip."""


class JobFolder:
    """The files of one job.

    Attributes:
        job_id: the name that users type to address the job.
        plan: the confirmed plan.
        journal: the events, one on a line.
        report: written once, when the job has ended.
        socket: where the supervisor takes commands.
        log: the supervisor's own messages, tracebacks included.
        crash: the error that ended the supervisor, if it could write it; otherwise blank.
        end: where the end of the job is written if the journal has no room: `journal.EndReserve`.
        lock: locked by the supervisor as long as it lives.
        empty_directory: the empty directory that rsync copies.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.job_id = os.path.basename(path)
        self.plan = f"{path}/plan.json"
        self.journal = f"{path}/events.jsonl"
        self.report = f"{path}/report.json"
        self.socket = f"{path}/control.sock"
        self.log = f"{path}/log"
        self.crash = f"{path}/crash"
        self.end = f"{path}/end"
        self.lock = f"{path}/lock"
        self.empty_directory = f"{path}/empty"


def state_directory() -> PathStr:
    """Return the directory of tui-fs below XDG_STATE_HOME.

    If sudo keeps HOME, root's jobs go to root's own home: the owner of HOME could replace a plan
    in it.
    """
    return _below_home("XDG_STATE_HOME", ".local", "state")


def cache_directory() -> PathStr:
    """Return the directory of tui-fs below XDG_CACHE_HOME; see `state_directory`."""
    return _below_home("XDG_CACHE_HOME", ".cache")


def jobs_directory() -> str:
    """Return the directory that holds one folder for each job."""
    return os.path.join(state_directory(), "jobs")


def emergency_directory() -> str | None:
    """Return the in-memory directory for jobs while the state directory has no room.

    None if this machine has no such directory for this user.
    """
    uid = os.geteuid()
    place = os.environ.get("XDG_RUNTIME_DIR", "")
    if not os.path.isabs(place):
        place = "/run" if uid == 0 else f"/run/user/{uid}"
    return os.path.join(place, "tui-fs", "jobs") if _is_usable(place, uid) else None


def _is_usable(place: str, uid: int) -> bool:
    # su keeps the XDG_RUNTIME_DIR of the user who calls it, so check the owner.
    try:
        status = os.stat(place)
    except OSError:
        return False
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == uid
    return is_own and os.access(place, os.W_OK | os.X_OK)


def new_job_id() -> str:
    """Return an unused short name for a job."""
    while True:
        job_id = os.urandom(_ID_BYTES).hex()
        if not _is_used(job_id):
            return job_id


def check_new_id(job_id: str) -> None:
    """Raise BadInput if there is a job with this id."""
    if _is_used(job_id):
        raise BadInput(f"There is a job {job_id} already.", f"See it: tui-fs attach {job_id}")


def _is_used(job_id: str) -> bool:
    return any(os.path.lexists(os.path.join(place, job_id)) for place in _places())


def create(plan: Plan, take_lock: Callable[[str], None] = lambda _: None) -> JobFolder:
    """Create the folder of a new job and write its plan.

    Args:
        take_lock: called with the path of the lock file before the job can be listed.

    Raises:
        JobFailed: neither the state directory nor the one in memory has room for it, or another
            user could write in them. Nothing was deleted.
    """
    first: OSError | None = None
    for place in _places():
        try:
            return _create_in(place, plan, take_lock)
        except OSError as error:
            first = first or error
            if error.errno not in NO_ROOM:
                break
    assert first is not None
    folder = os.path.join(jobs_directory(), plan.job_id)
    advice = "Set XDG_STATE_HOME to a directory that you can write to."
    if first.errno in (errno.ENOSPC, errno.EDQUOT):
        advice = "Make room there, or set XDG_STATE_HOME to another place."
    if first.errno == errno.EFBIG:
        advice = "Raise the file size limit (ulimit -f)."
    raise JobFailed(
        f"The job cannot be written to {displayable(folder)}: {os.strerror(first.errno or 0)}.",
        f"{advice} Nothing was deleted.",
    ) from first


def find(job_id: str) -> JobFolder:
    """Return the folder of a job.

    Args:
        job_id: the whole id, or at least its first `_SHORTEST_ID` characters if no other job has
            the same ones.

    Raises:
        BadInput: there is no such job, or there are several.
    """
    for place in trusted_places() if job_id.isalnum() else ():
        folder = JobFolder(os.path.join(place, job_id))
        if os.path.isfile(folder.plan):
            return folder
    begun: list[JobFolder] = []
    if len(job_id) >= _SHORTEST_ID and job_id.isalnum():
        begun = [folder for folder in all_jobs() if folder.job_id.startswith(job_id)]
    if len(begun) > 1:
        ids = ", ".join(folder.job_id for folder in begun)
        raise BadInput(f"Several jobs begin with {job_id}: {ids}.", "Add a character.")
    if not begun:
        raise BadInput(f"There is no job {job_id!r}.", "tui-fs jobs lists all jobs.")
    return begun[0]


def all_jobs() -> Iterator[JobFolder]:
    """Yield the folders of all jobs that have a plan, the newest first."""
    dated: list[tuple[float, JobFolder]] = []
    for place in trusted_places():
        try:
            names = os.listdir(place)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise JobFailed(f"{displayable(place)} cannot be read: {error.strerror}.") from error
        for folder in (JobFolder(os.path.join(place, name)) for name in names if name.isalnum()):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # no job, or removed
                status = os.stat(folder.plan)
                if stat.S_ISREG(status.st_mode):
                    dated.append((status.st_mtime, folder))
    for _, folder in sorted(dated, key=lambda pair: pair[0], reverse=True):
        yield folder


def state_directories() -> tuple[str, ...]:
    """Return the state directory and the in-memory one, if it exists."""
    return tuple(os.path.dirname(place) for place in _places())


def _below_home(variable: str, *usual: str) -> PathStr:
    place = os.environ.get(variable, "")
    if not os.path.isabs(place):
        above = os.path.expanduser("~")
        if os.geteuid() == 0 and not _is_roots(above):
            above = _home_of_root()
        place = os.path.join(above if os.path.isabs(above) else _NO_HOME, *usual)
    return PathStr(os.path.join(place, "tui-fs"))


def _home_of_root() -> str:
    try:
        return pwd.getpwuid(0).pw_dir
    except KeyError:  # a container without passwd(5)
        return "/root"


def _places() -> tuple[str, ...]:
    usual, emergency = jobs_directory(), emergency_directory()
    if emergency is None or _is_same_place(usual, emergency):
        return (usual,)
    return usual, emergency


def _is_same_place(first: str, second: str) -> bool:
    """Return whether two jobs directories, or directories above both, are one directory.

    A link or a bind mount can join them at any of three levels: XDG_STATE_HOME, tui-fs and jobs.
    """
    for _ in range(3):
        identity = identity_at(first)
        if identity is not None and identity == identity_at(second):
            return True
        first, second = os.path.dirname(first), os.path.dirname(second)
    return False


def identity_at(path: str) -> tuple[int, int] | None:
    """Return the device and inode at `path`, following links; None if stat(2) fails."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def trusted_places() -> Iterator[str]:
    """Yield the jobs directories that only this user can write: other plans are not trusted."""
    for place in _places():
        try:
            status = os.lstat(place)
        except OSError:
            continue  # no job was ever stored there
        if status.st_uid == os.geteuid() and not status.st_mode & 0o022:
            yield place


PRIVATE_ADVICE = (
    "Change its owner to this user and its mode to 0700, or set XDG_STATE_HOME to a directory "
    "that only this user can write to."
)
"""The advice for a state directory that is not private."""


def made_private(place: str) -> bool:
    """Create a directory in the state directory; return whether it is private to this user.

    Raises:
        OSError: it cannot be created, or a limit prevents the check.
    """
    if not _can_become_private(place):
        return False  # create nothing there either
    os.makedirs(os.path.dirname(os.path.dirname(place)), mode=0o755, exist_ok=True)
    for directory in (os.path.dirname(place), place):
        with contextlib.suppress(FileExistsError):
            os.mkdir(directory, 0o700)
        if os.lstat(directory).st_uid != os.geteuid():
            return False  # a link of another user could redirect the next mkdir
    return _is_private(place)


def require_private(place: str) -> None:
    """Create a directory in the state directory; Refused unless it is private to this user.

    Raises:
        OSError: it cannot be created.
    """
    if not made_private(place):
        raise Refused(f"{displayable(place)} is not private to you.", PRIVATE_ADVICE)


def _can_become_private(place: str) -> bool:
    """Return whether directories created on the path to `place` are safe from other users."""
    above = next(filter(os.path.lexists, upwards(place)))
    if above == place or not os.path.isdir(above):
        return True  # nothing will be created, or nothing can be
    try:
        real = resolve(above)
        keeps = protects_new_entries(os.stat(real), os.geteuid(), real)
    except (OSError, Refused) as error:
        _raise_limit(error)
        return False
    return keeps and _is_firm(above)


def is_private(place: str) -> bool:
    """Return whether a directory exists and no other user can have written in it."""
    try:
        return _is_private(place)
    except OSError:
        return False


def _is_private(place: str) -> bool:
    status = os.lstat(place)
    is_ours = status.st_uid == os.geteuid() and not status.st_mode & 0o077
    return stat.S_ISDIR(status.st_mode) and is_ours and _is_firm(place)


def _make_private(jobs: str) -> None:
    """Create the jobs directory; JobFailed if another user can write there."""
    if not made_private(jobs):
        raise JobFailed(
            f"{displayable(jobs)} is not private: another user could change the jobs.",
            f"{PRIVATE_ADVICE} Nothing was deleted.",
        )


def _is_firm(path: str) -> bool:
    """Return whether no other user can replace any part of the path."""
    try:
        return replaceable_part(resolve(path), os.geteuid()) is None
    except (OSError, Refused) as error:
        _raise_limit(error)
        return False


def _raise_limit(error: OSError | Refused) -> None:
    """Raise OSError if a limit of this process is the reason: the path itself may be safe."""
    for reason in (error, error.__cause__):
        if isinstance(reason, OSError) and is_limit(reason):
            raise reason


def _is_roots(home: str) -> bool:
    """Return whether only root can write in a directory or replace it."""
    try:
        return _is_firm(home) and not others_may_write(os.stat(home), 0, os.path.realpath(home))
    except OSError:
        return False


def _create_in(jobs: str, plan: Plan, take_lock: Callable[[str], None]) -> JobFolder:
    folder = JobFolder(os.path.join(jobs, plan.job_id))
    _make_private(jobs)
    os.mkdir(folder.path, 0o700)
    try:
        os.mkdir(folder.empty_directory, 0o700)
        origin = Origin(current_host(), boottime_s())
        create_reserve(folder.end, plan)
        take_lock(folder.lock)
        write_json(folder.plan, {"schema": _SCHEMA, "origin": encode(origin), **encode(plan)})
    except (OSError, JobFailed):
        _take_back(folder)
        raise
    return folder


def _take_back(folder: JobFolder) -> None:
    """Remove a new job folder that could not be completed."""
    for file in (folder.plan, folder.end, folder.lock):
        with contextlib.suppress(OSError):
            os.unlink(file)
    for directory in (folder.empty_directory, folder.path):
        with contextlib.suppress(OSError):
            os.rmdir(directory)


def load_plan(folder: JobFolder) -> Plan:
    """Return the plan of a job; BadInput if the file is not a plan."""
    return decode(Plan, read_plan(folder))


def load_origin(folder: JobFolder) -> Origin:
    """Return where and when a job was created; BadInput if its plan is damaged."""
    return origin_of(read_plan(folder))


def read_plan(folder: JobFolder) -> dict[str, Any]:
    """Return the JSON object of a job's plan; BadInput if the file is not a plan."""
    value = read_json(folder.plan)
    if value.get("schema") != _SCHEMA:
        raise BadInput(f"{folder.plan} was written by another version of tui-fs; use that version.")
    return value


def origin_of(plan: dict[str, Any]) -> Origin:
    """Return where and when the job of a plan's JSON object was created."""
    return decode(Origin, plan["origin"]) if "origin" in plan else Origin()


def read_json(path: str) -> dict[str, Any]:
    """Return the JSON object in a file; BadInput if the file holds none."""
    try:
        with open_regular(path) as file:
            text = file.read(MAX_JSON_BYTES + 1)
        if len(text) > MAX_JSON_BYTES:
            raise ValueError(f"it is larger than {MAX_JSON_BYTES >> 20} MiB")
        value = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{displayable(path)} cannot be read: {why_no_json(error)}.") from error
    if not isinstance(value, dict):
        raise BadInput(f"{displayable(path)} does not contain a JSON object.")
    return value


def sync_directory(path: str) -> None:
    """Write the names of a directory to the disk."""
    with closing(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as descriptor:
        os.fsync(descriptor)


def write_json(path: str, value: dict[str, Any]) -> None:
    """Write a file atomically and durably: it is complete or absent after a power failure."""
    partial = f"{path}.{os.urandom(4).hex()}.partial"  # others may write the same file
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(partial, flags, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(value, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(descriptor)
        os.replace(partial, path)
    except OSError:
        os.unlink(partial)
        raise
