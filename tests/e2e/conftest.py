"""The program, or a shell, in a terminal."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.e2e.terminal import Terminal
from tests.needs import needs_tool

Open = Callable[..., Terminal]


@pytest.fixture
def open_command(tmp_path: Path) -> Iterator[Open]:
    """Yield a function that runs a command in a terminal, which is closed at the end."""
    needs_tool("tmux", "tmux")
    opened: list[Terminal] = []
    home = tmp_path / "home"
    home.mkdir()

    def open_terminal(*command: str, columns: int = 80, lines: int = 24) -> Terminal:
        terminal = Terminal([*command], home, columns, lines)
        opened.append(terminal)
        return terminal

    yield open_terminal
    for terminal in opened:
        terminal.close()


@pytest.fixture
def open_on(cli: Cli, open_command: Open) -> Open:
    """Return a function that opens the screens on a directory."""

    def open_screens(path: Path, *options: str, columns: int = 80, lines: int = 24) -> Terminal:
        return open_command(cli.program, *options, str(path), columns=columns, lines=lines)

    return open_screens


@pytest.fixture
def shell(open_command: Open) -> Terminal:
    """Return a shell with job control."""
    terminal = open_command("bash", "--norc", "--noprofile", "-i", columns=160)
    terminal.wait_for("$" if os.geteuid() else "#")
    return terminal
