"""A journal on a disk that is full for a while, or for too long."""

import errno
import os
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.fuzz.common import values_of
from tests.unit.test_job_store import plan
from tui_fs.job.journal import (
    LAST_PATIENCE_S,
    PATIENCE_S,
    BufferedJournal,
    EndReserve,
    JournalReader,
    JournalWriter,
    create_reserve,
    read_reserve,
    shortened,
)
from tui_fs.model.calls import CallCount
from tui_fs.model.events import Event, RecordIncomplete, Resumed, Sampled, Unthrottled
from tui_fs.model.snapshot import Snapshot, fold


class Reserve(EndReserve):
    """A reserve in memory."""

    def __init__(self) -> None:
        self.written: list[Event] = []
        self.is_released = False

    def write(self, events: list[Event]) -> None:
        """Keep the events."""
        self.written = events

    def release(self) -> None:
        """Remember it."""
        self.is_released = True


class Disk(JournalWriter):
    """A journal that can be written, or not, or for some events only."""

    def __init__(self) -> None:
        self.written: list[Event] = []
        self.room: int | None = None
        self.error = errno.ENOSPC
        self.now_s = 1000.0
        self.slept_s: list[float] = []
        self.reserve = Reserve()
        self.journal = BufferedJournal(self, self.reserve, self.clock)

    def write(self, event: Event) -> None:
        """Keep the event, as long as there is room."""
        if self.room is not None:
            if self.room == 0:
                raise OSError(self.error, "")
            self.room -= 1
        self.written.append(event)

    def sync(self) -> None:
        """Fail as `write` does."""
        if self.room == 0:
            raise OSError(self.error, "")

    def clock(self) -> float:
        """Return a time that only `sleep` and the test move."""
        return self.now_s

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.slept_s.append(seconds)
        self.now_s += seconds


@pytest.fixture
def disk() -> Disk:
    """Return a disk with room, and the journal of a job on it."""
    return Disk()


def event(number: int) -> Event:
    """Return an event that differs from all others."""
    return Resumed(float(number))


@given(st.lists(st.none() | st.integers(0, 3), min_size=1, max_size=40))
def test_every_event_is_written_once_and_in_order(rooms: list[int | None]) -> None:
    disk = Disk()
    for number, room in enumerate(rooms):
        disk.room = room
        disk.journal.write(event(number))
    disk.room = None
    assert disk.journal.finish(disk.sleep)
    assert disk.written == [event(number) for number in range(len(rooms))]
    assert disk.slept_s == []


def test_the_job_must_end_when_nothing_was_written_for_long(disk: Disk) -> None:
    disk.journal.write(event(0))
    disk.room = 0
    disk.journal.write(event(1))
    assert not disk.journal.is_lost
    disk.now_s += PATIENCE_S
    disk.journal.write(event(2))
    is_lost_at_the_limit = disk.journal.is_lost
    disk.now_s += 0.001
    assert (is_lost_at_the_limit, disk.journal.is_lost) == (False, True)
    assert disk.journal.problem == "No space left on device"


def test_patience_is_reset_after_a_success(disk: Disk) -> None:
    disk.room = 0
    disk.journal.write(event(0))
    disk.now_s += PATIENCE_S - 1
    disk.room = None
    disk.journal.write(event(1))
    disk.room = 0
    disk.journal.write(event(2))
    disk.now_s += PATIENCE_S - 1
    assert not disk.journal.is_lost


def test_a_disk_that_takes_one_event_now_and_then_is_still_ill(disk: Disk) -> None:
    # A disk that takes an event now and then, never all of them
    disk.room = 0
    for number in range(40):
        disk.journal.write(event(number))
        disk.journal.write(event(number))
        disk.room = 1
        disk.now_s += 1
    assert disk.journal.is_lost


def test_the_end_is_written_when_there_is_room_within_the_last_patience(disk: Disk) -> None:
    disk.room = 0
    disk.journal.write(event(0))

    def room_comes_back(seconds: float) -> None:
        disk.sleep(seconds)
        disk.room = None if disk.now_s > 1000 + LAST_PATIENCE_S / 2 else 0

    assert disk.journal.finish(room_comes_back)
    assert disk.written == [event(0)]


def test_the_end_is_given_up_after_the_last_patience(disk: Disk) -> None:
    disk.room = 0
    disk.journal.write(event(0))
    assert not disk.journal.finish(disk.sleep)
    assert sum(disk.slept_s) == pytest.approx(LAST_PATIENCE_S, abs=1)
    # And the reserve has it, with the reason why the journal has not
    assert disk.reserve.written == [RecordIncomplete(0.0, "No space left on device"), event(0)]
    assert not disk.reserve.is_released


