"""Signals at the wrong moment, and standard streams that take nothing or are not there."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Cli, entries_in, wait_until
from tests.contracts.test_overlap import entries_at
from tests.trees import many_directories

_INTERRUPTED = """
import os, sys
from tui_fs.cli import main
from tui_fs.job import start

wait = start._wait_for

def interrupted(ready, is_wanted):
    if sys.argv[1] == "before":
        os.kill(os.getpid(), int(sys.argv[2]))
        return wait(ready, is_wanted)
    is_ready = wait(ready, is_wanted)
    os.kill(os.getpid(), int(sys.argv[2]))
    return is_ready

start._wait_for = interrupted
sys.exit(main(sys.argv[3:]))
"""


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Give a tree of 50 files."""
    many_directories(tmp_path / "t", 5, 10)
    return tmp_path / "t"


@pytest.mark.parametrize("detach", [(), ("--detach",)], ids=["followed", "detached"])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_a_job_is_starting_deletes_nothing(
    cli: Cli, target: Path, number: signal.Signals, code: int, moment: str, detach: tuple[str, ...]
) -> None:
    # Given a job that gets ready, or is ready but was not yet told to begin
    before = entries_in(target)
    script = [sys.executable, "-P", "-c", _INTERRUPTED, moment, str(int(number))]
    # When its starter gets a signal
    ended = subprocess.run(
        [*script, "delete", "--strategy", "rm", "--yes", *detach, str(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    # Then it says that nothing was deleted, and the job never begins
    told = "tui-fs: Interrupted before the job began; nothing was deleted.\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", told)
    cli.wait_for_state(cli.only_job(), "refused")
    assert entries_in(target) == before


def test_a_second_signal_leaves_a_job_that_does_not_end(cli: Cli, tmp_path: Path) -> None:
    # Given a followed job whose supervisor stands still
    many_directories(tmp_path / "t", 20, 100)
    options = ("--strategy", "rm", "--rate", "50", "--yes")
    before = entries_at(tmp_path / "t")
    with cli.start("delete", *options, tmp_path / "t") as foreground:
        wait_until(lambda: entries_at(tmp_path / "t") < before, "the deletion's beginning")
        job = cli.only_job()
        supervisor = cli.supervisor_of(job)
        os.kill(supervisor, signal.SIGSTOP)
        try:
            # When signals come until it ends
            stderr = _interrupted(foreground)
        finally:
            os.kill(supervisor, signal.SIGCONT)
    # Then it has said how to follow the job again
    assert foreground.returncode == 130
    assert stderr.decode().endswith(f"job {job} has not ended yet; tui-fs attach {job}\n")
    cli.wait_for_state(job, "cancelled")


def _interrupted(process: "subprocess.Popen[bytes]") -> bytes:
    """Interrupt a process, with long pauses, until it ends; return its standard error."""
    for pause_s in (1, 30, 30):
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=pause_s)[1]
    raise AssertionError("it does not end")


BUFFERING = pytest.mark.parametrize("buffering", [{}, {"PYTHONUNBUFFERED": "1"}])
"""Python keeps what was not written, or it does not: both happen on people's machines."""


@BUFFERING
def test_output_that_takes_nothing_is_told_with_what_becomes_of_the_job(
    cli: Cli, target: Path, buffering: dict[str, str]
) -> None:
    # Given standard output on a disk that is full / When a job is followed
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [cli.program, "delete", "--strategy", "rm", "--yes", "--json", str(target)],
            env={**os.environ, **buffering},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    # Then that is said, and that the job goes on; the exit code claims nothing about it
    job = cli.only_job()
    goes_on = f"tui-fs: job {job} goes on; tui-fs attach {job}\n"
    assert ended.stderr == goes_on + "tui-fs: No space left on device.\n"
    assert ended.returncode == 141
    cli.wait_for_state(job, "done")


@BUFFERING
@pytest.mark.parametrize(
    "arguments", [("survey", "--json"), ("survey", "--export", "-", "--format", "ncdu")]
)
def test_other_output_that_takes_nothing_is_told(
    cli: Cli, target: Path, arguments: tuple[str, ...], buffering: dict[str, str]
) -> None:
    # Given standard output on a disk that is full / When a directory is counted
    many_directories(target / "many", 2, 1000)  # more than any buffer takes
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [cli.program, *arguments, str(target)],
            env={**os.environ, **buffering},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    # Then in one sentence
    assert ended.stderr == "tui-fs: No space left on device.\n"
    assert ended.returncode == 141


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_harm_nothing(cli: Cli, target: Path, closed: str) -> None:
    # Given a shell that has closed a standard stream / When a directory is deleted
    command = f'exec "$0" delete --strategy rm --yes "$1" {closed}'
    ended = subprocess.run(
        ["sh", "-c", command, cli.program, str(target)], capture_output=True, text=True, check=False
    )
    # Then it is done, and nothing went into a file of the job instead
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    assert not target.exists()
    assert (cli.jobs_directory / cli.only_job() / "log").read_text() == ""
