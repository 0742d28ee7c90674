"""Killed at each step: nothing is lost, and `undo` puts in order what was left."""

import os
import signal
from collections.abc import Callable, Iterator
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
        source: exchange.DirEntryRef, goal: exchange.DirEntryRef, flag: int, verb: str
    ) -> None:
        if flag == exchange._EXCHANGE and late_in is not None:
            (late_in / LATE).touch()
        honest(source, goal, flag, verb)

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
            with pytest.raises(Refused, match="nothing can be put back"):
                undo(record.id)
        else:
            undo(record.id)
    assert records() == ([], [])
    return messages


def kill_at_each_step(
    prepare: Callable[[], Callable[[], object]], late_in: Path | None = None
) -> Iterator[bool]:
    """Prepare and do something again and again, killed one step later each time.

    Yields:
        Whether it was killed; the last time it was not.
    """
    for step in range(1, MOST_STEPS):
        was_killed = killed_before(step, prepare(), late_in)
        yield was_killed
        if not was_killed:
            return
    pytest.fail("it never came to its end")


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.slow
def test_recreating_killed_at_any_step_loses_no_entry_and_leaves_nothing(
    spool: Path, is_late: bool
) -> None:
    def recreate() -> None:
        recreate_directory(look(str(spool), to_recreate=True), accept_occupants=False)

    messages = set()
    for was_killed in kill_at_each_step(lambda: recreate, spool if is_late else None):
        came_late = {path.name for path in spool.parent.rglob(LATE)}
        messages |= put_in_order()
        assert os.listdir(spool.parent) == ["spool"]
        assert os.getxattr(spool, "user.note") == b"1"
        assert set(os.listdir(spool)) == came_late
        assert came_late <= {LATE}
        assert was_killed or came_late == ({LATE} if is_late else set())
        (spool / LATE).unlink(missing_ok=True)
    assert messages == {
        (Action.RECREATE, AsideState.GONE),
        (Action.RECREATE, AsideState.INTERRUPTED),
    }


@pytest.mark.parametrize("with_twin", [False, True])
@pytest.mark.slow
def test_what_is_killed_while_it_is_put_aside_can_be_put_back(spool: Path, with_twin: bool) -> None:
    (spool / "precious").touch()
    inode = spool.stat().st_ino
    messages = set()
    for _ in kill_at_each_step(
        lambda: lambda: put_aside(look(str(spool), to_recreate=False), with_twin=with_twin)
    ):
        messages |= put_in_order()
        assert os.listdir(spool.parent) == ["spool"]
        assert spool.stat().st_ino == inode
        assert os.listdir(spool) == ["precious"]
    assert (Action.ASIDE, AsideState.ASIDE) in messages
    assert (Action.ASIDE, AsideState.GONE) in messages
    assert ((Action.ASIDE, AsideState.INTERRUPTED) in messages) is with_twin


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("with_twin", [False, True])
@pytest.mark.slow
def test_an_undo_killed_at_any_step_is_completed_by_the_next(
    spool: Path, with_twin: bool, is_late: bool
) -> None:
    (spool / "precious").touch()
    inode = spool.stat().st_ino
    record_id = ""

    def put_aside_first() -> Callable[[], object]:
        nonlocal record_id
        record = put_aside(look(str(spool), to_recreate=False), with_twin=with_twin).record
        record_id = record.id
        return lambda: undo(record.id)

    late_in = spool if is_late and with_twin else None
    for was_killed in kill_at_each_step(put_aside_first, late_in):
        came_late = {path.name for path in spool.parent.rglob(LATE)}
        if not was_killed:
            with pytest.raises(BadInput, match="There is no record"):
                find(record_id)
        elif (spool / LATE).exists() and spool.stat().st_ino != inode:
            with pytest.raises(Refused, match="no longer empty"):
                undo(record_id)
            (spool / LATE).rename(spool.parent / "saved")
            undo(record_id)
            (spool.parent / "saved").rename(spool / LATE)
        else:
            put_in_order()
        assert os.listdir(spool.parent) == ["spool"]
        assert spool.stat().st_ino == inode
        assert set(os.listdir(spool)) == {"precious", *came_late}
        (spool / LATE).unlink(missing_ok=True)
