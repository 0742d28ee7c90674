"""Two jobs never run in the same directory or in nested ones; in sibling directories they may."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Cli, Json, wait_until
from tests.contracts.test_policy import plan_of
from tests.filesystems import mount_bind, unmount_below
from tests.needs import needs_root
from tests.trees import flat, many_directories
from tui_fs.job.lock import is_occupied
from tui_fs.job.process import GO, READY
from tui_fs.job.store import JobFolder, create
from tui_fs.linux.interpreter import module_command
from tui_fs.model.strategy import StrategyName

SLOWLY = ("xargs", "--batch-size", "1", "--rate", "20")
"""A process for each file: few files go before the rate limit holds, so no long pause follows."""


@pytest.fixture
def tree(tmpfs: Path) -> Path:
    """Return a tree; one of its directories takes fifty seconds with the options `SLOWLY`."""
    tree = tmpfs / "tree"
    many_directories(tree, 3, 1_000)
    return tree


def start_slowly(cli: Cli, target: Path, *how: str) -> str:
    """Start a job that lasts, and return its id when it has removed something.

    Args:
        how: its strategy and options, SLOWLY if there are none.
    """
    options = ("--yes", "--detach", "--strategy", *(how or SLOWLY))
    job = cli.run("delete", *options, target).expect(0).stdout.decode().strip()
    wait_until(lambda: removed_by(cli, job) > 0, "the deletion's beginning")
    return job


def removed_by(cli: Cli, job: str) -> int:
    """Return how many entries the journal says were removed; 0 before there is a journal."""
    try:
        events = cli.journal(job)
    except FileNotFoundError:
        return 0
    samples = [event for event in events if event["type"] == "Sampled"]
    return int(samples[-1]["removed"]["entries"]) if samples else 0


def entries_at(directory: Path) -> int:
    """Count the names at and below a directory, from which a job may be deleting."""
    below = os.walk(directory)  # passes over what is gone by now
    return (
        sum(len(directories) + len(files) for _, directories, files in below) + directory.exists()
    )


def cancel(cli: Cli, job: str) -> None:
    """End a job, and wait until it has."""
    cli.run("cancel", job).expect(0)
    cli.run("attach", job).expect(130)


def assert_refused_as_busy(report: Json, by: str) -> None:
    """Fail unless a job was refused because of another one."""
    assert report["outcome"] == "refused"
    assert report["refusal"]["rule"] == "busy"
    assert by in report["refusal"]["sentence"]
    assert (report["deleted_files"], report["deleted_directories"]) == (0, 0)


@pytest.mark.parametrize(
    ("first", "second"), ((".", "."), (".", "directory-00002"), ("directory-00002", "."))
)
def test_a_conflicting_job_is_refused_and_the_first_goes_on(
    cli: Cli, tree: Path, first: str, second: str
) -> None:
    job = start_slowly(cli, tree / first)
    left = entries_at(tree)
    finished = cli.delete(tree / second, "find").expect(3)
    assert_refused_as_busy(finished.report(), by=job)
    assert cli.state_of(job) == "running"
    wait_until(lambda: entries_at(tree) < left, "the first job going on")
    assert entries_at(tree) > 1000, "more is gone than the first can have removed"
    cancel(cli, job)


def test_a_conflicting_detached_job_is_reported_by_the_exit_code(cli: Cli, tree: Path) -> None:
    job = start_slowly(cli, tree)
    finished = cli.run("delete", "--strategy", "rm", "--yes", "--detach", tree)
    assert finished.code == 3, f"told to be started: {finished.stderr}"
    cancel(cli, job)


def test_a_paused_job_causes_a_conflict_too(cli: Cli, tree: Path) -> None:
    job = start_slowly(cli, tree)
    cli.run("pause", job).expect(0)
    left = entries_at(tree)
    assert_refused_as_busy(cli.delete(tree, "rmtree").expect(3).report(), by=job)
    assert entries_at(tree) == left
    cancel(cli, job)


def test_one_directory_under_two_names_is_one(cli: Cli, tmpfs: Path, tree: Path) -> None:
    needs_root("mounting")
    job = start_slowly(cli, tree)
    again = mount_bind(tmpfs, tmpfs.parent / "again")
    try:
        finished = cli.delete(again / tree.name, "rm")
    finally:
        unmount_below(again)
        again.rmdir()
    assert finished.expect(3).report()["refusal"]["rule"] == "busy"
    cancel(cli, job)


def test_jobs_beside_each_other_run_together(cli: Cli, tmpfs: Path) -> None:
    # Jobs in two directories whose names begin alike
    places = [tmpfs / name for name in ("directory-1", "directory-10")]
    for place in places:
        flat(place, 1_000)
    jobs = [start_slowly(cli, place) for place in places]
    assert [cli.state_of(job) for job in jobs] == ["running", "running"]
    for job in jobs:
        cli.run("rate", job, "off").expect(0)
        cli.run("attach", job).expect(0)
    assert os.listdir(tmpfs) == []


@pytest.mark.parametrize("end", ("done", "cancelled", "died"))
def test_after_a_job_has_ended_another_may_run(cli: Cli, tree: Path, end: str) -> None:
    if end == "done":
        job = str(cli.delete(tree, "xargs").expect(0).report()["id"])
    else:
        job = start_slowly(cli, tree)
    if end == "died":
        os.kill(cli.supervisor_of(job), signal.SIGKILL)
    elif end == "cancelled":
        cli.run("cancel", job).expect(0)
    cli.run("attach", job)
    assert cli.state_of(job) == end
    lock = str(cli.jobs_directory / job / "lock")
    wait_until(lambda: not is_occupied(lock), "the end of its tools, which the kernel kills")
    tree.mkdir(exist_ok=True)
    assert cli.delete(tree, "rm").expect(0).report()["outcome"] == "done"
    assert not tree.exists()


def test_of_jobs_started_at_the_same_moment_at_most_one_runs(cli: Cli, tree: Path) -> None:
    targets = (tree, tree, tree / "directory-00001", tree)
    folders = [create(plan_of(target, StrategyName("find"))) for target in targets]
    supervisors = [_start_supervisor(folder) for folder in folders]
    for supervisor in supervisors:
        assert supervisor.stdout is not None and supervisor.stdout.read(1) == READY
    for supervisor in supervisors:
        assert supervisor.stdin is not None
        _order_start(supervisor.stdin.fileno())
    wait_until(lambda: all(job["state"] != "running" for job in cli.jobs()), "the jobs' ends")
    journals = [cli.journal(folder.job_id) for folder in folders]
    began = [any(event["type"] == "StepStarted" for event in journal) for journal in journals]
    assert sum(began) <= 1, "two jobs ran in one tree"
    for supervisor, folder, has_begun in zip(supervisors, folders, began, strict=True):
        supervisor.communicate()
        report = json.loads(Path(folder.report).read_text(encoding="utf-8"))
        assert report["outcome"] == ("done" if has_begun else "refused")
        assert has_begun or report["refusal"]["rule"] == "busy"


def _start_supervisor(folder: JobFolder) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        module_command("tui_fs.job.supervisor", folder.path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
    )


def _order_start(descriptor: int) -> None:
    """Order a supervisor to begin; one that has refused does not read the order."""
    try:
        os.write(descriptor, GO)
    except BrokenPipeError:
        return
