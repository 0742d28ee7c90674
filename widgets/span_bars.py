"""Bars of medians with the least and the most, and a sign where a published figure lies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Protocol

from rich.cells import cell_len

from widgets.cell_drawing import eighth_blocks, fit_cells
from widgets.fitted_lines import Line

GAP = 2

# Shorter than this a bar says nothing; the label is cut first.
MINIMUM_BAR = 12

PUBLISHED = "◆"
LEGEND = f"█ median   ▒ from the least   ─┤ to the most   {PUBLISHED} published"


class SpanBar(Protocol):
    """A median with the least and the most; formatted figures stand beside the bar."""

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


def layout_bars(bars: Sequence[SpanBar], width: int, *, is_log: bool = False) -> list[Line]:
    """Draw a line for each bar, all to one scale, and what the signs mean.

    Args:
        bars: what they show is displayable.
        width: cells of a line.
        is_log: a bar's length is the figure's logarithm, from the power of ten below the least.
    """
    if not bars:
        return []
    figures = [one for bar in bars for one in (bar.least, bar.median, bar.most)]
    figures += [bar.published for bar in bars if bar.published is not None]
    scale = _Scale(figures, is_log)
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
        pieces += _bar(bar, length, scale)
        pieces.append(("", " " * GAP + fit_cells(bar.shown, shown, right=True)))
        if published:
            text = fit_cells(bar.published_shown, published, right=True)
            pieces.append(("muted", " " * GAP + text))
        lines.append(tuple(pieces))
    lines.append(
        (("muted", fit_cells(LEGEND if published else LEGEND.rpartition("  ")[0], width)),)
    )
    return lines


class _Scale:
    """From a figure to the part of a bar's full length."""

    def __init__(self, figures: Sequence[float], is_log: bool) -> None:
        above = [one for one in figures if one > 0]
        self._most = max(above, default=1.0)
        self._least = 0.0
        if is_log and above:
            self._least = 10.0 ** math.floor(math.log10(min(above)) - 1e-9)

    def part(self, figure: float) -> float:
        """Return 0..1."""
        if not figure > 0:
            return 0.0
        if self._least:
            return math.log(figure / self._least) / math.log(self._most / self._least)
        return figure / self._most


def _bar(bar: SpanBar, length: int, scale: _Scale) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a bar that fills its cells."""
    least, most = (int(scale.part(one) * (length - 1)) for one in (bar.least, bar.most))
    median = int(scale.part(bar.median) * (length - 1))
    cells: list[tuple[str, str]] = [("", " ")] * length
    for index, block in enumerate(eighth_blocks(scale.part(bar.median), length)):
        cells[index] = ("bar", block)
    for index in range(least + 1, median + 1):
        cells[index] = ("bar", "▒")
    for index in range(median + 1, most + 1):
        cells[index] = ("muted", "─" if index < most else "┤")
    if bar.published is not None:
        cells[int(scale.part(bar.published) * (length - 1))] = ("accent", PUBLISHED)
    for component, group in groupby(cells, key=lambda cell: cell[0]):
        yield component, "".join(text for _, text in group)
