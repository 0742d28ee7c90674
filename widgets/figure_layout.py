"""Tables, pairs of tables and bars, laid out as lines of coloured pieces for any width."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby
from typing import Protocol

from rich.cells import cell_len

from tui_fs.widgets.cell_drawing import eighth_blocks, fit_cells

Line = tuple[tuple[str, str], ...]
"""Pieces of a line: a component's name, empty for plain text, and the text."""

GAP = 2
NOT_THERE = "–"
_MAX_NAME, _MIN_NAME = 18, 8
_BETWEEN = " │ "

# A shorter bar shows no length; the label is cut first.
MINIMUM_BAR = 12
_MAX_PAIR_BAR = 40

PUBLISHED = "◆"
LEGEND = f"█ to minimum   ▒ to median   ─┤ to maximum   {PUBLISHED} published"


class FigureRow(Protocol):
    """Formatted cells, the first one a name; the note explains the row."""

    @property
    def cells(self) -> Sequence[str]: ...
    @property
    def note(self) -> str: ...


def layout_table(columns: Sequence[str], rows: Sequence[FigureRow], width: int) -> list[Line]:
    """Draw titles and right-aligned figures; columns that do not fit follow in further parts.

    A long name takes further lines.

    Args:
        columns: titles; the first one is that of the names.
        rows: cells missing at the end are blank; a part contains only rows with a figure in it,
            and the first part also the rows with a note or without any figure.
        width: cells of a line.
    """
    widths = [
        max([cell_len(title), *(cell_len(_cell(row, index)) for row in rows)])
        for index, title in enumerate(columns)
    ]
    figures = sum(widths[1:]) + GAP * (len(widths) - 1)
    # The name gets a third of the line, or the rest of it if that is more.
    name_width = max(1, min(widths[0], max(width // 3, width - figures)))
    lines: list[Line] = []
    for part in _parts(widths, width - name_width):
        if lines:
            lines.append((("", ""),))
        title = fit_cells(columns[0], name_width)
        lines.append((("muted", title + _figures(columns, part, widths, width - name_width)),))
        for row in rows:
            is_required = part[0] == 1 and (row.note or not any(row.cells[1:]))
            if not is_required and not any(_cell(row, index) for index in part):
                continue
            first, *further = wrapped(_cell(row, 0), name_width)
            lines.append((("", first + _figures(row.cells, part, widths, width - name_width)),))
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


def _parts(widths: Sequence[int], room: int) -> list[list[int]]:
    """Distribute the columns of figures over as few tables as possible."""
    parts: list[list[int]] = [[]]
    used = 0
    for index in range(1, len(widths)):
        cells = widths[index] + GAP
        if parts[-1] and used + cells > room:
            parts.append([])
            used = 0
        parts[-1].append(index)
        used += cells
    return parts if parts[0] else [[1]]


def _figures(cells: Sequence[str], part: Sequence[int], widths: Sequence[int], room: int) -> str:
    text = ""
    for index in part:
        if index < len(widths):
            cell = cells[index] if index < len(cells) else ""
            text += " " * GAP + fit_cells(cell, min(widths[index], room - GAP), right=True)
    return text


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
    """Draw tables side by side, with a line for every name in any of them.

    Args:
        tables: one or two, their texts displayable; the names have the order of the first table,
            and a name that only the second has follows its predecessor there.
        columns: titles; the first one is that of the names.
        width: cells of a line.
        given_up: columns to leave out when the line is too narrow, in this order; columns that
            are empty everywhere are left out anyway.
        strong: names drawn bold.
    """
    if not tables:
        return []
    by_name = [{row.cells[0]: row.cells for row in table.rows if row.cells} for table in tables]
    names = _merged([list(rows) for rows in by_name])
    name_cells = max([len(columns[0]), *(cell_len(name) for name in names)])
    name_cells = max(_MIN_NAME, min(name_cells, _MAX_NAME))
    half = (width - name_cells - len(_BETWEEN) * len(tables)) // len(tables)
    widths = _widths(by_name, columns, half, given_up)
    half = min(half, max([_used(widths), *(cell_len(table.title) for table in tables)]))
    heads: list[tuple[str, str]] = [("muted", fit_cells(columns[0], name_cells))]
    for _ in tables:
        heads += [("faint", _BETWEEN), ("muted", _counts(columns, widths, half))]
    lines = [*_titles(tables, name_cells, half), tuple(heads)]
    for name in names:
        style = "strong" if name in strong else ""
        pieces = [(style, fit_cells(name, name_cells))]
        for rows in by_name:
            cells = rows.get(name)
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
    """Merge lists of names, preserving the order of each as far as possible."""
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
    tables: Sequence[dict[str, Sequence[str]]],
    columns: Sequence[str],
    half: int,
    given_up: Sequence[int],
) -> list[int]:
    """Return the cells of every column: 0 for one that is left out, and for the first."""
    widths = [0] * len(columns)
    for index in range(1, len(columns)):
        texts = [cells[index] for rows in tables for cells in rows.values() if index < len(cells)]
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


class SpanBar(Protocol):
    """A median with minimum and maximum, and the formatted figures next to the bar."""

    @property
    def label(self) -> str: ...
    @property
    def median(self) -> float: ...
    @property
    def least(self) -> float: ...
    @property
    def most(self) -> float: ...
    @property
    def shown(self) -> str: ...
    @property
    def published(self) -> float | None: ...
    @property
    def published_shown(self) -> str: ...


def layout_bars(
    bars: Sequence[SpanBar], width: int, position: Callable[[float], float]
) -> list[Line]:
    """Draw a line for each bar, all to one scale, and a legend.

    Args:
        bars: their texts are displayable.
        width: cells of a line.
        position: maps a figure to its position on a full bar, 0..1.
    """
    if not bars:
        return []
    shown = max(cell_len(bar.shown) for bar in bars)
    published = max(cell_len(bar.published_shown) for bar in bars)
    if published:
        published = max(published, len("published"))
    taken = shown + GAP + (published + GAP if published else 0)
    label = max(cell_len(bar.label) for bar in bars)
    label = max(8, min(label, width - taken - GAP - MINIMUM_BAR))
    length = max(1, width - taken - GAP - label)
    lines: list[Line] = []
    if published:
        titles = fit_cells("here", width - published - GAP, right=True)
        lines.append((("muted", titles + "  " + fit_cells("published", published, right=True)),))
    for bar in bars:
        pieces: list[tuple[str, str]] = [("", fit_cells(bar.label, label) + " " * GAP)]
        pieces += _bar(bar, length, position)
        pieces.append(("", " " * GAP + fit_cells(bar.shown, shown, right=True)))
        if published:
            text = fit_cells(bar.published_shown, published, right=True)
            pieces.append(("muted", " " * GAP + text))
        lines.append(tuple(pieces))
    legend = LEGEND if published else LEGEND.rpartition("  ")[0]
    lines.append((("muted", fit_cells(legend, width)),))
    return lines


def _bar(
    bar: SpanBar, length: int, position: Callable[[float], float]
) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a bar that fills its cells."""

    def cell(figure: float) -> int:
        return int(position(figure) * (length - 1))

    least, median, most = cell(bar.least), cell(bar.median), cell(bar.most)
    cells: list[tuple[str, str]] = [("", " ")] * length
    for index, block in enumerate(eighth_blocks(position(bar.median), length)):
        cells[index] = ("bar", block)
    for index in range(least + 1, median + 1):
        cells[index] = ("bar", "▒")
    for index in range(median + 1, most + 1):
        cells[index] = ("muted", "─" if index < most else "┤")
    if bar.published is not None:
        cells[cell(bar.published)] = ("accent", PUBLISHED)
    for component, group in groupby(cells, key=lambda cell: cell[0]):
        yield component, "".join(text for _, text in group)


class PredictedPair(Protocol):
    """A predicted range and the measured figure, with their formatted texts."""

    @property
    def label(self) -> str: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def predicted_shown(self) -> str: ...
    @property
    def measured(self) -> float: ...
    @property
    def measured_shown(self) -> str: ...


def layout_predicted(pairs: Sequence[PredictedPair], width: int) -> list[Line]:
    """Draw two bars for each pair, both to one scale; nothing if they have no room.

    Args:
        pairs: their texts are displayable.
        width: cells of a line.
    """
    shown = [(f"predicted {p.predicted_shown}", f"measured {p.measured_shown}") for p in pairs]
    label = max((cell_len(pair.label) for pair in pairs), default=0)
    texts = max((cell_len(text) for both in shown for text in both), default=0)
    length = min(_MAX_PAIR_BAR, width - label - texts - 2 * GAP)
    if length < MINIMUM_BAR:
        return []
    lines: list[Line] = []
    for pair, (predicted, measured) in zip(pairs, shown, strict=True):
        scale = max(pair.high, pair.measured) or 1.0
        low, high = round(length * pair.low / scale), round(length * pair.high / scale)
        bar = "▒" * low + "░" * (high - low)
        filled = eighth_blocks(max(0.0, pair.measured) / scale, length)
        start = fit_cells(pair.label, label) + " " * GAP
        for head, component, cells, text in (
            (start, "muted", bar, predicted),
            (" " * len(start), "bar", filled, measured),
        ):
            gap = " " * GAP
            lines.append((("", head), (component, fit_cells(cells, length)), ("", gap + text)))
    return lines
