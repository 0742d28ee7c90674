"""Commands to a running job, over a socket that only its owner and root may use."""

import contextlib
import json
import os
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass

from tui_fs.job.store import JobFolder
from tui_fs.model.errors import BadInput, JobFailed
from tui_fs.model.strategy import IoPriority

MOST_PER_S = 1_000_000
COMMANDS = {
    "pause": "",
    "resume": "",
    "cancel": "",
    "gentle": "on or off",
    "rate": f"1 to {MOST_PER_S:,} entries a second, or off",
    "nice": "0 to 19",
    "ionice": ", ".join(IoPriority),
}
"""Each command and the value it takes, in words; empty for none."""

_LONGEST_COMMAND_BYTES = 64
_ANSWER_TIMEOUT_S = 5.0
_PEER_CREDENTIALS = "3i"  # struct ucred: pid, uid, gid


@dataclass(frozen=True, slots=True)
class Command:
    """A command that is known, with a value that fits it."""

    name: str
    value: str = ""

    def __str__(self) -> str:
        """Return the line that is sent."""
        return f"{self.name} {self.value}".rstrip()


def read_command(line: str) -> Command:
    """Return the command of a line, ``NAME`` or ``NAME VALUE``; BadInput if it is none."""
    name, _, value = line.strip().partition(" ")
    if name not in COMMANDS:
        raise BadInput(f"{name!r} is not a command; there are {', '.join(COMMANDS)}.")
    if not _fits(name, value):
        wanted = COMMANDS[name] or "no value"
        raise BadInput(f"{name} takes {wanted}, not {value!r}.")
    return Command(name, value)


def _fits(name: str, value: str) -> bool:
    match name:
        case "gentle":
            return value in ("on", "off")
        case "rate":
            return value == "off" or _is_number(value, 1, MOST_PER_S)
        case "nice":
            return _is_number(value, 0, 19)
        case "ionice":
            return value in tuple(IoPriority)
    return value == ""


def _is_number(text: str, low: int, high: int) -> bool:
    digits = text.isascii() and text.isdigit() and len(text) <= len(str(high))
    return digits and low <= int(text) <= high


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
