"""The journal of a long job stays small, and a reader keeps a bounded number of events."""

import json
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.test_job_control import serving
from tests.unit.test_job_lock import held
from tests.unit.test_job_view import job, reported
from tests.unit.test_model_snapshot import RUNNING, finished, sampled, started
from tui_fs.job import journal
from tui_fs.job.journal import JournalReader, JournalWriter, last_event
from tui_fs.job.sampling import RECORDED_AGE_SHARE, SAMPLE_EVERY_S, SampleSchedule
from tui_fs.job.throttle import Pressure, PressureThrottle, Throttle
from tui_fs.job.tool_output import OutputLimits, ToolOutput
from tui_fs.job.view import JobList, JobView, summaries
from tui_fs.model.codec import encode
from tui_fs.model.events import (
    EntryFailed,
    Event,
    FailuresCounted,
    JobRefused,
    Paused,
    Throttled,
    Unthrottled,
)
from tui_fs.model.outcome import JobState, Outcome
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Pace, StrategyName
from tui_fs.strategies.registry import STRATEGIES

TWO_DAYS_S = 48 * 3600


def recorded_at(until_s: float) -> list[float]:
    """Return when a job that is measured every `SAMPLE_EVERY_S` journals a sample."""
    schedule, times = SampleSchedule(), []
    for number in range(int(until_s / SAMPLE_EVERY_S)):
        at_s = number * SAMPLE_EVERY_S
        if schedule.is_due(at_s):
            schedule.recorded(at_s)
            times.append(at_s)
    return times


def test_samples_become_rarer_as_a_job_grows_older() -> None:
    times = recorded_at(TWO_DAYS_S)
    assert 5_000 < len(times) < 8_000
    gaps = [(at, after - at) for at, after in pairwise(times)]
    assert all(gap <= max(SAMPLE_EVERY_S, RECORDED_AGE_SHARE * at) + 0.25 for at, gap in gaps)
    # And a young job is journalled as often as it is measured
    assert sum(at < 250 for at in times) == 250 / SAMPLE_EVERY_S


class _Tools:
    """Stand-in for a launcher whose tools are stopped and continued."""

    takes_commands = False
    pid = 0

    def signal_tools(self, _: int) -> None:
        """Take a signal."""


class _Always(PressureThrottle):
    """Holds the tools every other time."""

    def __init__(self) -> None:
        super().__init__()
        self._holds = False

    def decide(self) -> tuple[Pressure | None, float]:
        """Hold, or not."""
        self._holds = not self._holds
        return (Pressure("disk", 50.0) if self._holds else None), 0.0

    def reset(self) -> None:
        """Do nothing."""


def _gentle_throttle(events: list[Event], clock: Callable[[], float]) -> Throttle:
    tools: Any = _Tools()
    return Throttle(tools, Pace(gentle=True), 0, _Always(), events.append, clock)


def test_holds_of_an_old_job_are_journalled_rarely_and_all_counted() -> None:
    events: list[Event] = []
    now_s = 0.0
    made = _gentle_throttle(events, lambda: now_s)
    rounds = 24_000  # of 7.2 s, as long as 48 hours
    for _ in range(rounds):
        made.look(lambda: 0)  # a hold begins
        now_s += 6.2
        made.look(lambda: 0)  # it ends
        now_s += 1.0
    assert made.hold is None
    holds = [event for event in events if isinstance(event, Throttled)]
    ends = [event for event in events if isinstance(event, Unthrottled)]
    assert len(holds) == len(ends) < 8_000
    assert made.held_s == pytest.approx(rounds * 6.2)


def test_a_hold_that_is_not_journalled_is_counted_while_it_lasts() -> None:
    events: list[Event] = []
    now_s = 100_000.0
    made = _gentle_throttle(events, lambda: now_s)
    for _ in range(2):  # the first hold is journalled, the second is not
        made.look(lambda: 0)
        now_s += 2.0
        made.look(lambda: 0)
        now_s += 1.0
    made.look(lambda: 0)
    now_s += 5.0
    assert [type(event) for event in events] == [Throttled, Unthrottled]
    assert made.held_s == pytest.approx(9.0)
    snapshot = JobView(job(*RUNNING, *events, replace(sampled(now_s, 10), held_s=made.held_s)))
    snapshot.poll()
    assert snapshot.snapshot.held_s == pytest.approx(9.0)


