"""The outcome of a job, and its report."""

import errno
import signal
from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.test_job_store import plan
from tests.unit.test_model_snapshot import RUNNING, finished, folded, sampled, started
from tui_fs.cli.follow import report_as_text
from tui_fs.job.outcome import JobOutcome, Verification, outcome_of_job
from tui_fs.job.report import Report, report_of
from tui_fs.model.calls import CallCount, Removed, TraceSource, failed_by_operation
from tui_fs.model.events import (
    CancelRequested,
    EntryFailed,
    Event,
    JobRefused,
    Paused,
    Sampled,
    StepFinished,
    Throttled,
    ToolSaid,
    Usage,
)
from tui_fs.model.outcome import JobState, Outcome
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.space import Space
from tui_fs.model.survey import Totals

HERE = (PathStr("/srv/t\udcff"),)
GONE = Verification((), Totals())
LEFT = Verification(HERE, Totals(files=3, directories=1))
ONE_LEFT = Verification(HERE, Totals(directories=1))
UNCOUNTED = Verification(HERE, None)
MOVED = Verification(HERE, None, "The directory was moved to /elsewhere.")
CANCEL = CancelRequested(2.0, "asked by uid 0")


def failed(error: int) -> EntryFailed:
    """Return a failure."""
    return EntryFailed(1.0, PathStr("/t/x"), "remove", error)


def ended(status: int) -> StepFinished:
    """Return the end of the only process."""
    return StepFinished(3.0, 0, (status,), 0.0, 0.0, 0)


def removed(entries: int, directories: int | None) -> Sampled:
    """Return a last sample."""
    return replace(sampled(1), removed=Removed(entries, directories))


def ending(verification: Verification, *events: Event, problem: str = "") -> JobOutcome:
    """End the job of ten files and two directories after these events."""
    snapshot = folded(*RUNNING, *events)
    return outcome_of_job(plan(), snapshot, verification, problem)


ALL = removed(12, 2)
PERF, OUTPUT = TraceSource.PERF, TraceSource.OUTPUT


@pytest.mark.parametrize(
    ("verification", "events", "outcome", "says"),
    [
        (GONE, (ALL, ended(0)), Outcome.DONE, "The directory is gone."),
        (GONE, (ALL, failed(errno.ENOENT)), Outcome.DONE, "The directory is gone."),
        (GONE, (ALL, CANCEL), Outcome.DONE, "The directory is gone."),
        (GONE, (ALL, failed(errno.EPERM)), Outcome.PARTIAL, "1 entry could not be deleted."),
        (LEFT, (ended(0),), Outcome.PARTIAL, "4 entries are left."),
        (LEFT, (failed(errno.EPERM),), Outcome.PARTIAL, "1 entry could not be deleted."),
        (
            LEFT,
            (failed(errno.EPERM), failed(errno.EIO)),
            Outcome.PARTIAL,
            "2 entries could not be deleted.",
        ),
        (LEFT, (failed(errno.ENOENT),), Outcome.PARTIAL, "4 entries are left."),
        (UNCOUNTED, (), Outcome.PARTIAL, "the remaining entries were not counted"),
        (LEFT, (CANCEL,), Outcome.CANCELLED, "Stopped before the end: asked by uid 0."),
        (LEFT, (CANCEL, failed(errno.EPERM)), Outcome.CANCELLED, "Stopped before the end"),
        (LEFT, (ended(-9),), Outcome.PARTIAL, "rm was killed by SIGKILL, not by tui-fs."),
        (LEFT, (ended(-11),), Outcome.PARTIAL, "rm was killed by SIGSEGV, not by tui-fs."),
        (LEFT, (ended(-40),), Outcome.PARTIAL, "40"),
        (ONE_LEFT, (), Outcome.PARTIAL, "1 entry is left."),
        (MOVED, (), Outcome.PARTIAL, "to /elsewhere."),
    ],
)
def test_a_job_comes_to_this(
    verification: Verification, events: tuple[Event, ...], outcome: Outcome, says: str
) -> None:
    judged = ending(verification, *events)
    assert judged.outcome is outcome
    assert says in judged.explanation


def test_a_reason_that_is_a_sentence_gets_no_second_full_stop() -> None:
    outcome = ending(LEFT, replace(CANCEL, reason="Something is mounted inside /srv/t."))
    assert outcome.explanation == "Stopped before the end: Something is mounted inside /srv/t."
    assert "was replaced" in ending(LEFT, problem="The target was replaced.").explanation


@pytest.mark.parametrize("events", [(CANCEL, ended(-9)), (ended(-signal.SIGPIPE),)])
def test_a_cancel_and_a_broken_pipe_are_no_kill_from_outside(events: tuple[Event, ...]) -> None:
    assert "from outside" not in ending(LEFT, *events).explanation


def test_a_done_job_says_where_its_counts_disagree_with_the_survey() -> None:
    assert "12" in ending(GONE, removed(15, 2)).explanation
    assert "15" in ending(GONE, removed(15, 2)).explanation
    assert ending(GONE, ALL).explanation == "The directory is gone."


