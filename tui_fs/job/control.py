"""Commands to a running job, over a socket that only its owner and root may use."""

import contextlib
import json
import os
import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from tui_fs.job.permission import check_command
from tui_fs.job.store import JobFolder
from tui_fs.linux.descriptors import closing
from tui_fs.model.codec import encode
from tui_fs.model.command import Command, read_command
from tui_fs.model.errors import BadInput, JobFailed
from tui_fs.model.events import Event, event_from_json

_LONGEST_COMMAND_BYTES = 64
_ANSWER_TIMEOUT_S = 5.0
_SAMPLE_TIMEOUT_S = 0.5
"""A view waits no longer for a sample; the journal still has the older one."""
_SAMPLE = "sample"
_MOST_SILENT = 8
_WITHOUT_DESCRIPTORS_S = 0.02
_PEER_CREDENTIALS = "3i"  # struct ucred: pid, uid, gid


class ControlServer:
    """Takes one-line commands, one per connection, without ever blocking on a client.

    Args:
        obey: carries out a command for a uid; returns None, or why that is impossible.
        selector: its user calls a key's data when the key is readable.
        sample: returns the events that a view asks for, which are not in the journal.
    """

    def __init__(
        self,
        folder: JobFolder,
        obey: Callable[[Command, int], str | None],
        selector: selectors.BaseSelector,
        sample: Callable[[], Sequence[Event]] = tuple,
    ) -> None:
        self._obey = obey
        self._sample = sample
        self._selector = selector
        self._silent: deque[socket.socket] = deque()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with _address_of(folder) as address:
            self._socket.bind(address)
        os.chmod(folder.socket, 0o600)
        self._socket.listen(8)
        self._socket.setblocking(False)
        selector.register(self._socket, selectors.EVENT_READ, self._accept)

    def close(self) -> None:
        """Take no more commands."""
        while self._silent:
            self._forget(self._silent[0])
        self._selector.unregister(self._socket)
        self._socket.close()

    def _accept(self) -> None:
        """Add a connection; if too many are silent, close the oldest."""
        try:
            connection, _ = self._socket.accept()
        except (BlockingIOError, ConnectionError):
            return  # the client has closed it already
        except OSError:
            # No descriptor or memory now: the connection stays queued and the socket readable.
            time.sleep(_WITHOUT_DESCRIPTORS_S)
            return
        connection.setblocking(False)
        hear = partial(self._hear, connection)
        try:
            self._selector.register(connection, selectors.EVENT_READ, hear)
        except OSError:  # no memory for another connection
            connection.close()
            return
        self._silent.append(connection)
        if len(self._silent) > _MOST_SILENT:
            self._forget(self._silent[0])

    def _hear(self, connection: socket.socket) -> None:
        if connection not in self._silent:
            return  # closed earlier in this round of events
        line = b""
        with contextlib.suppress(OSError):  # the client has gone
            line = connection.recv(_LONGEST_COMMAND_BYTES)
        try:
            answer = self._answer_to(connection, line) if line else b""
            with contextlib.suppress(OSError):  # the client does not wait for the answer
                connection.sendall(answer)
        finally:
            self._forget(connection)

    def _forget(self, connection: socket.socket) -> None:
        self._silent.remove(connection)
        self._selector.unregister(connection)
        connection.close()

    def _answer_to(self, connection: socket.socket, line: bytes) -> bytes:
        credentials = connection.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(_PEER_CREDENTIALS)
        )
        _, uid, _ = struct.unpack(_PEER_CREDENTIALS, credentials)
        fields: dict[str, Any] = {}
        text = line.decode("ascii", "replace")
        problem: str | None = None
        if uid not in (0, os.geteuid()):
            problem = "This job belongs to another user; only that user and root can control it."
        elif text == f"{_SAMPLE}\n":
            fields["events"] = [encode(event) for event in self._sample()]
        else:
            try:
                problem = self._obey(read_command(text), uid)
            except BadInput as error:
                problem = str(error)
        answer = {"ok": problem is None, "problem": problem, **fields}
        return json.dumps(answer).encode("ascii") + b"\n"


def send(folder: JobFolder, command: Command) -> None:
    """Send a command to a job.

    Raises:
        Refused: read-only mode does not allow the command; it was not sent.
        JobFailed: no supervisor listens, so the job is not running, or it does not answer.
        BadInput: the job cannot carry out the command now.
    """
    check_command(command)
    answer = _ask(folder, str(command), _ANSWER_TIMEOUT_S)
    if answer.get("problem"):
        raise BadInput(str(answer["problem"]))


def sample(folder: JobFolder) -> tuple[Event, ...]:
    """Return the current counts of a running job, as events that are not in its journal.

    Raises:
        JobFailed: the job does not run, or is too busy to answer within `_SAMPLE_TIMEOUT_S`.
    """
    answer = _ask(folder, _SAMPLE, _SAMPLE_TIMEOUT_S)
    try:
        return tuple(event_from_json(event) for event in answer.get("events", ()))
    except (BadInput, TypeError) as error:
        raise JobFailed(f"Job {folder.job_id} sent a damaged sample: {error}.") from error


def _ask(folder: JobFolder, line: str, timeout_s: float) -> dict[str, Any]:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with client:
        client.settimeout(timeout_s)
        try:
            with _address_of(folder) as address:
                client.connect(address)
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise JobFailed(
                f"Job {folder.job_id} does not answer: it is not running.",
                f"tui-fs attach {folder.job_id} shows how it ended.",
            ) from error
        except OSError as error:
            raise JobFailed(
                f"Job {folder.job_id} cannot be reached: {error.strerror}.",
                f"tui-fs attach {folder.job_id} shows whether it still runs.",
            ) from error
        try:
            client.sendall(f"{line}\n".encode("ascii"))
            answer = json.loads(client.makefile().readline())
        except TimeoutError as error:
            raise JobFailed(
                f"Job {folder.job_id} has not answered within {timeout_s:.1f} s.",
                "It may be counting the remaining entries; try again.",
            ) from error
        except (OSError, ValueError, RecursionError) as error:
            raise JobFailed(
                f"Job {folder.job_id} closed the connection without an answer.",
                f"tui-fs attach {folder.job_id} shows whether it still runs.",
            ) from error
    if not isinstance(answer, dict):
        raise JobFailed(f"Job {folder.job_id} sent an invalid answer.")
    return answer


@contextlib.contextmanager
def _address_of(folder: JobFolder) -> Iterator[str]:
    """Yield a short address of the socket, independent of the folder's path (limit: 108 bytes)."""
    with closing(os.open(folder.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) as directory:
        yield f"/proc/self/fd/{directory}/{os.path.basename(folder.socket)}"
