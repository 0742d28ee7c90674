"""Curves over two axes: scales, ticks, and the drawing as literal text."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App, ComposeResult

from widgets.curve_plot import CurvePlot, Plot, axis_over, draw_plot, tick_label


@dataclass(frozen=True)
class Point:
    x: float
    median: float
    least: float
    most: float


@dataclass(frozen=True)
class Curve:
    name: str
    points: tuple[Point, ...]


def curve(name: str, *points: tuple[float, float]) -> Curve:
    return Curve(name, tuple(Point(x, y, y, y) for x, y in points))


def drawn(plot: Plot, width: int = 40, height: int = 11) -> list[str]:
    lines = draw_plot(plot, width, height)
    return ["".join(text for _, text in line).rstrip() for line in lines]


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (0, "0"), (0.02, "0.02"), (1, "1"), (999, "999"), (1_000, "1k"), (2_500, "2.5k"),
        (10_000, "10k"), (1e6, "1M"), (0.1 + 0.2, "0.3"), (1e9, "1G"),
    ],
)  # fmt: skip
def test_ticks_read_as_a_person_writes_them(value: float, label: str) -> None:
    assert tick_label(value) == label


def test_a_log_axis_reaches_from_tick_to_tick() -> None:
    axis = axis_over([1, 10_000], True, 6)
    assert [axis.low, axis.high] == [1, 10_000]
    assert list(axis.ticks) == [1, 10, 100, 1_000, 10_000]
    assert [axis.at(tick) for tick in axis.ticks] == pytest.approx([0, 0.25, 0.5, 0.75, 1])


def test_a_short_log_axis_has_ticks_within_its_decade() -> None:
    assert axis_over([3, 8], True, 6).ticks == (2, 5, 10)


def test_a_tight_log_axis_ends_with_its_values() -> None:
    axis = axis_over([1, 2_048], True, 4, is_tight=True)
    assert [axis.low, axis.high] == [1, 2_048]
    assert list(axis.ticks) == [1, 10, 100, 1_000]
    assert axis_over([3, 4], True, 4, is_tight=True).ticks == (3.0, 4.0)


def test_a_linear_axis_begins_with_zero() -> None:
    axis = axis_over([7, 9.5], False, 6)
    assert axis.ticks == (0, 2, 4, 6, 8, 10)


@pytest.mark.parametrize("values", [[], [10.0], [0.0]])
@pytest.mark.parametrize("is_log", [False, True])
def test_equal_values_make_an_axis_too(values: list[float], is_log: bool) -> None:
    axis = axis_over(values, is_log, 5)
    assert axis.high > axis.low


@given(
    st.lists(st.floats(1e-6, 1e12), min_size=1),
    st.booleans(),
    st.integers(2, 12),
    st.booleans(),
)
def test_an_axis_holds_all_values(
    values: list[float], is_log: bool, most_ticks: int, is_tight: bool
) -> None:
    axis = axis_over(values, is_log, most_ticks, is_tight=is_tight)
    places = [axis.at(value) for value in values]
    assert all(-1e-6 <= place <= 1 + 1e-6 for place in places)
    assert all(-1e-6 <= axis.at(tick) <= 1 + 1e-6 for tick in axis.ticks)
    assert len(axis.ticks) >= 2


def test_lines_are_drawn_between_their_points() -> None:
    plot = Plot(
        (curve("rm", (1, 1), (100, 100)), curve("rsync", (1, 100), (100, 10))),
        x_title="files",
        y_title="seconds",
        has_log_x=True,
        has_log_y=True,
    )
    assert drawn(plot) == [
        "seconds                    ● rm  ■ rsync",
        "100 ┤■⠑⠒⠒⠤⠤⢄⣀⣀┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈⢀⡠⠤⠒●",
        "    │         ⠉⠉⠑⠒⠒⠤⠤⢄⣀⡀      ⣀⡠⠔⠒⠉⠁",
        "    │                  ⠈⠉⣉⡲⠖⠲⠭⠤⣀⣀⡀",
        " 10 ┤┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈⣀⠤⠔⠒⠉┈┈┈┈┈┈┈┈⠈⠉⠉⠒⠒⠢■",
        "    │          ⣀⠤⠔⠊⠉",
        "    │    ⢀⣀⠤⠔⠊⠉",
        "  1 ┤●⠤⠒⠊⠁┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈",
        "    └┬────────────────┬────────────────┬",
        "     1               10              100",
        "                                   files",
    ]


def test_noise_is_a_line_from_the_least_to_the_most() -> None:
    wide = Curve("rm", (Point(5, 5, 1, 10), Point(10, 5, 5, 5)))
    lines = drawn(Plot((wide,)), 30, 13)
    column = next(line.index("●") for line in lines[1:] if "●" in line)
    at_its_x = [line[column] for line in lines[1:] if len(line) > column]
    assert sum("\u2800" < cell <= "\u28ff" for cell in at_its_x) >= 5


def test_what_a_log_axis_has_no_place_for_is_left_out() -> None:
    plot = Plot((curve("rm", (0, 5), (10, 0), (10, 10)),), has_log_x=True, has_log_y=True)
    assert sum(line.count("●") for line in drawn(plot)) == 2  # the legend's and the last point's


def test_what_cannot_be_drawn_is_said() -> None:
    assert drawn(Plot((curve("rm"),))) == ["nothing was measured"]
    assert drawn(Plot((curve("rm", (1, 1)),)), 14, 4) == ["a larger wind…"]


def test_many_names_take_more_lines() -> None:
    plot = Plot(tuple(curve(f"strategy {n}", (1, n), (2, n)) for n in range(5)), y_title="s")
    lines = drawn(plot, 40, 14)
    assert len(lines) == 14
    assert sum("strategy" in line for line in lines) == 2
    assert all(f"strategy {n}" in "\n".join(lines) for n in range(5))


@given(
    st.lists(st.tuples(st.floats(0.01, 1e7), st.floats(0.01, 1e7)), min_size=1, max_size=6),
    st.integers(20, 130),
    st.integers(8, 40),
    st.booleans(),
    st.booleans(),
)
def test_a_plot_never_leaves_its_place(
    points: list[tuple[float, float]], width: int, height: int, log_x: bool, log_y: bool
) -> None:
    plot = Plot((curve("漢字 rm", *sorted(points)),), "files", "seconds", log_x, log_y)
    lines = drawn(plot, width, height)
    assert len(lines) <= height
    assert max(map(cell_len, lines)) <= width


class PlotApp(App[None]):
    def compose(self) -> ComposeResult:
        yield CurvePlot()


async def test_the_widget_draws_names_as_they_are() -> None:
    app = PlotApp()
    async with app.run_test(size=(60, 20)) as pilot:
        plot = app.query_one(CurvePlot)
        plot.plot = Plot((curve("[red]a[/b]", (1, 1), (2, 4)),), "x", "y")
        await pilot.pause()
        text = plot.render().plain.split("\n")
        assert len(text) == plot.size.height == 16
        assert "● [red]a[/b]" in text[0]
