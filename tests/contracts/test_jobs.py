"""A job runs by itself: detach, attach, pause, resume, cancel and the signals."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Cli, Finished, entries_in, processes_with, removed_since, wait_until
from tests.filesystems import CROWDED_FILES, mount_bind
from tests.trees import flat, many_directories
from tui_fs.linux.interpreter import module_command

pytestmark = pytest.mark.slow

FILES = CROWDED_FILES


def test_detach_then_attach(cli: Cli, tmpfs: Path) -> None:
    target = tmpfs / "target"
    flat(target, 3_000)
    options = ("--strategy", "rsync", "--rate", "1000", "--yes", "--detach", "--json")
    cli.run("delete", *options, target).expect(0)
    job = cli.only_job()
    followed = cli.run("attach", "--json", job).expect(0)
    again = cli.run("attach", "--json", job).expect(0)
    for finished in (followed, again):
        assert {line["schema"] for line in finished.stream()} == {1}
        report = finished.report()
        assert report["outcome"] == "done"
        assert (report["deleted_files"], report["deleted_directories"]) == (3_000, 1)
    assert cli.state_of(job) == "done"
    assert not target.exists()
    # And a command that comes too late is answered so
    for order in ("pause", "resume", "cancel"):
        cli.run(order, job).expect(2).assert_one_sentence()


def test_a_job_has_the_id_that_was_given_unless_another_one_has_it(
    cli: Cli, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    flat(first, 3)
    flat(second, 3)
    how = ("--strategy", "rm", "--yes", "--job-id", "0fee1bad")
    cli.run("delete", *how, first).expect(0)
    assert cli.only_job() == "0fee1bad"
    refused = cli.run("delete", *how, second).expect(2)
    assert "There is a job 0fee1bad already." in refused.stderr
    assert entries_in(second) == 3
    cli.run("delete", "--yes", "--job-id", "../job", second).expect(2)


@pytest.mark.parametrize(
    ("strategy", "number", "code"),
    (("rsync", signal.SIGINT, 130), ("find", signal.SIGTERM, 143)),
)
def test_a_signal_cancels_the_foreground_job(
    cli: Cli, crowded: Path, strategy: str, number: signal.Signals, code: int
) -> None:
    target = crowded / "target"
    command = ("delete", "--strategy", strategy, "--yes", "--json", target)
    removed = removed_since(target)
    with cli.start(*command) as foreground:
        wait_until(lambda: removed() > 0, "the deletion's beginning")
        foreground.send_signal(number)
        stdout, stderr = foreground.communicate()
    followed = Finished((), foreground.returncode, stdout, stderr.decode()).expect(code)
    assert followed.report()["outcome"] == "cancelled"
    assert_cancelled(cli, cli.only_job(), target)


def assert_cancelled(cli: Cli, job: str, target: Path) -> None:
    """Fail unless the job is cancelled, nothing runs any more, and the report counts the rest."""
    cli.wait_for_state(job, "cancelled")
    wait_until(lambda: processes_with(target) == [], "the end of the strategy's processes")
    left = entries_in(target)
    report = cli.run("attach", "--json", job).report()
    assert report["outcome"] == "cancelled"
    assert 0 < left <= FILES
    assert report["deleted_files"] == FILES - left
    assert report["deleted_directories"] == 0
    assert entries_in(target) == left


# The engine slows itself down; all others are stopped and continued.
@pytest.mark.parametrize("strategy", ("xargs", "parallel"), indirect=True)
def test_a_gentle_job_does_the_whole_work(cli: Cli, ext4: Path, strategy: str) -> None:
    target = ext4 / "t"
    many_directories(target, 10, 300)
    report = cli.delete(target, strategy, "--gentle").expect(0).report()
    assert report["outcome"] == "done"
    assert report["held_back_s"] >= 0
    assert not target.exists()


def test_a_mount_made_while_paused_forbids_to_resume(cli: Cli, ext4: Path) -> None:
    target, outside = ext4 / "t", ext4 / "outside"
    many_directories(target, 20, 1000)
    outside.mkdir()
    (outside / "precious").touch()
    options = ("--strategy", "xargs", "--batch-size", "1", "--yes", "--detach")
    job = cli.run("delete", *options, target).expect(0).stdout.decode().strip()
    cli.run("pause", job).expect(0)
    inside = next(path for path in target.iterdir() if path.is_dir())

    mount_bind(outside, inside)

    # It does not go on, says why, and can be cancelled
    refused = cli.run("resume", job)
    assert refused.code == 2
    assert "mounted inside" in refused.stderr
    assert cli.state_of(job) == "paused"
    cli.run("cancel", job).expect(0)
    cli.wait_for_state(job, "cancelled")
    assert (outside / "precious").exists()


def test_a_supervisor_without_its_starters_word_deletes_nothing(cli: Cli, ext4: Path) -> None:
    # The folder of a job that never began
    target = ext4 / "t"
    many_directories(target, 2, 10)
    job = cli.run("delete", "--strategy", "rm", "--yes", "--detach", target).expect(0)
    folder = cli.jobs_directory / job.stdout.decode().strip()
    cli.wait_for_state(folder.name, "done")
    again = folder.with_name("aaaaaa")
    again.mkdir(0o700)
    many_directories(target, 2, 10)
    plan = json.loads((folder / "plan.json").read_text())
    status = target.stat()
    plan["targets"][0]["pin"].update(device=status.st_dev, inode=status.st_ino)
    (again / "plan.json").write_text(json.dumps(plan | {"job_id": "aaaaaa"}))
    (again / "end").touch()

    command = module_command("tui_fs.job.supervisor", str(again))
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)

    cli.wait_for_state("aaaaaa", "refused")
    assert sum(1 for _ in target.rglob("*")) == 22
