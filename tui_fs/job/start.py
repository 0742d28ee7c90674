"""Starting a job: the supervisor gets ready, says so, and begins only when it is told to."""

import contextlib
import os
import select
import subprocess
import sys

from tui_fs.job.store import JobFolder, create
from tui_fs.model.errors import JobFailed
from tui_fs.model.plan import Plan

START_TIMEOUT_S = 30.0
READY = b"r"
GO = b"g"


def start(plan: Plan) -> JobFolder:
    """Start a detached supervisor for the plan; return once it has begun or refused.

    Whatever happens before this returns, a signal included, the supervisor sees its standard
    input close without the word and deletes nothing.

    Raises:
        JobFailed: it could not be started; nothing was deleted.
    """
    folder = create(plan)
    try:
        log = os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise JobFailed(f"{folder.log} cannot be written: {error.strerror}.") from error
    try:
        starter = subprocess.Popen(
            [sys.executable, "-P", "-m", "tui_fs.job.supervisor", folder.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd="/",
            bufsize=0,
            start_new_session=True,
        )
    except OSError as error:
        raise JobFailed(f"The supervisor could not be started: {error.strerror}.") from error
    finally:
        os.close(log)
    assert starter.stdin is not None and starter.stdout is not None
    with starter.stdin as go, starter.stdout as ready:
        readable, _, _ = select.select([ready], [], [], START_TIMEOUT_S)
        if not readable or ready.read(1) != READY:
            starter.kill()
            raise JobFailed(
                "The supervisor did not start; nothing was deleted.", f"Its log is {folder.log}."
            )
        with contextlib.suppress(BrokenPipeError):  # it has refused: its report says why
            go.write(GO)
    starter.wait()
    return folder


def tell_ready() -> None:
    """In the supervisor: tell that the journal has its first line; nobody may be listening."""
    with contextlib.suppress(BrokenPipeError):
        os.write(1, READY)
    os.dup2(2, 1)


def may_begin() -> bool:
    """In the supervisor: wait for the starter's word; False if it has gone without giving it."""
    return os.read(0, 1) == GO
