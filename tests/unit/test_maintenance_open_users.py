"""Whoever stands in a directory is found."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needs import needs_root
from tui_fs.maintenance.open_users import find_open_users
from tui_fs.model.paths import PathStr

_WAIT = "import sys; print(flush=True); sys.stdin.read()"
_OPEN = f"import os; d = os.open(sys.argv[1], os.O_RDONLY); {_WAIT[12:]}"
_WATCH = (
    "import ctypes; libc = ctypes.CDLL(None); i = libc.inotify_init();"
    f"libc.inotify_add_watch(i, sys.argv[1].encode(), 256); {_WAIT[12:]}"
)


class AsideState:
    """A process that holds a directory until it is told to end."""

    def __init__(self, code: str, *arguments: str, cwd: Path | None = None) -> None:
        """Start it, and wait until it stands."""
        python = [sys.executable, "-I", "-c", f"import sys; {code}", *arguments]
        self.process = subprocess.Popen(
            python, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"\n"

    def end(self) -> None:
        """Let it end."""
        self.process.communicate()


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    """Give a directory."""
    directory = tmp_path / "held"
    directory.mkdir()
    yield directory


def ways(directory: Path) -> set[tuple[int, str]]:
    """Return who holds it, and how."""
    status = directory.stat()
    found = find_open_users(PathStr(str(directory)), (status.st_dev, status.st_ino)).found
    return {(one.pid, one.how) for one in found}


def test_nobody_stands_in_a_new_directory(held: Path) -> None:
    """Given nobody, nobody is found."""
    assert ways(held) == set()


@pytest.mark.parametrize("how", ["stands in it", "has it open", "watches it (inotify)"])
def test_who_holds_it_is_found(held: Path, how: str) -> None:
    """Given a process that stands in it, has it open or watches it, that is told."""
    # Given
    code = {"stands in it": _WAIT[12:], "has it open": _OPEN}.get(how, _WATCH)
    one = AsideState(code, str(held), cwd=held if how == "stands in it" else None)
    # When
    found = ways(held)
    # Then
    one.end()
    assert found == {(one.process.pid, how)}
    assert ways(held) == set()


def test_a_directory_of_the_same_name_is_another_one(held: Path, tmp_path: Path) -> None:
    """Given a process in another directory of the same name, nobody is found."""
    other = tmp_path / "other" / "held"
    other.mkdir(parents=True)

    one = AsideState(_WAIT[12:], cwd=other)
    found = ways(held)
    one.end()

    assert found == set()


def test_what_this_user_may_not_see_is_counted(held: Path) -> None:
    """Given another user, the processes that he may not look into are counted."""
    needs_root("becoming another user")
    status = held.stat()
    child = os.fork()
    if child == 0:
        unseen = 0
        try:
            ctypes.CDLL(None).setresuid(65534, 65534, 65534)
            unseen = find_open_users(PathStr(str(held)), (status.st_dev, status.st_ino)).unseen
        finally:
            os._exit(0 if unseen > 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
