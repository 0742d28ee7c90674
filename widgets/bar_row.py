"""One line of a bar list: its data, and its layout as plain pieces of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len

from widgets.cell_drawing import eighth_blocks, fit_cells, fit_end

GUTTER = 2
GAP = 2

# Below this a name says nothing; the bar gives up its cells first.
MINIMUM_FLEXIBLE = 12

Tone = Literal["normal", "muted", "directory", "warning", "danger"]
Component = Literal["", "bar", "mark", "muted", "directory", "warning", "danger"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a bar list.

    Attributes:
        title: Drawn in the header.
        width: Cells; 0 takes the remaining width, which exactly one column must do.
        right: Align title and cells at the right.
        bar: Draw the row's fraction as a bar; the row's cell text is ignored.
        keep_end: A text that is too long loses its beginning, as suits a path; only for the
            column that takes the remaining width.
    """

    title: str
    width: int
    right: bool = False
    bar: bool = False
    keep_end: bool = False


@dataclass(frozen=True, slots=True)
class BarRow:
    """A row of a bar list.

    Attributes:
        key: Names the row when the rows are sorted again or replaced.
        cells: Displayable texts, one per column.
        fraction: Length of the bar, 0..1; None draws no bar.
        marked: Drawn as `*` in the gutter.
        flag: Short text at the end of the flexible column.
        tone: Colour of the name, or, for warning and danger, of the flag.
    """

    key: str
    cells: tuple[str, ...]
    fraction: float | None = None
    marked: bool = False
    flag: str = ""
    tone: Tone = "normal"


def check_columns(columns: Sequence[Column]) -> None:
    """Refuse columns that cannot be laid out.

    Raises:
        ValueError: If not exactly one column takes the remaining width.
    """
    flexible = [column for column in columns if column.width == 0]
    if len(flexible) != 1 or flexible[0].bar:
        raise ValueError("exactly one column without a bar must have width 0")


def column_widths(columns: Sequence[Column], width: int) -> tuple[int, ...]:
    """Distribute a line's cells among the columns.

    Args:
        columns: Exactly one of them with width 0.
        width: Cells of the whole line, with the gutter.
    """
    fixed = sum(column.width for column in columns)
    flexible = width - GUTTER - GAP * (len(columns) - 1) - fixed
    bar_loss = max(0, MINIMUM_FLEXIBLE - flexible)
    widths: list[int] = []
    for column in columns:
        if column.bar:
            lost = min(column.width, bar_loss)
            bar_loss -= lost
            flexible += lost
            widths.append(column.width - lost)
        else:
            widths.append(column.width)
    return tuple(
        max(0, flexible) if column.width == 0 else cells
        for column, cells in zip(columns, widths, strict=True)
    )


def header_line(columns: Sequence[Column], width: int) -> str:
    """Draw the line of column titles."""
    titles = (
        fit_cells(column.title, cells, right=column.right)
        for column, cells in zip(columns, column_widths(columns, width), strict=True)
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
    for index, (column, cells) in enumerate(
        zip(columns, column_widths(columns, width), strict=True)
    ):
        if index:
            parts.append((plain, " " * GAP))
        text = row.cells[index] if index < len(row.cells) else ""
        if column.bar:
            parts.append((bar, fit_cells(eighth_blocks(row.fraction or 0.0, cells), cells)))
        elif column.width == 0:
            parts.extend(_name_parts(row, text, cells, column))
        else:
            parts.append((plain, fit_cells(text, cells, right=column.right)))
    return parts


def _gutter(marked: bool, cursor: bool) -> str:
    """Show mark and cursor by signs, so that both are seen without colour."""
    if marked:
        return "*›" if cursor else "* "
    return "› " if cursor else "  "


def _name_parts(row: BarRow, text: str, width: int, column: Column) -> list[tuple[Component, str]]:
    """Share the flexible column between the name and the flag; the flag is never cut."""
    name: Component = row.tone if row.tone in ("muted", "directory") else ""
    flag: Component = row.tone if row.tone in ("warning", "danger") else "muted"
    flag_width = cell_len(row.flag) + GAP if row.flag else 0
    has_flag = 0 < flag_width < width
    room = width - flag_width if has_flag else width
    if column.keep_end:
        text = fit_end(text, room)
    parts = [(name, fit_cells(text, room, right=column.right))]
    return [*parts, (flag, " " * GAP + row.flag)] if has_flag else parts
