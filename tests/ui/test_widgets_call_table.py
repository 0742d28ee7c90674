"""The table of system calls as text and on the screen."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from textual.app import App, ComposeResult

from widgets.call_table import CallRow, CallTable, grow_widths, layout_rows

ROWS = (
    CallRow("unlinkat", "701,233", "1,204,114", "58 %", "0", "81,204", emphasised=True),
    CallRow("newfstatat", "4", "4"),
    CallRow("openat", "15", "15", errors="13", note="(search for libraries)"),
)


def drawn(
    rows: tuple[CallRow, ...], width: int = 90, height: int = 9, widths: tuple[int, ...] = ()
) -> list[str]:
    lines = layout_rows(rows, width, height, widths)
    return ["".join(text for _, text in line).rstrip() for line in lines]


def test_figures_are_right_aligned_and_empty_columns_are_left_out() -> None:
    assert drawn(ROWS) == [
        "  call              calls  predicted  done  errors       /s",
        "  unlinkat        701,233  1,204,114  58 %       0   81,204",
        "  newfstatat            4          4",
        "  openat               15         15            13!          (search for libraries)",
    ]
    assert drawn((CallRow("read", "1"), CallRow("all others", ""))) == [
        "  call              calls",
        "  read                  1",
        "  all others",
    ]


def test_calls_are_never_left_out() -> None:
    assert drawn((CallRow("read", ""),)) == ["  call              calls", "  read"]


def test_errors_are_marked_by_more_than_colour() -> None:
    parts = layout_rows(ROWS, 90, 9)[3]
    assert ("error", "    13!") in parts
    assert not any(kind == "error" for kind, _ in layout_rows(ROWS, 90, 9)[1])


def test_an_emphasised_row_is_strong() -> None:
    assert {kind for kind, _ in layout_rows(ROWS, 90, 9)[1]} <= {"strong", "muted"}


def test_rows_that_do_not_fit_are_counted() -> None:
    rows = tuple(CallRow(f"call{index}", "1") for index in range(5))
    assert len(drawn(rows, height=6)) == 6
    assert drawn(rows, height=5)[-2:] == ["  call2                 1", "  … 2 more"]
    assert drawn(rows, height=2) == ["  call              calls", "  … 5 more"]
    assert drawn(rows, height=1) == ["  call              calls"]
    assert drawn(rows, height=0) == drawn(()) == []


def test_columns_grow_and_never_shrink() -> None:
    wide = grow_widths((CallRow("a-very-long-name", "1,000,000,000", rate="5"),), ())
    assert wide[:2] == (16, 13)
    assert grow_widths((CallRow("read", "1"),), wide) == wide
    assert drawn((CallRow("read", "1"),), widths=wide) == [
        "  call                      calls  /s",
        "  read                          1",
    ]


def test_a_narrow_line_gives_up_what_matters_least() -> None:
    rows = (CallRow("unlinkat", "1", "2", "50 %", "3", "4", "5 %", "note"),)
    assert [drawn(rows, width=width)[0].split() for width in (66, 56, 50, 45, 44, 34)] == [
        ["call", "calls", "predicted", "done", "errors", "/s", "share"],
        ["call", "calls", "predicted", "done", "errors", "/s"],
        ["call", "calls", "predicted", "errors", "/s"],
        ["call", "calls", "predicted", "errors"],
        ["call", "calls", "errors"],
        ["call", "calls", "errors"],
    ]
    assert drawn(rows, width=66)[1].endswith("n…")


@pytest.mark.parametrize("width", range(35, 100))
def test_wide_names_keep_the_columns(width: int) -> None:
    rows = (CallRow("漢字", "1", "2", note="漢字漢字"), CallRow("read", "1", "2", note="x"))
    header, first, second = drawn(rows, width)
    assert max(map(cell_len, (header, first, second))) <= width
    assert first.index("1") + 2 == second.index("1")


class TableApp(App[None]):
    def compose(self) -> ComposeResult:
        yield CallTable()

    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.query_one(CallTable).render().plain.split("\n")]


async def test_the_widget_draws_title_table_and_footer() -> None:
    app = TableApp()
    async with app.run_test(size=(80, 24)) as pilot:
        table = app.query_one(CallTable)
        table.title = "system calls · [red]live"
        table.rows = ROWS[:2]
        table.footer = "kernel a[/b]c"
        await pilot.pause()
        assert table.size.height == 5
        assert app.lines() == ["system calls · [red]live", *drawn(ROWS[:2]), "kernel a[/b]c"]
        text = table.render()
        bold = {span.start: span.end for span in text.spans if getattr(span.style, "bold", False)}
        assert bold[0] == len("system calls ")


async def test_the_widget_keeps_its_columns_and_counts_what_does_not_fit() -> None:
    app = TableApp()
    async with app.run_test(size=(80, 8)) as pilot:
        table = app.query_one(CallTable)
        table.title = "system calls"
        table.footer = "kernel"
        table.rows = (CallRow("read", "1,000,000,000,000"),)
        await pilot.pause()
        table.rows = tuple(CallRow(f"[b]{index}", "1") for index in range(9))
        await pilot.pause()
        lines = app.lines()
        assert lines[1] == "  call                      calls"
        assert lines[2] == "  [b]0                          1"
        assert lines[-2:] == ["  … 5 more", "kernel"]
        assert len(lines) == 8
