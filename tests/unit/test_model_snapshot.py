"""The fold of events: state, progress, rates, time left."""

import errno
import math
from functools import reduce

import pytest
from msgspec.structs import replace

from tui_fs.model.calls import CallCount, Removed, TraceSource
from tui_fs.model.eta import RATE_SPREAD
from tui_fs.model.events import (
    CancelRequested,
    EntryFailed,
    Event,
    FailuresCounted,
    JobFinished,
    JobRefused,
    JobStarted,
    PaceChanged,
    Paused,
    Resumed,
    Sampled,
    StepFinished,
    StepStarted,
    Throttled,
    ToolSaid,
    Unthrottled,
    Usage,
)
from tui_fs.model.outcome import JobState, Outcome
from tui_fs.model.paths import PathStr
from tui_fs.model.plan import Expected
from tui_fs.model.snapshot import (
    EXAMPLES_PER_GROUP,
    RATE_WINDOW_S,
    TOOL_LINES_KEPT,
    FailureGroup,
    Snapshot,
    fold,
)
from tui_fs.model.space import Space
from tui_fs.model.strategy import Pace, StrategyName
from tui_fs.model.survey import Totals

SPACE = Space(free_bytes=1000, free_inodes=10)


def started(entries: int = 1000, complete: bool = True) -> JobStarted:
    """Return the start of a job that expects this many entries."""
    return JobStarted(
        at_s=0.5,
        job_id="abc",
        started_at=1e9,
        supervisor_pid=1,
        targets=(PathStr("/t"),),
        strategy=StrategyName("rm"),
        keep_root=False,
        command=(("rm",),),
        expected=Expected(Totals(files=entries - 1, directories=1), 0, 0, complete),
        predicted_calls={"unlinkat": entries},
        predicted_seconds=(1.0, 2.0, 3.0),
        source=TraceSource.PERF,
        source_note="",
        space=SPACE,
    )


def sampled(
    strategy_s: float,
    entries: int | None = None,
    calls: dict[str, int] | None = None,
    usage: Usage | None = None,
) -> Sampled:
    """Return a sample of the counters at this time of the strategy (it began at second 1)."""
    return Sampled(
        at_s=1 + strategy_s,
        strategy_s=strategy_s,
        calls={name: CallCount(number) for name, number in (calls or {}).items()},
        removed=None if entries is None else Removed(entries),
        usage=usage,
        space=None,
        io_pressure_percent=None,
    )


def usage(cpu_s: float, rss_bytes: int = 0) -> Usage:
    """Return a usage that differs from others in its CPU time."""
    return Usage(cpu_s, 0.0, None, rss_bytes, 0, 0, 1, "rm 1")


def finished(outcome: Outcome) -> JobFinished:
    """Return the end of a job."""
    return JobFinished(9.0, outcome, "", 7.5, 1, 1, True, 0, Space(2000, 20), ())


def folded(*job_events: Event) -> Snapshot:
    """Fold events from the beginning."""
    return reduce(fold, job_events, Snapshot())


RUNNING = (started(), StepStarted(1.0, 0, (7,)))


def test_nothing_is_known_before_the_first_event() -> None:
    nothing = Snapshot()
    assert (nothing.state, nothing.fraction, nothing.rate_per_s, nothing.eta_s) == (None,) * 4


def test_a_started_job_runs_and_knows_its_space() -> None:
    snapshot = folded(started())
    assert (snapshot.state, snapshot.space) == (JobState.RUNNING, SPACE)


@pytest.mark.parametrize(
    ("complete", "removed", "fraction"),
    [(True, 250, 0.25), (True, 5000, 1.0), (False, 250, None)],
)
def test_progress_is_removed_over_expected(
    complete: bool, removed: int, fraction: float | None
) -> None:
    snapshot = folded(started(complete=complete), *RUNNING[1:], sampled(1, removed), sampled(2))
    assert snapshot.fraction == fraction
    assert snapshot.removed == Removed(removed)


