"""Decides which ended jobs are kept, and removes the folders of the rest.

A supervisor applies the `RetentionRule` after its own job has ended. These jobs are never removed:

- a job that runs or is paused;
- a job of another host;
- a job that died and is younger than the rule's `max_age_s`, because `tui-fs resume` can continue
  it;
- a job that cannot be read;
- by age alone, the newest `min_jobs`, because a clock that was set ahead makes every job seem old.

The age of a job of this boot does not depend on the clock. The lines in the system's log stay.
"""

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Iterator

from msgspec import Struct, field

from tui_fs.job.journal import last_event
from tui_fs.job.lock import is_occupied
from tui_fs.job.store import JobFolder, all_jobs, is_private, load_origin, trusted_places
from tui_fs.job.view import JobView
from tui_fs.linux.descriptors import closing
from tui_fs.linux.directories import open_directory
from tui_fs.linux.host import boottime_s, current_host
from tui_fs.model.errors import BadInput, TuiFsError
from tui_fs.model.events import JobFinished, JobRefused
from tui_fs.model.host import Locality, locality_of
from tui_fs.model.outcome import JobState
from tui_fs.model.paths import displayable

_REMOVED_PREFIX = ".removed-"
_FILES = frozenset({"plan.json", "events.jsonl", "report.json", "log", "lock", "crash", "end"})
_SOCKET, _EMPTY = "control.sock", "empty"
_PARTIAL = re.compile(r"(plan|report)\.json\.[0-9a-f]{8}\.partial")


class RetentionRule(Struct, frozen=True):
    """Limits for the number, the age and the total size of the stored jobs.

    Attributes:
        min_jobs: the newest jobs, up to this number, are not removed for their age.
    """

    max_jobs: int = 500
    max_age_s: float = 90 * 86_400.0
    max_bytes: int = 256 << 20
    min_jobs: int = 50


class Kept(Struct, frozen=True):
    """A folder that exceeds the rule and was not removed, with the reason as a sentence."""

    path: str
    reason: str


class Pruned(Struct):
    """The result of a removal of old jobs.

    Attributes:
        removed: names of the jobs.
        freed_bytes: disk blocks of their files.
    """

    removed: list[str] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    freed_bytes: int = 0


def prune(rule: RetentionRule | None = None) -> Pruned:
    """Remove the ended jobs that exceed the rule.

    Raises:
        JobFailed: the jobs directory cannot be read.
    """
    rule = rule or RetentionRule()
    pruned = Pruned()
    for place in trusted_places():
        _remove_interrupted(place, pruned)
    for folder, is_only_old in _excess(rule):
        try:
            if _is_removable(folder, rule.max_age_s, is_only_old=is_only_old):
                pruned.freed_bytes += _remove(folder)
                pruned.removed.append(folder.job_id)
        except FileNotFoundError:
            continue  # another process has just removed it
        except TuiFsError as error:
            pruned.kept.append(Kept(folder.path, str(error)))
        except OSError as error:
            reason = f"It cannot be removed: {os.strerror(error.errno or 0)}."
            pruned.kept.append(Kept(folder.path, reason))
    return pruned


def _excess(rule: RetentionRule) -> Iterator[tuple[JobFolder, bool]]:
    """Yield the jobs beyond the rule, and whether a job exceeds nothing but the age."""
    number = total_bytes = 0
    now_s = time.time()
    for folder in _newest_first():
        try:
            number += 1
            total_bytes += _size_of(folder)
            modified_s = os.stat(folder.plan).st_mtime
        except FileNotFoundError:
            continue  # another process has just removed it
        # min_jobs does not limit the number and the size: no clock decides on these.
        if number > rule.max_jobs or total_bytes > rule.max_bytes:
            yield folder, False
        elif number > rule.min_jobs and now_s - modified_s > rule.max_age_s:
            yield folder, True


def _newest_first() -> list[JobFolder]:
    """Return the jobs of this host, those of this boot first and by the time since boot.

    The clock may have been set back since older jobs were created.
    """
    here = current_host()
    of_this_boot: list[tuple[float, JobFolder]] = []
    older: list[JobFolder] = []
    for folder in all_jobs():
        try:
            origin = load_origin(folder)
        except BadInput:
            older.append(folder)  # if it exceeds the rule, it is kept and reported as unreadable
            continue
        if origin.host.boot_id and origin.host.boot_id == here.boot_id:
            of_this_boot.append((origin.boottime_s, folder))
        elif locality_of(origin.host, here) is not Locality.OTHER_HOST:
            older.append(folder)
    of_this_boot.sort(key=lambda pair: pair[0], reverse=True)
    return [folder for _, folder in of_this_boot] + older


def _is_removable(folder: JobFolder, max_age_s: float, *, is_only_old: bool) -> bool:
    """Return whether a job beyond the rule may be removed.

    Raises:
        TuiFsError: its state is unknown.
    """
    is_earlier = locality_of(load_origin(folder).host, current_host()) is Locality.EARLIER_BOOT
    if not is_earlier and is_occupied(folder.lock):
        return False
    age_s = _age_s(folder)
    if isinstance(last_event(folder.journal), JobFinished | JobRefused):
        return not is_only_old or age_s > max_age_s
    view = JobView(folder)
    view.poll()
    is_dead = view.state is JobState.DIED and age_s > max_age_s
    return is_dead or (view.is_over and view.state not in (JobState.DIED, JobState.ELSEWHERE))


