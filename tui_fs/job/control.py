"""Commands to a running job, over a socket that only its owner and root may use."""

import contextlib
import json
import os
import socket
import struct
from collections.abc import Callable

from tui_fs.job.store import JobFolder
from tui_fs.model.command import Command, read_command
from tui_fs.model.errors import BadInput, JobFailed

_LONGEST_COMMAND_BYTES = 64
_ANSWER_TIMEOUT_S = 5.0
_PEER_CREDENTIALS = "3i"  # struct ucred: pid, uid, gid


class ControlServer:
    """Takes one-line commands, one a connection, without ever blocking.

    Args:
        obey: carries out a command for a uid and returns None, or why it cannot.
    """

    def __init__(self, folder: JobFolder, obey: Callable[[Command, int], str | None]) -> None:
        self._obey = obey
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with _Directory(folder) as address:
            self._socket.bind(address)
        os.chmod(folder.socket, 0o600)
        self._socket.listen(8)
        self._socket.setblocking(False)

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when somebody connects."""
        return self._socket.fileno()

    def answer(self) -> None:
        """Take and answer one command."""
        try:
            connection, _ = self._socket.accept()
        except BlockingIOError:
            return  # the other side has gone again
        with connection:
            connection.settimeout(0.2)
            try:
                line = connection.recv(_LONGEST_COMMAND_BYTES)
            except OSError:
                return  # it said nothing in time
            answer = self._answer_to(connection, line)
            with contextlib.suppress(OSError):  # it does not wait for the answer
                connection.sendall(answer)

    def close(self) -> None:
        """Take no more commands."""
        self._socket.close()

    def _answer_to(self, connection: socket.socket, line: bytes) -> bytes:
        credentials = connection.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(_PEER_CREDENTIALS)
        )
        _, uid, _ = struct.unpack(_PEER_CREDENTIALS, credentials)
        if uid not in (0, os.geteuid()):
            problem: str | None = "This job belongs to another user."
        else:
            try:
                problem = self._obey(read_command(line.decode("ascii", "replace")), uid)
            except BadInput as why:
                problem = str(why)
        return json.dumps({"ok": problem is None, "problem": problem}).encode("ascii") + b"\n"


def send(folder: JobFolder, command: Command) -> None:
    """Send a command to a job.

    Raises:
        JobFailed: nobody listens, so the job is not running.
        BadInput: the job understood, but cannot do that now.
    """
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with client:
        client.settimeout(_ANSWER_TIMEOUT_S)
        try:
            with _Directory(folder) as address:
                client.connect(address)
            client.sendall(f"{command}\n".encode("ascii"))
            answer = json.loads(client.makefile().readline() or "{}")
        except TimeoutError as error:
            raise JobFailed(
                f"Job {folder.job_id} has not answered within {_ANSWER_TIMEOUT_S:.0f} s.",
                "It may be counting what is left; try again.",
            ) from error
        except (OSError, ValueError, RecursionError) as error:
            raise JobFailed(
                f"Job {folder.job_id} does not answer: it is not running.",
                f"tui-fs attach {folder.job_id} shows how it ended.",
            ) from error
    if not isinstance(answer, dict):
        raise JobFailed(f"Job {folder.job_id} answers in a way that cannot be understood.")
    if answer.get("problem"):
        raise BadInput(str(answer["problem"]))


class _Directory:
    """An address for the socket that is short whatever the folder's path (limit: 108 bytes)."""

    def __init__(self, folder: JobFolder) -> None:
        self._folder = folder
        self._descriptor = -1

    def __enter__(self) -> str:
        self._descriptor = os.open(self._folder.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._descriptor}/{os.path.basename(self._folder.socket)}"

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
