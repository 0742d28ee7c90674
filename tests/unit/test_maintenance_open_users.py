"""Processes that use a directory are found."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needs import needs_root
from tests.unit.scratching import result_of_child
from tests.waiting_process import StartPython
from tui_fs.maintenance.open_users import find_open_users
from tui_fs.model.paths import PathStr

_OPEN = "descriptor = os.open(sys.argv[1], os.O_RDONLY)"
_WATCH = (
    "import ctypes; libc = ctypes.CDLL(None); i = libc.inotify_init();"
    "libc.inotify_add_watch(i, sys.argv[1].encode(), 256)"
)


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    """Yield a directory."""
    directory = tmp_path / "held"
    directory.mkdir()
    yield directory


def ways(directory: Path) -> set[tuple[int, str]]:
    """Return who holds it, and how."""
    status = directory.stat()
    users = find_open_users(PathStr(str(directory)), (status.st_dev, status.st_ino)).users
    return {(user.pid, user.how) for user in users}


def test_a_new_directory_has_no_users(held: Path) -> None:
    assert ways(held) == set()


_CWD = "has this directory as its current directory"
_OPENED = "has this directory open"


@pytest.mark.parametrize("how", [_CWD, _OPENED, "watches this directory (inotify)"])
def test_who_holds_it_is_found(held: Path, start_python: StartPython, how: str) -> None:
    """A process that has the directory as cwd, has it open or watches it is reported."""
    code = {_CWD: "", _OPENED: _OPEN}.get(how, _WATCH)
    pid = start_python(code, held, cwd=held if how == _CWD else None)
    assert ways(held) == {(pid, how)}
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert ways(held) == set()


def test_a_directory_of_the_same_name_is_another_one(
    held: Path, tmp_path: Path, start_python: StartPython
) -> None:
    other = tmp_path / "other" / "held"
    other.mkdir(parents=True)
    start_python("", cwd=other)
    assert ways(held) == set()


def test_what_this_user_may_not_see_is_counted(held: Path) -> None:
    needs_root("becoming another user")
    status = held.stat()

    def look() -> int:
        os.setresuid(65534, 65534, 65534)
        return find_open_users(PathStr(str(held)), (status.st_dev, status.st_ino)).unseen

    assert result_of_child(look) > 1