def _age_s(folder: JobFolder) -> float:
    """Return the age of a job in seconds; 0 if it seems to come from the future."""
    origin = load_origin(folder)
    if origin.host.boot_id and origin.host.boot_id == current_host().boot_id:
        return boottime_s() - origin.boottime_s
    return max(0.0, time.time() - os.stat(folder.plan).st_mtime)


def _size_of(folder: JobFolder) -> int:
    with os.scandir(folder.path) as entries:
        return sum(entry.stat(follow_symlinks=False).st_blocks * 512 for entry in entries)


def _remove(folder: JobFolder) -> int:
    """Remove the folder of a job; return the bytes of its files.

    It is renamed first, so that an interrupted removal leaves no job without a journal. Files that
    another process removes meanwhile are left out.

    Raises:
        TuiFsError: it has an entry that no job folder has; nothing is removed.
        OSError: something cannot be removed.
    """
    place, name = os.path.split(folder.path)
    with _opened_place(place) as place_fd:
        with _opened(name, place_fd) as folder_fd:
            _check_contents(folder_fd)
        removed_name = f"{_REMOVED_PREFIX}{name}"
        os.rename(name, removed_name, src_dir_fd=place_fd, dst_dir_fd=place_fd)
        # From here on another process takes it for the rest of an interrupted removal.
        with contextlib.suppress(FileNotFoundError):
            return _remove_folder(place_fd, removed_name)
        return 0


def _remove_interrupted(place: str, pruned: Pruned) -> None:
    """Remove the folders of an earlier removal that was interrupted."""
    try:
        with _opened_place(place) as place_fd:
            for name in os.listdir(place_fd):
                if not name.startswith(_REMOVED_PREFIX):
                    continue
                try:
                    pruned.freed_bytes += _remove_folder(place_fd, name)
                    pruned.removed.append(name.removeprefix(_REMOVED_PREFIX))
                except FileNotFoundError:
                    continue  # another process has just removed it
                except (OSError, TuiFsError) as error:
                    pruned.kept.append(Kept(os.path.join(place, name), str(error)))
    except (OSError, TuiFsError) as error:
        pruned.kept.append(Kept(place, str(error)))


def _remove_folder(place_fd: int, name: str) -> int:
    with _opened(name, place_fd) as folder_fd:
        freed_bytes = 0
        for entry in _check_contents(folder_fd):
            # Another process can remove the same folder at the same time.
            with contextlib.suppress(FileNotFoundError):
                if entry == _EMPTY:
                    os.rmdir(entry, dir_fd=folder_fd)
                else:
                    status = os.stat(entry, dir_fd=folder_fd, follow_symlinks=False)
                    os.unlink(entry, dir_fd=folder_fd)
                    freed_bytes += status.st_blocks * 512
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(name, dir_fd=place_fd)
    return freed_bytes


def _check_contents(folder_fd: int) -> list[str]:
    """Return the names in a job folder; TuiFsError if a name does not belong there."""
    names = os.listdir(folder_fd)
    for name in names:
        mode = os.stat(name, dir_fd=folder_fd, follow_symlinks=False).st_mode
        if name == _EMPTY:
            is_expected = stat.S_ISDIR(mode) and _is_empty(folder_fd, name)
        elif name == _SOCKET:
            is_expected = stat.S_ISSOCK(mode)
        else:
            is_known = name in _FILES or _PARTIAL.fullmatch(name) is not None
            is_expected = is_known and stat.S_ISREG(mode)
        if not is_expected:
            raise TuiFsError(f"{displayable(name)} does not belong in the folder of a job.")
    return names


def _is_empty(folder_fd: int, name: str) -> bool:
    with _opened(name, folder_fd) as descriptor:
        return not os.listdir(descriptor)


@contextlib.contextmanager
def _opened_place(place: str) -> Iterator[int]:
    """Open a directory of jobs; TuiFsError if another user could have written in it."""
    with closing(open_directory(place)) as descriptor:
        status, named = os.fstat(descriptor), os.lstat(place)
        if not is_private(place) or not os.path.samestat(status, named):
            raise TuiFsError(f"{displayable(place)} is not private to this user.")
        yield descriptor


@contextlib.contextmanager
def _opened(name: str, parent_fd: int) -> Iterator[int]:
    """Open a directory of this user on the file system of its parent, never through a link."""
    try:
        descriptor = open_directory(name, parent_fd)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        raise TuiFsError(f"{displayable(name)} is not a directory.") from error
    with closing(descriptor):
        status, parent = os.fstat(descriptor), os.fstat(parent_fd)
        if status.st_uid != os.geteuid() or status.st_dev != parent.st_dev:
            raise TuiFsError(
                f"{displayable(name)} belongs to another user or is on another file system."
            )
        yield descriptor
