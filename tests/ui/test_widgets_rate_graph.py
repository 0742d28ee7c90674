"""The rate graph: what is remembered and how it is drawn."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from textual.app import App, ComposeResult

from tui_fs.widgets.rate_graph import RateGraph, RateHistory, draw_graph, on_axis


def test_rates_of_a_bucket_are_averaged() -> None:
    history = RateHistory(capacity=4, bucket_s=1.0)
    for t_s, rate in [(10.0, 2.0), (10.5, 4.0), (11.0, 6.0), (12.9, 8.0)]:
        history.add(t_s, rate)
    assert history.values == (3.0, 6.0, 8.0)


def test_a_rate_over_a_short_time_counts_little() -> None:
    history = RateHistory(capacity=4, bucket_s=1.0)
    for t_s, rate, weight in [(10.0, 100.0, 0.75), (10.5, 900.0, 0.25), (12.0, 7.0, 0.5)]:
        history.add(t_s, rate, weight)
    assert history.values == (300.0, 7.0, 7.0)


def test_a_full_history_merges_neighbours_and_keeps_the_whole_run() -> None:
    history = RateHistory(capacity=4, bucket_s=1.0)
    for second in range(5):
        history.add(float(second), float(second))
    assert history.bucket_s == 2.0
    assert history.values == (0.5, 2.5, 4.0)
    for second in range(5, 1000):
        history.add(float(second), 7.0)
    assert len(history.values) <= 4
    assert history.bucket_s == 256.0


def test_a_late_sample_counts_for_the_time_since_the_one_before() -> None:
    history = RateHistory(capacity=10, bucket_s=1.0)
    history.add(0.0, 1.0)
    history.add(3.0, 5.0)
    assert history.values == (1.0, 5.0, 5.0, 5.0)


def test_a_clock_that_goes_back_and_rates_that_are_none_do_no_harm() -> None:
    history = RateHistory(capacity=10, bucket_s=1.0)
    history.add(5.0, 2.0)
    history.add(6.0, 2.0)
    history.add(1.0, 4.0)
    history.add(7.0, float("nan"))
    history.add(float("inf"), 1.0)
    assert history.values == (2.0, 3.0)


def test_a_very_long_silence_is_merged_at_once() -> None:
    history = RateHistory(capacity=4, bucket_s=1.0)
    history.add(0.0, 1.0)
    history.add(1e9, 1.0)
    assert 2 <= len(history.values) <= 4


@pytest.mark.parametrize(("capacity", "bucket_s"), [(1, 1.0), (4, 0.0)])
def test_a_history_without_room_is_refused(capacity: int, bucket_s: float) -> None:
    with pytest.raises(ValueError, match="two buckets"):
        RateHistory(capacity, bucket_s)


@pytest.mark.parametrize(
    ("values", "width", "lines"),
    [
        ([1, 2, 3, 4, 5, 6, 7, 8], 10, ["▁▂▃▄▅▆▇█  "]),
        ([0, 1, 4, 8, 9, 12, 16], 8, ["    ▁▄█ ", " ▁▄████ "]),
        ([2, 6, 8, 8], 2, ["▄█"]),  # more values than cells are averaged
        ([0, 1e-9, 100, -5, float("nan"), float("inf")], 6, [" ▁█   "]),
        ([0, 0], 3, ["   "]),
        ([], 3, ["   ", "   "]),
        ([1], 0, [""]),
    ],
)
def test_a_graph_is_scaled_to_the_highest_and_zero_is_blank(
    values: list[float], width: int, lines: list[str]
) -> None:
    assert draw_graph(values, width, len(lines)) == lines


class GraphApp(App[None]):
    CSS = "RateGraph { height: 2; }"

    def compose(self) -> ComposeResult:
        yield RateGraph()


async def test_the_widget_draws_label_graph_and_caption() -> None:
    app = GraphApp()
    async with app.run_test(size=(80, 24)) as pilot:
        graph = app.query_one(RateGraph)
        graph.values = (1.0, 2.0, 4.0)
        graph.caption = "peak [red]4 /s"
        await pilot.pause()
        upper, lower = graph.render().plain.split("\n")
        assert upper.startswith("       █ ")
        assert lower.startswith("rate ▄██ ")
        assert lower.endswith("  peak [red]4 /s")
        assert cell_len(lower) == 80
        graph.reference, graph.caption = 4.0, "─ predicted 4 /s"
        await pilot.pause()
        assert "─" not in graph.render().plain  # two lines have no room for the line
        graph.styles.height = 6
        await pilot.pause()
        assert "───" in graph.render().plain and "─ predicted 4 /s" in graph.render().plain
        graph.styles.height = 2
        graph.reference, graph.caption = 0.0, "short"
        await pilot.pause()
        assert graph.render().plain.endswith(" short")


def test_two_runs_on_one_axis_end_where_they_ended() -> None:
    long, short = (4.0,) * 8, (8.0, 8.0)
    assert on_axis(long, 1.0, 8.0, 8.0, 4) == [4.0] * 4
    assert on_axis(short, 1.0, 2.0, 8.0, 4) == [8.0, 0.0, 0.0, 0.0]
    assert on_axis(short, 1.0, 2.0, 8.0, 16) == [8.0] * 4 + [0.0] * 12
    assert on_axis((), 1.0, 0.0, 8.0, 2) == [0.0, 0.0]


def test_a_common_scale_leaves_the_slower_run_lower() -> None:
    assert draw_graph((4.0, 8.0), 2, top=8.0) == ["▄█"]
    assert draw_graph((4.0, 4.0), 2, top=8.0) == ["▄▄"]