def test_an_entry_that_another_process_removed_has_not_failed() -> None:
    snapshot = folded(*RUNNING, ALL, failed(errno.ENOENT), failed(errno.EPERM))
    assert (snapshot.failed, len(snapshot.failures)) == (1, 2)
    assert failed_by_operation(snapshot.failures) == {"remove": 1}
    assert failed_by_operation(snapshot.failures[:1]) == {}


def ended_report(*events: Event, state: JobState = JobState.DONE) -> Report:
    """Return the report after these events."""
    errors = [event for event in events if isinstance(event, EntryFailed)]
    return report_of(folded(*events), state, errors)


def report(*events: Event, state: JobState = JobState.DONE) -> dict[str, Any]:
    """Return the report after these events as JSON."""
    return ended_report(*events, state=state).to_json()


@pytest.mark.parametrize("stands", [Paused(2.0, 2.0, True), Throttled(2.0, "io", 50.0)])
def test_a_pause_in_which_a_job_died_was_no_work(stands: Event) -> None:
    summary = report(*RUNNING, stands, sampled(3599.0, 5), state=JobState.DIED)
    stood_s = summary["paused_s"] + summary["held_back_s"]
    assert (stood_s, summary["strategy_wall_s"] - stood_s) == (3598.0, 1.0)


@pytest.mark.parametrize(("free_inodes", "freed_inodes"), [(20, 10), (None, None)])
def test_a_report_compares_space_before_and_after(
    free_inodes: int | None, freed_inodes: int | None
) -> None:
    end = replace(finished(Outcome.DONE), space=Space(2000, free_inodes))
    summary = report(*RUNNING, end)
    assert (summary["freed_bytes"], summary["freed_inodes"]) == (1000, freed_inodes)


def test_a_report_holds_prediction_and_counts_side_by_side() -> None:
    summary = report(*RUNNING, sampled(1, 5, {"unlinkat": 5}), finished(Outcome.DONE))
    assert summary["syscalls"] == {
        "unlinkat": {
            "calls": 5,
            "errors": 0,
            "seconds": None,
            "quantiles_s": None,
            "timed_calls": None,
        }
    }
    assert summary["predicted"]["syscalls"] == {"unlinkat": 1000}
    assert summary["predicted"]["seconds"] == 2.0
    assert summary["trace_source"] == "perf"


def test_a_disagreement_agrees_in_number() -> None:
    expected = replace(plan().expected, totals=Totals(files=1))
    events: tuple[Event, ...] = (*RUNNING, removed(2, 0))
    snapshot = folded(*events)
    ending = outcome_of_job(replace(plan(), expected=expected), snapshot, GONE, "")
    assert "counted 1 entry, but the job removed 2:" in ending.explanation


def test_a_report_names_errors_with_their_meaning() -> None:
    summary = report(*RUNNING, failed(errno.EPERM), finished(Outcome.PARTIAL))
    (error,) = summary["errors"]
    assert (error["path"], error["errno"], error["errno_name"]) == ("/t/x", 1, "EPERM")
    assert error["meaning"].startswith("not permitted")
    assert summary["error_groups"][0]["number"] == summary["failed"] == 1


def test_a_refused_report_says_which_rule() -> None:
    summary = report(JobRefused(0.1, "changed", "It changed.", "Look."), state=JobState.REFUSED)
    assert summary["refusal"] == {"rule": "changed", "sentence": "It changed.", "advice": "Look."}
    assert (summary["outcome"], summary["explanation"]) == ("refused", "It changed. Look.")
    assert (summary["deleted_files"], summary["deleted_directories"]) == (0, 0)


def test_a_report_is_valid_json_for_any_target_name() -> None:
    # A target that is not UTF-8, so that its command is not either
    begun = replace(started(), targets=(PathStr("/\udcff"),), command=(("rm", "/\udcff"),))
    summary = report(begun, finished(Outcome.DONE))
    assert summary["target_b64"]
    str(summary["command"]).encode("utf-8")
    "".join(summary["command"][0]).encode("utf-8")


@pytest.mark.parametrize("state", [JobState.DIED, JobState.DONE])
def test_calls_without_times_say_so(state: JobState) -> None:
    end = () if state is JobState.DIED else (finished(Outcome.DONE),)
    sample = replace(sampled(1), calls={"rmdir": CallCount(2, 1)})
    summary = report(*RUNNING, sample, *end, state=state)
    assert summary["syscalls"]["rmdir"] == {
        "calls": 2,
        "errors": 1,
        "seconds": None,
        "quantiles_s": None,
        "timed_calls": None,
    }


