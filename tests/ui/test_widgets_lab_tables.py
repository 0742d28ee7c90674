"""The lab's tables and bars as literal text: figure tables, pairs of tables, bars with spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from rich.cells import cell_len
from textual.app import App, ComposeResult

from tui_fs.widgets.figure_layout import Line, layout_bars, layout_pair, layout_table
from tui_fs.widgets.fitted_lines import FittedLines


@dataclass(frozen=True)
class Row:
    cells: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True)
class Counts:
    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Bar:
    label: str
    median: float
    least: float
    most: float
    shown: str
    published: float | None = None
    published_shown: str = ""


def plain(lines: Sequence[Line]) -> list[str]:
    return ["".join(text for _, text in line).rstrip() for line in lines]


COLUMNS = ("", "seconds", "system calls")
ROWS = (
    Row(("rm -rf", "0.12 s", "10,013")),
    Row(("rsync --delete", "0.2 s", "20,374")),
    Row(("toybox rm",), "toybox is not installed"),
)


def test_figures_are_right_aligned_and_a_note_says_why_there_are_none() -> None:
    assert plain(layout_table(COLUMNS, ROWS, 40)) == [
        "                seconds  system calls",
        "rm -rf           0.12 s        10,013",
        "rsync --delete    0.2 s        20,374",
        "toybox rm",
        "  toybox is not installed",
    ]


def test_columns_that_do_not_fit_follow_below() -> None:
    rows = (ROWS[0], Row(("rsync on one core", "0.2 s", "20,374")))
    assert plain(layout_table(COLUMNS, rows, 30)) == [
        "            seconds",
        "rm -rf       0.12 s",
        "rsync on      0.2 s",
        "  one core",
        "",
        "            system calls",
        "rm -rf            10,013",
        "rsync on          20,374",
        "  one core",
    ]


def test_a_row_without_figures_in_a_part_is_left_out_there() -> None:
    rows = (*ROWS, Row(("  text", "", "20,063")), Row(("none",)))
    first, second = "\n".join(plain(layout_table(COLUMNS, rows, 30))).split("\n\n")
    assert ["text" in first, "text" in second] == [False, True]
    assert ["none" in first, "none" in second] == [True, False]
    assert ["toybox" in first, "toybox" in second] == [True, False]


LEFT = Counts(
    "rm",
    (
        Row(("unlinkat", "10,000", "", "70.1 %", "10,000", "")),
        Row(("brk", "24", "", "0.1 %", "24", "")),
        Row(("access", "1", "1", "0.0 %", "1", "1")),
        Row(("total", "10,025", "1", "", "10,025", "1")),
    ),
)
RIGHT = Counts(
    "rsync",
    (
        Row(("unlinkat", "10,000", "", "20.0 %", "", "")),
        Row(("select", "34", "2", "60.0 %", "40", "1")),
        Row(("brk", "6", "", "0.0 %", "6", "")),
        Row(("total", "10,040", "2", "", "46", "1")),
    ),
)
CALLS = ("call", "calls", "err.", "time", "publ.", "err.")


def test_tables_are_side_by_side_matched_by_name() -> None:
    assert plain(layout_pair((LEFT, RIGHT), CALLS, 76)) == [
        "         │ rm                             │ rsync",
        "call     │  calls err.   time  publ. err. │  calls err.   time  publ. err.",
        "unlinkat │ 10,000      70.1 % 10,000      │ 10,000      20.0 %",
        "select   │      –                         │     34    2 60.0 %     40    1",
        "brk      │     24       0.1 %     24      │      6       0.0 %      6",
        "access   │      1    1  0.0 %      1    1 │      –",
        "total    │ 10,025    1        10,025    1 │ 10,040    2            46    1",
    ]


def test_a_narrow_pair_gives_up_what_matters_least() -> None:
    for width, titles in ((70, 5), (60, 5), (56, 4), (50, 3), (40, 2)):
        lines = layout_pair((LEFT, RIGHT), CALLS, width, given_up=(5, 3, 2, 4))
        assert {cell_len(line) for line in plain(lines)} <= set(range(width + 1))
        assert "10,000" in plain(lines)[2]
        assert len(plain(lines)[1].split("│")[1].split()) <= titles


def test_one_table_is_shown_alone() -> None:
    assert plain(layout_pair((RIGHT,), CALLS, 60))[2] == "unlinkat │ 10,000      20.0 %"
    assert layout_pair((), CALLS, 60) == []


BARS = (
    Bar("rm", 1.0, 0.5, 1.5, "1.00 s"),
    Bar("rsync", 2.0, 2.0, 2.0, "2.00 s", 3.0, "3.00 s"),
)


def test_bars_show_the_spread_and_the_published_figure() -> None:
    *bars, legend = plain(layout_bars(BARS, 60, lambda figure: figure / 3))
    assert bars == [
        "                                             here  published",
        "rm        ██████▒▒▒▒▒────┤                 1.00 s",
        "rsync     ████████████████████▋         ◆  2.00 s     3.00 s",
    ]
    assert "◆ published" in legend
    assert "published" not in plain(layout_bars(BARS[:1], 60, lambda figure: figure / 3))[-1]


@pytest.mark.parametrize("width", range(30, 121, 9))
def test_bars_never_leave_their_place(width: int) -> None:
    wide = (Bar("漢字 " * 20, 0.0, 0.0, 5.0, "0 s", 1e-9, "0 s"), *BARS)
    lines = plain(layout_bars(wide, width, lambda figure: figure / 5))
    assert max(map(cell_len, lines)) <= width
    assert layout_bars((), width, float) == []


class LinesApp(App[None]):
    def compose(self) -> ComposeResult:
        yield FittedLines(lambda width: ((("strong", f"[b]{width}"),), (("", "x"),)))


async def test_lines_are_laid_out_for_the_width_there_is() -> None:
    app = LinesApp()
    async with app.run_test(size=(60, 20)) as pilot:
        lines = app.query_one(FittedLines)
        assert lines.render().plain == "[b]60\nx"
        assert lines.size.height == 2
        await pilot.resize_terminal(40, 20)
        await pilot.pause()
        assert lines.render().plain == "[b]40\nx"
        lines.lay_out_by(lambda _: ((("", "one"),),))
        await pilot.pause()
        assert (lines.render().plain, lines.size.height) == ("one", 1)
