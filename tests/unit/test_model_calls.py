"""Counts of system calls, and the remarks next to them."""

from tui_fs.model.calls import (
    CALL_GUIDES,
    HARMLESS_ERRORS,
    OTHER_CALLS_GUIDE,
    OTHER_CALLS_LABEL,
    CallCount,
    CallLine,
    Failures,
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
    assert call_lines(counted, {"unlinkat": 72}, 40, Failures({"unlink": 2})) == [
        CallLine("unlinkat", CallCount(70, 2), 72, "72", "2 failed", has_failed=True),
        CallLine("openat", CallCount(9), 0, ""),
        CallLine(OTHER_CALLS_LABEL, CallCount(36, 1), 0, "about 40", "normal: searches"),
    ]


def test_only_errors_in_which_an_entry_failed_are_failures() -> None:
    unlinkat, openat = "unlinkat", "openat"
    assert Failures().note_on(unlinkat, 0) == ("", False)
    assert Failures().note_on(openat, 12) == ("normal: searches", False)
    assert Failures().note_on(OTHER_CALLS_LABEL, 3_005) == ("normal: searches", False)
    assert Failures(confined_targets=1).note_on("rmdir", 1) == ("normal: confined", False)
    left = Failures(confined_targets=1, is_target_left=True)
    assert left.note_on("rmdir", 1) == ("not empty", False)
    assert Failures({"unlink": 1}).note_on(unlinkat, 2) == ("1 failed", True)
    assert Failures({"open": 1}).note_on(openat, 13) == ("1 failed", True)
    # A running tool has not yet reported what the kernel has counted
    assert Failures({"unlink": 2}, is_final=False).note_on(unlinkat, 3) == ("failed", True)
    # A confined tool may not remove the target itself
    assert Failures(confined_targets=1).note_on(unlinkat, 1) == ("normal: confined", False)
    assert Failures(confined_targets=1).note_on(unlinkat, 2) == ("normal: gone", False)
    # Where something failed elsewhere, nothing is claimed of the others
    assert Failures({"open": 1}).note_on(unlinkat, 2) == ("see the errors", False)
    assert Failures(has_messages=True).note_on(unlinkat, 2) == ("see the errors", False)


def test_the_calls_of_a_table_together_fail_as_often_as_the_job() -> None:
    # A directory with 12 files that failed is not empty; a job does not count that as a failure
    counted = {"unlinkat": CallCount(300, 12), "rmdir": CallCount(1, 1)}
    inside = call_lines(counted, {}, None, Failures({"remove": 12}))
    assert [(line.note, line.has_failed) for line in inside] == [
        ("12 failed", True),
        ("not empty", False),
    ]
    # The unlinkat of a confined tool is refused; the rmdir after it has failed for another reason
    refused = {"unlinkat": CallCount(300, 1), "rmdir": CallCount(1, 1)}
    target = call_lines(refused, {}, None, Failures({"rmdir": 1}, confined_targets=1))
    assert [(line.note, line.has_failed) for line in target] == [
        ("normal: confined", False),
        ("1 failed", True),
    ]
    # rmtree names the function, whose system call is unlinkat
    by_unlinkat = call_lines({"unlinkat": CallCount(9, 2)}, {}, None, Failures({"rmdir": 2}))
    assert [(line.note, line.has_failed) for line in by_unlinkat] == [("2 failed", True)]


def test_every_harmless_error_is_explained() -> None:
    words = {guide.harmless for guide in (*CALL_GUIDES.values(), OTHER_CALLS_GUIDE)}
    assert words | {"confined", "not empty"} == set(HARMLESS_ERRORS)


def test_nothing_is_said_of_other_calls_where_nothing_is_known_of_them() -> None:
    opened = {"openat": CallCount(1)}
    assert call_lines(opened, {}, 40, Failures()) == [CallLine("openat", CallCount(1), 0, "")]
    (line,) = call_lines({"close": CallCount(1, 0, 0.5)}, {}, None, Failures())
    assert line == CallLine(OTHER_CALLS_LABEL, CallCount(1, 0, 0.5), 0, "")


def test_a_magnitude_has_two_digits_that_count() -> None:
    assert [about_text(number) for number in (7, 48, 143, 12_345)] == [
        "about 7",
        "about 48",
        "about 140",
        "about 12,000",
    ]
