"""A forecast from a short look: its range widens that of the time."""

from pathlib import Path

import pytest

from tests.ui.recorded import MAIL_GLANCE
from tui_fs.job.planning import forecast, forecast_at_a_glance
from tui_fs.model.calls import TraceSource
from tui_fs.model.strategy import Options


def test_the_range_of_the_entries_widens_that_of_the_time(tmp_path: Path) -> None:
    # Given a look that saw 1.18 to 1.23 million entries
    path, options = str(tmp_path), Options()
    counted = forecast([path], MAIL_GLANCE.as_survey(path), options, TraceSource.OFF)
    # When forecast by it / Then the expected stays, and low and high lie as far off as it says
    seen = forecast_at_a_glance([path], MAIL_GLANCE, options, TraceSource.OFF)
    known = MAIL_GLANCE.entries
    for one, plain in zip(seen.estimates, counted.estimates, strict=True):
        assert one.seconds == plain.seconds
        assert one.seconds_low == pytest.approx(plain.seconds_low * known.low / known.expected)
        assert one.seconds_high == pytest.approx(plain.seconds_high * known.high / known.expected)
        assert MAIL_GLANCE.rests_on.rstrip(".") in one.rests_on


def test_what_is_counted_meanwhile_is_the_least() -> None:
    # Given a look / When more is counted than it thought possible / Then nothing is less
    narrowed = MAIL_GLANCE.narrowed(1_210_000).entries
    assert (narrowed.low, narrowed.expected, narrowed.high) == (1_210_000, 1_210_000, 1_230_000)
    beyond = MAIL_GLANCE.narrowed(2_000_000).entries
    assert (beyond.low, beyond.expected, beyond.high) == (2_000_000,) * 3
