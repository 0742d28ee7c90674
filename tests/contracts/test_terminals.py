"""Terminals of any size and ability, and environments that describe another one."""

import errno
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from itertools import pairwise
from pathlib import Path

import pytest

from tests.conftest import DEADLINE_S, Cli, wait_until
from tests.trees import flat

_CLEAR_LINE = "\r\x1b[2K"


def started_in_terminal(
    cli: Cli, *arguments: str, columns: int = 80, variables: dict[str, str] | None = None
) -> tuple[subprocess.Popen[bytes], int]:
    """Start the program as the session leader of a terminal; return also our end of that."""
    ours, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {"TERM": "xterm", **os.environ, **(variables or {})}
    process = subprocess.Popen(
        [cli.program, *arguments],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={name: value for name, value in environment.items() if value != "unset"},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(terminal)
    return process, ours


def run_in_terminal(
    cli: Cli, *arguments: str, columns: int = 80, variables: dict[str, str] | None = None
) -> tuple[str, int]:
    """Run the program in the foreground of a terminal; return what it printed and its code."""
    process, ours = started_in_terminal(cli, *arguments, columns=columns, variables=variables)
    printed = b""
    try:
        while chunk := os.read(ours, 1 << 16):
            printed += chunk
    except OSError as error:
        assert error.errno == errno.EIO  # all have closed the terminal
    os.close(ours)
    return printed.decode(), process.wait(DEADLINE_S)


def test_the_size_of_the_terminal_counts_and_not_that_of_the_environment(cli: Cli) -> None:
    exported = {"COLUMNS": "40", "LINES": "5"}
    for columns in (60, 100):
        as_it_is, _ = run_in_terminal(cli, "delete", "--help", columns=columns)
        other, _ = run_in_terminal(cli, "delete", "--help", columns=columns, variables=exported)
        assert other == as_it_is
        assert columns - 20 < max(map(len, as_it_is.splitlines())) <= columns
    # Without a terminal there is no other size
    piped = cli.run("delete", "--help", environment=exported).expect(0).stdout.decode()
    assert max(map(len, piped.splitlines())) < 60


@pytest.mark.parametrize("columns", (20, 80))
def test_the_status_line_fits_into_the_terminal(cli: Cli, tmp_path: Path, columns: int) -> None:
    flat(tmp_path / "target", 100)
    command = ("delete", "--strategy", "rm", "--yes", "--rate", "100", str(tmp_path / "target"))
    printed, code = run_in_terminal(cli, *command, columns=columns, variables={"COLUMNS": "200"})
    assert code == 0
    states = re.findall(rf"{re.escape(_CLEAR_LINE)}([^\r\n]+)(?=\r\x1b)", printed)
    assert any("rm  running" in state for state in states)
    assert max(map(len, states)) < columns
    assert all(state != following for state, following in pairwise(states))  # sent for nothing


@pytest.mark.parametrize("term", ("dumb", "", "unset"))
def test_a_terminal_that_cannot_move_its_cursor_gets_no_escape_sequence(
    cli: Cli, tmp_path: Path, term: str
) -> None:
    flat(tmp_path / "target", 100)
    command = ("delete", "--strategy", "rm", "--yes", "--rate", "100", str(tmp_path / "target"))
    printed, code = run_in_terminal(cli, *command, variables={"TERM": term})
    assert code == 0
    assert "\x1b" not in printed and "peak memory" in printed
    # And the screens say what they need
    printed, code = run_in_terminal(cli, str(tmp_path), variables={"TERM": term})
    assert code == 2 and "Set TERM." in " ".join(printed.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((), b"complete"), (("delete", "--yes", "--strategy", "rm", "--rate", "50"), b"running")],
)
def test_a_program_that_leads_the_session_ends_with_its_terminal(
    cli: Cli, tmpfs: Path, arguments: tuple[str, ...], words: bytes
) -> None:
    """As in ``ssh -t HOST tui-fs``: the kernel sends the signal to the session leader only."""
    target = tmpfs / "t"
    flat(target, 20_000)
    process, ours = started_in_terminal(cli, *arguments, str(target))
    printed = b""
    while words not in printed:
        printed += os.read(ours, 1 << 16)
    os.close(ours)
    assert process.wait(DEADLINE_S) == -signal.SIGHUP
    if arguments:
        cli.run("cancel", cli.only_job()).expect(0)


def test_the_screens_end_with_their_terminal_if_sighup_is_ignored(cli: Cli, tmpfs: Path) -> None:
    """As below nohup, or below a script that traps it; Textual would read forever."""
    flat(tmpfs / "t", 3)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # inherited
    try:
        process, ours = started_in_terminal(cli, str(tmpfs / "t"))
    finally:
        signal.signal(signal.SIGHUP, before)
    printed = b""
    while b"complete" not in printed:
        printed += os.read(ours, 1 << 16)
    (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.close(ours)
    assert process.wait(DEADLINE_S) == 128 + signal.SIGHUP
    wait_until(lambda: not Path(f"/proc/{child}").exists(), "the end of the screens")
