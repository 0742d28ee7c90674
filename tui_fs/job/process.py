"""The supervisor's process, and its protocol with the starter over two pipes.

The starter sends the folder of the job; the supervisor reports that it is ready; the starter sends
the go-ahead. If the starter ends before that, the supervisor sees its standard input close and
deletes nothing.
"""

import contextlib
import os
import subprocess

from tui_fs.linux.interpreter import module_command

READY = b"r"
GO = b"g"
_END = b"\0"
"""Terminates the path of the folder."""


class SupervisorProcess:
    """A supervisor that loads its modules, and then waits for a job.

    Args:
        folder: of the job, so that it appears in the command line of the process; without it,
            `send_folder` comes later.
        log: a descriptor for its standard error.

    Raises:
        OSError: the process cannot be started.
    """

    def __init__(self, folder: str = "", log: int = subprocess.DEVNULL) -> None:
        arguments = [folder] if folder else []
        self.process = subprocess.Popen(
            module_command("tui_fs.job.supervisor", *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd="/",
            bufsize=0,
            start_new_session=True,
        )
        self._has_job = bool(folder)

    def send_folder(self, folder: str) -> bool:
        """Send the folder of the job; return False if the process has ended already."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(os.fsencode(folder) + _END)
        except BrokenPipeError:
            return False
        self._has_job = True
        return True

    def abandon(self) -> None:
        """End the process if it has no job."""
        if not self._has_job:
            assert self.process.stdin is not None and self.process.stdout is not None
            self.process.kill()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait()


def receive_folder() -> str | None:
    """In the supervisor: wait for the folder of a job; None if the starter has none for it."""
    received = b""
    while not received.endswith(_END):
        chunk = os.read(0, 4096)
        if not chunk:
            return None
        received += chunk
    return os.fsdecode(received.removesuffix(_END))


def notify_ready() -> None:
    """In the supervisor: report that the journal has its first line; the starter may have ended."""
    with contextlib.suppress(BrokenPipeError):
        os.write(1, READY)
    os.dup2(2, 1)


def wait_for_go() -> bool:
    """In the supervisor: wait for the go-ahead; False if the starter ended without giving it."""
    return os.read(0, 1) == GO
