"""The process of a command, and the one that watches it."""

import subprocess
import sys

import pytest

from tests.conftest import DEADLINE_S

WITHOUT_MEMORY = """
from tui_fs.cli import command_process

def without_memory(*_):
    raise MemoryError

{place} = without_memory
raise SystemExit(command_process.run_command(lambda: 4))
"""


@pytest.mark.parametrize(
    "place", ["command_process._close_streams", "command_process.notify_watcher"]
)
def test_the_exit_code_of_a_command_outlives_the_end_of_the_memory(place: str) -> None:
    script = WITHOUT_MEMORY.format(place=place)
    ended = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (4, "")
