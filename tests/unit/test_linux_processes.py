"""Whether processes stand still, to the last thread."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.conftest import wait_until
from tui_fs.linux.processes import all_stopped, state_of

THREADED = """
import os, threading
def work():
    while True:
        os.stat("/")
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"""


@pytest.fixture
def parent() -> Iterator[psutil.Process]:
    """Give a process whose one child has several threads that are at work."""
    command = ["sh", "-c", '"$0" -c "$1" & wait', sys.executable, THREADED]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        made = psutil.Process(process.pid)
        (child,) = made.children()
        yield made
        child.kill()


def test_all_threads_have_to_stand(parent: psutil.Process) -> None:
    (child,) = parent.children()
    assert not all_stopped(parent.pid)
    child.suspend()
    wait_until(lambda: all_stopped(parent.pid), "all threads standing")
    child.resume()
    wait_until(lambda: not all_stopped(parent.pid), "going on")


@pytest.mark.parametrize(
    "letter, is_still", [("T", True), ("t", True), ("Z", True), ("R", False), ("D", False)]
)
def test_a_thread_in_a_call_does_not_stand(tmp_path: Path, letter: str, is_still: bool) -> None:
    (tmp_path / "stat").write_text(f"7 (a) T b) {letter} 1 7 7 0 -1 4194304 0 0 0 0 0 0 0 0 20 0")
    assert state_of(str(tmp_path)).is_still is is_still
