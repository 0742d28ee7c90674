"""What a small deletion loads: each module would be a part of its time."""

import subprocess
import sys

import pytest

from tui_fs.strategies import rmtree, rmtree_child

COMMAND = ("tui_fs.cli", "tui_fs.cli.command_process", "tui_fs.cli.parser", "tui_fs.cli.delete")


@pytest.mark.parametrize("modules", [COMMAND, ("tui_fs.job.supervisor",)])
def test_a_deletion_does_not_load_slow_modules_that_it_does_not_need(
    modules: tuple[str, ...],
) -> None:
    slow = {"statistics", "shutil", "traceback", "textual", "rich"}
    slow |= {"tui_fs.cli.follow", "tui_fs.tracing.bpf", "tui_fs.tracing.strace"}
    if modules == COMMAND:
        slow.add("socket")  # loaded with what follows the job, while the supervisor works
    if sys.version_info >= (3, 11):
        slow |= {"typing_extensions", "inspect"}
    program = f"import {', '.join(modules)}, sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, check=True, text=True
    ).stdout.split()
    assert slow.isdisjoint(loaded)


def test_the_exit_code_of_the_child_is_known_without_loading_it() -> None:
    assert rmtree.EXIT_EXCHANGED == rmtree_child.EXIT_EXCHANGED