def test_nothing_expected_gives_no_progress() -> None:
    nothing = replace(started().expected, totals=Totals())
    snapshot = folded(replace(started(), expected=nothing), *RUNNING[1:], sampled(1, 0))
    assert snapshot.fraction is None


def test_a_source_that_does_not_count_gives_no_progress() -> None:
    snapshot = folded(*RUNNING, sampled(1), sampled(2))
    assert (snapshot.fraction, snapshot.rate_per_s, snapshot.eta_s) == (None, None, None)


def test_calls_that_did_not_change_stay_known() -> None:
    snapshot = folded(*RUNNING, sampled(1, 0, {"a": 1, "b": 5}), sampled(2, 0, {"a": 3}))
    assert snapshot.calls == {"a": CallCount(3), "b": CallCount(5)}


def test_failures_are_grouped_by_operation_and_errno() -> None:
    job_events = (
        EntryFailed(1.0, PathStr("/t/a"), "remove", errno.EPERM),
        EntryFailed(1.0, PathStr("/t/b"), "remove", errno.EACCES),
        EntryFailed(1.0, PathStr("/t/c"), "remove", errno.EPERM),
    )
    assert folded(*job_events).failures == (
        FailureGroup("remove", errno.EPERM, 2, (PathStr("/t/a"), PathStr("/t/c")), ("", "")),
        FailureGroup("remove", errno.EACCES, 1, (PathStr("/t/b"),), ("",)),
    )


def test_a_group_keeps_a_limited_number_of_examples() -> None:
    paths = [PathStr(f"/t/{number}") for number in range(EXAMPLES_PER_GROUP + 5)]
    (group,) = folded(*(EntryFailed(1.0, path, "remove", 1) for path in paths)).failures
    assert group.number == EXAMPLES_PER_GROUP + 5
    assert group.examples == tuple(paths[:EXAMPLES_PER_GROUP])


def test_failures_without_paths_are_added_to_their_kind() -> None:
    snapshot = folded(
        EntryFailed(1.0, PathStr("/t/a"), "remove", 1), FailuresCounted(2.0, "remove", 1, 40)
    )
    assert snapshot.failures == (FailureGroup("remove", 1, 41, (PathStr("/t/a"),), ("",)),)
    assert snapshot.failed == 41


def test_only_the_last_lines_of_the_tools_are_kept() -> None:
    lines = [str(number) for number in range(TOOL_LINES_KEPT + 3)]
    assert folded(*(ToolSaid(1.0, line) for line in lines)).tool_lines == tuple(lines[3:])


def test_usage_is_paired_with_the_entries_of_its_own_moment() -> None:
    first = folded(*RUNNING, sampled(1, 100, usage=usage(1)))
    repeated = fold(first, sampled(1.25, 150, usage=usage(1)))
    renewed = fold(repeated, sampled(2, 200, usage=usage(2)))
    assert [sample.usage_entries for sample in (first, repeated, renewed)] == [100, 100, 200]


def test_the_largest_process_of_all_steps_is_the_peak() -> None:
    first = folded(*RUNNING, sampled(1, 0, usage=usage(1, 5000)))
    ends = [StepFinished(3.0, number, (0,), 0.1, 0.2, peak) for number, peak in enumerate((9, 7))]
    assert first.peak_memory_bytes == 0
    assert reduce(fold, ends, first).peak_memory_bytes == 9


def test_times_and_statuses_of_steps_add_up() -> None:
    snapshot = folded(
        StepFinished(1.0, 0, (0, 123), 0.25, 0.5, 1), StepFinished(2.0, 1, (-9,), 0.5, 1.0, 1)
    )
    assert (snapshot.finished_user_s, snapshot.finished_system_s) == (0.75, 1.5)
    assert snapshot.step_statuses == ((0, 123), (-9,))


def test_a_second_step_does_not_restart_the_time() -> None:
    snapshot = folded(*RUNNING, sampled(3, 1), StepStarted(4.0, 1, (8,)), sampled(5, 2))
    assert (snapshot.elapsed_s, snapshot.step) == (5.0, 1)


