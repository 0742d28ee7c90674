"""A supervisor that is started before its job is known: it runs that job, or ends without one."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.conftest import DEADLINE_S, Cli, wait_until
from tests.contracts.test_policy import plan_of
from tests.trees import flat
from tui_fs.job.process import SupervisorProcess
from tui_fs.job.start import start
from tui_fs.job.view import JobView
from tui_fs.model.outcome import JobState


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Return a directory of five files."""
    flat(tmp_path / "target", 5)
    return tmp_path / "target"


def supervisors(state_home: Path) -> list[int]:
    """List the supervisors whose jobs are kept in this state directory."""
    pids: list[int] = []
    for process in psutil.process_iter():
        try:
            is_one = "tui_fs.job.supervisor" in process.cmdline()
            if is_one and process.environ().get("XDG_STATE_HOME") == str(state_home):
                pids.append(process.pid)
        except psutil.Error:
            continue  # it has ended
    return pids


def state_after(
    target: Path, waiting: SupervisorProcess, is_wanted: Callable[[], bool] = lambda: True
) -> JobState:
    """Start a job with a waiting supervisor, and return how the job ended."""
    folder = start(plan_of(target), is_wanted, waiting=waiting)
    assert folder is not None
    view = JobView(folder)

    def is_over() -> bool:
        view.poll()
        return view.is_over

    wait_until(is_over, "the end of the job")
    assert os.path.exists(folder.log)
    return view.state


def test_it_runs_the_job_whose_folder_it_is_sent(target: Path) -> None:
    assert state_after(target, SupervisorProcess()) is JobState.DONE
    assert not target.exists()


def test_another_one_is_started_if_it_has_ended(target: Path) -> None:
    waiting = SupervisorProcess()
    waiting.process.kill()
    waiting.process.wait(DEADLINE_S)
    assert state_after(target, waiting) is JobState.DONE
    assert not target.exists()


def test_another_one_is_started_if_it_ends_before_it_reads_its_job(target: Path) -> None:
    waiting = SupervisorProcess()
    waiting.process.send_signal(signal.SIGSTOP)

    def is_wanted() -> bool:
        waiting.process.kill()
        return True

    assert state_after(target, waiting, is_wanted) is JobState.DONE
    assert not target.exists()


def test_without_a_job_it_ends_with_its_starter(state_home: Path) -> None:
    waiting = SupervisorProcess()
    assert waiting.process.stdin is not None
    waiting.process.stdin.close()
    assert waiting.process.wait(DEADLINE_S) == 0
    assert not state_home.exists()


def test_a_folder_that_is_sent_in_part_only_is_no_job(target: Path) -> None:
    waiting = SupervisorProcess()
    assert waiting.process.stdin is not None
    waiting.process.stdin.write(os.fsencode(target))  # without its end
    waiting.process.stdin.close()
    assert waiting.process.wait(DEADLINE_S) == 0
    assert len(list(target.iterdir())) == 5


@pytest.mark.parametrize("arguments", [("/",), ("--confirm", "another", "TARGET")])
def test_a_refused_deletion_leaves_none(
    cli: Cli, state_home: Path, target: Path, arguments: tuple[str, ...]
) -> None:
    words = [str(target) if word == "TARGET" else word for word in arguments]
    own_process = cli.wrapped(())
    own_process.run("delete", "--strategy", "rm", "--yes", *words).expect(3)
    assert supervisors(state_home) == []
    assert len(list(target.iterdir())) == 5


def test_a_killed_command_leaves_none(cli: Cli, state_home: Path, target: Path) -> None:
    command = subprocess.Popen([cli.program, "delete", "--strategy", "rm", "--yes", target])
    wait_until(lambda: supervisors(state_home) != [], "a supervisor that waits")
    command.kill()
    command.wait()
    wait_until(lambda: supervisors(state_home) == [], "its end")
