"""The bar list: its lines as text, its cursor, its keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.strip import Strip

from tui_fs.widgets.bar_table import (
    BarRow,
    BarTable,
    Column,
    LazyRows,
    column_widths,
    header_line,
    row_parts,
    shown_columns,
)

COLUMNS = (
    Column("entries", 9, right=True),
    Column("share", 8, bar=True),
    Column("name", 0),
)


def row(key: str, name: str | None = None, *, marked: bool = False) -> BarRow:
    return BarRow(key, ("1", "", key if name is None else name), marked=marked)


def rows(keys: Sequence[str]) -> list[BarRow]:
    return [row(key) for key in keys]


def drawn(row: BarRow, width: int = 44, *, cursor: bool = False) -> str:
    return "".join(text for _, text in row_parts(row, COLUMNS, width, cursor=cursor))


class ListApp(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.messages: list[tuple[str, str]] = []
        self.refused = ""

    def compose(self) -> ComposeResult:
        yield BarTable(COLUMNS, toggle_mark=self._toggle_mark)

    @property
    def bar_list(self) -> BarTable:
        return self.query_one(BarTable)

    def lines(self) -> list[str]:
        """The lines of the list as shown on the screen."""
        bar_list = self.bar_list
        return [bar_list.render_line(y).text for y in range(bar_list.size.height)]

    def on_bar_table_highlighted(self, event: BarTable.Highlighted) -> None:
        self.messages.append(("highlighted", event.row.key))

    def on_bar_table_opened(self, event: BarTable.Opened) -> None:
        self.messages.append(("opened", event.row.key))

    def _toggle_mark(self, row: BarRow) -> bool:
        self.messages.append(("marked", row.key))
        return row.key != self.refused


@asynccontextmanager
async def listing(rows: Sequence[BarRow]) -> AsyncIterator[tuple[ListApp, Pilot[None]]]:
    """Show these rows."""
    app = ListApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.bar_list.set_rows(rows)
        await pilot.pause()
        yield app, pilot


def test_a_header_and_rows_align() -> None:
    maildrop = BarRow(
        "m", ("1,204,113", "", "maildrop"), fraction=0.95, flag="! flat", flag_tone="warning"
    )
    assert [
        header_line(COLUMNS, 44),
        drawn(maildrop),
        drawn(BarRow("p", ("61,002", "", "php"), fraction=0.05, marked=True)),
        drawn(BarRow("l", ("1", "", "lock")), cursor=True),
        drawn(BarRow("x", ("2", "", "x"), marked=True), cursor=True),
    ] == [
        "    entries  share     name                 ",
        "  1,204,113  ███████▌  maildrop       ! flat",
        "*    61,002  ▍         php                  ",
        "›         1            lock                 ",
        "*›        2            x                    ",
    ]


def test_a_long_name_leaves_room_for_the_flag() -> None:
    long_row = BarRow("k", ("1", "", "a-very-long-name-indeed"), flag="! flat", flag_tone="danger")
    assert drawn(long_row) == "          1            a-very-long-…  ! flat"
    assert row_parts(long_row, COLUMNS, 44)[-1] == ("danger", "  ! flat")


def test_a_flag_leaves_room_for_the_name() -> None:
    columns = (Column("name", 0),)
    flagged = BarRow("k", ("log/",), flag="! control characters", flag_tone="warning")
    lines = ["".join(text for _, text in row_parts(flagged, columns, w)) for w in (30, 20, 10, 6)]
    assert lines == [
        "  log/    ! control characters",
        "  log/  ! control c…",
        "  log/   !",
        "  …  !",
    ]


@pytest.mark.parametrize("name", ["漢字" * 20, "a漢" * 20, "e\u0301" * 40, "🇩🇪" * 20, "", "x"])
@pytest.mark.parametrize("width", [44, 45, 46])
def test_every_line_has_the_same_width(name: str, width: int) -> None:
    assert cell_len(drawn(row("k", name), width)) == width


def test_a_share_above_nothing_is_seen_and_only_all_is_full() -> None:
    def bar(fraction: float | None) -> str:
        return row_parts(BarRow("k", ("", "", ""), fraction), COLUMNS, 44)[3][1]

    assert bar(None) == "        "
    assert bar(0.0) == "        "
    assert bar(1e-9) == "▏       "
    assert bar(0.999999) == "███████▉"
    assert bar(1.0) == bar(7.0) == "████████"


def test_a_wide_bar_has_its_text_beside_it() -> None:
    def beside(cells: int, text: str = "50 %") -> list[tuple[str, str]]:
        columns = (Column("share", cells, bar=True), Column("name", 0))
        return list(row_parts(BarRow("k", (text, "a"), 0.5), columns, 40)[1:3])

    assert beside(13) == [("bar", "███    "), ("", "  50 %")]
    assert beside(13, "")[0] == ("bar", "██████▌      ")
    assert beside(11)[0] == ("bar", "█████▌     ")


def test_the_column_that_rows_are_sorted_by_stands_out() -> None:
    columns = (Column("entries", 5), Column("size ▼", 5), Column("name", 0))
    parts = row_parts(BarRow("k", ("1", "2", "a")), columns, 30)
    assert [component for component, text in parts if text.strip() in ("1", "2")] == ["", "sorted"]


def test_optional_columns_give_way_to_the_name() -> None:
    columns = (
        Column("job", 6),
        Column("deleted", 13, right=True, is_optional=True),
        Column("ago", 10, right=True, is_optional=True),
        Column("directory", 0),
    )
    assert [shown_columns(columns, width) for width in (57, 56, 44, 10)] == [
        [0, 1, 2, 3],
        [0, 1, 3],
        [0, 3],
        [0, 3],
    ]
    narrow = BarRow("k", ("7f3a01", "1,204,112", "5 min", "/srv/spool"))
    shown = "".join(text for _, text in row_parts(narrow, columns, 30))
    assert shown == "  7f3a01  /srv/spool          "
    assert header_line(columns, 30) == "  job     directory           "


def test_the_last_column_can_ask_for_more_than_optional_columns_leave() -> None:
    columns = (
        Column("host", 6),
        Column("deleted", 13, right=True, is_optional=True),
        Column("state", 0, least=30),
    )
    assert shown_columns(columns, 2 + 6 + 2 + 13 + 2 + 30) == [0, 1, 2]
    assert shown_columns(columns, 2 + 6 + 2 + 13 + 2 + 29) == [0, 2]


def test_blocks_that_a_text_begins_with_are_a_bar() -> None:
    columns = (Column("bytes", 10), Column("name", 0))
    full = BarRow("k", ("██▌   25 %", "/srv"))
    assert row_parts(full, columns, 20)[1:3] == [("bar", "██▌"), ("", "   25 %")]


def test_a_bar_too_short_to_compare_leaves_no_gap() -> None:
    assert shown_columns(COLUMNS, 39) == [0, 1, 2]
    assert shown_columns(COLUMNS, 38) == [0, 2]
    assert header_line(COLUMNS, 24) == "    entries  name       "


def test_the_bar_gives_way_to_the_name_on_a_narrow_terminal() -> None:
    assert column_widths(COLUMNS, 43) == (9, 8, 20)
    assert column_widths(COLUMNS, 38) == (9, 3, 20)
    assert column_widths(COLUMNS, 28) == (9, 0, 13)


@pytest.mark.parametrize(
    "columns",
    [(Column("a", 3),), (Column("a", 0), Column("b", 0)), (Column("a", 0, bar=True),), ()],
)
def test_columns_that_cannot_be_laid_out_are_refused(columns: tuple[Column, ...]) -> None:
    with pytest.raises(ValueError, match="width 0"):
        BarTable(columns)


def test_tones_name_their_component() -> None:
    def components(tone_row: BarRow) -> list[str]:
        return [component for component, _ in row_parts(tone_row, COLUMNS, 44)]

    cells = ("1", "", "n")
    assert components(BarRow("k", cells, tone="directory"))[-1] == "directory"
    assert components(BarRow("k", cells, tone="muted")) == ["mark", *["muted"] * 5]
    assert components(BarRow("k", cells, flag="!", tone="normal"))[-2:] == ["", "muted"]
    flagged = BarRow("k", cells, flag="!", tone="directory", flag_tone="warning")
    assert components(flagged)[-2:] == ["directory", "warning"]
    assert components(BarRow("k", cells, flag_tone="warning"))[1] == "warning"


@pytest.mark.slow
async def test_keys_move_open_and_mark() -> None:
    async with listing(rows("abcd")) as (app, pilot):
        await pilot.press("down", "j", "up", "k", "k", "G", "g", "l", "space", "enter", "right")
        await pilot.pause()
        assert app.messages == [
            ("highlighted", "b"),
            ("highlighted", "c"),
            ("highlighted", "b"),
            ("highlighted", "a"),
            ("highlighted", "d"),
            ("highlighted", "a"),
            ("opened", "a"),
            ("marked", "a"),  # at once: the next key may act on the mark
            ("highlighted", "b"),
            ("opened", "b"),
            ("opened", "b"),
        ]


async def test_the_cursor_stays_on_a_row_whose_mark_is_refused() -> None:
    async with listing(rows("abcd")) as (app, pilot):
        app.refused = "b"
        await pilot.press("space", "space", "space", "enter")
        await pilot.pause()
        assert app.messages[-1] == ("opened", "b")


async def test_left_is_left_to_the_screen() -> None:
    app = ListApp()
    async with app.run_test(size=(80, 24)):
        keys = app.bar_list._bindings.key_to_bindings
        assert "left" not in keys
        bindings = [binding for group in keys.values() for binding in group]
        assert all(binding.id and binding.tooltip and not binding.show for binding in bindings)


@pytest.mark.slow
async def test_pages_keep_a_row_of_overlap_and_the_header_stays() -> None:
    async with listing(rows([f"r{index:03}" for index in range(100)])) as (app, pilot):
        await pilot.press("pagedown")
        assert app.bar_list.cursor_row == row("r022")
        await pilot.press("ctrl+f", "ctrl+b", "pagedown", "pageup", "pagedown")
        await pilot.pause()
        lines = app.lines()
        assert lines[0].split() == ["entries", "share", "name"]
        assert lines[-1].split() == ["›", "1", "r044"]
        assert lines[1].split() == ["1", "r022"]
        await pilot.press("G")
        assert app.lines()[-1].split() == ["›", "1", "r099"]


async def test_the_view_stays_when_the_rows_are_sorted_again() -> None:
    keys = [f"r{index:03}" for index in range(100)]
    async with listing(rows(keys)) as (app, pilot):
        bar_list = app.bar_list
        bar_list.move_to("r050")
        await pilot.pause()
        top = bar_list.scroll_offset.y
        assert top == 50 - 22
        keys[48], keys[50] = keys[50], keys[48]
        bar_list.set_rows(rows(keys))
        await pilot.pause()
        assert bar_list.cursor_row == row("r050")
        assert bar_list.scroll_offset.y == top
        bar_list.set_rows(rows(["r050", *keys[:40]]))
        await pilot.pause()
        assert bar_list.scroll_offset.y == 0
        bar_list.set_rows(rows(keys[:10]))  # its key has gone, and so has its index
        bar_list.move_to("r009")
        bar_list.set_rows(rows(keys[:5]))
        assert bar_list.cursor_row == row("r004")
        bar_list.set_rows(rows(keys), keep_cursor=False)
        assert bar_list.cursor_row == row("r000")
        assert app.messages == []


async def test_a_view_scrolled_with_the_mouse_is_not_torn_back() -> None:
    keys = [f"r{index:03}" for index in range(100)]
    async with listing(rows(keys)) as (app, pilot):
        app.bar_list.scroll_to(y=60, animate=False)
        await pilot.pause()
        app.bar_list.set_rows(rows(keys))
        await pilot.pause()
        assert app.bar_list.scroll_offset.y == 60
        app.bar_list.set_rows(rows(keys[:50]))
        await pilot.pause()
        assert app.lines()[-1].split() == ["1", "r049"]
        await pilot.press("down")
        assert app.lines()[1].split() == ["›", "1", "r001"]


async def test_the_cursor_stays_in_view_when_the_terminal_shrinks() -> None:
    async with listing(rows([f"r{index:03}" for index in range(100)])) as (app, pilot):
        app.bar_list.move_to("r020")
        await pilot.resize_terminal(60, 10)
        await pilot.pause()
        assert app.lines()[-1].split() == ["›", "1", "r020"]


async def test_a_click_moves_and_a_second_click_opens() -> None:
    async with listing(rows("abc")) as (app, pilot):
        await pilot.click(BarTable, offset=(30, 3))
        await pilot.click(BarTable, offset=(30, 3))
        await pilot.click(BarTable, offset=(30, 0))
        await pilot.click(BarTable, offset=(30, 9))
        assert app.messages == [("highlighted", "c"), ("opened", "c")]


async def test_names_are_never_markup() -> None:
    names = ["[red]", "a[/b]c", "[@click=x]y[/]"]
    async with listing([row(name) for name in names]) as (app, _):
        assert [line.split()[-1] for line in app.lines()[1:4]] == names


@pytest.mark.slow
async def test_an_empty_list_says_why_and_has_no_cursor() -> None:
    app = ListApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.bar_list.empty_text = "nothing [b]here"
        await pilot.press("down", "G", "enter", "space", "pagedown")
        assert app.lines()[2].strip() == "nothing [b]here"
        assert app.bar_list.cursor_row is None
        assert app.messages == []
        app.bar_list.empty_text = "a long reason " * 8 + "and its end"
        shown = [line.strip() for line in app.lines()[2:] if line.strip()]
        assert len(shown) == 2
        assert shown[1].endswith("and its end")


@pytest.mark.slow
async def test_of_a_million_rows_only_those_in_view_are_made() -> None:
    made: list[int] = []

    def make(index: int) -> BarRow:
        made.append(index)
        return row(f"{index:,}")

    million = LazyRows([f"{index:,}" for index in range(1_000_000)], make)
    async with listing(million) as (app, pilot):
        await pilot.press("G")
        await pilot.pause()
        assert app.lines()[-1].split() == ["›", "1", "999,999"]
        await pilot.press("up", "pageup", "g", "down")
        await pilot.pause()
        assert app.lines()[2].split() == ["›", "1", "1"]
        app.bar_list.move_to("500,000")
        assert app.bar_list.cursor_row == row("500,000")
        assert len(made) < 2_000
        made.clear()
        await pilot.press("down", "up", "down")
        await pilot.pause()
        assert len(made) < 10  # those in view were made before


async def test_only_changed_lines_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn_lines: list[int] = []
    render_line = BarTable.render_line

    def note_line(self: BarTable, y: int) -> Strip:
        drawn_lines.append(y)
        return render_line(self, y)

    monkeypatch.setattr(BarTable, "render_line", note_line)
    async with listing(rows("abcdef")) as (app, pilot):

        async def lines_of(change: Callable[[], object]) -> list[int]:
            drawn_lines.clear()
            change()
            await pilot.pause()
            return sorted(drawn_lines)

        table = app.bar_list
        assert await lines_of(lambda: table.set_rows(rows("abcdef"))) == []
        changed = [*rows("abc"), row("d", "other"), *rows("ef")]
        assert await lines_of(lambda: table.set_rows(changed)) == [4]
        assert await lines_of(lambda: table.action_move(1)) == [1, 2]
        table.set_rows(())
        await pilot.pause()
        assert len(await lines_of(lambda: table.set_rows(rows("a")))) > 20


@pytest.mark.slow
async def test_very_many_rows_are_sorted_around_the_cursor() -> None:
    many = [row(str(index)) for index in range(200_000)]
    async with listing(many) as (app, pilot):
        app.bar_list.move_to("3")
        app.bar_list.set_rows(many[::-1])
        await pilot.pause()
        assert app.bar_list.cursor_row == row("3")
        assert "›         1            3" in "\n".join(app.lines())


class TwoTables(App[None]):
    def compose(self) -> ComposeResult:
        for name in ("upper", "lower"):
            table = BarTable(id=name)
            table.set_rows([BarRow("a", ("one",)), BarRow("b", ("two",))])
            yield table


async def test_of_two_tables_the_one_with_the_focus_shows_a_cursor() -> None:
    app = TwoTables()
    async with app.run_test() as pilot:
        upper, lower = app.query(BarTable)
        for focused, other in ((lower, upper), (upper, lower)):
            focused.focus()
            await pilot.pause()
            assert [table.render_line(1).text.startswith("›") for table in (focused, other)] == [
                True,
                False,
            ]


def test_long_names_that_differ_only_at_the_end_look_different() -> None:
    columns = (Column("entries", 9, right=True), Column("name", 0, keep_ends=True))
    shown = {
        "".join(text for _, text in row_parts(BarRow(name, ("1", name), flag="!"), columns, 40))
        for name in ("dump-" * 20 + "monday", "dump-" * 20 + "sunday", "漢" * 40 + "a", "short")
    }
    assert len(shown) == 4
    assert {cell_len(line) for line in shown} == {40}
    assert any("…" in line and "-sunday" in line for line in shown)


@pytest.mark.parametrize(
    ("flag", "shown"), [("best", "races · m…"), ("! races", "races"), ("", "rac")]
)
def test_a_flag_is_not_cut_to_a_letter_that_says_nothing(flag: str, shown: str) -> None:
    columns = (Column("safe against", 0, text_cells=14),)
    line = "".join(
        text for _, text in row_parts(BarRow("k", ("races · mounts",), flag=flag), columns, 12)
    )
    assert line.startswith(f"  {shown}")
    assert line.rstrip().endswith("…") is (not flag.startswith("!"))
    assert line.rstrip().endswith("!") is flag.startswith("!")
