"""Killed at each step: nothing is lost, and `undo` puts in order what was left."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tui_fs.job.aside_store import Action, AsideState, find, records
from tui_fs.job.maintenance import look, put_aside, recreate_directory, undo
from tui_fs.maintenance import exchange
from tui_fs.model.errors import BadInput, Refused

STEPS = (
    "mkdir", "rmdir", "unlink", "replace", "fsync", "chown", "chmod", "utime", "setxattr",
)  # fmt: skip
"""What is counted besides renameat2: before each of these calls the program is killed once."""

MOST_STEPS = 200
LATE = "late"


def killed_before(step: int, action: Callable[[], object], late_in: Path | None) -> bool:
    """Do something in a process that is killed before a step; return whether it came so far.

    Args:
        late_in: where a file is made in the moment before the first exchange.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _count_steps(step, late_in)
            action()
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code != 0


def _count_steps(last: int, late_in: Path | None) -> None:
    done = 0

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal done
            done += 1
            if done == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **named)

        return call

    for name in STEPS:
        setattr(os, name, counted(getattr(os, name)))
    honest = counted(exchange._renameat2)

    def rename(
        source: exchange.DirEntryRef, goal: exchange.DirEntryRef, flag: int, what: str
    ) -> None:
        if flag == exchange._EXCHANGE and late_in is not None:
            (late_in / LATE).touch()
        honest(source, goal, flag, what)

    exchange._renameat2 = rename


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    """Return a directory with an attribute."""
    spool = tmp_path / "work" / "spool"
    spool.mkdir(parents=True)
    os.setxattr(spool, "user.note", b"1")
    return spool


def put_in_order() -> set[tuple[Action, AsideState | None]]:
    """Undo all that the records describe; return their messages."""
    messages = set()
    for record, standing in records()[0]:
        messages.add((record.action, standing))
        if standing is AsideState.GONE:
            with pytest.raises(Refused, match="so nothing can be put back"):
                undo(record.id)
        else:
            undo(record.id)
    assert records() == ([], [])
    return messages


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.slow
def test_recreating(spool: Path, is_late: bool) -> None:
    """After a kill at any step, an entry made meanwhile is there, and nothing is left over."""
    messages = set()
    for step in range(1, MOST_STEPS):
        was_killed = killed_before(
            step,
            lambda: recreate_directory(look(str(spool), to_recreate=True), accept_occupants=False),
            spool if is_late else None,
        )
        came_late = {path.name for path in spool.parent.rglob(LATE)}
        messages |= put_in_order()
        assert os.listdir(spool.parent) == ["spool"]
        assert os.getxattr(spool, "user.note") == b"1"
        assert set(os.listdir(spool)) == came_late
        assert came_late <= {LATE}
        (spool / LATE).unlink(missing_ok=True)
        if not was_killed:
            assert came_late == ({LATE} if is_late else set())
            break
    else:
        pytest.fail("it never came to its end")
    assert messages == {
        (Action.RECREATE, AsideState.GONE),
        (Action.RECREATE, AsideState.INTERRUPTED),
    }


@pytest.mark.parametrize("with_twin", [False, True])
@pytest.mark.slow
def test_putting_aside(spool: Path, with_twin: bool) -> None:
    """After a kill at any step, the directory is at one of its two names and can be put back."""
    (spool / "precious").touch()
    inode = spool.stat().st_ino
    messages = set()
    for step in range(1, MOST_STEPS):
        was_killed = killed_before(
            step,
            lambda: put_aside(look(str(spool), to_recreate=False), with_twin=with_twin),
            None,
        )
        messages |= put_in_order()
        assert os.listdir(spool.parent) == ["spool"]
        assert spool.stat().st_ino == inode
        assert os.listdir(spool) == ["precious"]
        if not was_killed:
            break
    else:
        pytest.fail("it never came to its end")
    assert (Action.ASIDE, AsideState.ASIDE) in messages
    assert (Action.ASIDE, AsideState.GONE) in messages
    assert ((Action.ASIDE, AsideState.INTERRUPTED) in messages) is with_twin


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("with_twin", [False, True])
@pytest.mark.slow
def test_putting_back(spool: Path, with_twin: bool, is_late: bool) -> None:
    """After a kill at any step of an undo, repeating the undo completes it."""
    (spool / "precious").touch()
    inode = spool.stat().st_ino
    for step in range(1, MOST_STEPS):
        done = put_aside(look(str(spool), to_recreate=False), with_twin=with_twin)

        def put_back(record_id: str = done.record.id) -> None:
            undo(record_id)

        was_killed = killed_before(step, put_back, spool if is_late and with_twin else None)
        came_late = {path.name for path in spool.parent.rglob(LATE)}
        if not was_killed:
            with pytest.raises(BadInput, match="There is no record"):
                find(done.record.id)
        elif (spool / LATE).exists() and spool.stat().st_ino != inode:
            with pytest.raises(Refused, match="no longer empty"):
                undo(done.record.id)
            (spool / LATE).rename(spool.parent / "saved")
            undo(done.record.id)
            (spool.parent / "saved").rename(spool / LATE)
        else:
            put_in_order()
        assert os.listdir(spool.parent) == ["spool"]
        assert spool.stat().st_ino == inode
        assert set(os.listdir(spool)) == {"precious", *came_late}
        (spool / LATE).unlink(missing_ok=True)
        if not was_killed:
            break
    else:
        pytest.fail("it never came to its end")
