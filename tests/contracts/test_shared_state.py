"""State directories that are one directory under two names, or that have no locks."""

import os
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.contracts.test_overlap import start_slowly
from tests.trees import flat, many_directories
from tests.unit.test_job_store import plan
from tui_fs.job.store import create


@pytest.fixture(params=["same path", "linked", "linked below"])
def one_place(
    request: pytest.FixtureRequest, state_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Make state and runtime directory the same, by one of three methods."""
    runtime = Path(os.environ["XDG_RUNTIME_DIR"])
    if request.param == "same path":
        state_home.mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(state_home))
        return
    runtime.mkdir(mode=0o700)
    if request.param == "linked":
        state_home.symlink_to(runtime)
        return
    (runtime / "tui-fs").mkdir(mode=0o700)
    state_home.mkdir(mode=0o700)
    (state_home / "tui-fs").symlink_to(runtime / "tui-fs")


@pytest.mark.usefixtures("one_place")
def test_a_job_is_listed_once_and_as_running(cli: Cli, tmpfs: Path) -> None:
    target = tmpfs / "tree"
    many_directories(target, 3, 1_000)
    job = start_slowly(cli, target)
    for _ in range(2):
        assert [(row["id"], row["state"]) for row in cli.jobs()] == [(job, "running")]
    cli.delete(target, "find").expect(3)
    assert cli.state_of(job) == "running"
    cli.run("cancel", job).expect(0)
    cli.run("attach", job).expect(130)


@pytest.mark.usefixtures("one_place")
def test_a_directory_can_be_put_aside_and_back(cli: Cli, tmpfs: Path) -> None:
    (tmpfs / "spool").mkdir()
    (tmpfs / "spool" / "x").touch()
    record = cli.run("aside", "--yes", "--json", tmpfs / "spool").expect(0).object()
    assert [row["id"] for row in cli.run("aside", "--list", "--json").expect(0).array()] == [
        record["id"]
    ]
    cli.run("aside", "--undo", str(record["id"]), "--yes").expect(0)
    assert (tmpfs / "spool" / "x").exists()


@pytest.mark.usefixtures("one_place")
def test_a_new_job_is_made_where_it_is_found(cli: Cli) -> None:
    create(plan("abc123"))
    assert [job["id"] for job in cli.jobs()] == ["abc123"]


_NO_LOCKS = """
import errno, fcntl, os
def fail(*_):
    raise OSError(errno.{number}, os.strerror(errno.{number}))
fcntl.{function} = fail
"""


@pytest.mark.parametrize("number", ["ENOLCK", "EOPNOTSUPP"])
@pytest.mark.parametrize("function", ["fcntl", "flock"])
@pytest.mark.parametrize("detach", [(), ("--detach",)], ids=["followed", "detached"])
def test_without_locks_nothing_is_deleted(
    cli: Cli, tmp_path: Path, function: str, number: str, detach: tuple[str, ...]
) -> None:
    flat(tmp_path / "t", 20)
    patched = tmp_path / "patched"
    patched.mkdir()
    text = _NO_LOCKS.format(function=function, number=number)
    (patched / "sitecustomize.py").write_text(text)
    without_locks = {"PYTHONPATH": str(patched)}
    words = ("delete", "--strategy", "rm", "--yes", *detach)
    finished = cli.run(*words, tmp_path / "t", environment=without_locks).expect(5)
    output = finished.stderr + finished.stdout.decode()
    assert "cannot be locked" in output
    assert "XDG_STATE_HOME" in output
    assert len(os.listdir(tmp_path / "t")) == 20
    # And the list works: the job was never made, or refused, and one that ended needs no lock
    jobs = cli.run("jobs", "--json", environment=without_locks).expect(0).array()
    assert [job["state"] for job in jobs] == ([] if function == "fcntl" else ["refused"])
