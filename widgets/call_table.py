"""A live table of counters, one system call a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from tui_fs.widgets.cell_drawing import dots, fit_cells, styled_line
from tui_fs.widgets.rate_graph import draw_graph

INDENT = 2
GAP = 2

TITLES = (
    *("group", "call", "calls", "predicted", "done", "errors ", "/s", "time", "share"),
    *("", "rate over the run"),
)

MEANINGS = {
    "group": "what the calls are for",
    "call": "the system call",
    "calls": "how often it is made",
    "predicted": "how often it was expected",
    "done": "the part of the predicted calls that was made",
    "errors": "how many calls returned an error, and what that means; ! marks failures",
    "/s": "calls per second",
    "time": "the part of the time in all calls",
    "share": "the part of all calls",
    "rate over the run": "calls per second from the start until now; each row has its own scale",
}
"""What each column holds, for a legend."""

_GROUP, _NAME, _CALLS, _PREDICTED, _DONE, _ERRORS, _RATE, _TIME, _SHARE, _NOTE, _TREND = range(11)
_LEFT_ALIGNED = (_GROUP, _NAME, _NOTE, _TREND)

_FIRST_WIDTHS = (0, 12, 9, 0, 0, 0, 0, 0, 0, 0, 0)

LIVE_WIDTHS = (11, 12, 9, 9, 6, 7, 7, 0, 6, 14, 17)
"""Cells for 9,999,999 calls, for newfstatat and for all notes, so that an ordinary run never moves
a column."""

# The columns that a narrow line drops, in this order; errors and calls always stay.
_DROPPED_FIRST = (_TREND, _GROUP, _SHARE, _DONE, _TIME, _NOTE, _RATE, _PREDICTED)
_MIN_NOTE, _MAX_TREND = 10, 40

Component = Literal["", "header", "strong", "error", "muted", "trend", "cursor"]
TableLine = tuple[tuple[Component, str], ...]
"""A line of the table as coloured pieces of text."""


@dataclass(frozen=True, slots=True)
class CallRow:
    """A row of formatted counters; an empty text leaves its cell blank.

    Attributes:
        name: The system call.
        calls: Number of calls so far.
        predicted: Number of calls expected.
        done: Part of the predicted calls.
        errors: Number of calls that returned an error.
        rate: Calls per second.
        time: Part of the time in all calls.
        share: Part of all calls.
        note: Displayable meaning of the errors.
        trend: Rates since the start, the oldest first.
        group: What the calls are for; the rows of a group follow each other.
        has_failed: The errors are failures.
        emphasised: Drawn bold.
    """

    name: str
    calls: str
    predicted: str = ""
    done: str = ""
    errors: str = ""
    rate: str = ""
    time: str = ""
    share: str = ""
    note: str = ""
    trend: tuple[float, ...] = ()
    group: str = ""
    has_failed: bool = False
    emphasised: bool = False


def grow_widths(rows: Sequence[CallRow], widths: Sequence[int]) -> tuple[int, ...]:
    """Widen columns for these rows; none shrinks, so that a live table never jumps.

    Args:
        rows: The rows to be drawn.
        widths: Cells per column so far, 0 for a column not yet drawn.
    """
    lines = [_cells(row) for row in rows]
    grown: list[int] = []
    for column, width in enumerate(widths or _FIRST_WIDTHS):
        texts = [line[column] for line in lines if line[column]]
        grown.append(max([width, *map(cell_len, [TITLES[column], *texts] if texts else [])]))
    # The calls will become about as many as predicted.
    grown[_CALLS] = max(grown[_CALLS], *(cell_len(row.predicted) for row in rows), 0)
    return tuple(grown)


def layout_rows(
    rows: Sequence[CallRow],
    width: int,
    height: int,
    widths: Sequence[int] = (),
    cursor: int | None = None,
) -> list[TableLine]:
    """Draw a header and as many rows as fit.

    Args:
        rows: The rows from top to bottom.
        width: Cells of a line.
        height: Lines for header and rows; the last line counts the rows that do not fit.
        widths: Cells per column so far, as `grow_widths` returned them.
        cursor: Index of the row under the cursor.
    """
    if not rows or height <= 0:
        return []
    widths = _fit_columns(grow_widths(rows, widths), width)
    shown = len(rows) if len(rows) < height else max(0, height - 2)
    lines = [_line(TITLES, widths, "header")]
    group = ""
    for index, row in enumerate(rows[:shown]):
        cells = list(_cells(row))
        cells[_GROUP] = row.group if row.group != group else ""
        cells[_TREND] = draw_graph(row.trend, widths[_TREND])[0] if widths[_TREND] else ""
        group = row.group
        component: Component = "strong" if row.emphasised else ""
        component = "cursor" if index == cursor else component
        lines.append(_line(cells, widths, component, row.has_failed))
    if shown < len(rows):
        more = f"{' ' * INDENT}{dots()} {len(rows) - shown:,} more"
        lines.append((("muted", fit_cells(more, width)),))
    return lines[:height]


class CallTable(Widget):
    """A title, the table and a footer below its last row; it has a cursor if it can be focused."""

    class Opened(Message):
        """The user wants to know more of a row."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    BINDINGS = [
        Binding("down,j", "move(1)", tooltip="Move to the next call"),
        Binding("up,k", "move(-1)", tooltip="Move to the previous call"),
        Binding("enter", "open", tooltip="Explain the call"),
    ]

    COMPONENT_CLASSES = {
        "call-table--header",
        "call-table--strong",
        "call-table--error",
        "call-table--muted",
        "call-table--trend",
        "call-table--cursor",
    }

    DEFAULT_CSS = """
    CallTable {
        height: auto;
        max-height: 100%;

        & > .call-table--header { color: $text-muted; }
        & > .call-table--strong { text-style: bold; }
        & > .call-table--error { color: $text-error; text-style: bold; }
        & > .call-table--muted { color: $text-muted; }
        & > .call-table--trend { color: $primary 80%; }
        & > .call-table--cursor { background: $primary 30%; }
        &:ansi > .call-table--cursor { background: transparent; text-style: reverse; }
    }
    """

    title: reactive[str] = reactive("", layout=True)
    """Displayable text; bold up to its first `·`."""

    rows: reactive[tuple[CallRow, ...]] = reactive[tuple[CallRow, ...]]((), layout=True)
    """The rows from top to bottom."""

    footer: reactive[str] = reactive("", layout=True)
    """Displayable text below the rows."""

    cursor: reactive[int] = reactive(0)
    """Index of the row under the cursor, drawn while the table has the focus."""

    def __init__(
        self, widths: tuple[int, ...] = (), *, can_focus: bool = False, id: str | None = None
    ) -> None:
        """Create an empty table.

        Args:
            widths: Cells per column from the start; columns grow as rows need them.
            can_focus: The user can move through the rows.
            id: The widget's id.
        """
        super().__init__(id=id)
        self.can_focus = can_focus
        self._widths = widths

    def watch_rows(self, rows: tuple[CallRow, ...]) -> None:
        """Remember the widest cells."""
        self._widths = grow_widths(rows, self._widths)

    def validate_cursor(self, cursor: int) -> int:
        """Keep the cursor on a row."""
        return max(0, min(cursor, len(self.rows) - 1))

    def action_move(self, rows: int) -> None:
        """Move the cursor."""
        self.cursor += rows

    def action_open(self) -> None:
        """Ask for more of the row under the cursor."""
        if self.rows:
            self.post_message(self.Opened(self.rows[self.validate_cursor(self.cursor)].name))

    def on_click(self, event: events.Click) -> None:
        """Explain the row under the pointer."""
        index = event.get_content_offset_capture(self).y - bool(self.title) - 1
        if self.can_focus and 0 <= index < len(self.rows):
            self.cursor = index
            self.action_open()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        """Count the lines of the whole table."""
        table = len(self.rows) + 1 if self.rows else 0
        return bool(self.title) + table + bool(self.footer)

    def legend(self) -> dict[str, str]:
        """Return the meaning of each column that is drawn now."""
        if not self.rows:
            return {}
        widths = _fit_columns(grow_widths(self.rows, self._widths), self.content_size.width)
        drawn = (title.strip() for title, cells in zip(TITLES, widths, strict=True) if cells)
        return {title: MEANINGS[title] for title in drawn if title}

    def render(self) -> Text:
        """Draw the rows that fit into the widget."""
        width, height = self.content_size
        lines: list[Text] = []
        if self.title:
            name, dot, rest = self.title.partition("·")
            title = (("strong", name), ("muted", dot + rest))
            lines.append(styled_line(self, "call-table", title))
        room = height - len(lines) - bool(self.footer)
        lines += [
            styled_line(self, "call-table", parts)
            for parts in layout_rows(
                self.rows, width, room, self._widths, self.cursor if self.has_focus else None
            )
        ]
        if self.footer:
            lines.append(styled_line(self, "call-table", (("muted", self.footer),)))
        for line in lines:
            line.truncate(width, overflow="ellipsis")
        return Text("\n", no_wrap=True, overflow="crop", end="").join(lines)


