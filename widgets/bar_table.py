"""A scrolling list of rows with bars that draws only the rows in view."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from widgets.bar_row import BarRow, Column, check_columns, header_line, row_parts
from widgets.cell_drawing import fit_cells
from widgets.row_cursor import RowCursor

__all__ = ["BarRow", "BarTable", "Column"]

HEADER_HEIGHT = 1

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


class BarTable(ScrollView, can_focus=True, inherit_bindings=False):
    """A list of rows with a header that stays, a cursor, marks and bars.

    Rows are kept as the sequence given, not copied, and drawn on demand: a million of them
    scroll like ten. The sequence must not change after it was given.
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
        & > .bar-list--mark { color: $accent; text-style: bold; }
        & > .bar-list--muted { color: $text-muted; }
        & > .bar-list--directory { color: $text-primary; }
        & > .bar-list--warning { color: $text-warning; }
        & > .bar-list--danger { color: $text-error; text-style: bold; }
        &:focus > .bar-list--cursor { background: $primary 30%; }
    }
    """

    ALLOW_SELECT = False

    empty_text: reactive[str] = reactive("")
    """Shown when there are no rows."""

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

    class MarkToggled(_AboutRow):
        """The user asked to mark a row or to remove its mark; the caller replaces the rows."""

    def __init__(
        self,
        columns: Sequence[Column] = (Column("name", 0),),
        *,
        empty_text: str = "",
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        """Create a list without rows.

        Raises:
            ValueError: If not exactly one column takes the remaining width.
        """
        super().__init__(name=name, id=id, classes=classes)
        self.set_reactive(BarTable.empty_text, empty_text)
        self._columns: tuple[Column, ...] = ()
        self._cursor = RowCursor()
        self.set_columns(columns)

    @property
    def cursor_row(self) -> BarRow | None:
        """The row under the cursor; None when there are no rows."""
        return self._cursor.row

    def set_columns(self, columns: Sequence[Column]) -> None:
        """Replace the columns.

        Raises:
            ValueError: If not exactly one column takes the remaining width.
        """
        check_columns(columns)
        self._columns = tuple(columns)
        self.refresh()

    def set_rows(self, rows: Sequence[BarRow], keep_cursor: bool = True) -> None:
        """Replace the rows.

        Args:
            rows: The new rows, which may be the old ones in another order.
            keep_cursor: Leave the cursor on the same key, or at the same index when the key has
                gone; otherwise the cursor and the view go to the top.
        """
        # A view that was scrolled away from the cursor with the mouse stays where it is.
        follow = not keep_cursor or self._cursor.is_visible(self.scroll_offset.y, self._height)
        self._cursor.replace_rows(rows, keep=keep_cursor)
        self.virtual_size = Size(0, len(rows) + HEADER_HEIGHT if rows else 0)
        if follow:
            self._reveal_cursor()
        else:
            self._show_from(self._cursor.bounded_top(self.scroll_offset.y, self._height))
        self.refresh()

    def move_to(self, key: str) -> None:
        """Put the cursor on the row with this key, if there is one, and bring it into view."""
        self._cursor.go_to_key(key)
        self._reveal_cursor()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw one line of the viewport; the first is the header."""
        width = self.scrollable_content_region.width
        base = self.rich_style
        if y < HEADER_HEIGHT:
            text = header_line(self._columns, width)
            return self._strip([Segment(text, base + self._style("header"))], base)
        index = self.scroll_offset.y + y - HEADER_HEIGHT
        if index < len(self._cursor.rows):
            return self._render_row(index, width)
        if not self._cursor.rows and y == HEADER_HEIGHT + 1:
            text = fit_cells("  " + self.empty_text, width)
            return self._strip([Segment(text, base + self._style("muted"))], base)
        return Strip.blank(self.size.width, base)

    def action_move(self, rows: int) -> None:
        """Move the cursor by a number of rows."""
        self._move_cursor(self._cursor.index + rows)

    def action_page(self, pages: int) -> None:
        """Move the cursor by a number of pages, with one row of overlap."""
        self._move_cursor(self._cursor.index + pages * max(1, self._height - 1))

    def action_top(self) -> None:
        """Move the cursor to the first row."""
        self._move_cursor(0)

    def action_bottom(self) -> None:
        """Move the cursor to the last row."""
        self._move_cursor(len(self._cursor.rows) - 1)

    def action_open(self) -> None:
        """Ask for the row under the cursor to be opened."""
        if (row := self.cursor_row) is not None:
            self.post_message(self.Opened(self, row))

    def action_toggle_mark(self) -> None:
        """Ask for the row under the cursor to be marked, and move down."""
        if (row := self.cursor_row) is not None:
            # First the move: a screen that replaces the rows must know that the cursor is kept.
            self.action_move(1)
            self.post_message(self.MarkToggled(self, row))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the row that was clicked; a click on the cursor row opens it."""
        offset = event.get_content_offset(self)
        if offset is None or offset.y < HEADER_HEIGHT:
            return
        index = self.scroll_offset.y + offset.y - HEADER_HEIGHT
        if index >= len(self._cursor.rows):
            return
        event.stop()
        if index == self._cursor.index:
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
        """Move the cursor for the user and say so when the row is another one."""
        moved = self._cursor.go_to(index)
        self._reveal_cursor()
        if moved and (row := self.cursor_row) is not None:
            self.refresh()
            self.post_message(self.Highlighted(self, row))

    def _reveal_cursor(self) -> None:
        """Scroll as little as brings the cursor row into view."""
        self._show_from(self._cursor.revealing_top(self.scroll_offset.y, self._height))

    def _show_from(self, top: int) -> None:
        """Make a row the first one in view; before the first layout there is no view."""
        if self._height:
            self.scroll_to(y=top, animate=False, force=True, immediate=True)

    def _render_row(self, index: int, width: int) -> Strip:
        """Draw the row at an index."""
        row = self._cursor.rows[index]
        is_cursor = index == self._cursor.index
        base = self.rich_style
        if is_cursor:
            base += self._style("cursor")
        segments = [
            Segment(text, base + self._style(component) if component else base)
            for component, text in row_parts(row, self._columns, width, cursor=is_cursor)
        ]
        return self._strip(segments, base)

    def _style(self, name: str) -> Style:
        """The style of a component; only the cursor's has a background."""
        style = self.get_component_rich_style(f"bar-list--{name}")
        return style if name == "cursor" else style.without_color + Style(color=style.color)

    def _strip(self, segments: list[Segment], base: Style) -> Strip:
        """Make a line of exactly the width in view."""
        return Strip(segments).adjust_cell_length(self.size.width, base)
