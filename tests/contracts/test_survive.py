"""The job outlives its viewer; when the job itself dies, nothing is hidden and nothing goes on."""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import Cli, entries_in, processes_with, removed_since, wait_until
from tests.filesystems import CROWDED_FILES
from tests.trees import flat, many_directories
from tui_fs.linux.memory import children_of

pytestmark = pytest.mark.slow

FILES = CROWDED_FILES
FILES_AT_A_RATE = 6_000
SLOWLY = ("--rate", "100")


def start_foreground(
    cli: Cli, target: Path, strategy: str, *options: str
) -> "subprocess.Popen[bytes]":
    """Start a deletion in the foreground, and come back when it has begun."""
    removed = removed_since(target)
    foreground = cli.start("delete", "--strategy", strategy, "--yes", "--json", *options, target)
    wait_until(lambda: removed() > 0, "the deletion's beginning")
    return foreground


def strategy_processes(cli: Cli, job: str, target: Path) -> list[int]:
    """List the processes that delete: those with the target in an argument, and xargs."""
    supervisor = cli.supervisor_of(job)
    started = {
        pid for event in cli.journal(job) if event["type"] == "StepStarted" for pid in event["pids"]
    }
    named = {pid for pid, _ in processes_with(target)}
    return sorted((named | set(filter(is_alive, started))) - {supervisor})


def is_alive(pid: int) -> bool:
    """Return whether a process has a command line still; a zombie has none."""
    with suppress(OSError):
        return Path("/proc", str(pid), "cmdline").read_bytes() != b""
    return False


def has_counted_removals(cli: Cli, job: str) -> bool:
    """Return whether the journal says that something was deleted."""
    samples = (event for event in cli.journal(job) if event["type"] == "Sampled")
    return any(sample["removed"]["entries"] > 0 for sample in samples)


@pytest.mark.parametrize(
    ("strategy", "number"),
    (("rm", signal.SIGKILL), ("xargs", signal.SIGHUP)),
)
def test_the_job_outlives_its_viewer(
    cli: Cli, tmpfs: Path, strategy: str, number: signal.Signals
) -> None:
    target = tmpfs / "target"
    flat(target, FILES_AT_A_RATE)
    with start_foreground(cli, target, strategy, *SLOWLY) as foreground:
        os.killpg(foreground.pid, number)
        foreground.communicate()
        assert entries_in(target) > 0, "the deletion ended before the signal"
    job = cli.only_job()
    cli.run("rate", job, "off").expect(0)
    cli.wait_for_state(job, "done")
    assert not target.exists()
    # And its journal is whole
    text = (cli.jobs_directory / job / "events.jsonl").read_text(encoding="utf-8")
    assert text.endswith("\n")
    journal = cli.journal(job)
    assert journal[0]["type"] == "JobStarted"
    report = cli.run("attach", "--json", job).expect(0).report()
    assert (report["deleted_files"], report["deleted_directories"]) == (FILES_AT_A_RATE, 1)


def test_the_job_outlives_a_reader_that_goes_away(cli: Cli, tmpfs: Path) -> None:
    target = tmpfs / "target"
    flat(target, FILES_AT_A_RATE)
    with start_foreground(cli, target, "rm", *SLOWLY) as foreground:
        assert foreground.stdout is not None
        foreground.stdout.close()
        assert foreground.stderr is not None
        stderr = foreground.stderr.read()
    assert b"Traceback" not in stderr, stderr
    cli.run("rate", cli.only_job(), "off").expect(0)
    cli.wait_for_state(cli.only_job(), "done")
    assert not target.exists()


@pytest.mark.parametrize(
    ("strategy", "paused"),
    (("rm", False), ("xargs", False), ("rsync", True)),
)
def test_when_the_supervisor_dies_the_deletion_ends_and_is_called_dead(
    cli: Cli, crowded: Path, strategy: str, paused: bool
) -> None:
    target = crowded / "target"
    options = ("--strategy", strategy, "--yes", "--detach")
    cli.run("delete", *options, target).expect(0)
    job = cli.only_job()
    wait_until(lambda: has_counted_removals(cli, job), "the first deletions")
    if paused:
        cli.run("pause", job).expect(0)
        cli.wait_for_state(job, "paused")
    assert entries_in(target) > 0, "the job ended too soon"
    assert strategy_processes(cli, job, target) != []
    os.kill(cli.supervisor_of(job), signal.SIGKILL)
    wait_until(lambda: strategy_processes(cli, job, target) == [], "the end of the strategy")
    left = entries_in(target)
    assert left > 0, "all was deleted after the supervisor's death"
    # And it is called dead, never running
    cli.wait_for_state(job, "died")
    # And the report states the least that was deleted
    report = cli.run("attach", "--json", job).expect(5).report()
    assert report["outcome"] == "died"
    assert 0 < report["deleted_files"] + report["deleted_directories"] <= FILES - left
    assert entries_in(target) == left
    # And orders to it are refused with a sentence
    refused = cli.run("resume", job)
    refused.assert_one_sentence()
    assert refused.code in {2, 5}


def test_the_follower_of_a_job_that_dies_ends_with_exit_5(cli: Cli, crowded: Path) -> None:
    target = crowded / "target"
    with start_foreground(cli, target, "rm") as foreground:
        job = cli.only_job()
        os.kill(cli.supervisor_of(job), signal.SIGKILL)
        _, stderr = foreground.communicate()
    assert foreground.returncode == 5, stderr
    assert b"Traceback" not in stderr
    assert entries_in(target) > 0


def test_when_only_the_launcher_dies_the_report_says_what_was_deleted(cli: Cli, ext4: Path) -> None:
    target = ext4 / "t"
    many_directories(target, 20, 1000)
    run = cli.run("delete", "--strategy", "xargs", "--batch-size", "1", "--yes", "--detach", target)
    job = run.expect(0).stdout.decode().strip()
    supervisor = cli.supervisor_of(job)
    wait_until(lambda: any("removed" in e and e["removed"] for e in cli.journal(job)), "a sample")
    (launcher,) = children_of(supervisor)

    os.kill(launcher, signal.SIGKILL)

    cli.wait_for_state(job, "partial")
    left = sum(1 for _ in target.rglob("*")) + 1
    report = cli.run("attach", "--json", job).expect(1).report()
    assert report["surviving_entries"] == left
    assert report["deleted_files"] + report["deleted_directories"] == 20_021 - left
    assert report["strategy_wall_s"] > 0


def test_a_stopped_launcher_and_all_tools_end_with_the_supervisor(cli: Cli, crowded: Path) -> None:
    target = crowded / "target"
    words = ("--strategy", "xargs", "--rate", "200", "--yes", "--detach")
    job = cli.run("delete", *words, target).expect(0).stdout.decode().strip()
    supervisor = cli.supervisor_of(job)
    wait_until(lambda: has_counted_removals(cli, job), "the first deletions")
    (launcher,) = children_of(supervisor)
    os.kill(launcher, signal.SIGSTOP)
    os.kill(supervisor, signal.SIGKILL)
    wait_until(lambda: not is_alive(launcher), "the end of the launcher")
    assert strategy_processes(cli, job, target) == []
    assert entries_in(target) > 0
