"""A scrolling table of rows with bars, marks and a cursor that draws only the rows in view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from textwrap import wrap
from typing import Literal, get_args, overload

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive, var
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui_fs.widgets.cell_drawing import (
    BLOCKS,
    ELLIPSIS,
    dots,
    eighth_blocks,
    fit_cells,
    fit_end,
    fit_ends,
    range_bar,
)

HEADER_HEIGHT = 1
GUTTER = 2
GAP = 2

# A narrower name is unreadable; the bar loses its cells first.
MINIMUM_FLEXIBLE = 20
MINIMUM_BAR = 4
MINIMUM_NAME = 8

Tone = Literal["normal", "muted", "directory"]
FlagTone = Literal["muted", "warning", "danger"]
Component = Literal["", "bar", "mark", "muted", "sorted", "directory", "warning", "danger"]
_SORTED = ("▲", "▼")
"""The title of the column by which the rows are sorted ends with one of these."""
_TEXT_CELLS, _MIN_BAR_BESIDE_TEXT = 6, 5
_MIN_CUT_FLAG = 4
"""Fewer cells would say nothing: the first letter of "best"."""

_KEYS = (
    ("up,k", "move(-1)", "up", "Previous row"),
    ("down,j", "move(1)", "down", "Next row"),
    ("pageup,ctrl+b", "page(-1)", "page-up", "One page up"),
    ("pagedown,ctrl+f", "page(1)", "page-down", "One page down"),
    ("g", "top", "top", "First row"),
    ("G", "bottom", "bottom", "Last row"),
    ("enter,right,l", "open", "open", "Open the row under the cursor"),
    ("space", "toggle_mark", "mark", "Mark the row under the cursor and move down"),
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a bar list.

    Attributes:
        title: Drawn in the header.
        width: Cells; 0 takes the remaining width, which exactly one column must do.
        right: Align title and cells at the right.
        bar: Draw the row's fraction as a bar, and where there is room the text beside it, which
            has at most 6 cells.
        has_range: Draw the row's span as a range; the row's cell text is ignored.
        is_optional: Left out, the last one first, where the flexible column has no room, as are
            bars.
        keep_end: A long text loses its beginning, as suits a path; only for the column that
            takes the remaining width.
        keep_ends: A long text loses its middle, as suits a name; only for that column, too.
        text_cells: The flag of a row follows the text, or this many cells if the text is shorter;
            0 puts the flags at the end of the line. Only for the column that takes the remaining
            width.
        least: Cells that the column with the remaining width gets before optional columns;
            0 for the usual number.
        meaning: What the cells hold, for a legend.
        action: The action of the screen that a click on the title runs; empty for none.
    """

    title: str
    width: int
    right: bool = False
    bar: bool = False
    has_range: bool = False
    keep_end: bool = False
    keep_ends: bool = False
    text_cells: int = 0
    is_optional: bool = False
    least: int = 0
    meaning: str = ""
    action: str = ""


@dataclass(frozen=True, slots=True)
class BarRow:
    """A row of a bar list.

    Attributes:
        key: Names the row when the rows are sorted again or replaced.
        cells: Displayable texts, one per column; blocks that one begins with are drawn as a bar.
        fraction: Length of the bar, 0..1; None draws no bar.
        span: Low end, mark and high end of the range, 0..1; None draws no range.
        strong: The range is drawn denser.
        marked: Drawn as `*` in the gutter.
        flag: Short text at the end of the flexible column.
        tone: Colour of the name, and of all cells if it is muted.
        flag_tone: Colour of the flag; without a flag, of the first cell.
    """

    key: str
    cells: tuple[str, ...]
    fraction: float | None = None
    span: tuple[float, float, float] | None = None
    strong: bool = False
    marked: bool = False
    flag: str = ""
    tone: Tone = "normal"
    flag_tone: FlagTone = "muted"


_ROWS_KEPT = 256
"""More than are in view: each key compares these with what was drawn."""


class LazyRows(Sequence[BarRow]):
    """As many rows as there are keys; only those in view are ever made.

    Args:
        keys: The rows' keys, in order.
        make: Makes the row at an index (never negative); always the same one.
    """

    def __init__(self, keys: Sequence[str], make: Callable[[int], BarRow]) -> None:
        """Create the sequence; make no row yet."""
        self.keys = keys
        self._make = lru_cache(_ROWS_KEPT)(make)

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.keys)

    @overload
    def __getitem__(self, index: int) -> BarRow: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[BarRow]: ...

    def __getitem__(self, index: int | slice) -> BarRow | Sequence[BarRow]:
        """Make the row at an index, or those of a slice."""
        indexes = range(len(self.keys))[index]
        return self._make(indexes) if isinstance(indexes, int) else [self[i] for i in indexes]