def _cells(row: CallRow) -> tuple[str, ...]:
    """Return the texts of a row in the order of the columns."""
    return (
        row.group,
        row.name,
        row.calls,
        row.predicted,
        row.done,
        # Every row reserves the sign's cell, so that the digits are aligned.
        row.errors and row.errors + ("!" if row.has_failed else " "),
        row.rate,
        row.time,
        row.share,
        row.note,
        " " if row.trend else "",
    )


def _fit_columns(widths: tuple[int, ...], width: int) -> tuple[int, ...]:
    """Drop columns until the rest fits; note and graph get the remaining cells."""
    kept = list(widths)
    for column in (None, *_DROPPED_FIRST):
        if column is not None:
            kept[column] = 0
        used = INDENT + sum(cells + GAP for cells in kept if cells) - GAP
        if used <= width:
            break
    room = width - used - GAP
    if kept[_TREND]:
        kept[_TREND] = min(_MAX_TREND, kept[_TREND] + room + GAP)
    elif widths[_NOTE] and not kept[_NOTE] and room >= _MIN_NOTE:
        kept[_NOTE] = min(widths[_NOTE], room)
    return tuple(kept)


def _line(
    cells: Sequence[str], widths: tuple[int, ...], component: Component, failed: bool = False
) -> TableLine:
    """Draw cells at their columns; names, notes and graphs on the left, figures on the right."""
    parts: list[tuple[Component, str]] = [(component, " " * (INDENT - GAP))]
    for column, (text, cell_width) in enumerate(zip(cells, widths, strict=True)):
        if not cell_width:
            continue
        parts.append((component, " " * GAP))
        own: Component = component
        if column in (_ERRORS, _NOTE) and failed and component != "cursor":
            own = "error"
        elif component in ("", "strong") and column in (_GROUP, _NOTE, _ERRORS):
            own = "muted"
        elif component in ("", "strong") and column == _TREND:
            own = "trend"
        parts.append((own, fit_cells(text, cell_width, right=column not in _LEFT_ALIGNED)))
    return tuple(parts)
