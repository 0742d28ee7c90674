"""Commands to a running job over its socket."""

import os
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.test_job_store import plan
from tui_fs.job.control import ControlServer, send
from tui_fs.job.store import JobFolder, create
from tui_fs.model.command import COMMANDS, Command, read_command
from tui_fs.model.errors import BadInput, JobFailed

Obey = Callable[[Command, int], str | None]


@contextmanager
def serving(folder: JobFolder, obey: Obey) -> Iterator[None]:
    """Answer one command, as the supervisor does when its socket becomes readable."""
    server = ControlServer(folder, obey)
    stop_reading, stop_writing = os.pipe()

    def serve() -> None:
        readable, _, _ = select.select([server.fileno(), stop_reading], [], [])
        if server.fileno() in readable:
            server.answer()

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
    """Give the folder of a job."""
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
    # Given a job that obeys / When a command is sent / Then it is carried out for this user
    command = Command(name, VALUES.get(name, ""))
    obeyed: list[tuple[Command, int]] = []
    with serving(folder, lambda *what: obeyed.append(what)):
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
    # Given a line that is no command, or one whose value does not fit / When read / Then said
    with pytest.raises(BadInput, match=r"not a command|takes"):
        read_command(line)


def test_what_the_job_cannot_do_now_is_said(folder: JobFolder) -> None:
    # Given a job that cannot / When told to / Then its reason comes back
    with (
        serving(folder, lambda *_: "It is not paused."),
        pytest.raises(BadInput, match=r"It is not paused\."),
    ):
        send(folder, Command("resume"))


def test_an_unknown_command_is_not_obeyed(folder: JobFolder) -> None:
    # Given a job / When told something else / Then it does nothing and says what it knows
    obeyed: list[Command] = []

    def obey(command: Command, _: int) -> None:
        obeyed.append(command)

    with serving(folder, obey), pytest.raises(BadInput, match="not a command"):
        send(folder, Command("explode"))
    assert obeyed == []


def test_a_job_that_does_not_run_does_not_answer(folder: JobFolder) -> None:
    # Given no supervisor / When told / Then JobFailed
    with pytest.raises(JobFailed, match="not running"):
        send(folder, Command("pause"))


def test_a_job_that_has_ended_does_not_answer(folder: JobFolder) -> None:
    # Given the socket of a supervisor that is gone / When told / Then JobFailed
    ControlServer(folder, lambda *_: None).close()
    with pytest.raises(JobFailed, match="not running"):
        send(folder, Command("pause"))


def test_only_the_owner_may_connect(folder: JobFolder) -> None:
    # Given a job / When its socket is looked at / Then mode 0600
    server = ControlServer(folder, lambda *_: None)
    try:
        assert os.stat(folder.socket).st_mode & 0o777 == 0o600
    finally:
        server.close()


def test_a_socket_works_at_any_length_of_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a state directory whose path is longer than a socket address
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ("x" * 120)))
    folder = create(plan())
    # When a command is sent / Then it arrives
    with serving(folder, lambda *_: None):
        send(folder, Command("pause"))


def test_one_who_connects_and_goes_does_not_stop_the_server(folder: JobFolder) -> None:
    # Given somebody who connects and goes without a word
    obeyed: list[Command] = []

    def obey(command: Command, _: int) -> None:
        obeyed.append(command)

    server = ControlServer(folder, obey)
    try:
        with socket.socket(socket.AF_UNIX) as silent, _address(folder) as address:
            silent.connect(address)
        # When the server answers, and is asked again with nobody there / Then it goes on
        server.answer()
        server.answer()
    finally:
        server.close()
    assert obeyed == []


@contextmanager
def _address(folder: JobFolder) -> Iterator[str]:
    """Give a name of the socket that fits into a socket address wherever the folder is."""
    directory = os.open(folder.path, os.O_PATH)
    try:
        yield f"/proc/self/fd/{directory}/{os.path.basename(folder.socket)}"
    finally:
        os.close(directory)
