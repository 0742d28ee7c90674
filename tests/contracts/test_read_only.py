"""In read-only mode no command deletes, or lets a running job delete more or faster."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Cli, entries_in, removed_since, wait_until
from tests.contracts.test_policy import write_policy
from tests.trees import flat, manifest, many_directories
from tui_fs.job.calibration.store import measure
from tui_fs.job.control import send
from tui_fs.job.lock import is_occupied
from tui_fs.job.permission import check_command
from tui_fs.job.store import find
from tui_fs.model.command import Command, read_command
from tui_fs.model.errors import BadInput, Refused

FORBIDDEN = (
    "resume",
    "rate 5000",
    "rate 1",
    "rate off",
    "gentle off",
    "nice 0",
    "nice 19",
    "ionice idle",
    "threads 1",
    "threads auto",
)
ALLOWED = ("gentle on", "pause", "cancel")


@pytest.fixture(params=("variable", "policy"))
def switch_on(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Yield a switch for read-only mode: each but --read-only, which sets the variable for
    every process.
    """
    with pytest.MonkeyPatch.context() as patch:

        def turn_on() -> None:
            if request.param == "variable":
                patch.setenv("TUI_FS_READ_ONLY", "1")
            else:
                write_policy(tmp_path, "read_only = true")

        yield turn_on


@pytest.fixture
def slow(cli: Cli, tmpfs: Path) -> tuple[str, Path]:
    """Return a job that runs for minutes, and its target."""
    target = tmpfs / "target"
    many_directories(target, 20, 500)
    removed = removed_since(target)
    options = ("--strategy", "rm", "--yes", "--detach", "--rate", "100")
    job = cli.run("delete", *options, target).expect(0).stdout.decode().strip()
    wait_until(lambda: removed() > 0, "a deletion at work")
    return job, target


def refused(cli: Cli, *arguments: str | Path) -> str:
    """Run a command that read-only mode refuses; return its sentence."""
    finished = cli.run(*arguments, environment=dict(os.environ)).expect(3)
    finished.assert_one_sentence()
    return finished.stderr


def test_only_what_cannot_delete_more_is_sent_to_a_job(
    cli: Cli, slow: tuple[str, Path], switch_on: Callable[[], None]
) -> None:
    job, target = slow
    # When read-only mode is turned on
    switch_on()
    for line in FORBIDDEN[::3]:  # the socket of the job refuses all of them, see below
        command, *value = line.split()
        assert "ead-only" in refused(cli, command, job, *value)
    assert cli.state_of(job) == "running"
    # And what reads, or ends the job, works
    environment = dict(os.environ)
    cli.run("jobs", environment=environment).expect(0)
    cli.run("doctor", environment=environment).expect(0)
    cli.run("survey", target, environment=environment).expect(0)
    for line in ALLOWED:
        command, *value = line.split()
        cli.run(command, job, *value, environment=environment).expect(0)
        if command == "pause":
            refused(cli, "resume", job)
            assert cli.state_of(job) == "paused"
    cli.wait_for_state(job, "cancelled")
    cli.run("attach", job, environment=environment).expect(130)


def test_a_died_job_is_not_resumed(cli: Cli, tmpfs: Path, switch_on: Callable[[], None]) -> None:
    target = tmpfs / "target"
    flat(target, 1_500)
    options = ("--batch-size", "1", "--rate", "20", "--detach", "--yes")
    job = cli.run("delete", "--strategy", "xargs", *options, target).expect(0).stdout.decode()
    job = job.strip()
    wait_until(lambda: 0 < entries_in(target) < 1_500, "a deletion at work")
    os.kill(cli.supervisor_of(job), signal.SIGKILL)
    lock = str(cli.jobs_directory / job / "lock")
    wait_until(lambda: not is_occupied(lock), "the end of the tools")
    cli.wait_for_state(job, "died")
    left = entries_in(target)
    switch_on()
    refused(cli, "resume", job, "--yes")
    assert entries_in(target) == left


def test_no_directory_is_changed(cli: Cli, tmpfs: Path, switch_on: Callable[[], None]) -> None:
    (tmpfs / "empty").mkdir()
    flat(tmpfs / "full", 3)
    flat(tmpfs / "away", 3)
    done = cli.run("aside", tmpfs / "away", "--yes", "--json").expect(0).object()
    before = manifest(tmpfs)
    switch_on()
    for words in (
        ("recreate", "--yes", tmpfs / "empty"),
        ("aside", "--yes", tmpfs / "full"),
        ("aside", "--yes", "--undo", str(done["id"])),
        ("aside", "--yes", "--undo", "no-such-id"),
        ("delete", "--strategy", "rm", "--yes", tmpfs / "full"),
        ("lab", "run", "race-your-strategies", "--dir", tmpfs),
    ):
        assert "switched off" in refused(cli, *words)
    assert manifest(tmpfs) == before
    # And what was set aside is still listed
    cli.run("aside", "--list", environment=dict(os.environ)).expect(0)


def test_an_estimate_measures_nothing(tmpfs: Path, switch_on: Callable[[], None]) -> None:
    flat(tmpfs / "target", 3)
    before = tmpfs.stat().st_mtime_ns
    # When a measurement next to it is due in read-only mode
    switch_on()
    reason = measure(str(tmpfs / "target"))
    # It says why it was not, and nothing was made there
    assert "sets read-only mode" in reason
    assert tmpfs.stat().st_mtime_ns == before


def test_a_client_cannot_send_what_read_only_mode_forbids(
    cli: Cli, slow: tuple[str, Path], switch_on: Callable[[], None]
) -> None:
    # A running job and read-only mode
    folder = find(slow[0])
    switch_on()
    for line in FORBIDDEN:
        with pytest.raises(Refused) as error:
            send(folder, read_command(line))
        assert error.value.rule == "read-only"
    for line in ALLOWED:
        send(folder, read_command(line))
    cli.wait_for_state(slow[0], "cancelled")


def test_a_damaged_policy_lets_jobs_be_ended_only(tmp_path: Path) -> None:
    write_policy(tmp_path, "never")
    for line in ALLOWED:
        check_command(read_command(line))
    with pytest.raises(BadInput):
        check_command(Command("resume"))


def test_the_option_of_the_screens_is_enough() -> None:
    check_command(Command("resume"))
    with pytest.raises(Refused) as error:
        check_command(Command("resume"), by_option=True)
    assert "--read-only" in error.value.sentence