def test_a_complete_journal_releases_the_reserve(disk: Disk) -> None:
    disk.journal.write(event(0))
    assert disk.journal.finish(disk.sleep)
    assert (disk.reserve.is_released, disk.reserve.written) == (True, [])


def test_a_limit_for_the_size_of_a_file_is_not_waited_for(disk: Disk) -> None:
    disk.room, disk.error = 0, errno.EFBIG
    disk.journal.write(event(0))
    assert not disk.journal.finish(disk.sleep)
    assert disk.slept_s == []
    assert disk.reserve.written == [RecordIncomplete(0.0, "File too large"), event(0)]


@given(st.lists(values_of(Event), max_size=12))
@settings(max_examples=300)
@pytest.mark.slow
def test_shortened_events_give_the_same_failures_and_calls(some: list[Event]) -> None:
    some = [replace(event, at_s=float(at_s)) for at_s, event in enumerate(some)]
    whole, short = reduce(fold, some, Snapshot()), reduce(fold, shortened(some), Snapshot())
    assert short.calls == whole.calls
    assert short.removed == whole.removed
    assert short.state == whole.state
    assert short.failed == whole.failed
    assert {(failure.operation, failure.error, failure.number) for failure in short.failures} == {
        (failure.operation, failure.error, failure.number) for failure in whole.failures
    }
    assert (short.finished, short.refused, short.pace) == (
        whole.finished,
        whole.refused,
        whole.pace,
    )


def test_samples_become_one_with_all_calls() -> None:
    first = Sampled(1.0, 1.0, {"rmdir": CallCount(1), "unlink": CallCount(1)}, None, None, None, 1)
    last = Sampled(2.0, 2.0, {"unlink": CallCount(5)}, None, None, None, 2)
    calls = {"rmdir": CallCount(1), "unlink": CallCount(5)}
    assert shortened([first, last]) == [replace(last, calls=calls)]


def test_a_reserve_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = str(tmp_path / "end")
    create_reserve(path, plan())
    assert read_reserve(path) == []
    before = os.stat(path)
    EndReserve(path).write([event(0), Unthrottled(1.0)])
    assert read_reserve(path) == [event(0), Unthrottled(1.0)]
    after = os.stat(path)
    assert (after.st_size, after.st_blocks) == (before.st_size, before.st_blocks)
    assert before.st_blocks > 0


def test_an_end_that_does_not_fit_is_not_written(tmp_path: Path) -> None:
    path = str(tmp_path / "end")
    create_reserve(path, plan())
    with pytest.raises(OSError, match="No space left"):
        EndReserve(path).write([event(number) for number in range(10_000)])
    assert read_reserve(path) == []


@pytest.mark.parametrize("content", [b"", b"{", b'{"type":"Resumed","at', b"[]\n", b"\xff\n"])
def test_a_damaged_reserve_is_no_end(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "end"
    path.write_bytes(content + bytes(100))
    assert read_reserve(str(path)) == []


def test_a_failed_sync_is_noted_and_forgotten_when_writing_succeeds(disk: Disk) -> None:
    disk.room, disk.error = 0, errno.EIO
    disk.journal.sync()
    disk.now_s += PATIENCE_S + 1
    assert disk.journal.is_lost
    assert disk.journal.problem == "Input/output error"
    # And it is none any more when events are written
    disk.room = None
    disk.journal.write(event(0))
    assert not disk.journal.is_lost


def test_a_log_on_the_same_full_disk_does_not_end_the_job(disk: Disk) -> None:
    disk.room = 0
    log = os.dup(2)
    with open("/dev/full", "wb") as full:
        os.dup2(full.fileno(), 2)
    try:
        disk.journal.write(event(0))
        disk.journal.sync()
    finally:
        os.dup2(log, 2)
        os.close(log)
    assert not disk.journal.is_lost
    disk.room = None
    assert disk.journal.finish(disk.sleep)
    assert disk.written == [event(0)]


def test_the_log_reports_it_once(disk: Disk, capfd: pytest.CaptureFixture[str]) -> None:
    disk.room = 0
    for number in range(5):
        disk.journal.write(event(number))
    assert capfd.readouterr().err == "The journal cannot be written: No space left on device.\n"


def test_what_readers_see_is_whole_lines_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "events.jsonl")
    kept = BufferedJournal(JournalWriter(path), Reserve())
    kept.write(event(0))
    write, torn = os.write, iter((True, False))

    def half_a_line(descriptor: int, text: bytes) -> int:
        if descriptor == 2:
            return write(descriptor, text)
        if next(torn):
            return write(descriptor, text[:7])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", half_a_line)
    kept.write(event(1))
    assert Path(path).read_bytes().endswith(b"}\n")
    assert JournalReader(path).poll() == [event(0)]
    monkeypatch.undo()
    kept.write(Unthrottled(2.0))
    assert JournalReader(path).poll() == [event(0), event(1), Unthrottled(2.0)]
