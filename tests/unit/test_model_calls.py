"""Counts of system calls, and what stands beside them."""

from tui_fs.model.calls import CallCount, added_up, countable, predicted_text
from tui_fs.model.strategy import StrategyName


def test_counts_of_several_are_added_up_by_name() -> None:
    one = {"unlinkat": CallCount(3, 1, 0.5), "close": CallCount(1, 0, 0.1)}
    other = {"unlinkat": CallCount(4, 0, 0.25)}
    assert added_up([one, other]) == {
        "unlinkat": CallCount(7, 1, 0.75),
        "close": CallCount(1, 0, 0.1),
    }


def test_what_nobody_counts_does_not_stand_beside_counts() -> None:
    predicted = {"unlinkat": 70, "openat": 9, "mmap": 24, "close": 3}
    uncounted = {"mmap": 24, "openat": 4, "brk": 3, "close": 5}
    assert countable(predicted, uncounted) == {"unlinkat": 70, "openat": 5}
    assert countable(predicted, {}) == predicted


def test_a_number_that_the_tree_alone_does_not_decide_is_called_about() -> None:
    assert predicted_text(StrategyName.RSYNC, "poll", 7_163) == "~7,163"
    assert predicted_text(StrategyName.RSYNC, "brk", 101) == "101"
    assert predicted_text(StrategyName.RM, "poll", 4) == "4"
    assert predicted_text(StrategyName.PARALLEL, "brk", 3) == "3"
    assert predicted_text(StrategyName.RSYNC, "unlink", 120_000) == "120,000"
