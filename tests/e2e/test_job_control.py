"""Control-Z, fg and & in a shell with job control."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Cli, wait_until
from tests.e2e.terminal import Terminal
from tests.trees import flat

RATE, FILES = 50, 20_000
"""Slow enough for keys, on any machine."""


@pytest.fixture
def deletion(cli: Cli, tmpfs: Path) -> Iterator[str]:
    """Yield the command line of a deletion of 400 s, which is cancelled at the end."""
    target = tmpfs / "target"
    target.mkdir()
    flat(target, FILES)
    yield f"{cli.program} delete --strategy rm --yes --rate {RATE} {target}"
    cli.run("cancel", cli.only_job())


def run(shell: Terminal, line: str) -> None:
    """Type a command line on an empty screen."""
    shell.type(f"clear; {line}")
    shell.press("Enter")


def stopped_children(shell: Terminal) -> list[int]:
    """Return the processes that the shell has started and that are stopped."""
    children = Path(f"/proc/{shell.pid()}/task/{shell.pid()}/children").read_text().split()
    states = {
        child: Path(f"/proc/{child}/stat").read_text().rpartition(")")[2] for child in children
    }
    return [int(child) for child, state in states.items() if state.split()[0] == "T"]


def assert_ended_with(shell: Terminal, code: int) -> None:
    """Wait for the shell's prompt; fail unless the last command has ended with an exit code."""
    shell.wait_until(lambda text: text.rstrip().endswith(("#", "$")), "a prompt")
    shell.type("echo code $?")
    shell.press("Enter")
    shell.wait_for(f"code {code}")


def is_canonical(shell: Terminal) -> bool:
    """Ask the terminal whether it edits lines, as it does for a shell's commands."""
    run(shell, "stty -a | grep -ow -- '-*icanon' | sed 's/^/mode: /'")
    shell.wait_for("mode: ")
    return "mode: icanon" in shell.text()


def test_the_screens_begin_with_the_file_systems_and_end_with_the_running_jobs(
    shell: Terminal, cli: Cli, deletion: str, tmp_path: Path
) -> None:
    run(shell, f"cd {tmp_path}; {deletion} --detach")
    job = cli.only_job()
    run(shell, cli.program)
    shell.wait_for("1 job is running")
    shell.wait_for("free  file system")
    shell.press(".")
    shell.wait_for(f"job {job}")
    shell.press("q")
    shell.wait_for(f"Follow it: tui-fs attach {job}")


def test_the_screens_can_be_suspended(cli: Cli, shell: Terminal, tmp_path: Path) -> None:
    (tmp_path / "place" / "inner").mkdir(parents=True)
    run(shell, f"{cli.program} {tmp_path / 'place'}")
    shell.wait_for("inner/")
    for _ in range(2):
        shell.press("C-z")
        shell.wait_for("Stopped")
        assert "inner/" not in shell.text()
        wait_until(lambda: is_canonical(shell), "canonical mode")
        run(shell, "fg")
        shell.wait_for("inner/")
    shell.press("?")
    shell.wait_for("esc close")
    shell.press("Escape")
    shell.wait_until(lambda text: "esc close" not in text, "the help gone")
    shell.press("q")
    assert_ended_with(shell, 0)


def test_a_deletion_in_the_foreground_goes_on_when_its_command_is_stopped(
    cli: Cli, shell: Terminal, deletion: str
) -> None:
    run(shell, deletion)
    shell.wait_for("rm  running")
    shell.press("C-z")
    job = cli.only_job()
    shell.wait_for(f"Only this command is stopped; job {job} continues.")
    shell.wait_for(f"To pause the job: tui-fs pause {job}")
    shell.wait_for("Stopped")
    # And the job continues
    seen = len(cli.journal(job))
    wait_until(lambda: len(cli.journal(job)) > seen + 2, "more samples of the job")
    run(shell, "fg")
    shell.wait_for("rm  running")
    shell.press("C-c")
    shell.wait_for("peak memory")
    assert_ended_with(shell, 130)


def test_a_deletion_in_the_background_is_not_stopped_and_draws_no_status(
    cli: Cli, shell: Terminal, deletion: str
) -> None:
    run(shell, "stty tostop")
    run(shell, f"{deletion} &")
    job = cli.only_job()
    cli.wait_for_state(job, "running")
    cli.supervisor_of(job)
    seen = len(cli.journal(job))
    wait_until(lambda: len(cli.journal(job)) > seen + 2, "more samples of the job")
    run(shell, "jobs")
    shell.wait_for("Running")
    assert "rm  running" not in shell.text()
    # And it shows its status when it is in the foreground
    run(shell, "fg")
    shell.wait_for("rm  running")


def test_a_command_that_asks_can_be_stopped(cli: Cli, shell: Terminal, tmpfs: Path) -> None:
    (tmpfs / "target").mkdir()
    run(shell, f"{cli.program} delete --strategy rm {tmpfs / 'target'}")
    shell.wait_for("Type yes:")
    shell.press("C-z")
    shell.wait_for("Stopped")
    run(shell, "fg")
    shell.wait_for("delete --strategy rm")
    # The shell reads what is typed before it has let the command go on
    wait_until(lambda: not stopped_children(shell), "the command to go on")
    shell.type("no")
    shell.press("Enter")
    shell.wait_for("Not confirmed; nothing was deleted.")
    assert_ended_with(shell, 3)


def test_a_busy_target_is_refused_before_the_question(
    shell: Terminal, cli: Cli, deletion: str, tmpfs: Path
) -> None:
    run(shell, f"{deletion} --detach")
    wait_until(lambda: b"running" in cli.run("jobs").stdout, "the job's beginning")
    run(shell, f"{cli.program} delete --strategy rm {tmpfs / 'target'}")
    shell.wait_for(f"Job {cli.only_job()} is already working in")
    assert "to delete it" not in shell.text()
    assert_ended_with(shell, 3)
