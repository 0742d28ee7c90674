"""Where jobs are kept when the state directory is full, unwritable, or another user's."""

import os
import shlex
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.conftest import Cli, processes_with, wait_until
from tests.contracts.test_overlap import removed_by, start_slowly
from tests.contracts.test_policy import plan_of
from tests.filesystems import unmount_below
from tests.namespaces import after_shell, in_mount_namespace
from tests.needs import needs_root
from tests.trees import flat, manifest, many_directories
from tui_fs.job.process import GO, READY
from tui_fs.job.store import create
from tui_fs.model.strategy import Pace

NOBODY = 65534
FILES = 12_000
RATE_PER_S = 150
_TINY = "size=128k,mode=0755"


@pytest.fixture
def target(tmpfs: Path) -> Path:
    """Return a tree that takes eighty seconds at RATE_PER_S."""
    target = tmpfs / "t"
    flat(target, FILES)
    return target


@pytest.fixture
def small(tmpfs: Path) -> Path:
    """Return a tree of 9 entries."""
    many_directories(tmpfs / "small", 2, 3)
    return tmpfs / "small"


@pytest.fixture
def tiny(state_home: Path) -> Iterator[Path]:
    """Mount a file system of 128 KiB as the state directory."""
    needs_root("mounting tmpfs")
    state_home.mkdir()
    _mount(state_home, _TINY)
    yield state_home
    unmount_below(state_home)


@pytest.fixture
def runtime() -> Path:
    """Make the directory in memory that jobs may go to."""
    runtime = Path(os.environ["XDG_RUNTIME_DIR"])
    runtime.mkdir(mode=0o700)
    return runtime