_Line = tuple[BarRow | None, bool]
"""What a line shows, and whether the cursor is on it."""


class BarTable(ScrollView, can_focus=True, inherit_bindings=False):
    """A list of rows with a header that stays, a cursor, marks and bars.

    The table does not copy the sequence of rows and draws only those in view, so a million rows
    scroll like ten. The caller must not change the sequence afterwards.
    """

    BINDINGS = [
        Binding(keys, action, name, show=False, id=f"bar-list.{name}", tooltip=tooltip)
        for keys, action, name, tooltip in _KEYS
    ]

    COMPONENT_CLASSES = {
        "bar-list--header",
        "bar-list--cursor",
        "bar-list--bar",
        "bar-list--mark",
        "bar-list--muted",
        "bar-list--directory",
        "bar-list--sorted",
        "bar-list--warning",
        "bar-list--danger",
    }

    DEFAULT_CSS = """
    BarTable {
        background: $background;
        color: $foreground;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
        scrollbar-color: $foreground 20%;
        scrollbar-background: $background;

        & > .bar-list--header { color: $text-muted; }
        & > .bar-list--cursor { background: $foreground 8%; }
        & > .bar-list--bar { color: $primary 70%; }
        & > .bar-list--mark { color: $text-accent; text-style: bold; }
        & > .bar-list--muted { color: $text-muted; }
        & > .bar-list--sorted { text-style: bold; }
        & > .bar-list--directory { color: $text-primary; }
        & > .bar-list--warning { color: $text-warning; }
        & > .bar-list--danger { color: $text-error; text-style: bold; }
        &:focus > .bar-list--cursor { background: $primary 30%; }
        &:ansi > .bar-list--directory { color: $foreground; }
        &:ansi > .bar-list--cursor { background: transparent; text-style: bold; }
        &:ansi:focus > .bar-list--cursor { background: transparent; text-style: reverse; }
    }
    """

    ALLOW_SELECT = False

    empty_text: reactive[str] = reactive("")
    """Shown when there are no rows."""

    is_empty: var[bool] = var(False)
    """Whether no rows were set; not before any were."""

    class _AboutRow(Message):
        """Something the user did to a row."""

        def __init__(self, bar_list: BarTable, row: BarRow) -> None:
            self.bar_list = bar_list
            self.row = row
            super().__init__()

        @property
        def control(self) -> BarTable:
            """The list that sent the message."""
            return self.bar_list

    class Highlighted(_AboutRow):
        """The user moved the cursor to another row."""

    class Opened(_AboutRow):
        """The user asked to open a row."""

    def __init__(
        self,
        columns: Sequence[Column] = (Column("name", 0),),
        *,
        empty_text: str = "",
        toggle_mark: Callable[[BarRow], bool] | None = None,
        id: str | None = None,
    ) -> None:
        """Create a list without rows.

        Args:
            toggle_mark: Called when the user marks a row or removes its mark, before any further
                key acts: what the next key does may depend on the mark. It replaces the rows, and
                returns whether the mark of the row changed. None if rows cannot be marked.
        """
        super().__init__(id=id)
        self.set_reactive(BarTable.empty_text, empty_text)
        self._columns: tuple[Column, ...] = ()
        self._rows: Sequence[BarRow] = ()
        self._index = 0  # of the row under the cursor
        self._drawn: dict[int, _Line] = {}
        self._base = Style()
        self._toggle_mark = toggle_mark
        self._is_cursor_placed = False
        self._was_focused_last = True  # until another table is
        self.set_columns(columns)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns from left to right."""
        return self._columns

    @property
    def cursor_row(self) -> BarRow | None:
        """The row under the cursor; None when there are no rows."""
        return self._rows[self._index] if self._rows else None

    @property
    def is_cursor_placed(self) -> bool:
        """Whether the user or `move_to` has put the cursor on its row.

        Otherwise it is on the first row only because the rows were shown from the top. This
        changes with the key press, before `Highlighted` arrives anywhere.
        """
        return self._is_cursor_placed

    @property
    def has_cursor(self) -> bool:
        """Whether, of several tables, this one has the focus, or had it before another widget."""
        is_elsewhere = not self.has_focus and isinstance(self.screen.focused, BarTable)
        return self._was_focused_last and not is_elsewhere

    def on_focus(self) -> None:
        """Take the cursor from the other tables."""
        for table in self.screen.query(BarTable):
            table._was_focused_last = table is self

    def set_columns(self, columns: Sequence[Column]) -> None:
        """Replace the columns.

        Raises:
            ValueError: If not exactly one column takes the remaining width.
        """
        flexible = [column for column in columns if column.width == 0]
        if len(flexible) != 1 or flexible[0].bar:
            raise ValueError("exactly one column without a bar must have width 0")
        if tuple(columns) != self._columns:
            self._columns = tuple(columns)
            self.refresh()

    def set_rows(self, rows: Sequence[BarRow], keep_cursor: bool = True) -> None:
        """Replace the rows.

        Args:
            rows: The new rows, which may be the old ones in another order.
            keep_cursor: Leave the cursor on the same key, or at the same index when the key has
                gone; otherwise the cursor and the view go to the top.
        """
        self._is_cursor_placed = self._is_cursor_placed and keep_cursor
        top, before = self.scroll_offset.y, self.cursor_row
        is_in_view = top <= self._index < top + self._height
        if before is None:
            self._drawn.clear()  # the text of an empty table may be there
        self._rows = rows
        self.is_empty = not rows
        self._index = self._index_of(before.key) if keep_cursor and before is not None else 0
        self.virtual_size = Size(0, len(rows) + HEADER_HEIGHT if rows else 0)
        if is_in_view or not keep_cursor:
            self._reveal_cursor()
        else:  # the user has scrolled it away with the mouse
            self._show_from(top)
        self._refresh_changed()

    def move_to(self, key: str) -> None:
        """Put the cursor on the row with this key, if there is one, and bring it into view."""
        self._index = self._index_of(key)
        self._is_cursor_placed = True
        self._reveal_cursor()
        self._refresh_changed()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw some lines of the viewport."""
        self._base = self.rich_style  # finding it takes as long as drawing a line
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Draw one line of the viewport; the first is the header."""
        width = self.scrollable_content_region.width
        base = self._base
        if y < HEADER_HEIGHT:
            text = header_line(self._columns, width)
            return self._strip([Segment(text, base + self._style("header"))], base)
        self._drawn[y] = row, is_cursor = self._line_at(y, *self._view())
        if row is not None:
            return self._render_row(row, width, is_cursor=is_cursor)
        if not self._rows and y > HEADER_HEIGHT:
            lines = wrap(self.empty_text.replace(ELLIPSIS, dots()), max(1, width - 4))
            line = "".join(lines[y - HEADER_HEIGHT - 1 : y - HEADER_HEIGHT])
            text = fit_cells(f"  {line}", width)
            return self._strip([Segment(text, base + self._style("muted"))], base)
        return Strip.blank(self.size.width, base)

    def action_move(self, rows: int) -> None:
        """Move the cursor by a number of rows."""
        self._move_cursor(self._index + rows)

    def action_page(self, pages: int) -> None:
        """Move the cursor by a number of pages, with one row of overlap."""
        self._move_cursor(self._index + pages * max(1, self._height - 1))

    def action_top(self) -> None:
        """Move the cursor to the first row."""
        self._move_cursor(0)

    def action_bottom(self) -> None:
        """Move the cursor to the last row."""
        self._move_cursor(len(self._rows) - 1)

    def action_open(self) -> None:
        """Ask for the row under the cursor to be opened."""
        if (row := self.cursor_row) is not None:
            self.post_message(self.Opened(self, row))

    def action_toggle_mark(self) -> None:
        """Mark the row under the cursor or remove its mark, and move down.

        The cursor stays on a row whose mark was refused: the next key acts on that row.
        """
        if (row := self.cursor_row) is not None and self._toggle_mark is not None:
            self._is_cursor_placed = True
            if self._toggle_mark(row):
                self.action_move(1)

    def check_action(
        self,
        action: str,
        parameters: tuple[object, ...],  # noqa: ARG002  textual's signature
    ) -> bool | None:
        """Disable the key for marks in a list without marks."""
        return action != "toggle_mark" or self._toggle_mark is not None

    async def on_click(self, event: events.Click) -> None:
        """Move the cursor to the row that was clicked; a click on the cursor row opens it.

        A click on the title of a column runs its action.
        """
        offset = event.get_content_offset(self)
        if offset is None:
            return
        if offset.y < HEADER_HEIGHT:
            width = self.scrollable_content_region.width
            column = column_at(self._columns, width, offset.x)
            if column is not None and column.action:
                event.stop()
                await self.screen.run_action(column.action)
            return
        index = self.scroll_offset.y + offset.y - HEADER_HEIGHT
        if index >= len(self._rows):
            return
        event.stop()
        if index == self._index:
            self.action_open()
        else:
            self._move_cursor(index)

    def on_resize(self) -> None:
        """Keep the cursor in view when the terminal shrinks, and at the first layout."""
        self._reveal_cursor()

    @property
    def _height(self) -> int:
        """Rows that fit below the header; 0 before the first layout."""
        return max(0, self.scrollable_content_region.height - HEADER_HEIGHT)

    def _move_cursor(self, index: int) -> None:
        """Move the cursor for the user and post `Highlighted` if the row changes."""
        before, self._index = self._index, self._nearest(index)
        self._is_cursor_placed = True
        self._reveal_cursor()
        if self._index != before and (row := self.cursor_row) is not None:
            self._refresh_changed()
            self.post_message(self.Highlighted(self, row))

    def _index_of(self, key: str) -> int:
        """Return the index of the row with a key; without one, of the row nearest to the cursor."""
        # A refresh rarely moves the row; only a new order needs the search.
        if self._index < len(self._rows) and self._rows[self._index].key == key:
            return self._index
        rows = self._rows
        keys = rows.keys if isinstance(rows, LazyRows) else [row.key for row in rows]
        try:
            return keys.index(key)
        except ValueError:
            return self._nearest(self._index)

    def _nearest(self, index: int) -> int:
        return max(0, min(index, len(self._rows) - 1))

    def _reveal_cursor(self) -> None:
        """Scroll by the least amount that brings the cursor row into view."""
        top = min(self.scroll_offset.y, self._index)
        self._show_from(max(self._index - self._height + 1, top))

    def _show_from(self, top: int) -> None:
        """Make a row the first one in view, unless there would be blank lines below the last row.

        Before the first layout there is no view.
        """
        if self._height:
            top = max(0, min(top, len(self._rows) - self._height))
            self.scroll_to(y=top, animate=False, force=True, immediate=True)

    def _view(self) -> tuple[int, int]:
        """Return the first row in view, and the one that shows a cursor, or -1."""
        return self.scroll_offset.y, self._index if self.has_cursor else -1

    def _line_at(self, y: int, top: int, cursor: int) -> _Line:
        index = top + y - HEADER_HEIGHT
        return (self._rows[index], index == cursor) if index < len(self._rows) else (None, False)

    def _refresh_changed(self) -> None:
        """Draw only the lines that differ from what was drawn: a terminal may be far away."""
        if not self._rows or not self.is_attached:
            self.refresh()
            return
        width, height = self.size
        top, cursor = self._view()
        changed = [
            Region(0, y, width, 1)
            for y in range(HEADER_HEIGHT, height)
            if self._drawn.get(y) != self._line_at(y, top, cursor)
        ]
        if changed:
            self.refresh(*changed)

    def _render_row(self, row: BarRow, width: int, *, is_cursor: bool) -> Strip:
        base = self._base
        if is_cursor:
            base += self._style("cursor")
        plain: tuple[str, ...] = ("",)
        if is_cursor:  # orange and grey on blue are faint, and reversed colours would be stripes
            plain = get_args(Component) if base.reverse else ("", "mark", "muted", "warning")
        segments = [
            Segment(text, base if component in plain else base + self._style(component))
            for component, text in row_parts(row, self._columns, width, cursor=is_cursor)
        ]
        return self._strip(segments, base)

    def _style(self, name: str) -> Style:
        """Return the style of a component; only the cursor's has a background."""
        style = self.get_component_rich_style(f"bar-list--{name}")
        return style if name == "cursor" else style.without_color + Style(color=style.color)

    def _strip(self, segments: list[Segment], base: Style) -> Strip:
        """Make a line of exactly the width in view."""
        return Strip(segments).adjust_cell_length(self.size.width, base)


