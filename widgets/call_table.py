"""A live table of counters, one system call a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.text import Text
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget

from widgets.cell_drawing import fit_cells, styled_line

INDENT = 2
GAP = 2

TITLES = ("call", "calls", "predicted", "done", "errors ", "/s", "share", "")

MEANINGS = {
    "call": "the system call",
    "calls": "how often it was made",
    "predicted": "how often it was expected",
    "done": "the part of the predicted calls that was made",
    "errors": "how many of the calls failed",
    "/s": "calls per second",
    "share": "the part of the time in all calls",
}
"""What each column holds, for a legend."""

_NAME, _CALLS, _PREDICTED, _DONE, _ERRORS, _RATE, _SHARE, _NOTE = range(8)

# Room for 9,999,999 calls and for newfstatat, so that an ordinary run never moves a column.
_FIRST_WIDTHS = (12, 9, 0, 0, 0, 0, 0, 0)

# The columns that a narrow line drops, in this order; errors and calls always stay.
_DROPPED_FIRST = (_SHARE, _DONE, _RATE, _PREDICTED)

Component = Literal["", "header", "strong", "error", "muted"]
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
        errors: Number of calls that failed.
        rate: Calls per second.
        share: Part of the time or of all calls.
        note: Displayable remark after the figures.
        emphasised: Drawn bold.
    """

    name: str
    calls: str
    predicted: str = ""
    done: str = ""
    errors: str = ""
    rate: str = ""
    share: str = ""
    note: str = ""
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
    return tuple(grown)


def layout_rows(
    rows: Sequence[CallRow], width: int, height: int, widths: Sequence[int] = ()
) -> list[TableLine]:
    """Draw a header and as many rows as fit.

    Args:
        rows: The rows from top to bottom.
        width: Cells of a line.
        height: Lines for header and rows; the last line counts the rows that do not fit.
        widths: Cells per column so far, as `grow_widths` returned them.
    """
    if not rows or height <= 0:
        return []
    widths = _fit_columns(grow_widths(rows, widths), width)
    shown = len(rows) if len(rows) < height else max(0, height - 2)
    lines = [_line(TITLES, widths, "header")]
    lines += [_row_line(row, widths) for row in rows[:shown]]
    if shown < len(rows):
        more = f"{' ' * INDENT}… {len(rows) - shown:,} more"
        lines.append((("muted", fit_cells(more, width)),))
    return lines[:height]


class CallTable(Widget):
    """A title, the table and a footer below its last row."""

    COMPONENT_CLASSES = {
        "call-table--header",
        "call-table--strong",
        "call-table--error",
        "call-table--muted",
    }

    DEFAULT_CSS = """
    CallTable {
        height: auto;
        max-height: 100%;

        & > .call-table--header { color: $text-muted; }
        & > .call-table--strong { text-style: bold; }
        & > .call-table--error { color: $text-error; text-style: bold; }
        & > .call-table--muted { color: $text-muted; }
    }
    """

    title: reactive[str] = reactive("", layout=True)
    """Displayable text; bold up to its first `·`."""

    rows: reactive[tuple[CallRow, ...]] = reactive[tuple[CallRow, ...]]((), layout=True)
    """The rows from top to bottom."""

    footer: reactive[str] = reactive("", layout=True)
    """Displayable text below the rows."""

    _widths: tuple[int, ...] = ()

    def watch_rows(self, rows: tuple[CallRow, ...]) -> None:
        """Remember the widest cells."""
        self._widths = grow_widths(rows, self._widths)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        """Count the lines of the whole table."""
        table = len(self.rows) + 1 if self.rows else 0
        return bool(self.title) + table + bool(self.footer)

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
            for parts in layout_rows(self.rows, width, room, self._widths)
        ]
        if self.footer:
            lines.append(styled_line(self, "call-table", (("muted", self.footer),)))
        for line in lines:
            line.truncate(width, overflow="ellipsis")
        return Text("\n", no_wrap=True, overflow="crop", end="").join(lines)


def _cells(row: CallRow) -> tuple[str, ...]:
    """Return the texts of a row in the order of the columns."""
    return (
        row.name,
        row.calls,
        row.predicted,
        row.done,
        # Every row reserves the sign's cell, so that the digits are aligned.
        row.errors and row.errors + ("!" if _has_failed(row) else " "),
        row.rate,
        row.share,
        row.note,
    )


def _has_failed(row: CallRow) -> bool:
    return row.errors not in ("", "0")


def _fit_columns(widths: tuple[int, ...], width: int) -> tuple[int, ...]:
    """Drop columns until the rest fits; the note gets the remaining cells."""
    kept = list(widths)
    for column in (None, *_DROPPED_FIRST):
        if column is not None:
            kept[column] = 0
        used = INDENT + sum(cells + GAP for cells in kept[:_NOTE] if cells)
        if used - GAP <= width:
            break
    kept[_NOTE] = max(0, min(kept[_NOTE], width - used))
    return tuple(kept)


def _row_line(row: CallRow, widths: tuple[int, ...]) -> TableLine:
    return _line(_cells(row), widths, "strong" if row.emphasised else "", _has_failed(row))


def _line(
    cells: Sequence[str], widths: tuple[int, ...], component: Component, failed: bool = False
) -> TableLine:
    """Draw cells at their columns; names and notes on the left, figures on the right."""
    parts: list[tuple[Component, str]] = [(component, " " * INDENT)]
    for column, (text, cell_width) in enumerate(zip(cells, widths, strict=True)):
        if not cell_width:
            continue
        if column:
            parts.append((component, " " * GAP))
        right = column not in (_NAME, _NOTE)
        own: Component = component
        if column == _ERRORS and failed:
            own = "error"
        elif column == _NOTE:
            own = "muted"
        parts.append((own, fit_cells(text, cell_width, right=right)))
    return tuple(parts)
