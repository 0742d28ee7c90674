"""The table of system calls as text and on the screen."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from textual.app import App, ComposeResult

from tui_fs.widgets.call_table import LIVE_WIDTHS, CallRow, CallTable, grow_widths, layout_rows

ROWS = (
    CallRow("unlinkat", "701,233", "1,204,114", "58 %", "0", "81,204", emphasised=True),
    CallRow("newfstatat", "4", "4"),
    CallRow("openat", "15", "15", errors="13", note="normal: searches"),
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
        "  openat               15         15            13           normal: searches",
    ]
    assert drawn((CallRow("read", "1"), CallRow("all others", ""))) == [
        "  call              calls",
        "  read                  1",
        "  all others",
    ]


def test_calls_are_never_left_out() -> None:
    assert drawn((CallRow("read", ""),)) == ["  call              calls", "  read"]


def test_errors_are_marked_by_more_than_colour() -> None:
    failed = CallRow("unlinkat", "7", errors="2", note="2 failed", has_failed=True)
    harmless, parts = layout_rows((ROWS[2], failed), 90, 9)[1:]
    assert ("error", "     2!") in parts
    assert ("error", "2 failed        ") in parts
    assert ("muted", "    13 ") in harmless
    assert not any(kind == "error" for kind, _ in harmless)


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
    assert wide[1:3] == (16, 13)
    assert grow_widths((CallRow("read", "1"),), wide) == wide
    assert drawn((CallRow("read", "1"),), widths=wide) == [
        "  call                      calls  /s",
        "  read                          1",
    ]


def test_a_narrow_line_gives_up_what_matters_least() -> None:
    rows = (
        CallRow("unlinkat", "1", "2", "50 %", "3", "4", "5 %", "6 %", "a note", (1.0,), "remove"),
    )
    assert [
        drawn(rows, width=width)[0].split() for width in (110, 86, 78, 70, 66, 54, 45, 44, 34)
    ] == [
        [
            "group",
            "call",
            "calls",
            "predicted",
            "done",
            "errors",
            "/s",
            "time",
            "share",
            "rate",
            "over",
            "the",
            "run",
        ],
        ["group", "call", "calls", "predicted", "done", "errors", "/s", "time", "share"],
        ["call", "calls", "predicted", "done", "errors", "/s", "time", "share"],
        ["call", "calls", "predicted", "done", "errors", "/s", "time"],
        ["call", "calls", "predicted", "errors", "/s", "time"],
        ["call", "calls", "predicted", "errors", "/s"],
        ["call", "calls", "predicted", "errors"],
        ["call", "calls", "errors"],
        ["call", "calls", "errors"],
    ]


def test_a_row_names_its_group_once_and_draws_its_rates() -> None:
    rows = tuple(
        CallRow(name, "1", group=group, trend=(1.0, 8.0), note="normal: gone")
        for name, group in (
            ("openat", "directories"),
            ("getdents64", "directories"),
            ("stat", "examine"),
        )
    )
    lines = drawn(rows, 120, widths=LIVE_WIDTHS)
    assert [line.split()[0] for line in lines] == ["group", "directories", "getdents64", "examine"]
    assert all(line.endswith("▁█") and "normal: gone" in line for line in lines[1:])
    # And no column moves when the first errors come
    before = drawn((CallRow("openat", "1"),), 120, widths=LIVE_WIDTHS)[0]
    assert before == drawn((CallRow("openat", "1", errors="3,005"),), 120, widths=LIVE_WIDTHS)[0]


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


def test_the_row_under_the_cursor_has_no_gap_at_its_errors() -> None:
    rows = (CallRow("unlinkat", "423", errors="1", note="1 failed", has_failed=True),)
    _, under = layout_rows(rows, 80, 5, cursor=0)
    assert {component for component, _ in under} == {"cursor"}
    assert "1!" in "".join(text for _, text in under)
    _, other = layout_rows(rows, 80, 5)
    assert ("error", "1!") in [(component, text.strip()) for component, text in other]
