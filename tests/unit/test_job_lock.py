"""Whether a supervisor is alive, as another process sees it."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.conftest import wait_until
from tests.waiting_process import waiting_process
from tui_fs.job.lock import SupervisorLock, has_supervisor, is_occupied
from tui_fs.model.errors import JobFailed

_HOLD = """
import sys
from tui_fs.job.lock import SupervisorLock
lock = SupervisorLock(sys.argv[1])
print("held", flush=True)
for line in sys.stdin:
    lock.release()
    print("released", flush=True)
"""


def held(path: str) -> AbstractContextManager["subprocess.Popen[str]"]:
    """Let another process hold a lock."""
    return waiting_process([sys.executable, "-c", _HOLD, path])


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return the path of a lock file that does not exist yet."""
    return str(tmp_path / "lock")


def test_the_holder_is_seen_from_another_process_and_keeps_it(path: str) -> None:
    with held(path):
        assert has_supervisor(path)
        with pytest.raises(OSError):
            SupervisorLock(path)


def test_a_killed_holder_holds_nothing(path: str) -> None:
    with held(path) as holder:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert not is_occupied(path)
    assert os.path.exists(path)


def test_a_released_lock_is_free_while_its_process_lives(path: str) -> None:
    with held(path) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdin.write("\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == "released\n"
        assert not is_occupied(path)


@pytest.mark.parametrize("exists", [False, True])
def test_a_lock_that_nobody_took_has_no_holder(path: str, exists: bool) -> None:
    if exists:
        Path(path).touch()
    assert not is_occupied(path)
    assert os.path.exists(path) is exists


def test_a_lock_survives_its_file_being_opened_and_closed_in_its_process(path: str) -> None:
    # A process that holds the lock (a POSIX record lock would be lost below)
    lock = SupervisorLock(path)
    os.close(os.open(path, os.O_RDWR))
    assert has_supervisor(path)
    assert has_supervisor(path)
    with pytest.raises(BlockingIOError):
        SupervisorLock(path)
    lock.release()
    assert not is_occupied(path)


_FORK = """
import os, sys, time
from tui_fs.job.lock import SupervisorLock
lock = SupervisorLock(sys.argv[1])
gone_reading, gone_writing = os.pipe()
if os.fork() == 0:
    sys.stdin.read()
    os._exit(0)
print("forked", flush=True)
time.sleep(600)
"""


def test_a_forked_launcher_keeps_the_targets_and_not_the_supervisor(path: str) -> None:
    with waiting_process([sys.executable, "-c", _FORK, path]) as supervisor:
        assert has_supervisor(path)
        supervisor.kill()
        supervisor.wait()
        wait_until(lambda: not has_supervisor(path), "the child to close what it inherited", 20)
        assert is_occupied(path)
        assert supervisor.stdin is not None
        supervisor.stdin.close()
        supervisor.stdin = None
        wait_until(lambda: not is_occupied(path), "the end of the launcher", 20)


def test_a_tool_that_was_executed_holds_nothing(path: str) -> None:
    lock = SupervisorLock(path)
    with subprocess.Popen(["sleep", "600"], close_fds=False) as tool:
        lock.release()
        assert not is_occupied(path)
        tool.kill()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_named(
    path: str, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    Path(path).touch()

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "fcntl", fail)
    for act in (lambda: SupervisorLock(path), lambda: has_supervisor(path)):
        with pytest.raises(JobFailed) as failed:
            act()
        assert failed.value.sentence == f"{path} cannot be locked: {os.strerror(number)}."
        assert "XDG_STATE_HOME" in failed.value.advice
