"""Commands to a running job over its socket."""

import contextlib
import json
import os
import selectors
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.test_job_store import plan
from tui_fs.job.control import ControlServer, send
from tui_fs.job.store import JobFolder, create
from tui_fs.model.command import COMMANDS, Command, read_command
from tui_fs.model.errors import BadInput, JobFailed
from tui_fs.model.events import Event

Obey = Callable[[Command, int], str | None]


@contextmanager
def serving(
    folder: JobFolder, obey: Obey, sample: Callable[[], Sequence[Event]] = tuple
) -> Iterator[None]:
    """Take commands, as the supervisor does while its tools run."""
    stop_reading, stop_writing = os.pipe()
    with selectors.DefaultSelector() as selector:
        server = ControlServer(folder, obey, selector, sample)
        selector.register(stop_reading, selectors.EVENT_READ)

        def serve() -> None:
            while True:
                for key, _ in selector.select():
                    if key.fd == stop_reading:
                        return
                    key.data()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            os.close(stop_writing)
            thread.join()
            os.close(stop_reading)
            server.close()


@pytest.fixture
def folder() -> JobFolder:
    """Return the folder of a job."""
    return create(plan())


VALUES = {
    "gentle": "on",
    "rate": "1000000",
    "nice": "19",
    "ionice": "idle",
    "threads": "auto",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_obeyed_for_its_sender(folder: JobFolder, name: str) -> None:
    command = Command(name, VALUES.get(name, ""))
    obeyed: list[tuple[Command, int]] = []
    with serving(folder, lambda *received: obeyed.append(received)):
        send(folder, command)
    assert obeyed == [(command, os.getuid())]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "pause now",
        "Pause",
        "gentle",
        "gentle maybe",
        "rate 0",
        "rate -1",
        "rate 1000001",
        "rate ²",
        f"rate {'9' * 5000}",
        "nice 20",
        "nice 1 2",
        "ionice best",
        "threads 0",
        "threads 257",
        "threads many",
    ],
)
def test_a_line_that_is_no_command_is_bad_input(line: str) -> None:
    with pytest.raises(BadInput, match=r"not a command|takes"):
        read_command(line)


def test_what_the_job_cannot_do_now_is_said(folder: JobFolder) -> None:
    with (
        serving(folder, lambda *_: "It is not paused."),
        pytest.raises(BadInput, match=r"It is not paused\."),
    ):
        send(folder, Command("resume"))


def test_an_unknown_command_is_not_obeyed(folder: JobFolder) -> None:
    obeyed: list[Command] = []
    with serving(folder, _noting(obeyed)), pytest.raises(BadInput, match="not a command"):
        send(folder, Command("explode"))
    assert obeyed == []


@pytest.mark.parametrize("has_run", [False, True])
def test_a_job_that_does_not_run_does_not_answer(folder: JobFolder, has_run: bool) -> None:
    if has_run:
        with serving(folder, lambda *_: None):
            pass
    with pytest.raises(JobFailed, match="not running"):
        send(folder, Command("pause"))


def test_a_socket_works_at_any_length_of_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ("x" * 120)))
    folder = create(plan())
    with serving(folder, lambda *_: None):
        send(folder, Command("pause"))


def test_one_who_connects_and_goes_does_not_stop_the_server(folder: JobFolder) -> None:
    obeyed: list[Command] = []
    with serving(folder, _noting(obeyed)):
        with socket.socket(socket.AF_UNIX) as silent:
            _connect(silent, folder)
        send(folder, Command("pause"))
    assert obeyed == [Command("pause")]


def test_a_slow_client_is_answered_and_keeps_no_other_waiting(folder: JobFolder) -> None:
    obeyed: list[Command] = []
    with serving(folder, _noting(obeyed)), socket.socket(socket.AF_UNIX) as slow:
        slow.settimeout(60)
        _connect(slow, folder)
        send(folder, Command("pause"))
        slow.sendall(b"resume\n")
        assert json.loads(slow.recv(100)) == {"ok": True, "problem": None}
    assert obeyed == [Command("pause"), Command("resume")]


def test_those_who_never_speak_are_not_kept_without_end(folder: JobFolder) -> None:
    with serving(folder, lambda *_: None), contextlib.ExitStack() as silent:
        those = [silent.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(20)]
        for client in those:
            _connect(client, folder)
            send(folder, Command("pause"))
        # and the first of them was closed
        those[0].settimeout(60)
        assert those[0].recv(100) == b""


def test_a_command_without_an_answer_was_not_carried_out_for_certain(folder: JobFolder) -> None:
    def listen() -> None:
        connection, _ = listening.accept()
        connection.recv(100)
        connection.close()

    with socket.socket(socket.AF_UNIX) as listening, _address(folder) as address:
        listening.bind(address)
        listening.listen()
        thread = threading.Thread(target=listen)
        thread.start()
        with pytest.raises(JobFailed, match="without an answer"):
            send(folder, Command("pause"))
        thread.join()


def test_a_job_that_cannot_be_reached_is_not_said_to_have_ended(folder: JobFolder) -> None:
    with contextlib.ExitStack() as others, _address(folder) as address:
        listening = others.enter_context(socket.socket(socket.AF_UNIX))
        listening.bind(address)
        listening.listen(0)
        _connect(others.enter_context(socket.socket(socket.AF_UNIX)), folder)
        with pytest.raises(JobFailed, match="cannot be reached"):
            send(folder, Command("pause"))


def _noting(obeyed: list[Command]) -> Obey:
    def obey(command: Command, _: int) -> None:
        obeyed.append(command)

    return obey


def _connect(one: socket.socket, folder: JobFolder) -> None:
    with _address(folder) as address:
        one.connect(address)


@contextmanager
def _address(folder: JobFolder) -> Iterator[str]:
    """Yield a name of the socket that fits into a socket address wherever the folder is."""
    directory = os.open(folder.path, os.O_PATH)
    try:
        yield f"/proc/self/fd/{directory}/{os.path.basename(folder.socket)}"
    finally:
        os.close(directory)
