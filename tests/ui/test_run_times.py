"""Where the time of a job's tools went, and what that means."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.ui.recorded import FAILING, RUNNING, STARTED, Host, record, sampled, wait_for
from tests.ui.test_screens import RUNS, a_quiet_machine, alive
from tui_fs.model.calls import CALL_GUIDES, OTHER_CALLS_LABEL, CallCount, Removed
from tui_fs.model.events import (
    CancelRequested,
    EntryFailed,
    PaceChanged,
    Paused,
    Resumed,
    Throttled,
    Unthrottled,
    Usage,
)
from tui_fs.model.outcome import JobState
from tui_fs.model.snapshot import Snapshot, fold
from tui_fs.model.strategy import IoPriority, Options, Pace, StrategyName
from tui_fs.screens.base import Settings
from tui_fs.screens.options import Choices
from tui_fs.screens.preview import about_options
from tui_fs.screens.run import (
    RunScreen,
    aside_lines,
    call_footer,
    call_rows,
    figures_of,
    more_figures_of,
    paragraphs,
    place_of,
    predicted_rate,
    progress_caption,
    settings_lines,
    time_meaning,
    usage_line,
)
from tui_fs.screens.run_history import RunHistory, Trends

__all__ = ["a_quiet_machine", "alive"]

USAGE = Usage(10.0, 9.0, 90.0, 1 << 20, 0, 0, 1, "rm 7", processor_wait_s=0.5, alive_s=11.0)
FREE = Snapshot(started=STARTED, usage=USAGE, usage_entries=1_000_000)


def with_usage(**changes: Any) -> Snapshot:
    return replace(FREE, usage=replace(USAGE, **changes))


def test_the_rate_of_all_other_calls_is_the_sum_of_theirs() -> None:
    names = ("unlinkat", "fstat", "mmap")
    snapshot = Snapshot(
        started=STARTED,
        calls={name: CallCount(100) for name in names},
        call_rates=dict(zip(names, (20.0, 5.0, 7.0), strict=True)),
    )
    earlier = Trends(calls={OTHER_CALLS_LABEL: (90.0,)})
    rates = {row.name: row.rate for row in call_rows(snapshot, earlier)}
    assert (rates["unlinkat"], rates[OTHER_CALLS_LABEL]) == ("20", "12")
    paused = call_rows(replace(snapshot, paused_at_s=1.0), earlier)
    assert {row.rate for row in paused} == {""}


def test_times_are_those_that_are_measured() -> None:
    assert call_footer(FREE) == (
        "time: kernel 9.0 s · user 1.0 s · wait for CPU 0.5 s · disk and other waits 0.5 s"
    )
    measured = with_usage(disk_wait_s=0.25)
    assert call_footer(measured).endswith("· disk 0.2 s · other waits 0.2 s")
    traced = with_usage(disk_wait_s=0.1, lock_wait_s=0.3)
    assert call_footer(traced).endswith("· disk 0.1 s · locks 0.3 s · other waits 0.1 s")
    unknown = with_usage(processor_wait_s=None, alive_s=None)
    assert call_footer(unknown) == "time: kernel 9.0 s · user 1.0 s"
    # A tool that tui-fs stops does not wait for a disk
    assert "other waits" not in call_footer(replace(FREE, pace=Pace(rate_per_s=9)))


def test_a_tool_that_only_reads_has_no_time_left() -> None:
    removed = Removed(STARTED.expected.totals.entries)
    all_removed = replace(FREE, removed=removed, eta_s=(0.0, 0.1))

    def figures(snapshot: Snapshot) -> str:
        return " ".join(figure.label for figure in figures_of(snapshot, JobState.RUNNING))

    assert figures(all_removed) == "left elapsed"
    filtered = replace(all_removed, started=replace(STARTED, filters="*.log"))
    assert figures(filtered) == "the rest of the tree elapsed"
    assert figures(replace(filtered, removed=Removed(1))) == "left elapsed"


def test_the_rest_of_a_tree_that_is_not_counted_to_the_end_is_approximate() -> None:
    uncounted = replace(STARTED, expected=replace(STARTED.expected, complete=False))
    snapshot = replace(FREE, started=uncounted, removed=Removed(0))
    total = f"~{STARTED.expected.totals.entries:,}"
    assert more_figures_of(snapshot)[0].value == total
    assert progress_caption(snapshot) == f"reading the directory; {total} to go"


@pytest.mark.parametrize(
    ("snapshot", "meaning"),
    [
        (FREE, "kernel work: only threads can be faster"),
        (replace(FREE, threads=4), "kernel work: no tool would be much faster"),
        (with_usage(processor_wait_s=6.0), "CPUs are busy: every strategy is slower now"),
        (with_usage(lock_wait_s=6.0), "it waits for locks: more threads would not help"),
        (with_usage(alive_s=60.0), "it mostly waits: several threads may help"),
        (replace(with_usage(disk_wait_s=30.0), threads=2), "it mostly waits for the disk"),
        (with_usage(system_s=3.0), "the tool is slow: try another strategy"),
    ],
)
def test_times_mean_something_for_the_choice(snapshot: Snapshot, meaning: str) -> None:
    assert time_meaning(snapshot).endswith(f" µs kernel per entry · {meaning}")
    assert len(time_meaning(snapshot)) <= 78
    # Nothing is concluded from waits that the pace causes
    limit = " · the limit of 100 /s sets the pace"
    for pace, words in ((Pace(gentle=True), ""), (Pace(rate_per_s=100), limit)):
        slowed = time_meaning(replace(snapshot, pace=pace))
        assert slowed.endswith(f" µs kernel per entry{words}")
    assert "limit" not in time_meaning(replace(snapshot, pace=Pace(rate_per_s=10**9)))
    # Where nothing is measured of an entry, nothing is said of it
    assert "per entry" not in time_meaning(replace(snapshot, usage_entries=10**12))


def test_what_has_no_room_is_left_out_as_a_whole() -> None:
    snapshot = replace(with_usage(written_bytes=3 << 20), io_pressure_percent=5.0)
    whole = (
        "1 process (rm 7) · cpu 90 % · memory 1.0 MiB · io pressure 5 % · read 0 B, wrote 3.0 MiB"
    )
    assert usage_line(snapshot, len(whole)).plain == whole
    assert usage_line(snapshot, 40).plain == "1 process (rm 7) · cpu 90 %"


def test_a_job_that_waits_still_shows_its_target() -> None:
    verb, place, _ = place_of(
        replace(FREE, throttled=Throttled(1.0, "processors", 99.0)), JobState.RUNNING
    )
    assert verb == "WAITING: processors busy ·"
    assert place == STARTED.targets[0]


@pytest.mark.parametrize(
    "stopped",
    [
        {"pace": Pace(rate_per_s=100)},
        {"held_s": 1.0},
        {"throttled": Throttled(1.0, "processors", 99.0)},
        {"paused_s": 1.0},
        {"paused_at_s": 1.0},
    ],
)
def test_shares_of_the_time_name_what_they_leave_out(stopped: dict[str, Any]) -> None:
    trends = RunHistory(0.25).trends()
    assert aside_lines(FREE, trends, 50, 40)[0] == (("strong", "where the time goes"),)
    title = aside_lines(replace(FREE, **stopped), trends, 50, 40)[0]
    assert title == (("strong", "where the time goes, without stops"),)


def test_nothing_is_concluded_from_a_moment() -> None:
    assert (
        time_meaning(with_usage(cpu_s=1.0, system_s=0.9, processor_wait_s=0.1, alive_s=1.1)) == ""
    )
    assert time_meaning(Snapshot()) == call_footer(Snapshot()) == ""


def test_the_predicted_rate_is_what_the_pace_allows() -> None:
    rate = predicted_rate(FREE)
    assert rate > 1_000
    assert predicted_rate(replace(FREE, pace=Pace(rate_per_s=1_000))) == 1_000
    assert predicted_rate(replace(FREE, pace=Pace(rate_per_s=10**9))) == rate
    assert predicted_rate(Snapshot()) == 0


def test_a_large_terminal_shows_the_times_as_bars_and_what_happened() -> None:
    history, snapshot = RunHistory(0.25), Snapshot()
    events = (
        *FAILING,
        EntryFailed(8.35, STARTED.targets[0], "remove", 13),
        Paused(8.4, 8.4, True),
        Resumed(9.4),
        PaceChanged(9.5, Pace(gentle=True)),
        Throttled(9.6, "disk", 40.0),
        Unthrottled(9.7),
        CancelRequested(9.8, "cancelled by UID 0"),
    )
    for event in events:
        snapshot = fold(snapshot, event)
        history.add(snapshot, event)
    lines = [
        "".join(text for _, text in line) for line in aside_lines(FREE, history.trends(), 50, 40)
    ]
    assert lines[:3] == [
        "where the time goes",
        "  kernel                ██████████▋    9.0 s  82 %",
        "  user                  █▏             1.0 s   9 %",
    ]
    happened = [
        line.split(maxsplit=1)[1].rstrip() for line in lines[lines.index("what happened") + 1 :]
    ]
    assert happened == [
        "started; predicted 5.8 s to 36 s",
        "the first failure",
        "paused",
        "resumed",
        "pace: gentle",
        "held back: others wait for the disk",
        "continued",
        "cancelled",
    ]
    # The newest are shown where not all have room
    low = aside_lines(FREE, history.trends(), 50, len(lines) - 3)
    assert "cancelled" in low[-1][1][1]
    assert len(low) == len(lines) - 3


def test_a_large_terminal_shows_the_times_of_removals_where_they_are_known() -> None:
    removals = CallCount(1_600, 0, 0.1, (4.1e-6, 38e-6), 100)
    known = replace(FREE, calls={"unlinkat": removals, "openat": removals})
    lines = [line[0][1] for line in aside_lines(known, RunHistory(0.25).trends(), 70, 20) if line]
    shown = [line for line in lines if "p50" in line]
    assert shown == ["  unlinkat: p50 4.1 µs, p99 38 µs (sampled: 1 in 16)"]


def test_a_call_is_explained_by_whole_sentences_that_fit() -> None:
    sentences = ["one " * 20, "two " * 20]
    for height, shown in ((1, []), (2, []), (3, ["one"]), (5, ["one"]), (6, ["one", "two"])):
        lines = paragraphs("unlinkat", sentences, 40, height)
        assert len(lines) <= height
        texts = [line[0][1].split()[0] for line in lines if line]
        assert list(dict.fromkeys(texts)) == ["unlinkat"] * bool(shown) + shown


@pytest.mark.usefixtures("alive")
async def test_a_huge_terminal_explains_the_call_under_the_cursor() -> None:
    app = Host(RunScreen(record(RUNS["running"][0]), Settings()))
    async with app.run_test(size=(200, 50)) as pilot:
        await wait_for(pilot, CALL_GUIDES["unlinkat"].action[:80])
        await pilot.press("down")
        await wait_for(pilot, CALL_GUIDES["getdents64"].action[:80])


def test_preview_and_run_screen_have_the_same_words_for_the_pace() -> None:
    pace = Pace(True, 500, 19, IoPriority.IDLE, 4)
    limits = "limit 500 /s · nice 19 · ionice idle"
    assert pace.in_words() == f"gentle · {limits} · up to 4 threads"
    shown = about_options(Choices(Options(pace=pace)), StrategyName("rm")).plain
    assert shown.endswith(f"gentle [x] · {limits}")
    assert Pace().in_words() == ""


def test_what_the_user_has_set_is_shown_whole_on_as_many_lines_as_it_needs() -> None:
    pace = Pace(rate_per_s=15, nice=10, io_priority=IoPriority.LOW, threads=1)

    def texts(snapshot: Snapshot, width: int) -> list[str]:
        lines = settings_lines(snapshot, width)
        return ["".join(text for _, text in line).rstrip() for line in lines]

    limited = replace(FREE, pace=pace)
    assert texts(limited, 78) == ["pace limit 15 /s · nice 10 · ionice low · up to 1 thread"]
    assert texts(limited, 42) == ["pace limit 15 /s · nice 10 · ionice low", "up to 1 thread"]
    assert texts(limited, 12) == ["pace limit…", "nice 10", "ionice low", "up to 1 thr…"]
    assert texts(replace(FREE, pace=Pace()), 78) == []
    filtered = replace(limited, started=replace(RUNNING[0], filters="*.log"))
    assert texts(filtered, 78)[0].startswith("only *.log · pace limit 15 /s · nice 10")


def test_the_rate_of_a_call_that_begins_late_is_drawn_late() -> None:
    history, snapshot = RunHistory(1.0), Snapshot()
    late = replace(sampled(8, 649_632), calls={**sampled(8, 1).calls, "rmdir": CallCount(1)})
    for event in (*RUNNING[:-1], late):
        snapshot = fold(snapshot, event)
        history.add(snapshot, event)
    calls = history.trends().calls
    *before, last = calls["rmdir"]
    assert len(calls["rmdir"]) == len(calls["unlinkat"])
    assert last > 0 and set(before) == {0.0}


def test_the_rate_of_a_call_is_the_same_however_often_its_count_is_read() -> None:
    history, snapshot = RunHistory(1.0), Snapshot()
    for event in RUNNING[:3]:
        snapshot = fold(snapshot, event)
    for number in range(1, 100):
        recorded = sampled(number, 100 * number)
        # A view reads the same count once more, just before the next one.
        for at_s in (recorded.at_s, recorded.at_s + 0.999):
            snapshot = fold(snapshot, replace(recorded, at_s=at_s))
            history.add(snapshot)
    assert set(history.trends().calls["unlinkat"]) == {100.0}


def test_the_graph_of_removals_and_that_of_their_call_have_one_shape() -> None:
    history, snapshot = RunHistory(3.7), Snapshot()
    for event in RUNNING[:2]:
        snapshot = fold(snapshot, event)
    for number in range(1, 60):
        recorded = sampled(number, 1000 * (number // 5))
        snapshot = fold(snapshot, recorded)
        history.add(snapshot, recorded)
    trends = history.trends()
    assert trends.calls["unlinkat"] == pytest.approx(trends.removals)


def test_the_prediction_stands_beside_the_start_alone() -> None:
    history, snapshot = RunHistory(0.25), Snapshot()
    for event in (*FAILING, *(Resumed(9.0 + second) for second in range(50))):
        snapshot = fold(snapshot, event)
        history.add(snapshot, event)
    lines = aside_lines(FREE, history.trends(), 50, 80)
    assert not any("predicted" in text for line in lines for _, text in line)


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (194.0, "slower than the limit of 300 /s"),
        (290.0, "the limit of 300 /s sets the pace"),
        (0.0, "the limit of 300 /s sets the pace"),
        (None, "the limit of 300 /s sets the pace"),
    ],
)
def test_a_limit_that_is_not_reached_does_not_set_the_pace(rate: float | None, words: str) -> None:
    limited = replace(FREE, pace=replace(FREE.pace, rate_per_s=300), rate_per_s=rate)
    assert time_meaning(limited).endswith(words)


@pytest.mark.parametrize(
    "stopped", [{"paused_at_s": 8.0}, {"throttled": Throttled(8.0, "processors", 40.0)}]
)
def test_a_limit_does_not_set_the_pace_of_stopped_tools(stopped: dict[str, Any]) -> None:
    limited = replace(FREE, pace=replace(FREE.pace, rate_per_s=300), rate_per_s=290.0)
    assert "limit" in time_meaning(limited)
    assert "limit" not in time_meaning(replace(limited, **stopped))
