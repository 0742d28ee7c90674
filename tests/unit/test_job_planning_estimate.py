"""The expected space and the ranges of a prediction, by a survey or by a quick estimate."""

import os
from pathlib import Path

import pytest

from tests.ui.recorded import MAIL_ESTIMATE
from tests.unit.survey_trees import surveyed
from tui_fs.job.planning import expected_of, forecast, forecast_by_estimate
from tui_fs.model.calls import TraceSource
from tui_fs.model.strategy import Filters, Options
from tui_fs.model.survey import Totals


def test_the_range_of_the_entries_widens_that_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_fs.job.planning.slowdown_by_load", lambda: 1.5)  # the same for both
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
    counted = Totals(1_200_000, 10_000, allocated_bytes=MAIL_ESTIMATE.allocated_bytes.low + 4_096)
    estimate = MAIL_ESTIMATE.with_counted(counted)
    assert estimate.allocated_bytes.low == counted.allocated_bytes
    narrowed = estimate.entries
    assert (narrowed.low, narrowed.expected, narrowed.high) == (1_210_000, 1_210_000, 1_230_000)
    beyond = MAIL_ESTIMATE.with_counted(Totals(2_000_000)).entries
    assert (beyond.low, beyond.expected, beyond.high) == (2_000_000,) * 3


@pytest.mark.parametrize("is_linked", [False, True])
def test_matching_files_free_nothing_for_certain_only_if_they_may_have_other_names(
    tmp_path: Path, is_linked: bool
) -> None:
    for name in ("a.log", "b.log", "other"):
        (tmp_path / name).write_bytes(bytes(8_192))
    if is_linked:
        os.link(tmp_path / "a.log", tmp_path / "keeps the blocks")
    filters = Filters(name_glob="*.log")
    survey = surveyed(tmp_path, filters=filters)
    expected = expected_of(survey, Options(filters=filters), "ext4")
    least, most = expected.freed_bytes_min, expected.freed_bytes_max
    assert most == sum(path.stat().st_blocks * 512 for path in tmp_path.glob("*.log"))
    assert least == (0 if is_linked else most)