def test_elapsed_time_of_a_finished_job_is_the_measured_one() -> None:
    assert folded(*RUNNING, finished(Outcome.DONE)).elapsed_s == 7.5


def test_time_never_runs_backwards() -> None:
    assert folded(*RUNNING, sampled(3, 1), ToolSaid(2.0, "late")).at_s == 4.0


@pytest.mark.parametrize("outcome", Outcome)
def test_a_finished_job_is_in_the_state_of_its_outcome(outcome: Outcome) -> None:
    snapshot = folded(*RUNNING, Paused(2.0, 2.0, True), finished(outcome))
    assert snapshot.state is not None
    assert snapshot.state.value == outcome.value
    assert not snapshot.state.is_live
    assert (snapshot.paused_at_s, snapshot.eta_s) == (None, None)
    assert snapshot.space == Space(2000, 20)


def test_a_finish_without_space_keeps_the_last_known() -> None:
    assert folded(started(), replace(finished(Outcome.DONE), space=None)).space == SPACE


def test_a_refused_job_says_why() -> None:
    refusal = JobRefused(0.0, "changed", "It changed.", "Look again.")
    snapshot = folded(refusal)
    assert (snapshot.state, snapshot.refused) == (JobState.REFUSED, refusal)


def test_a_cancelled_job_goes_on_until_it_has_finished() -> None:
    paused = (Paused(1.5, 1.5, True),)
    for before in ((), paused):
        snapshot = folded(*RUNNING, *before, CancelRequested(2.0, "asked"))
        assert snapshot.state is JobState.RUNNING
        assert snapshot.cancel == CancelRequested(2.0, "asked")


def test_the_pressure_shown_is_the_last_one() -> None:
    high = replace(sampled(1, 1), io_pressure_percent=80.0)
    assert folded(*RUNNING, high).io_pressure_percent == 80.0
    assert folded(*RUNNING, high, sampled(2, 2)).io_pressure_percent is None


def test_throttled_time_adds_up() -> None:
    throttled = folded(*RUNNING, Throttled(2.0, "disk", 40.0))
    assert (throttled.throttled, throttled.state) == (
        Throttled(2.0, "disk", 40.0),
        JobState.RUNNING,
    )
    rest: tuple[Event, ...] = (
        Unthrottled(3.5),
        Throttled(6.0, "disk", 30.0),
        Unthrottled(7.0),
    )
    end = reduce(fold, rest, throttled)
    assert end.throttled is None
    assert end.held_s == pytest.approx(2.5)


def test_a_cancel_ends_a_pause_and_a_throttle() -> None:
    end = folded(
        *RUNNING,
        Throttled(1.5, "disk", 40.0),
        Paused(2.0, 2.0, True),
        CancelRequested(5.0, "asked by uid 0"),
        finished(Outcome.CANCELLED),
    )
    assert end.paused_s == pytest.approx(3.0)
    assert end.held_s == pytest.approx(3.5)
    assert end.paused_at_s is None
    assert end.throttled is None


def test_a_pause_that_the_end_of_the_tools_ends_is_not_longer_than_they_were() -> None:
    end = folded(*RUNNING, Paused(2.0, 2.0, True), finished(Outcome.PARTIAL))
    assert end.paused_s == pytest.approx(7.0)
    assert end.paused_s <= end.elapsed_s


def test_a_step_without_an_end_was_cut_off() -> None:
    step_end = StepFinished(3.0, 0, (0,), 0.0, 0.0, 0)
    assert not folded(started()).is_cut_off
    assert folded(*RUNNING).is_cut_off
    assert not folded(*RUNNING, step_end).is_cut_off
    assert folded(*RUNNING, step_end, StepStarted(4.0, 1, (8,))).is_cut_off