@pytest.mark.parametrize(
    ("source", "verification", "events", "files", "directories", "is_exact"),
    [
        pytest.param(PERF, GONE, (ALL,), 10, 2, True, id="both counted"),
        pytest.param(PERF, LEFT, (removed(7, None),), 6, 1, False, id="directories not counted"),
        pytest.param(PERF, LEFT, (), 7, 1, False, id="nothing counted: by difference"),
        pytest.param(PERF, UNCOUNTED, (), None, None, False, id="nothing known"),
        pytest.param(PERF, LEFT, (removed(8, 1), ended(-9)), 7, 1, True, id="kernel after a kill"),
        # The tool writes its counts itself, so that some of them were lost
        pytest.param(OUTPUT, LEFT, (removed(5, 0), ended(-9)), 7, 1, False, id="killed tool"),
        pytest.param(OUTPUT, LEFT, (removed(5, 0),), 7, 1, False, id="killed launcher"),
        pytest.param(OUTPUT, LEFT, (removed(5, 0), ended(125)), 7, 1, False, id="rm below xargs"),
    ],
)
def test_counts_are_exact_or_differences_or_unknown(
    source: TraceSource,
    verification: Verification,
    events: tuple[Event, ...],
    files: int | None,
    directories: int | None,
    is_exact: bool,
) -> None:
    begun = (replace(started(), source=source), *RUNNING[1:])
    outcome = outcome_of_job(plan(), folded(*begun, *events), verification, "")
    assert (outcome.deleted_files, outcome.deleted_directories) == (files, directories)
    assert outcome.split_is_exact is is_exact


@pytest.mark.parametrize(
    ("end", "state"), [((finished(Outcome.PARTIAL),), JobState.DONE), ((), JobState.DIED)]
)
def test_the_times_of_a_step_without_an_end_are_those_last_seen(
    end: tuple[Event, ...], state: JobState
) -> None:
    usage = Usage(4.0, 3.0, None, 0, 0, 0, 1, "rm 1")
    summary = report(*RUNNING, replace(sampled(1), usage=usage), *end, state=state)
    assert (summary["cpu_user_s"], summary["cpu_system_s"]) == (1.0, 3.0)


def test_of_several_it_is_said_which_are_left_and_which_are_gone() -> None:
    paths = tuple(PathStr(f"/srv/{name}") for name in "abc")
    several = replace(plan(), targets=tuple(replace(plan().targets[0], path=p) for p in paths))
    begun = replace(started(), targets=paths)
    events: tuple[Event, ...] = (begun, *RUNNING[1:])
    snapshot = folded(*events)
    outcome = outcome_of_job(several, snapshot, Verification(paths[1:], Totals(files=3)), "")
    assert outcome.outcome is Outcome.PARTIAL
    assert outcome.explanation == "3 entries are left. In 2 of 3 directories: /srv/b, /srv/c."
    end = replace(finished(Outcome.PARTIAL), left=paths[1:])
    assert [target["gone"] for target in report(begun, end)["targets"]] == [True, False, False]
    # And without a verification, nothing is claimed
    died = report(begun, state=JobState.DIED)
    assert [target["gone"] for target in died["targets"]] == [None, None, None]
    refused = report(begun, JobRefused(1.0, "changed", "", ""), state=JobState.REFUSED)
    assert [target["gone"] for target in refused["targets"]] == [False, False, False]
    # And the job is not done while one is left, even if the counters say so
    gone = outcome_of_job(several, snapshot, Verification((), Totals()), "")
    assert (gone.outcome, gone.explanation.split(".")[0]) == (
        Outcome.DONE,
        "The directories are gone",
    )


@pytest.mark.parametrize("vanish", (False, True))
def test_a_kept_directory_that_another_process_removed_is_reported_gone(vanish: bool) -> None:
    begun = replace(started(), keep_root=True)
    path = begun.targets[0]
    end = replace(finished(Outcome.DONE), vanished=(path,) if vanish else ())
    (target,) = report(begun, end)["targets"]
    assert (target["gone"], target["done"]) == (vanish, True)


def test_what_a_tool_reports_explains_what_is_left_where_no_entry_failed() -> None:
    event = ToolSaid(1.0, "rm: memory exhausted\x1b[31m")
    assert ending(LEFT, event, ended(1)).explanation == (
        "4 entries are left. The tool reported: rm: memory exhausted\\e[31m."
    )
    # And where entries failed, they are the explanation; and a job that is done needs none
    assert "reported" not in ending(LEFT, event, failed(errno.EPERM), ended(1)).explanation
    assert "reported" not in ending(GONE, ALL, event, ended(0)).explanation


def test_a_command_is_shown_with_the_bytes_that_ran() -> None:
    begun = replace(started(), command=(("/usr/bin/rm", "-rf", "--", "/srv/a\udcff"),))
    shown = report_as_text(ended_report(begun, finished(Outcome.DONE)))
    assert "$ /usr/bin/rm -rf -- $'/srv/a\\xff'" in shown


def test_a_sentence_of_the_report_shows_names_as_everything_else_does() -> None:
    end = replace(finished(Outcome.PARTIAL), explanation=displayable("/a\\b  c") + " stays.")
    assert "/a\\\\b \\x20c stays." in report_as_text(ended_report(started(), end))