def shown_columns(columns: Sequence[Column], width: int) -> list[int]:
    """Return the indexes of the columns for which a line of this width has room.

    Bars go first, then optional columns, each from the right.
    """
    shown = list(range(len(columns)))

    def needed() -> int:
        cells = sum(MINIMUM_BAR if columns[at].bar else columns[at].width for at in shown)
        flexible = max(column.least or MINIMUM_FLEXIBLE for column in columns if not column.width)
        return GUTTER + GAP * (len(shown) - 1) + cells + flexible

    order = sorted(shown, key=lambda at: (not columns[at].bar, -at))
    for at in order:
        if needed() > width and (columns[at].bar or columns[at].is_optional):
            shown.remove(at)
    return shown


def column_widths(columns: Sequence[Column], width: int) -> tuple[int, ...]:
    """Distribute a line's cells among the columns.

    Args:
        columns: Exactly one of them with width 0.
        width: Cells of the whole line, with the gutter.
    """
    cells = [column.width for column in columns]
    flexible = width - GUTTER - GAP * (len(columns) - 1) - sum(cells)
    for index, column in enumerate(columns):
        if column.bar:
            lost = min(column.width, max(0, MINIMUM_FLEXIBLE - flexible))
            cells[index] -= lost
            flexible += lost
    return tuple(
        each if column.width else max(0, flexible)
        for column, each in zip(columns, cells, strict=True)
    )