@pytest.mark.slow
def test_the_journal_of_many_failures_is_bounded() -> None:
    output = rm_output(OutputLimits())
    kept: list[Event] = []
    errors = [os.strerror(number) for number in range(1, 11)]
    for _ in range(60):
        lines = b"".join(denied("x" * 3_000, errors[number % 10]) for number in range(1_000))
        kept += output.take_errors(lines, 1.0)
        kept += output.counted_failures(2.0)
    size = sum(len(json.dumps(encode(event))) for event in kept)
    assert size < 1.5 * OutputLimits().bytes + 60 * 10 * 200
    number = sum(isinstance(event, EntryFailed) for event in kept)
    number += sum(event.number for event in kept if isinstance(event, FailuresCounted))
    assert number == 60_000


def rm_output(limits: OutputLimits) -> ToolOutput:
    """Return what reads the messages of rm."""
    return ToolOutput(STRATEGIES[StrategyName("rm")], "/t", limits)


def denied(name: str, reason: str = "Permission denied") -> bytes:
    """Return a message of rm."""
    return f"rm: cannot remove '{name}': {reason}\n".encode()


def test_a_reader_holds_a_bounded_number_of_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "READ_AT_ONCE_BYTES", 4_096)
    path = str(tmp_path / "j")
    writer = JournalWriter(path)
    for number in range(1_000):
        writer.write(sampled(number, number))
    reader, pieces = JournalReader(path), list[int]()
    while events := reader.poll():
        pieces.append(len(events))
    assert sum(pieces) == 1_000
    assert max(pieces) <= 4_096 // len(json.dumps(encode(sampled(1, 1)), separators=(",", ":")))


def test_a_line_longer_than_what_is_read_at_once_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "READ_AT_ONCE_BYTES", 256)
    path = str(tmp_path / "j")
    events: list[Event] = [sampled(1, 1), EntryFailed(2.0, PathStr("/" + "x" * 5_000), "remove", 1)]
    writer = JournalWriter(path)
    for event in events:
        writer.write(event)
    reader, read = JournalReader(path), list[Event]()
    while piece := reader.poll():
        read += piece
    assert read == events


def test_a_view_keeps_a_bounded_number_of_failed_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_fs.job.view.PATHS_KEPT", 3)
    failed = [EntryFailed(1.0, PathStr(f"/t/{number}"), "remove", 1) for number in range(10)]
    report = reported(job(*RUNNING, *failed, finished(Outcome.PARTIAL)))
    assert (report["failed"], len(report["errors"])) == (10, 3)


@pytest.mark.parametrize("length", [1, 5_000, 100_000])
def test_the_last_event_is_read_without_what_is_before_it(tmp_path: Path, length: int) -> None:
    path = tmp_path / "j"
    path.write_bytes(b"\0" * 50_000 + b"\n")
    event = JobRefused(1.0, "busy", "x" * length, "")
    JournalWriter(str(path)).write(event)
    assert last_event(str(path)) == event
    path.write_bytes(path.read_bytes()[:-1])
    assert last_event(str(path)) is None


def test_a_journal_without_events_has_no_last_one(tmp_path: Path) -> None:
    assert last_event(str(tmp_path / "none")) is None
    (tmp_path / "empty").touch()
    assert last_event(str(tmp_path / "empty")) is None


def test_the_list_does_not_read_the_whole_journal_of_an_ended_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    end = replace(finished(Outcome.PARTIAL), failed=7, deleted_files=11)
    job(*RUNNING, sampled(1, 12), end)
    monkeypatch.setattr("tui_fs.job.view.JobView", None)
    (summary,) = summaries()[0]
    assert (summary.state, summary.failed, summary.deleted_entries) == (JobState.PARTIAL, 7, 12)


