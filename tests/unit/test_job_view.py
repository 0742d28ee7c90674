"""A job as a viewer sees it, and the list of all."""

import errno
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.conftest import Json
from tests.unit.test_job_lock import held
from tests.unit.test_job_store import plan
from tests.unit.test_model_snapshot import RUNNING, finished, sampled, started, usage
from tui_fs.cli.exit_codes import exit_code_of_job
from tui_fs.job.comparison import ComparedJob
from tui_fs.job.journal import CrashMark, EndReserve, JournalWriter
from tui_fs.job.lock import StarterLock
from tui_fs.job.report_text import figures
from tui_fs.job.store import JobFolder, create
from tui_fs.job.view import JobView, summaries
from tui_fs.linux.host import current_host
from tui_fs.model.errors import BadInput
from tui_fs.model.events import EntryFailed, Event, JobRefused, Paused, RecordIncomplete
from tui_fs.model.outcome import JobState, Outcome
from tui_fs.model.paths import PathStr
from tui_fs.model.target import Pin, Target

LONG_AGO = 1e9


def job(*events: Event, job_id: str = "abc", created_at: float = LONG_AGO) -> JobFolder:
    """Make a job with a journal."""
    folder = create(plan(job_id, created_at))
    if events:
        writer = JournalWriter(folder.journal)
        for event in events:
            writer.write(event)
    return folder


def seen(folder: JobFolder) -> tuple[JobState, bool]:
    """Return the view of a job."""
    view = JobView(folder)
    view.poll()
    return view.state, view.is_over


def reported(folder: JobFolder) -> Json:
    """Return the report of a job, as a viewer sees it."""
    view = JobView(folder)
    view.poll()
    return view.report().to_json()


@pytest.mark.parametrize(
    ("last", "state"),
    [(sampled(1, 10), JobState.RUNNING), (Paused(2.0, 2.0, True), JobState.PAUSED)],
)
def test_a_job_without_an_end_lives_as_long_as_its_supervisor(last: Event, state: JobState) -> None:
    folder = job(*RUNNING, last)
    with held(folder.lock):
        assert seen(folder) == (state, False)
    assert seen(folder) == (JobState.DIED, True)


def test_a_job_dies_while_it_is_watched() -> None:
    folder = job(*RUNNING)
    view = JobView(folder)
    with held(folder.lock):
        view.poll()
        assert view.state is JobState.RUNNING
    view.poll()
    assert (view.state, view.is_over) == (JobState.DIED, True)


@pytest.mark.parametrize("outcome", [Outcome.DONE, Outcome.PARTIAL, Outcome.CANCELLED])
def test_a_finished_job_is_over_even_while_its_supervisor_lives(outcome: Outcome) -> None:
    folder = job(*RUNNING, finished(outcome))
    with held(folder.lock):
        assert seen(folder) == (JobState(outcome.value), True)


def test_a_refused_job_is_over() -> None:
    assert seen(job(JobRefused(0.1, "changed", "It changed.", ""))) == (JobState.REFUSED, True)


def test_a_job_that_never_began_has_deleted_nothing() -> None:
    assert "nothing was deleted" in str(reported(job())["explanation"])
    # And with the error that ended the supervisor, if it left one
    folder = job(job_id="bbbbbb")
    CrashMark(folder.crash).leave(OSError(errno.EIO, "Input/output error"))
    explanation = str(reported(folder)["explanation"])
    assert "tui-fs itself failed: Input/output error" in explanation
    assert "nothing was deleted" in explanation


def test_after_a_restart_a_missing_journal_does_not_prove_that_nothing_was_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = job()
    other = replace(current_host(), boot_id="another")
    monkeypatch.setattr("tui_fs.job.view.current_host", lambda: other)
    view = JobView(folder)
    view.poll()
    assert view.state is JobState.DIED
    assert "nothing was deleted" not in str(view.report().to_json()["explanation"])


@pytest.mark.parametrize("offset_s", [-1e9, 0.0, 1e9])
def test_a_job_is_starting_while_its_starter_lives_whatever_the_clock(offset_s: float) -> None:
    # A clock that was set wrong before the job was made, and set right since
    with StarterLock() as lock:
        folder = create(plan(created_at=time.time() + offset_s), lock.take)
        assert seen(folder) == (JobState.RUNNING, False)
    assert seen(folder) == (JobState.DIED, True)


def test_new_events_are_returned_once() -> None:
    folder = job(*RUNNING)
    view = JobView(folder)
    seen: list[Event] = []
    assert view.poll(seen.append) == len(RUNNING)
    assert seen == list(RUNNING)
    JournalWriter(folder.journal).write(sampled(1, 10))
    seen.clear()
    assert view.poll(seen.append) == 1
    assert seen == [sampled(1, 10)]
    assert view.snapshot.removed is not None
    assert view.snapshot.removed.entries == 10
    assert view.poll() == 0


