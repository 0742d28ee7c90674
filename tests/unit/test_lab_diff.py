"""Two runs of an experiment side by side."""

import pytest

from tests.unit.lab_results import plan, results_of
from tui_fs.lab.diff import compared, comparison_exhibits
from tui_fs.lab.exhibits import Table
from tui_fs.lab.results import Measure
from tui_fs.model.calls import CallCount
from tui_fs.model.errors import BadInput


def test_two_runs_are_side_by_side_with_what_is_more_than_noise() -> None:
    plans = [plan("rm"), plan("rsync"), plan("find")]
    first = results_of(
        plans,
        {"rm": [1.0, 1.2], "rsync": [1.0, 2.0]},
        calls={"rm": {"unlinkat": CallCount(10), "mmap": CallCount(8)}},
    )
    second = results_of(
        plans,
        {"rm": [2.1, 2.3], "rsync": [1.5, 1.6]},
        calls={"rm": {"unlinkat": CallCount(10), "mmap": CallCount(9), "brk": CallCount(3)}},
    )
    rm, rsync, find = compared(first, second)
    seconds, _, calls = comparison_exhibits(first, second, ("one", "two"))
    assert rm.medians[Measure.SECONDS].ratio == pytest.approx(2.0)
    assert rm.medians[Measure.SECONDS].are_apart
    assert not rsync.medians[Measure.SECONDS].are_apart
    assert rm.calls == {"brk": (0, 3), "mmap": (8, 9)}
    assert find.medians == {}
    assert isinstance(seconds, Table) and isinstance(calls, Table)
    assert seconds.columns == ("step", "first", "second", "second/first", "ranges")
    assert seconds.rows[0].cells == ("rm", "1.10 s", "2.20 s", "2.00", "apart")
    assert seconds.rows[2].note == "not measured in both runs"
    assert [row.cells for row in calls.rows] == [("rm: brk", "0", "3"), ("rm: mmap", "8", "9")]


def test_a_comparison_says_in_what_the_runs_differ() -> None:
    first = results_of([plan("rm")], {"rm": [1.0]}, scale="small")
    second = results_of([plan("rm")], {"rm": [1.0]})
    table, _ = comparison_exhibits(first, second, ("one", "two"))
    assert isinstance(table, Table)
    assert table.remark == "first: one; second: two; scale: small / published"


def test_runs_of_different_experiments_are_not_compared() -> None:
    first, second = results_of([], experiment="a"), results_of([], experiment="b")
    with pytest.raises(BadInput, match="same experiment"):
        compared(first, second)


def test_a_step_that_took_no_time_has_no_ratio() -> None:
    results = results_of([plan("rm")], {"rm": [0.0]})
    (step,) = compared(results, results)
    assert step.medians[Measure.SECONDS].ratio is None
