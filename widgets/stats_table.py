"""A table of figures; one that is too wide goes on below itself."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Protocol

from rich.cells import cell_len

from widgets.cell_drawing import fit_cells
from widgets.fitted_lines import Line

GAP = 2


class FigureRow(Protocol):
    """Formatted cells, the first one a name; the note says why there are none, or what of it."""

    @property
    def cells(self) -> Sequence[str]: ...
    @property
    def note(self) -> str: ...


def layout_table(columns: Sequence[str], rows: Sequence[FigureRow], width: int) -> list[Line]:
    """Draw titles and rows; figures stand right, and columns that do not fit follow below.

    A name that is too long takes further lines.

    Args:
        columns: titles, the first one of the names.
        rows: cells missing at the end are blank; a row stands only where it has a figure, and one
            without any stands in the first part.
        width: cells of a line.
    """
    wanted = [
        max([cell_len(title), *(cell_len(_cell(row, index)) for row in rows)])
        for index, title in enumerate(columns)
    ]
    figures = sum(wanted[1:]) + GAP * (len(wanted) - 1)
    # Beside a name of a third of the line, or of what is left if that is more.
    name = max(1, min(wanted[0], max(width // 3, width - figures)))
    lines: list[Line] = []
    for part in _parts(wanted, width - name):
        if lines:
            lines.append((("", ""),))
        title = fit_cells(columns[0], name)
        lines.append((("muted", title + _figures(columns, part, wanted, width - name)),))
        for row in rows:
            is_said = part[0] == 1 and (row.note or not any(row.cells[1:]))
            if not is_said and not any(_cell(row, index) for index in part):
                continue
            first, *further = wrapped(_cell(row, 0), name)
            lines.append((("", first + _figures(row.cells, part, wanted, width - name)),))
            lines += [(("", line),) for line in further]
            if row.note and part[0] == 1:
                for line in textwrap.wrap(row.note, max(10, width - 2)):
                    lines.append((("muted", fit_cells("  " + line, width)),))
    return lines


def wrapped(text: str, width: int) -> list[str]:
    """Return a text in lines of exactly `width` cells, all but the first one indented."""
    room = max(4, width)
    lines = textwrap.wrap(text, room, subsequent_indent="  ", break_on_hyphens=False) or [""]
    return [fit_cells(line, width) for line in lines]


def _cell(row: FigureRow, index: int) -> str:
    return row.cells[index] if index < len(row.cells) else ""


def _parts(wanted: Sequence[int], room: int) -> list[list[int]]:
    """Share the columns of figures among as many tables as need be."""
    parts: list[list[int]] = [[]]
    used = 0
    for index in range(1, len(wanted)):
        cells = wanted[index] + GAP
        if parts[-1] and used + cells > room:
            parts.append([])
            used = 0
        parts[-1].append(index)
        used += cells
    return parts if parts[0] else [[1]]


def _figures(cells: Sequence[str], part: Sequence[int], wanted: Sequence[int], room: int) -> str:
    text = ""
    for index in part:
        if index < len(wanted):
            cell = cells[index] if index < len(cells) else ""
            text += " " * GAP + fit_cells(cell, min(wanted[index], room - GAP), right=True)
    return text
