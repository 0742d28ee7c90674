"""A prediction from a quick estimate: its range widens that of the time."""

from pathlib import Path

import pytest

from tests.ui.recorded import MAIL_ESTIMATE
from tui_fs.job.planning import forecast, forecast_by_estimate
from tui_fs.model.calls import TraceSource
from tui_fs.model.strategy import Options


def test_the_range_of_the_entries_widens_that_of_the_time(tmp_path: Path) -> None:
    path, options = str(tmp_path), Options()
    counted = forecast([path], MAIL_ESTIMATE.survey, options, TraceSource.OFF)
    estimated = forecast_by_estimate([path], MAIL_ESTIMATE, options, TraceSource.OFF)
    entries = MAIL_ESTIMATE.entries
    for strategy, plain in zip(estimated.estimates, counted.estimates, strict=True):
        assert strategy.seconds == plain.seconds
        low, high = entries.low / entries.expected, entries.high / entries.expected
        assert strategy.seconds_low == pytest.approx(plain.seconds_low * low)
        assert strategy.seconds_high == pytest.approx(plain.seconds_high * high)
        assert MAIL_ESTIMATE.basis.rstrip(".") in strategy.rests_on


def test_what_is_counted_meanwhile_is_the_least() -> None:
    narrowed = MAIL_ESTIMATE.with_counted(1_210_000).entries
    assert (narrowed.low, narrowed.expected, narrowed.high) == (1_210_000, 1_210_000, 1_230_000)
    beyond = MAIL_ESTIMATE.with_counted(2_000_000).entries
    assert (beyond.low, beyond.expected, beyond.high) == (2_000_000,) * 3