def test_a_damaged_journal_is_said() -> None:
    folder = job(*RUNNING)
    with open(folder.journal, "ab") as journal:
        journal.write(b"{\n")
    with pytest.raises(BadInput, match="damaged"):
        JobView(folder).poll()


def test_a_job_that_died_reports_what_its_journal_gives() -> None:
    failed = EntryFailed(2.0, PathStr("/t/\udcff"), "remove", 1)
    report = reported(job(*RUNNING, failed, sampled(2, 300)))
    assert (report["outcome"], report["counts_are"]) == ("died", "at least")
    assert report["deleted_files"] == 300
    assert report["errors"][0]["path_b64"] == "L3Qv/w=="
    assert "supervisor was killed" in report["explanation"]


def test_report_and_comparison_of_a_job_that_died_have_the_memory_of_its_samples() -> None:
    mib = 1 << 20
    samples = [sampled(n, n, usage=usage(n, size * mib)) for n, size in ((1, 2), (2, 5), (3, 4))]
    folder = job(*RUNNING, *samples)
    view = JobView(folder)
    view.poll()
    report = view.report()
    assert report.started is not None
    assert (report.peak_memory_bytes, report.sampled_memory_bytes) == (None, 5 * mib)
    assert "peak memory sampled 5.0 MiB" in dict(figures(report, report.started))["cpu"]
    compared = ComparedJob(folder).poll()
    assert (compared.peak_memory_bytes, compared.is_peak_sampled) == (5 * mib, True)


def test_all_jobs_are_summarised() -> None:
    end = replace(finished(Outcome.DONE), deleted_files=11)
    job(*RUNNING, sampled(1, 12), end, job_id="one")
    job(started(), EntryFailed(1.0, PathStr("/x"), "remove", 1), job_id="two")
    listed, damaged = summaries()
    by_id = {summary.job_id: summary for summary in listed}
    assert damaged == []
    assert (by_id["one"].state, by_id["one"].deleted_entries) == (JobState.DONE, 12)
    assert (by_id["two"].state, by_id["two"].failed) == (JobState.DIED, 1)
    assert by_id["two"].deleted_entries is None
    assert by_id["one"].expected_entries == 12
    assert by_id["one"].targets == plan().paths


@pytest.mark.parametrize("failed", [0, None])  # None: in the journal of an older version
def test_the_list_states_as_many_deleted_entries_as_the_report(failed: int | None) -> None:
    end = replace(finished(Outcome.CANCELLED), failed=failed, deleted_entries=12)
    folder = job(*RUNNING, sampled(1, 12), replace(end, deleted_files=20, deleted_directories=3))
    assert [summary.deleted_entries for summary in summaries()[0]] == [23]
    report = reported(folder)
    assert (report["deleted_files"], report["deleted_directories"]) == (20, 3)
    uncounted = replace(end, deleted_files=None, deleted_directories=None)
    job(*RUNNING, sampled(1, 12), uncounted, job_id="def", created_at=LONG_AGO + 1)
    assert summaries()[0][0].deleted_entries == 12


def test_a_damaged_job_does_not_hide_the_others() -> None:
    job(*RUNNING, job_id="good")
    Path(job(job_id="plan").plan).write_text("{")
    Path(job(job_id="journal").journal).write_text("{\n")
    listed, damaged = summaries()
    assert [summary.job_id for summary in listed] == ["good"]
    assert len(damaged) == 2


@pytest.mark.parametrize("is_there", [True, False])
def test_a_job_that_died_is_resumed_only_if_something_is_left(
    tmp_path: Path, is_there: bool
) -> None:
    target = tmp_path / "t"
    if is_there:
        target.mkdir()
    whole = plan("abc", LONG_AGO)
    folder = create(replace(whole, targets=(Target(PathStr(str(target)), Pin(1, 2, 3)),)))
    writer = JournalWriter(folder.journal)
    for event in RUNNING:
        writer.write(event)
    explanation = str(reported(folder)["explanation"])
    assert ("tui-fs resume abc continues" in explanation) is is_there
    assert ("there is nothing to resume" in explanation) is not is_there


def test_the_end_in_the_reserve_ends_a_job() -> None:
    # A job whose journal could not take its end
    folder = job(*RUNNING, sampled(1, 10))
    incomplete = RecordIncomplete(8.0, "No space left on device")
    EndReserve(folder.end).write([incomplete, finished(Outcome.DONE)])
    view = JobView(folder)
    view.poll()
    assert view.state is JobState.DONE
    assert [summary.state for summary in summaries()[0]] == [JobState.DONE]
    explanation = str(view.report().to_json()["explanation"])
    assert "because a write failed (No space left on device)" in explanation
    assert exit_code_of_job(view.state, view.snapshot) == 1


def test_a_reserve_is_not_read_while_the_supervisor_runs() -> None:
    folder = job(*RUNNING, sampled(1, 10))
    EndReserve(folder.end).write([finished(Outcome.DONE)])
    with held(folder.lock):
        assert seen(folder) == (JobState.RUNNING, False)
