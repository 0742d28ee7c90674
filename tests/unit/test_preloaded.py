"""The program that is loaded once answers as the one that is started each time."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.preloaded import Preloaded
from tests.trees import flat
from tests.unit.scratching import result_of_child

_OF_THE_MACHINE = {"elapsed_s", "file_system", "pathologies"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("--version",),
        ("survey", "below", "--json"),  # by a relative path
        ("delete", "below"),  # no strategy
        ("survey", "gone"),
        ("jobs",),
    ],
)
@pytest.mark.slow
def test_it_answers_as_the_program_itself(
    cli: Cli, preloaded: Preloaded, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "below").mkdir()
    command = [cli.program, *arguments]
    started = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    forked = preloaded.run(command, tmp_path, 60.0)
    assert forked.returncode == started.returncode
    assert forked.stderr == started.stderr
    assert _of_the_directory(forked.stdout) == _of_the_directory(started.stdout)


@pytest.mark.slow
def test_it_has_the_environment_and_the_mask_of_its_client(
    preloaded: Preloaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "later"))
    (tmp_path / "t").mkdir()
    command = ["tui-fs", "delete", str(tmp_path / "t"), "--strategy", "rm", "--yes"]
    read_only = preloaded.run(command, None, 60.0, {"TUI_FS_READ_ONLY": "1"})
    assert read_only.returncode == 3
    assert preloaded.run(command, None, 60.0).returncode == 0
    assert os.listdir(tmp_path / "later" / "tui-fs" / "jobs")


@pytest.mark.slow
def test_the_supervisor_that_it_forks_is_separated_as_one_that_is_executed(
    cli: Cli, tmp_path: Path
) -> None:
    flat(tmp_path / "t", 500)
    options = ("--rate", "1", "--detach")
    job = str(cli.delete(tmp_path / "t", "rm", *options).expect(0).object()["id"])
    supervisor = cli.supervisor_of(job)
    assert os.getsid(supervisor) not in (supervisor, os.getsid(0))
    assert os.readlink(f"/proc/{supervisor}/cwd") == "/"
    log = cli.jobs_directory / job / "log"
    assert [os.readlink(f"/proc/{supervisor}/fd/{number}") for number in (1, 2)] == [str(log)] * 2


def test_what_takes_too_long_is_killed(preloaded: Preloaded) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        preloaded.run(["tui-fs", "doctor"], None, 0.0)
    assert preloaded.run(["tui-fs", "--version"], None, 60.0).returncode == 0


def test_a_fork_has_none(preloaded: Preloaded) -> None:
    assert preloaded.is_ours
    assert result_of_child(lambda: preloaded.is_ours) is False


def _of_the_directory(stdout: bytes) -> object:
    """Return what an answer states about its directory, without what others change meanwhile."""
    if not stdout.startswith(b"{"):
        return stdout
    answer = json.loads(stdout)
    return {name: answer[name] for name in answer.keys() - _OF_THE_MACHINE}