def test_the_first_rate_is_since_the_first_step() -> None:
    snapshot = folded(*RUNNING, sampled(2, 100, {"unlinkat": 100}))
    assert (snapshot.rate_per_s, snapshot.call_rates) == (50.0, {"unlinkat": 50.0})


def test_rates_are_over_the_window_only() -> None:
    slow = [sampled(second, second) for second in (1, 2, 3)]
    fast = [sampled(3 + second, 3 + 300 * second, {"x": 300 * second}) for second in range(1, 7)]
    snapshot = folded(*RUNNING, *slow, *fast)
    assert snapshot.rate_per_s == 300.0
    assert snapshot.call_rates == {"x": 300.0}


def test_marks_are_not_kept_longer_than_rates_need_them() -> None:
    snapshot = folded(*RUNNING, *(sampled(number / 4, number) for number in range(1, 400)))
    assert len(snapshot.marks) <= RATE_WINDOW_S * 4 + 2


def bursts(limit: int, seconds: int) -> list[Event]:
    """Return samples of a tool that removes the entries of 5 s at once, and then waits 5 s."""
    return [
        sampled(second / 4, 5 * limit * (1 + second // 20), {"unlinkat": 5 * limit})
        for second in range(1, 4 * seconds)
    ]


def test_the_rate_under_a_limit_is_a_mean_over_bursts_and_waits() -> None:
    slow = replace(started(), pace=Pace(rate_per_s=50))
    for seconds in (29, 60, 63):
        snapshot = folded(slow, RUNNING[1], *bursts(50, seconds))
        assert snapshot.rate_per_s == pytest.approx(50, rel=0.2)
    # The first burst is ahead of the limit, and nothing hides that
    assert folded(slow, RUNNING[1], *bursts(50, 1)).rate_per_s == pytest.approx(250 / 0.75)


def test_the_rate_of_tools_that_gentle_mode_has_stopped_is_none() -> None:
    slow = replace(started(), pace=Pace(rate_per_s=50, gentle=True))
    running = [sampled(second, 50 * second) for second in range(1, 11)]
    held = [sampled(10 + second, 500) for second in range(1, 6)]
    stopped = Throttled(10.5, "processors", 40.0)
    assert folded(slow, RUNNING[1], *running, stopped, *held).rate_per_s == 0.0
    assert folded(slow, RUNNING[1], *running, *held).rate_per_s == pytest.approx(500 / 15)


def test_a_limit_that_is_not_kept_shows() -> None:
    slow = replace(started(), pace=Pace(rate_per_s=50))
    samples = [sampled(second, 500 * second) for second in range(1, 40)]
    assert folded(slow, RUNNING[1], *samples).rate_per_s == 500.0


def test_a_rate_is_no_mean_of_the_times_with_and_without_a_limit() -> None:
    fast = [sampled(second, 1000 * second) for second in (1, 2, 3)]
    slow = [sampled(3 + second, 3000 + 10 * second) for second in (1, 2)]
    limited = PaceChanged(4.0, Pace(rate_per_s=10))
    assert folded(*RUNNING, *fast, limited, *slow).rate_per_s == 10.0
    free = [sampled(5 + second, 3020 + 1000 * second) for second in (1, 2)]
    lifted = PaceChanged(6.0, Pace())
    assert folded(*RUNNING, *fast, limited, *slow, lifted, *free).rate_per_s == 1000.0


def test_the_peak_rate_stays() -> None:
    snapshot = folded(*RUNNING, sampled(1, 500), *(sampled(2 + n, 500 + n) for n in range(9)))
    assert snapshot.peak_rate_per_s == 500.0
    assert snapshot.rate_per_s == 1.0


def test_samples_at_the_same_moment_keep_the_rate() -> None:
    once = folded(*RUNNING, sampled(2, 100))
    assert fold(once, sampled(2, 100)).rate_per_s == once.rate_per_s == 50.0


def test_the_time_left_lies_between_the_recent_and_the_mean_rate() -> None:
    slow = [sampled(second, 10 * second) for second in range(1, 11)]
    fast = [sampled(10 + second, 100 + 100 * second) for second in (1, 2, 3)]
    snapshot = folded(*RUNNING, *slow, *fast)
    assert snapshot.eta_s == pytest.approx(
        (6.0 / RATE_SPREAD**0.6, 600 / (400 / 13) * RATE_SPREAD**0.6)
    )


def test_without_a_rate_the_prediction_counts_until_it_is_past() -> None:
    assert folded(*RUNNING, sampled(1, 0)).eta_s == (1.0, 3.0)
    assert folded(*RUNNING, sampled(2.5, 0)).eta_s == (0.5, 3.0)
    assert folded(*RUNNING, sampled(3, 0)).eta_s is None


def test_a_job_with_a_limit_is_expected_to_keep_to_it_although_it_begins_faster() -> None:
    slow = replace(started(), pace=Pace(rate_per_s=50))
    snapshot = folded(slow, RUNNING[1], sampled(0, 0), sampled(0.5, 50))
    assert snapshot.eta_s == pytest.approx((19, 19))


def test_a_prediction_with_a_limit_says_nothing_once_the_limit_is_lifted() -> None:
    slow = replace(started(), pace=Pace(rate_per_s=50))
    freed = PaceChanged(1.2, Pace())
    assert folded(slow, RUNNING[1], freed, sampled(1, 0)).eta_s is None


def test_a_job_that_is_being_cancelled_has_no_time_left() -> None:
    cancelling = folded(*RUNNING, sampled(1, 100), CancelRequested(2.1, "cancelled by UID 0"))
    assert cancelling.eta_s is None
    assert fold(cancelling, sampled(2, 101)).eta_s is None


def test_no_time_left_is_claimed_with_an_incomplete_survey() -> None:
    job_events = (started(complete=False), StepStarted(1.0, 0, ()), sampled(1, 10))
    assert folded(*job_events).eta_s is None


def test_nothing_is_left_when_more_went_than_was_expected() -> None:
    assert folded(*RUNNING, sampled(1, 2000)).eta_s == (0.0, 0.0)


def test_a_paused_job_has_no_rate() -> None:
    snapshot = folded(*RUNNING, sampled(1, 100, {"x": 5}), Paused(2.5, 2.5, True))
    assert (snapshot.state, snapshot.rate_per_s, snapshot.eta_s) == (JobState.PAUSED, 0.0, None)
    assert snapshot.call_rates == {}


def test_samples_during_a_pause_do_not_change_the_rate() -> None:
    snapshot = folded(
        *RUNNING, sampled(1, 100), Paused(2.0, 2.0, True), sampled(2, 101), sampled(3, 101)
    )
    assert (snapshot.rate_per_s, snapshot.removed) == (0.0, Removed(101))


def test_pauses_do_not_count_as_work() -> None:
    before = (*RUNNING, sampled(1, 100), Paused(2.0, 2.0, True), Resumed(62.0))
    snapshot = folded(*before, sampled(62, 200))
    assert snapshot.paused_s == 60.0
    assert folded(*before, Paused(63.0, 63.0, True), Resumed(65.0)).paused_s == 62.0
    assert snapshot.rate_per_s == 100.0
    from_rate = 8.0 / RATE_SPREAD**0.8, 8.0 * RATE_SPREAD**0.8
    expected = 0.8 * from_rate[0] + 0.2 * 0.8, 0.8 * from_rate[1] + 0.2 * 2.4
    assert snapshot.eta_s == pytest.approx(expected)


def test_resuming_what_was_not_paused_changes_no_time() -> None:
    assert folded(*RUNNING, Resumed(5.0)).paused_s == 0.0


def test_rates_are_numbers_even_between_very_close_samples() -> None:
    snapshot = folded(*RUNNING, sampled(1e-9, 5), sampled(2e-9, 9))
    assert snapshot.rate_per_s is not None
    assert math.isfinite(snapshot.rate_per_s)
