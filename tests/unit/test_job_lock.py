"""Whether a supervisor lives, as another process sees it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tui_fs.job.lock import SupervisorLock, holder_of

_HOLD = """
import sys
from tui_fs.job.lock import SupervisorLock
lock = SupervisorLock(sys.argv[1])
print("held", flush=True)
for line in sys.stdin:
    lock.release()
    print("released", flush=True)
"""


@contextmanager
def held(path: str) -> Iterator["subprocess.Popen[str]"]:
    """Let another process hold a lock."""
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield holder
    finally:
        holder.kill()
        holder.communicate()


def test_the_holder_is_seen_from_another_process(tmp_path: Path) -> None:
    # Given a process that holds the lock / When asked here / Then it is that process
    path = str(tmp_path / "lock")
    with held(path) as holder:
        assert holder_of(path) == holder.pid


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    # Given a holder / When killed without a chance to clean up / Then nobody holds it
    path = str(tmp_path / "lock")
    with held(path) as holder:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert holder_of(path) is None
    assert os.path.exists(path)


def test_a_released_lock_is_free_while_its_process_lives(tmp_path: Path) -> None:
    # Given a holder / When it releases / Then nobody holds it
    path = str(tmp_path / "lock")
    with held(path) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdin.write("\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == "released\n"
        assert holder_of(path) is None


def test_a_held_lock_cannot_be_taken(tmp_path: Path) -> None:
    # Given a holder / When a second supervisor comes / Then it is refused at once
    path = str(tmp_path / "lock")
    with held(path), pytest.raises(OSError):
        SupervisorLock(path)


def test_a_missing_lock_has_no_holder(tmp_path: Path) -> None:
    # Given no file / When asked / Then none, and asking does not make one
    assert holder_of(str(tmp_path / "lock")) is None
    assert not (tmp_path / "lock").exists()


def test_an_unlocked_file_has_no_holder(tmp_path: Path) -> None:
    # Given a file that nobody locks / When asked / Then none
    (tmp_path / "lock").touch()
    assert holder_of(str(tmp_path / "lock")) is None
