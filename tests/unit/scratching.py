"""Helpers for the tests of scratch directories."""

import json
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Json
from tests.trees import Sentinel, many_directories
from tui_fs.job.scratch import PREFIX, Scratch, remove_left_over

NOBODY = 65534


@pytest.fixture
def above(tmp_path: Path) -> Path:
    """Return the parent directory of a target, with a precious file next to the target."""
    directory = tmp_path / "above"
    directory.mkdir()
    many_directories(directory / "target", 2, 3)
    return directory


@pytest.fixture
def sentinel(above: Path) -> Sentinel:
    """Return what must survive."""
    return Sentinel(above)


@pytest.fixture
def records(state_home: Path) -> Path:
    """Return the directory of the records."""
    return state_home / "tui-fs" / "scratch"


def made_in(above: Path) -> Scratch:
    """Make a scratch directory."""
    return Scratch(str(above), above.stat().st_dev)


def scratches(above: Path) -> list[Path]:
    """List the scratch directories."""
    return sorted(above.glob(f"{PREFIX}*"))


def only_scratch(above: Path) -> Path:
    """Return the one scratch directory."""
    (path,) = scratches(above)
    return path


def fill(scratch: Scratch) -> None:
    """Put into it what a measurement does, and what should never be there."""
    os.mkdir("tree", 0o700, dir_fd=scratch.descriptor)
    tree = Path(f"/proc/self/fd/{scratch.descriptor}/tree")
    many_directories(tree, 3, 5)
    (tree / "outside").symlink_to(tree.resolve().parents[1])
    (tree.parent / "link").symlink_to("..")


def in_child(action: Callable[[], None]) -> int:
    """Do something in a forked process; return how it ended, 0 if nothing came of it."""
    pid = os.fork()
    if pid == 0:
        try:
            action()
            os._exit(0)
        finally:
            os._exit(9)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def result_of_child(action: Callable[[], object]) -> Any:
    """Return what a forked process finds; only there may mounts be made one's own."""
    readable, writable = os.pipe()

    def work() -> None:
        try:
            answered: dict[str, object] = {"found": action()}
        except BaseException:  # noqa: BLE001  a failed assertion is reported like any other error
            answered = {"failed": traceback.format_exc()}
        os.write(writable, json.dumps(answered).encode())

    in_child(work)
    os.close(writable)
    with os.fdopen(readable, "rb") as answer:
        answered = json.loads(answer.read())
    assert "failed" not in answered, answered["failed"]
    return answered["found"]


def leave_behind(above: Path) -> Path:
    """Have a process make and fill a scratch directory and be killed."""

    def work() -> None:
        fill(made_in(above))
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(work) == -signal.SIGKILL
    return only_scratch(above)


def clear_away(above: Path) -> None:
    """Do as the next measurement on that file system does before it begins."""
    remove_left_over(above.stat().st_dev)


def record_of(records: Path) -> Path:
    """Return the one record."""
    (path,) = records.iterdir()
    return path


def read_record(record: Path) -> Json:
    """Read a record: one object, or one object a line, where the last counts."""
    fields: Json = {}
    text = record.read_text()
    while text.strip():
        fields, end = json.JSONDecoder().raw_decode(text.lstrip())
        text = text.lstrip()[end:]
    assert isinstance(fields, dict)
    return fields


@contextmanager
def struck(monkeypatch: pytest.MonkeyPatch, call: str, blow: Callable[[], None]) -> Iterator[None]:
    """Let something happen when a record is flushed to the disk, or a directory has been made."""
    real = getattr(os, call)

    def hit(*words: Any, **named: Any) -> None:
        real(*words, **named)
        if call == "fsync" or str(words[0]).startswith(PREFIX):
            blow()

    with monkeypatch.context() as changed:
        changed.setattr(os, call, hit)
        yield


STRUCK_AT = ("fsync", "mkdir")
