"""Processes that wait until a test ends them."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

StartPython = Callable[..., int]


@contextmanager
def waiting_process(
    command: Sequence[str | Path], *, cwd: Path | None = None, start_new_session: bool = False
) -> Iterator["subprocess.Popen[str]"]:
    """Start a command, wait for its first line, and kill it at the end."""
    process = subprocess.Popen(
        command,
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=start_new_session,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline(), f"{command} ended before its first line"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def start_python() -> Iterator[StartPython]:
    """Start processes that run Python code and wait until the test ends; return their ids."""
    with ExitStack() as processes:

        def start(code: str, *arguments: object, cwd: Path | None = None) -> int:
            text = f"import os, sys\n{code}\nprint(flush=True)\nsys.stdin.read()"
            command = [sys.executable, "-I", "-c", text, *map(str, arguments)]
            return processes.enter_context(waiting_process(command, cwd=cwd)).pid

        yield start
