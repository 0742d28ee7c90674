"""The report in words, and its figure of predicted and measured."""

from msgspec.structs import replace

from tests.unit.test_model_snapshot import RUNNING, finished, folded, sampled
from tui_fs.cli.follow import report_as_text
from tui_fs.job.report import Report, report_of
from tui_fs.job.report_text import Pair, calls_title, figures, pairs
from tui_fs.model.calls import CallCount
from tui_fs.model.events import JobStarted
from tui_fs.model.outcome import JobState, Outcome
from tui_fs.model.space import Space
from tui_fs.widgets.figure_layout import layout_predicted

CALLS = {"unlinkat": 990, "getdents64": 20, "openat": 3, "read": 60}


BEGUN = replace(
    RUNNING[0],
    predicted_calls={"unlinkat": 1000, "getdents64": 20, "openat": 3},
    predicted_other_calls=50,
    predicted_measured_at=1e9,
)
"""Predicted to take 1 to 3 s."""


def report(
    outcome: Outcome = Outcome.DONE,
    calls: dict[str, int] | None = None,
    begun: JobStarted = BEGUN,
) -> Report:
    """Return the report of a job that took 7.5 s."""
    events = begun, RUNNING[1], sampled(7, 990, CALLS if calls is None else calls)
    return report_of(folded(*events, finished(outcome)), JobState(outcome.value), ())


def shown_figures(shown: Report) -> dict[str, str]:
    """Return the figures of a report by their labels."""
    assert shown.started is not None
    return dict(figures(shown, shown.started))


def test_the_comment_on_the_time_follows_the_figures() -> None:
    text = report_as_text(report()).splitlines()
    comment = "The deletion took longer than predicted (1.0 s to 3.0 s): no cause is recorded."
    assert text.index(comment) == 1 + next(
        number for number, line in enumerate(text) if line.startswith("confined by")
    )


def test_pairs_are_time_the_larger_groups_of_calls_and_freed_bytes() -> None:
    assert pairs(report()) == [
        Pair("time", 1.0, 3.0, "1.0 s to 3.0 s", 7.5, "7.5 s"),
        Pair("calls: remove", 1000, 1000, "1,000", 990, "990"),
        Pair("calls: directories", 23, 23, "23", 23, "23"),
        Pair("calls: start-up", 50, 50, "about 50", 60, "60"),
        Pair("freed", 0, 0, "0 B", 1000, "1000 B"),
    ]
    few = pairs(report(calls={**CALLS, "getdents64": 2, "openat": 0, "read": 10_000}))
    assert [pair.label for pair in few] == ["time", "calls: remove", "calls: start-up", "freed"]


def test_calls_that_were_not_predicted_are_not_compared_with_0() -> None:
    begun = replace(BEGUN, predicted_other_calls=None, predicted_calls={"unlinkat": 1_000})
    filtered = report(begun=begun)
    assert [pair.label for pair in pairs(filtered)] == ["time", "calls: remove", "freed"]


def test_directories_are_left_out_for_a_single_file() -> None:
    assert "directories" in shown_figures(report())
    totals = replace(BEGUN.expected.totals, directories=0)
    of_file = replace(BEGUN, expected=replace(BEGUN.expected, totals=totals))
    assert "directories" not in shown_figures(report(begun=of_file))
    assert "directories" in shown_figures(report(begun=replace(of_file, filters="*.log")))


def test_times_of_removals_are_shown_where_they_are_known() -> None:
    shown = report()
    assert "unlinkat" not in shown_figures(shown)
    timed = CallCount(990, quantiles_s=(4.1e-6, 38e-6), timed_calls=62)
    shown = replace(shown, syscalls={**shown.syscalls, "unlinkat": timed})
    assert shown_figures(shown)["unlinkat"] == "p50 4.1 µs, p99 38 µs (sampled: 1 in 16)"


def test_calls_that_nothing_counted_are_not_compared() -> None:
    assert [pair.label for pair in pairs(report(calls={}))] == ["time", "freed"]


def test_a_job_that_was_stopped_has_no_pairs() -> None:
    assert pairs(report(Outcome.CANCELLED)) == []
    assert pairs(report_of(folded(), JobState.DIED, ())) == []


PAIRS = [
    Pair("time", 2.0, 6.0, "2.0 s to 6.0 s", 8.0, "8.0 s"),
    Pair("freed", 4, 4, "4 B", -1, "-1 B"),
    Pair("none", 0, 0, "0", 0, "0"),
]


def drawn(width: int) -> list[str]:
    """Return the lines of the pairs."""
    lines = ["".join(text for _, text in line) for line in layout_predicted(PAIRS, width)]
    assert all(len(line.rstrip()) <= width for line in lines)
    return [line.rstrip() for line in lines]


def test_each_pair_has_its_own_scale() -> None:
    assert drawn(5 + 2 + 16 + 2 + 24) == [
        "time   ▒▒▒▒░░░░░░░░      predicted 2.0 s to 6.0 s",
        "       ████████████████  measured 8.0 s",
        "freed  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒  predicted 4 B",
        "                         measured -1 B",
        "none                     predicted 0",
        "                         measured 0",
    ]


def test_bars_that_would_show_no_length_are_left_out() -> None:
    assert drawn(44) == []
    assert drawn(45) != []
    assert layout_predicted([], 80) == []


def test_space_that_only_root_can_use_is_named() -> None:
    full, freed = Space(0, 10), Space(0, 1000, 3 << 30)
    shown = replace(report(begun=replace(BEGUN, space=full)), space_after=freed, freed_bytes=0)
    assert "0 B more free, 3.0 GiB more only for root · expected" in report_as_text(shown)
    assert "only for root" not in report_as_text(replace(shown, space_after=full))


def test_space_that_others_used_up_is_not_a_negative_size() -> None:
    assert (
        pairs(replace(report(), freed_bytes=-(3 << 20)))[-1].measured_shown == "3.0 MiB less free"
    )
    assert pairs(replace(report(), freed_bytes=3 << 20))[-1].measured_shown == "3.0 MiB"


def test_expected_space_cannot_be_read_as_less_beside_less_free() -> None:
    lost = replace(report(), freed_bytes=-(3 << 20))
    assert "3.0 MiB less free · expected 0 B more · " in report_as_text(lost)


def test_expected_space_includes_metadata() -> None:
    expected = replace(BEGUN.expected, freed_bytes_max=1 << 20, metadata_bytes_max=2 << 20)
    begun = replace(BEGUN, expected=expected)
    assert "expected 0 B to 3.0 MiB · " in report_as_text(report(begun=begun))
    assert pairs(report(begun=begun))[-1].high == 3 << 20


def test_the_prediction_of_a_job_that_did_not_delete_all_is_of_everything() -> None:
    for outcome in Outcome:
        is_early = outcome is not Outcome.DONE
        shown = shown_figures(report(outcome))
        assert shown["time"].endswith(" for all") is is_early
        assert (" for all · " in shown["space"]) is is_early
        assert shown["time"].index("predicted") > shown["time"].find(" /s")


def test_counts_without_the_last_calls_are_not_called_exact() -> None:
    begun = replace(BEGUN, source_note="the engine's own counters, exact, with times")
    whole = replace(report(begun=begun), syscalls_are_whole=True)
    assert calls_title(whole, begun).endswith("· the engine's own counters, exact, with times")
    partial = replace(whole, syscalls_are_whole=False)
    assert calls_title(partial, begun).endswith("· the engine's own counters, with times")
    assert "exact" not in report_as_text(partial)
