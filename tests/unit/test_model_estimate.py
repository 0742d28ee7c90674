"""The common axis of predicted times, and the bars on it."""

import pytest
from msgspec.structs import replace

from tests.unit.test_estimate_recommendation import estimate
from tui_fs.cli.estimate import estimates_as_text, range_bars
from tui_fs.job.planning import Forecast
from tui_fs.model.estimate import Estimate, TimeAxis
from tui_fs.model.plan import Expected
from tui_fs.model.strategy import StrategyName
from tui_fs.model.survey import Totals
from tui_fs.widgets.cell_drawing import range_bar

RM = StrategyName("rm")


def timed(name: str, low: float, expected: float, high: float) -> Estimate:
    """Return an estimate with this time."""
    plain = estimate(StrategyName(name), expected)
    return replace(plain, seconds_low=low, seconds=expected, seconds_high=high)


def broken(name: str) -> Estimate:
    """Return the estimate of a strategy whose tool is missing."""
    return replace(timed(name, 0, 0, 9e9), feasible=False, reasons=("rsync is not installed",))


def test_an_axis_of_similar_times_begins_at_zero() -> None:
    axis = TimeAxis.of([timed("rm", 2, 4, 8), timed("find", 5, 10, 20), broken("rsync")])
    assert axis == TimeAxis(0.0, 20.0, is_log=False)
    assert axis.span(timed("rm", 2, 4, 8)) == (0.1, 0.2, 0.4)
    assert axis.span(broken("rsync")) is None
    assert axis.title(20) == "0 s    time     20 s"


def test_an_axis_of_very_different_times_is_logarithmic_and_says_so() -> None:
    axis = TimeAxis.of([timed("rm", 1, 10, 100), timed("find", 10, 100, 1000)])
    assert axis == TimeAxis(1.0, 1000.0, is_log=True)
    assert axis.span(timed("rm", 1, 10, 100)) == pytest.approx((0, 1 / 3, 2 / 3))
    assert axis.title(30) == "1.0 s  time, log scale  17 min"
    assert axis.title(20) == "1.0 s   log   17 min"


@pytest.mark.parametrize("width", [27, 40])
def test_the_longest_times_fit_above_the_narrowest_axis(width: int) -> None:
    axis = TimeAxis(3_600 * 10.7, 3_600 * 47.98, is_log=False)
    assert "log" in replace(axis, is_log=True).title(width)
    assert len(replace(axis, is_log=True).title(width)) == width


def test_times_too_short_to_matter_make_no_logarithmic_axis() -> None:
    assert not TimeAxis.of([timed("rm", 0.001, 0.01, 0.04), timed("find", 0.1, 0.2, 0.9)]).is_log
    assert TimeAxis.of([timed("rm", 0, 0, 0)]).span(timed("rm", 0, 0, 0)) == (0, 0, 0)
    assert TimeAxis.of([broken("rsync")]).title(12) == "0 s time 1.0 s"


def test_a_range_has_a_mark() -> None:
    assert range_bar(0.1, 0.3, 0.6, 10) == " ░░█░░░   "
    assert range_bar(0.1, 0.3, 0.6, 10, strong=True) == " ▒▒█▒▒▒   "
    assert range_bar(1.0, 1.0, 1.0, 10).strip() == "█"


def test_the_command_line_draws_the_ranges_below_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "vt100")
    estimates = (timed("rm", 2, 4, 8), timed("find", 5, 10, 20), broken("rsync"))
    predicted = Forecast(estimates, RM, (), Expected(Totals(), 0, 0, True))
    bars = range_bars(predicted, 5 + 3 + 40)
    assert bars == [
        "       0 s              time               20 s",
        "rm         ::::#::::::::",
        "find             ----------#-------------------",
        "rsync  cannot run: rsync is not installed",
        "",
    ]
    assert "\n".join(bars) in estimates_as_text(predicted, "", bars)
    assert range_bars(predicted, 30) == []
