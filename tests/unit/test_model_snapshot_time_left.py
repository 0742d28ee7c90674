"""The fold: how fast a job goes, what its pauses are to that, and the time left."""

import math
from dataclasses import replace

import pytest

from tests.unit.test_model_snapshot import RUNNING, folded, sampled, started
from tui_fs.model.calls import Removed
from tui_fs.model.events import (
    Paused,
    Resumed,
    StepStarted,
)
from tui_fs.model.outcome import JobState
from tui_fs.model.snapshot import (
    RATE_WINDOW_S,
    fold,
)
from tui_fs.model.strategy import Pace


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
    assert snapshot.eta_s == pytest.approx((6.0, 600 / (400 / 13)))


def test_without_a_rate_the_prediction_counts_until_it_is_past() -> None:
    assert folded(*RUNNING, sampled(1, 0)).eta_s == (1.0, 3.0)
    assert folded(*RUNNING, sampled(2.5, 0)).eta_s == (0.5, 3.0)
    assert folded(*RUNNING, sampled(3, 0)).eta_s is None


def test_at_first_the_prediction_counts_more_than_the_rate() -> None:
    snapshot = folded(*RUNNING, sampled(0, 0), sampled(0.5, 50))
    assert snapshot.eta_s == pytest.approx((0.2 * 9.5 + 0.8 * 0.95, 0.2 * 9.5 + 0.8 * 2.85))


def test_a_job_with_a_limit_is_not_expected_to_keep_to_the_prediction() -> None:
    slow = replace(started(), pace=Pace(rate_per_s=50))
    snapshot = folded(slow, RUNNING[1], sampled(0, 0), sampled(0.5, 50))
    assert snapshot.eta_s == pytest.approx((9.5, 9.5))


def test_no_time_left_is_claimed_with_an_incomplete_survey() -> None:
    them = (started(complete=False), StepStarted(1.0, 0, ()), sampled(1, 10))
    assert folded(*them).eta_s is None


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
    assert snapshot.rate_per_s == 100.0
    assert snapshot.eta_s == pytest.approx((0.8 * 8.0 + 0.2 * 0.8, 0.8 * 8.0 + 0.2 * 2.4))


def test_two_pauses_add_up() -> None:
    pauses = (Paused(2.0, 2.0, True), Resumed(5.0), Paused(6.0, 6.0, True), Resumed(8.0))
    snapshot = folded(*RUNNING, *pauses)
    assert (snapshot.paused_s, snapshot.state) == (5.0, JobState.RUNNING)


def test_resuming_what_was_not_paused_changes_no_time() -> None:
    assert folded(*RUNNING, Resumed(5.0)).paused_s == 0.0


def test_rates_are_numbers_even_between_very_close_samples() -> None:
    snapshot = folded(*RUNNING, sampled(1e-9, 5), sampled(2e-9, 9))
    assert snapshot.rate_per_s is not None
    assert math.isfinite(snapshot.rate_per_s)