def _laid_out(columns: Sequence[Column], width: int) -> list[tuple[int, Column, int]]:
    """Return index, column and cells of each column for which a line has room."""
    shown = shown_columns(columns, width)
    cells = column_widths([columns[at] for at in shown], width)
    return [(at, columns[at], each) for at, each in zip(shown, cells, strict=True)]


def column_at(columns: Sequence[Column], width: int, x: int) -> Column | None:
    """Return the column at a cell of a line, None in a gap."""
    left = GUTTER
    for _, column, cells in _laid_out(columns, width):
        if left <= x < left + cells:
            return column
        left += cells + GAP
    return None


def header_line(columns: Sequence[Column], width: int) -> str:
    """Draw the line of column titles."""
    titles = (
        fit_cells(column.title, cells, right=column.right)
        for _, column, cells in _laid_out(columns, width)
    )
    return fit_cells(" " * GUTTER + (" " * GAP).join(titles), width)


def row_parts(
    row: BarRow, columns: Sequence[Column], width: int, *, cursor: bool = False
) -> list[tuple[Component, str]]:
    """Draw a row as coloured pieces of text that together fill the line.

    Args:
        row: The row; cells missing at its end are blank.
        columns: The list's columns.
        width: Cells of the whole line.
        cursor: Whether the cursor is on the row.
    """
    plain: Component = "muted" if row.tone == "muted" else ""
    bar: Component = plain or "bar"
    parts: list[tuple[Component, str]] = [("mark", _gutter(row.marked, cursor))]
    for number, (index, column, cells) in enumerate(_laid_out(columns, width)):
        if number:
            parts.append((plain, " " * GAP))
        text = row.cells[index] if index < len(row.cells) else ""
        if column.bar:
            beside = _TEXT_CELLS if cells - _TEXT_CELLS > _MIN_BAR_BESIDE_TEXT and text else 0
            room = cells - beside
            drawn = eighth_blocks(row.fraction or 0.0, room - bool(beside))
            parts.append((bar, fit_cells(drawn, room)))
            if beside:
                parts.append((plain, fit_cells(text, beside, right=True)))
        elif column.has_range:
            drawn = range_bar(*row.span, cells, strong=row.strong) if row.span else ""
            parts.append((bar, fit_cells(drawn, cells)))
        elif column.width == 0:
            parts.extend(_name_parts(row, text, cells, column))
        else:
            shown_text = fit_cells(text, cells, right=column.right)
            rest = shown_text.lstrip(BLOCKS)
            if rest != shown_text:
                parts.append((bar, shown_text[: len(shown_text) - len(rest)]))
            is_sign = not number and not row.flag and row.flag_tone != "muted"
            figure: Component = plain or ("sorted" if column.title.endswith(_SORTED) else "")
            parts.append((row.flag_tone if is_sign else figure, rest))
    return parts