def _mount(point: Path, options: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tui-fs-test", point], check=True)


def fill(directory: Path) -> Path:
    """Fill a file system to its last byte, and return the file that does."""
    filler = directory / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return filler


def full(directory: Path) -> None:
    """Leave no byte."""
    fill(directory)


def unwritable(directory: Path) -> None:
    """Make it read-only."""
    _mount(directory, "remount,ro")


def without_inodes(directory: Path) -> None:
    """Leave no inode."""
    _mount(directory, "remount,nr_inodes=1")


USELESS = (full, unwritable, without_inodes)


def assert_not_started(cli: Cli, target: Path) -> str:
    """Fail unless a deletion ends with exit 5 and one sentence before it has begun."""
    before = manifest(target)
    finished = cli.run("delete", "--strategy", "rm", "--yes", "--json", target)
    finished.expect(5).assert_one_sentence()
    assert manifest(target) == before
    return finished.stderr


@pytest.mark.parametrize("useless", USELESS[:2])
def test_a_job_without_room_is_kept_in_memory_and_found_there(
    cli: Cli, tiny: Path, runtime: Path, target: Path, useless: Callable[[Path], None]
) -> None:
    useless(tiny)
    in_memory = Cli(cli.program, runtime)
    job = start_slowly(in_memory, target, "rm", "--rate", str(RATE_PER_S))
    assert os.listdir(runtime / "tui-fs" / "jobs" / job) != []
    assert [listed["id"] for listed in cli.jobs()] == [job]
    cli.run("pause", job).expect(0)
    assert cli.state_of(job) == "paused"
    cli.run("resume", job).expect(0)
    cli.run("rate", job, "off").expect(0)
    report = cli.run("attach", "--json", job).expect(0).report()
    assert (report["outcome"], report["deleted_files"]) == ("done", FILES)
    assert not target.exists()


@pytest.mark.parametrize("useless", USELESS)
def test_where_no_place_can_hold_a_job_nothing_is_deleted(
    cli: Cli, tiny: Path, small: Path, useless: Callable[[Path], None]
) -> None:
    # A state directory that cannot hold a job, and no other place (or one as useless)
    useless(tiny)
    runtime = Path(os.environ["XDG_RUNTIME_DIR"])
    assert_not_started(cli, small)
    runtime.mkdir()
    _mount(runtime, "ro")
    try:
        assert_not_started(cli, small)
    finally:
        unmount_below(runtime)


def test_a_job_whose_journal_cannot_be_begun_deletes_nothing(
    cli: Cli, tiny: Path, small: Path
) -> None:
    os.truncate(fill(tiny), fill(tiny).stat().st_size - 4096)
    assert_not_started(cli, small)


def test_a_job_in_memory_conflicts_with_one_that_is_not(
    cli: Cli, tiny: Path, runtime: Path, target: Path
) -> None:
    filler = fill(tiny)
    job = start_slowly(Cli(cli.program, runtime), target)
    filler.unlink()
    refusal = cli.delete(target, "rm").expect(3).report()["refusal"]
    assert refusal["rule"] == "busy"
    assert job in refusal["sentence"]
    cli.run("cancel", job).expect(0)
    cli.run("attach", job).expect(130)


def test_jobs_in_memory_are_not_deleted_either(cli: Cli, tiny: Path, runtime: Path) -> None:
    fill(tiny)
    target = runtime.parent / "t"
    flat(target, 4000)
    job = start_slowly(Cli(cli.program, runtime), target)
    supervisor = Cli(cli.program, runtime).supervisor_of(job)
    folder = runtime / "tui-fs"
    finished = cli.run("delete", "--strategy", "rm", "--yes", "--detach", folder)
    os.kill(supervisor, signal.SIGKILL)
    finished.expect(3).assert_one_sentence()
    assert (folder / "jobs" / job / "plan.json").exists()


def owned(path: Path) -> None:
    path.mkdir(mode=0o700)
    os.chown(path, NOBODY, NOBODY)


def below_anothers(path: Path) -> None:
    owned(path)
    (path / "tui-fs").mkdir(mode=0o700)


def writable(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


def writable_by_a_group(path: Path) -> None:
    path.mkdir()
    os.chown(path, 0, NOBODY)
    path.chmod(0o775)


def program_directory_owned(path: Path) -> None:
    path.mkdir()
    owned(path / "tui-fs")


def jobs_owned(path: Path) -> None:
    (path / "tui-fs").mkdir(parents=True)
    owned(path / "tui-fs" / "jobs")


def jobs_readable(path: Path) -> None:
    (path / "tui-fs" / "jobs").mkdir(parents=True)
    (path / "tui-fs" / "jobs").chmod(0o755)


def link_of_another(path: Path) -> None:
    """The owner of a directory can point a link in it elsewhere at any moment."""
    owned(path)
    (path.parent / "firm").mkdir(mode=0o700)
    (path / "tui-fs").symlink_to(path.parent / "firm")


def link_in_a_writable_directory(path: Path) -> None:
    writable(path)
    (path.parent / "firm").mkdir(mode=0o700)
    (path / "tui-fs").symlink_to(path.parent / "firm")


@pytest.mark.parametrize(
    "prepare",
    (
        owned,
        below_anothers,
        writable,
        writable_by_a_group,
        program_directory_owned,
        jobs_owned,
        jobs_readable,
        link_of_another,
        link_in_a_writable_directory,
    ),
)
def test_a_state_directory_in_other_hands_is_refused(
    cli: Cli, state_home: Path, small: Path, prepare: Callable[[Path], None]
) -> None:
    # A state directory that another user can exchange or write
    needs_root("giving a directory away")
    prepare(state_home)
    assert "this user" in assert_not_started(cli, small)


def test_a_sticky_directory_for_all_will_do(cli: Cli, state_home: Path, small: Path) -> None:
    state_home.mkdir()
    state_home.chmod(0o1777)
    cli.delete(small, "rm").expect(0)
    assert cli.state_of(cli.only_job()) == "done"


def test_the_jobs_of_root_go_below_its_own_home(cli: Cli, tmp_path: Path, small: Path) -> None:
    theirs, home, accounts = tmp_path / "theirs", tmp_path / "roots", tmp_path / "passwd"
    owned(theirs)
    home.mkdir(mode=0o700)
    accounts.write_text(f"root:x:0:0:root:{home}:/bin/sh\nnobody:x:{NOBODY}:{NOBODY}::{theirs}:/\n")
    setup = f"mount --bind {shlex.quote(str(accounts))} /etc/passwd; unset XDG_STATE_HOME"
    there = cli.wrapped(in_mount_namespace(setup))
    finished = there.run(
        "delete", "--strategy", "rm", "--yes", small, environment={"HOME": str(theirs)}
    )
    finished.expect(0)
    assert len(os.listdir(home / ".local" / "state" / "tui-fs" / "jobs")) == 1
    assert os.listdir(theirs) == []


def test_a_job_survives_a_state_directory_that_is_full_for_seconds(
    cli: Cli, tiny: Path, target: Path
) -> None:
    job = start_with_patience(cli, target, 600.0, 600.0)
    filler = fill(tiny)
    full_from = _removed(target)
    for value in range(11, 17):
        cli.run("nice", job, str(value)).expect(0)
    wait_until(lambda: _removed(target) > full_from + 600, "the tools going on")
    filler.unlink()
    cli.run("rate", job, "off").expect(0)
    report = cli.run("attach", "--json", job).expect(0).report()
    assert (report["outcome"], report["deleted_files"]) == ("done", FILES)
    events = cli.journal(job)
    assert events[0]["type"] == "JobStarted"
    assert events[-1]["type"] == "JobFinished"
    times = [event["at_s"] for event in events]
    assert times == sorted(times)
    changes = [event["pace"] for event in events if event["type"] == "PaceChanged"]
    changes_at_s = [event["at_s"] for event in events if event["type"] == "PaceChanged"]
    assert [pace["nice"] for pace in changes] == [*range(11, 17), 16]
    assert [pace["rate_per_s"] for pace in changes] == [RATE_PER_S] * 6 + [0]
    # And what was counted while there was no room
    full, free = changes_at_s[0], changes_at_s[-1]
    assert any(event["type"] == "Sampled" and full < event["at_s"] < free for event in events)
    # And its log mentions it
    log = (cli.jobs_directory / job / "log").read_text()
    assert "Traceback" not in log


_WITH_PATIENCE = """
import sys
from tui_fs.job import journal, record, supervisor
journal.PATIENCE_S, last_patience_s = float(sys.argv.pop(1)), float(sys.argv.pop(1))
journal.LAST_PATIENCE_S = record.REPORT_PATIENCE_S = last_patience_s
supervisor.main()
"""


def start_with_patience(cli: Cli, target: Path, patience_s: float, last_patience_s: float) -> str:
    """Start a slow job that waits so long for its journal, and at its end, not half a minute."""
    pace = Pace(rate_per_s=RATE_PER_S)
    plan = plan_of(target)
    folder = create(replace(plan, options=replace(plan.options, pace=pace)))
    command = [sys.executable, "-I", "-c", _WITH_PATIENCE]
    command += [str(patience_s), str(last_patience_s), folder.path]
    with (
        open(folder.log, "wb") as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, bufsize=0
        ) as supervisor,
    ):
        assert supervisor.stdout is not None and supervisor.stdout.read(1) == READY
        assert supervisor.stdin is not None
        supervisor.stdin.write(GO)
    wait_until(lambda: removed_by(cli, plan.job_id) > 0, "the deletion's beginning")
    return plan.job_id


def test_a_job_that_can_no_longer_be_followed_is_cancelled(
    cli: Cli, tiny: Path, target: Path
) -> None:
    job = start_with_patience(cli, target, 1.0, 1.0)
    fill(tiny)
    wait_until(lambda: processes_with(target) == [], "the end of its tools")
    # Its tools have been ended, and its end is recorded although there is no room
    assert 0 < _removed(target) < FILES
    report = cli.run("attach", "--json", job).expect(130).report()
    assert report["outcome"] == cli.state_of(job) == "cancelled"
    assert "journal could not be written" in report["explanation"]
    assert "The journal of this job is incomplete" in report["explanation"]
    assert report["record_problem"] == "No space left on device"
    assert report["deleted_files"] == _removed(target)


def test_a_deletion_that_ends_on_a_full_disk_is_done(cli: Cli, tiny: Path, target: Path) -> None:
    job = start_with_patience(cli, target, 600.0, 1.0)
    cli.run("pause", job).expect(0)
    cli.run("rate", job, "off").expect(0)
    fill(tiny)
    cli.run("resume", job).expect(0)
    report = cli.run("attach", "--json", job).expect(1).report()
    assert not target.exists()
    assert report["outcome"] == cli.state_of(job) == "done"
    assert (report["deleted_files"], report["deleted_directories"]) == (FILES, 1)
    assert "The journal of this job is incomplete" in report["explanation"]


def _removed(target: Path) -> int:
    return FILES - sum(1 for _ in os.scandir(target))


def test_all_files_of_a_job_are_its_owners_alone_under_any_umask(
    cli: Cli, state_home: Path, target: Path
) -> None:
    without_umask = cli.wrapped(after_shell("umask 0"))
    job = start_slowly(without_umask, target, "rsync", "--rate", str(RATE_PER_S))
    # No other user may enter or read
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in state_home.rglob("*")}
    directories = {path for path in modes if path.is_dir()}
    assert {path.name for path in directories} == {"tui-fs", "jobs", job, "empty"}
    assert {modes[path] for path in directories} == {0o700}
    assert {oct(mode) for path, mode in modes.items() if path not in directories} == {oct(0o600)}
    assert {"plan.json", "events.jsonl", "control.sock", "log", "lock"} <= {p.name for p in modes}
    # And not when it has ended either
    cli.run("cancel", job).expect(0)
    cli.run("attach", job).expect(130)
    report = cli.jobs_directory / job / "report.json"
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