def test_an_end_without_sums_is_not_taken_for_no_failures() -> None:
    job(*RUNNING, EntryFailed(1.0, PathStr("/t/x"), "remove", 1), finished(Outcome.PARTIAL))
    (summary,) = summaries()[0]
    assert summary.failed == 1


def test_a_report_without_an_end_in_the_journal_is_not_believed() -> None:
    folder = job(*RUNNING, sampled(1, 10))
    Path(folder.report).write_text('{"outcome": "done"}')
    (summary,) = summaries()[0]
    assert summary.state is JobState.DIED


def test_a_list_that_is_read_again_reads_only_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = job(started(), *RUNNING[1:], sampled(1, 10))
    jobs, polled = JobList(), list[int]()
    poll = JournalReader.poll

    def counted(reader: JournalReader) -> list[Event]:
        events = poll(reader)
        polled.append(len(events))
        return events

    monkeypatch.setattr(JournalReader, "poll", counted)
    with held(folder.lock):
        jobs.read()
        assert sum(polled) == 3
        polled.clear()
        JournalWriter(folder.journal).write(sampled(2, 20))
        (summary,) = jobs.read()[0]
        assert (sum(polled), summary.deleted_entries) == (1, 20)
        assert summary.state is JobState.RUNNING


def test_a_live_view_shows_counts_that_are_not_in_the_journal() -> None:
    folder = job(*RUNNING, sampled(1_000, 10))
    hold = Throttled(1_100.0, "disk", 40.0)
    answers: list[list[Event]] = [
        [hold, sampled(1_100, 500)],
        [sampled(1_101, 600)],
        [sampled(500, 5)],
    ]
    with (
        held(folder.lock),
        serving(folder, lambda *_: None, lambda: answers.pop(0)),
    ):
        view = JobView(folder)
        view.poll()
        assert view.poll_live() == 1
        assert view.snapshot.removed is not None
        assert (view.snapshot.removed.entries, view.snapshot.throttled) == (500, hold)
        view.poll_live()
        assert (view.snapshot.removed.entries, view.snapshot.throttled) == (600, None)
        # And what is older than what is known changes nothing
        view.poll_live()
        assert view.snapshot.removed.entries == 600
        assert view.snapshot.held_s == 0.0


def test_a_live_view_counts_failures_that_are_not_in_the_journal_once() -> None:
    # A job whose supervisor has counted failures that it has not journalled
    folder = job(*RUNNING, sampled(1_000, 10))
    pending = FailuresCounted(1_100.0, "remove", 13, 70)
    answers: list[list[Event]] = [[sampled(1_100, 500), pending], [sampled(1_101, 600)], []]
    with held(folder.lock), serving(folder, lambda *_: None, lambda: answers.pop(0)):
        view = JobView(folder)
        view.poll()
        view.poll_live()
        assert view.snapshot.failed == 70
        JournalWriter(folder.journal).write(pending)
        view.poll_live()
        assert view.snapshot.failed == 70
        # And an answer that is older than the journal adds nothing
        answers[:] = [[sampled(1_102, 700), replace(pending, at_s=1_102.0)]]
        JournalWriter(folder.journal).write(replace(pending, at_s=1_102.5))
        view.poll_live()
        assert view.snapshot.failed == 140


def test_a_live_view_of_a_paused_job_shows_the_pause() -> None:
    folder = job(*RUNNING, sampled(10, 10), Paused(11.0, 11.0, True))
    answers: list[Event] = [sampled(500, 10)]
    with held(folder.lock), serving(folder, lambda *_: None, lambda: answers):
        view = JobView(folder)
        view.poll()
        view.poll_live()
        assert view.state is JobState.PAUSED
        assert view.snapshot.elapsed_s == pytest.approx(500.0)


def test_a_view_goes_on_without_an_answer() -> None:
    folder = job(*RUNNING, sampled(10, 10))
    with held(folder.lock):
        view = JobView(folder)
        view.poll()
        assert view.poll_live() == 0
        JournalWriter(folder.journal).write(sampled(11, 20))
        assert view.poll_live() == 1
        assert view.state is JobState.RUNNING
