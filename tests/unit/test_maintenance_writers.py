"""A process that writes while a directory is recreated loses nothing."""

import errno
import os
import signal
import subprocess
import sys
import threading
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import DEADLINE_S, wait_until
from tests.unit.test_maintenance_exchange import Arena, arena, here
from tui_fs.maintenance import exchange as exchange_module
from tui_fs.maintenance.exchange import MovedEntries, ReplacementDir, move_entries_and_remove
from tui_fs.model.errors import Refused
from tui_fs.model.paths import PathStr

__all__ = ["arena", "here"]

WRITTEN_BEFORE = 40
MOST_WRITTEN = 2000
# Writes until its directory is gone, stdin ends or it has made enough; prints each file.
WRITER = """
import os, select, sys
way, path, most = sys.argv[1:]
held = os.open(path, os.O_RDONLY) if way == "descriptor" else None
flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
number = 0
while number < int(most) and not select.select([0], [], [], 0)[0]:
    name = f"{os.getpid()}-{number}"
    try:
        if held is None:
            os.close(os.open(f"{path}/{name}", flags))
        else:
            os.close(os.open(name, flags, dir_fd=held))
    except FileNotFoundError:
        if held is not None:
            break
        continue
    print(name, flush=True)
    number += 1
"""


class Writers:
    """Processes that make files, and what they say they have made."""

    def __init__(self, arena: Arena, logs: Path, *ways: str, most: int = MOST_WRITTEN) -> None:
        """Remember the writers, and the most files for each."""
        self._most = most
        self._path = arena.path
        self._logs = [(way, logs / f"writer{number}") for number, way in enumerate(ways)]
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, _twin: ReplacementDir) -> None:
        """Start them, and wait until each has made some files."""
        for way, log in self._logs:
            with log.open("wb") as output:
                command = [
                    sys.executable,
                    "-I",
                    "-c",
                    WRITER,
                    way,
                    str(self._path),
                    str(self._most),
                ]
                self._running.append(
                    subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output)
                )
        for _, log in self._logs:
            wait_until(partial(self._has_begun, log), "files")

    def made(self) -> int:
        """Stop them, and return how many files they have made."""
        self.stop()
        assert [process.returncode for process in self._running] == [0] * len(self._logs)
        return sum(self._made(log) for _, log in self._logs)

    def stop(self) -> None:
        """Stop them."""
        for process in [process for process in self._running if process.poll() is None]:
            process.communicate(b"stop", timeout=DEADLINE_S)

    def _has_begun(self, log: Path) -> bool:
        return self._made(log) >= WRITTEN_BEFORE

    def _made(self, log: Path) -> int:
        return log.read_bytes().count(b"\n")


@pytest.mark.parametrize("ways", [("path",), ("descriptor",), ("path", "descriptor", "path")])
def test_busy_writers_lose_nothing(arena: Arena, tmp_path: Path, ways: tuple[str, ...]) -> None:
    writers = Writers(arena, tmp_path, *ways)
    try:
        done = arena.recreate(writers.start)
    finally:
        writers.stop()
    made = writers.made()
    assert made >= WRITTEN_BEFORE * len(ways)
    assert arena.path.stat().st_ino != arena.inode
    assert len(os.listdir(arena.path)) == made
    assert os.listdir(arena.parent) == ["spool"]
    assert done.moved >= WRITTEN_BEFORE


@pytest.mark.slow
def test_a_writer_who_is_always_faster_loses_nothing(
    arena: Arena, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange_module, "DEADLINE_S", 0.1)
    writers = Writers(arena, tmp_path, *["descriptor"] * 3, "path", most=3_000)
    try:
        arena.recreate(writers.start)
    except (OSError, Refused):
        assert arena.path.stat().st_ino == arena.inode
    finally:
        writers.stop()
    made = writers.made()
    assert len(os.listdir(arena.path)) == made
    assert os.listdir(arena.parent) == ["spool"]


def test_names_made_twice_are_both_kept(here: Arena) -> None:
    new = here.parent / "new"
    new.mkdir()
    long_name = "n" * 255
    for name in ("same", long_name):
        (here.path / name).write_text("old")
        (new / name).write_text("new")
    directory_fd = os.open(new, os.O_RDONLY)
    moved_entries = move_entries_and_remove(here.entry(), here.old, directory_fd)
    os.close(directory_fd)
    kept = dict(moved_entries.kept)
    assert moved_entries.moved == 2
    assert set(kept) == {"same", long_name}
    for name, now in kept.items():
        assert (new / name).read_text() == "new"
        assert (new / now).read_text() == "old"
    assert not here.path.exists()


def test_a_full_directory_moves_whole(here: Arena) -> None:
    (here.path / "sub").mkdir()
    (here.path / "sub" / "file").touch()
    new = here.parent / "new"
    new.mkdir()
    directory_fd = os.open(new, os.O_RDONLY)

    assert move_entries_and_remove(here.entry(), here.old, directory_fd).moved == 1

    os.close(directory_fd)
    assert (new / "sub" / "file").exists()


def test_what_cannot_be_moved_is_taken_back(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = MovedEntries._move
    refused: list[str] = []

    def fail_at_third(self: MovedEntries, name: PathStr, old: int, new: int) -> None:
        if self.moved == 2 and not refused:
            refused.append(name)
            raise OSError(errno.ENOSPC, "full")
        honest(self, name, old, new)

    monkeypatch.setattr(MovedEntries, "_move", fail_at_third)

    def write(_: ReplacementDir) -> None:
        for number in range(5):
            (arena.path / str(number)).touch()

    with pytest.raises(OSError, match="full"):
        arena.recreate(write)
    assert arena.path.stat().st_ino == arena.inode
    assert sorted(os.listdir(arena.path)) == ["0", "1", "2", "3", "4"]
    assert os.listdir(arena.parent) == ["spool"]


def write_before_each_rmdir(
    here: Arena, monkeypatch: pytest.MonkeyPatch, signal_at: int = 0
) -> list[str]:
    """Make a file in the old directory whenever it is to be removed; return the names.

    Args:
        signal_at: after which file this thread gets SIGTERM.
    """
    honest = os.rmdir
    written: list[str] = []

    def rmdir(name: str, *, dir_fd: int) -> None:
        if here.entry().identity() != (os.fstat(here.old).st_dev, here.inode) and name == "twin":
            written.append(f"w{len(written)}")
            os.close(os.open(written[-1], os.O_CREAT, dir_fd=here.old))
            if len(written) == signal_at:
                signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        honest(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "rmdir", rmdir)
    return written


def test_a_writer_without_end_is_left_alone(here: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = count()
    clock = SimpleNamespace(monotonic=lambda: float(next(seconds)))
    monkeypatch.setattr(exchange_module, "time", clock)
    written = write_before_each_rmdir(here, monkeypatch)
    with pytest.raises(OSError, match="not empty"):
        here.recreate()
    assert here.path.stat().st_ino == here.inode
    assert len(written) > 1
    assert sorted(os.listdir(here.path)) == sorted(written)


def test_a_signal_ends_the_waiting(here: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    written = write_before_each_rmdir(here, monkeypatch, signal_at=3)
    honest_handler = signal.signal(signal.SIGTERM, lambda *_: None)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        with pytest.raises(InterruptedError):
            here.recreate()
        assert signal.sigwait({signal.SIGTERM}) == signal.SIGTERM
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGTERM, honest_handler)
    assert len(written) == 3
    assert here.path.stat().st_ino == here.inode
    assert sorted(os.listdir(here.path)) == sorted(written)
