"""Starts a job: the supervisor prepares, reports ready, and waits for the go-ahead."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable
from typing import IO

from tui_fs.job.journal import read_crash
from tui_fs.job.lock import StarterLock
from tui_fs.job.process import GO, READY, SupervisorProcess
from tui_fs.job.store import JobFolder, create
from tui_fs.linux.limits import cause_of
from tui_fs.linux.timeouts import is_readable
from tui_fs.model.errors import JobFailed
from tui_fs.model.paths import displayable
from tui_fs.model.plan import Plan

START_TIMEOUT_S = 30.0
_LOOK_EVERY_S = 0.05
_SILENT = f"it was not ready within {START_TIMEOUT_S:.0f} s"
_FAILED = "it exited with an error while it was loading"
_KILLED = "it was killed, perhaps because memory ran out (check with dmesg)"


def start(
    plan: Plan,
    is_wanted: Callable[[], bool],
    on_session: Callable[[int], None] = lambda _: None,
    waiting: SupervisorProcess | None = None,
) -> JobFolder | None:
    """Start a detached supervisor for the plan; return once it has begun or refused.

    If this process fails before the go-ahead, the supervisor sees its standard input close and
    deletes nothing.

    Args:
        is_wanted: called until the go-ahead, and once more just before it.
        on_session: called with the session (setsid(2)) in which the supervisor runs.
        waiting: a supervisor that waits for a job; None to start one.

    Returns:
        None if the job was not wanted any more: nothing will be deleted.

    Raises:
        JobFailed: it could not be started; nothing was deleted.
    """
    with StarterLock() as lock:
        folder = create(plan, lock.take)
        return folder if _start_in(folder, is_wanted, on_session, waiting) else None


def _start_in(
    folder: JobFolder,
    is_wanted: Callable[[], bool],
    on_session: Callable[[int], None],
    waiting: SupervisorProcess | None,
) -> bool:
    """Start the supervisor of a job; return whether the job was wanted until the end."""
    if waiting is not None and waiting.send_folder(folder.path):
        starter = waiting.process
    else:
        starter = _started(folder)
    on_session(starter.pid)
    assert starter.stdin is not None and starter.stdout is not None
    with starter.stdin as go, starter.stdout as ready:
        is_ready = _wait_for(ready, is_wanted)
        is_to_begin = is_wanted()
        if is_to_begin and not is_ready:
            starter.kill()
            if waiting is not None and not os.path.exists(folder.log):
                # It ended while it loaded its modules; another one writes the cause to the log.
                starter.wait()
                return _start_in(folder, is_wanted, on_session, None)
            has_ended = is_readable(ready, 0)
            unmarked = _FAILED if starter.wait() > 0 else _KILLED if has_ended else _SILENT
            cause = read_crash(folder.crash) or unmarked
            raise JobFailed(
                f"The supervisor did not start: {cause}. Nothing was deleted.",
                f"See its log: {displayable(folder.log)}.",
            )
        if is_to_begin:
            with contextlib.suppress(BrokenPipeError):  # it has refused; its report says why
                go.write(GO)
    starter.wait()
    return is_to_begin


def _started(folder: JobFolder) -> subprocess.Popen[bytes]:
    try:
        log = os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise JobFailed(
            f"The log {displayable(folder.log)} cannot be written: {error.strerror}. "
            "Nothing was deleted."
        ) from error
    try:
        return SupervisorProcess(folder.path, log).process
    except OSError as error:
        cause, advice = cause_of(error)
        raise JobFailed(
            f"The supervisor could not be started: {cause}. Nothing was deleted.", advice
        ) from error
    finally:
        os.close(log)


def _wait_for(ready: IO[bytes], is_wanted: Callable[[], bool]) -> bool:
    """Wait until the supervisor is ready or has ended; return whether it is ready."""
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while is_wanted() and time.monotonic() < deadline_s:
        if is_readable(ready, _LOOK_EVERY_S):
            return ready.read(1) == READY
    return False