def _gutter(marked: bool, cursor: bool) -> str:
    """Draw mark and cursor as signs, so that both are visible without colour."""
    if marked:
        return "*›" if cursor else "* "
    return "› " if cursor else "  "


def _name_parts(row: BarRow, text: str, width: int, column: Column) -> list[tuple[Component, str]]:
    """Divide the flexible column between the name and the flag.

    Where there is not enough room, the flag keeps its sign at least; one without a sign goes.
    """
    name: Component = "" if row.tone == "normal" else row.tone
    flag_text = row.flag
    flag_room = width - GAP - min(cell_len(text), MINIMUM_NAME)
    if cell_len(flag_text) > flag_room:
        if flag_room >= _MIN_CUT_FLAG:
            flag_text = fit_cells(flag_text, flag_room).rstrip()
        else:
            flag_text = "" if flag_text[:1].isalnum() else flag_text[:1]
    flag_width = cell_len(flag_text) + GAP if flag_text else 0
    has_flag = 0 < flag_width < width
    room = width - flag_width if has_flag else width
    if has_flag and column.text_cells:
        room = min(room, max(column.text_cells, cell_len(text)))
    if column.keep_end:
        text = fit_end(text, room)
    elif column.keep_ends:
        text = fit_ends(text, room)
    parts = [(name, fit_cells(text, room, right=column.right))]
    return (
        [*parts, (row.flag_tone, fit_cells(" " * GAP + flag_text, width - room))]
        if has_flag
        else parts
    )
