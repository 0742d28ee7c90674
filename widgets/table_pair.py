"""Two tables of counts side by side, their rows matched by name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from rich.cells import cell_len

from widgets.cell_drawing import fit_cells
from widgets.fitted_lines import Line
from widgets.stats_table import FigureRow, wrapped

NOT_THERE = "–"
_MOST_NAME, _LEAST_NAME = 18, 8
_BETWEEN = " │ "


class CountTable(Protocol):
    """A table whose first column is the name; a count comes second."""

    @property
    def title(self) -> str: ...
    @property
    def rows(self) -> Sequence[FigureRow]: ...


def layout_pair(
    tables: Sequence[CountTable],
    columns: Sequence[str],
    width: int,
    *,
    given_up: Sequence[int] = (),
    strong: Collection[str] = (),
) -> list[Line]:
    """Draw tables beside each other, one line for every name that any of them has.

    Args:
        tables: one or two, their texts displayable; names stand in the order of the first table,
            each of the others where it follows in the second.
        columns: titles; the first one of the names.
        width: cells of a line.
        given_up: columns to leave out when the line is too narrow, in this order; columns that
            are empty everywhere are left out anyway.
        strong: names drawn bold.
    """
    if not tables:
        return []
    found = [{row.cells[0]: row.cells for row in table.rows if row.cells} for table in tables]
    names = _merged([list(one) for one in found])
    name_cells = max([len(columns[0]), *(cell_len(name) for name in names)])
    name_cells = max(_LEAST_NAME, min(name_cells, _MOST_NAME))
    half = (width - name_cells - len(_BETWEEN) * len(tables)) // len(tables)
    widths = _widths(found, columns, half, given_up)
    half = min(half, max([_used(widths), *(cell_len(table.title) for table in tables)]))
    heads: list[tuple[str, str]] = [("muted", fit_cells(columns[0], name_cells))]
    for _ in tables:
        heads += [("faint", _BETWEEN), ("muted", _counts(columns, widths, half))]
    lines = [*_titles(tables, name_cells, half), tuple(heads)]
    for name in names:
        style = "strong" if name in strong else ""
        pieces = [(style, fit_cells(name, name_cells))]
        for one in found:
            cells = one.get(name)
            pieces.append(("faint", _BETWEEN))
            if cells is None:
                pieces.append(("faint", _counts(("", NOT_THERE), widths, half)))
            else:
                pieces.append((style, _counts(cells, widths, half)))
        lines.append(tuple(pieces))
    return lines


def _titles(tables: Sequence[CountTable], name_cells: int, half: int) -> list[Line]:
    """Draw the titles above their sides, in as many lines as the longest one needs."""
    titles = [wrapped(table.title, half) for table in tables]
    lines: list[Line] = []
    for number in range(max(map(len, titles))):
        pieces = [("", " " * name_cells)]
        for title in titles:
            text = title[number] if number < len(title) else " " * half
            pieces += [("faint", _BETWEEN), ("strong", text)]
        lines.append(tuple(pieces))
    return lines


def _merged(orders: Sequence[Sequence[str]]) -> list[str]:
    """Join lists of names so that each of them keeps its order as far as that is possible."""
    merged = list(orders[0])
    for order in orders[1:]:
        place = 0
        for name in order:
            if name in merged:
                place = max(place, merged.index(name) + 1)
            else:
                merged.insert(place, name)
                place += 1
    return merged


def _widths(
    found: Sequence[dict[str, Sequence[str]]],
    columns: Sequence[str],
    half: int,
    given_up: Sequence[int],
) -> list[int]:
    """Return the cells of every column, 0 for one that is left out; the first is not drawn here."""
    widths = [0] * len(columns)
    for index in range(1, len(columns)):
        texts = [cells[index] for one in found for cells in one.values() if index < len(cells)]
        if any(texts) or index == 1:
            widths[index] = max([len(columns[index]), *map(cell_len, texts)])
    for index in given_up:
        if _used(widths) <= half:
            break
        widths[index] = 0
    return widths


def _used(widths: Sequence[int]) -> int:
    return sum(cells + 1 for cells in widths if cells) - 1


def _counts(cells: Sequence[str], widths: Sequence[int], half: int) -> str:
    """Draw the figures of one side in exactly its cells."""
    texts = []
    for index, cell_width in enumerate(widths):
        if cell_width:
            cell = cells[index] if index < len(cells) else ""
            texts.append(fit_cells(cell, cell_width, right=True))
    return fit_cells(" ".join(texts), half)
