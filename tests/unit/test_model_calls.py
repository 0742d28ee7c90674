"""Counts of system calls, and the remarks next to them."""

from tui_fs.model.calls import (
    OTHER_CALLS_LABEL,
    CallCount,
    CallLine,
    about_text,
    added_up,
    call_lines,
)


def test_counts_of_several_are_added_up_by_name() -> None:
    first = {"unlinkat": CallCount(3, 1, 0.5), "close": CallCount(1, 0, 0.1)}
    second = {"unlinkat": CallCount(4, 0, 0.25)}
    assert added_up([first, second]) == {
        "unlinkat": CallCount(7, 1, 0.75),
        "close": CallCount(1, 0, 0.1),
    }


def test_calls_that_decide_nothing_are_one_line() -> None:
    counted = {
        "unlinkat": CallCount(70, 2),
        "openat": CallCount(9),
        "close": CallCount(12),
        "mmap": CallCount(24, 1),
    }
    assert call_lines(counted, {"unlinkat": 72}, 40) == [
        CallLine("unlinkat", CallCount(70, 2), 72, "72"),
        CallLine("openat", CallCount(9), 0, ""),
        CallLine(OTHER_CALLS_LABEL, CallCount(36, 1), 0, "about 40"),
    ]


def test_nothing_is_said_of_other_calls_where_nothing_is_known_of_them() -> None:
    assert call_lines({"openat": CallCount(1)}, {}, 40) == [CallLine("openat", CallCount(1), 0, "")]
    (line,) = call_lines({"close": CallCount(1, 0, 0.5)}, {}, None)
    assert line == CallLine(OTHER_CALLS_LABEL, CallCount(1, 0, 0.5), 0, "")


def test_a_magnitude_has_two_digits_that_count() -> None:
    assert [about_text(number) for number in (7, 48, 143, 12_345)] == [
        "about 7",
        "about 48",
        "about 140",
        "about 12,000",
    ]
