"""Lines over two axes, drawn with braille dots and a sign for every point."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from rich.cells import cell_len
from rich.text import Text
from textual.reactive import reactive
from textual.widget import Widget

from widgets.cell_drawing import fit_cells
from widgets.fitted_lines import Line

MARKERS = "●■▲◆○□△◇"
"""One for each line, so that lines are told apart without colour."""

_COLOURS = 6

# Bits of a braille character's dots, by line and column (Unicode, Braille Patterns).
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BLANK = 0x2800

# Fewer lines or cells show no shape.
MINIMUM_HEIGHT, MINIMUM_WIDTH = 3, 12


class CurvePoint(Protocol):
    """A median over x, with the least and the most."""

    @property
    def x(self) -> float: ...
    @property
    def median(self) -> float: ...
    @property
    def least(self) -> float: ...
    @property
    def most(self) -> float: ...


class CurveLine(Protocol):
    """A named line through its points, which stand in the order of x."""

    @property
    def name(self) -> str: ...
    @property
    def points(self) -> Sequence[CurvePoint]: ...


def tick_label(value: float) -> str:
    """Write a tick as a person does: ``0.02``, ``500``, ``10k``, ``2M``."""
    for factor, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor * (1 - 1e-9):
            return f"{value / factor:g}{suffix}"
    return f"{value:g}"


@dataclass(frozen=True, slots=True)
class Plot:
    """What is drawn; all texts are displayable. Log axes leave out what is not above zero.

    Attributes:
        y_label: writes a tick of the vertical axis.
    """

    lines: Sequence[CurveLine]
    x_title: str = ""
    y_title: str = ""
    has_log_x: bool = False
    has_log_y: bool = False
    y_label: Callable[[float], str] = tick_label


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale from `low` to `high`, which differ; both are above zero if it is a log one."""

    low: float
    high: float
    is_log: bool
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """Return where a value lies, 0..1."""
        if self.is_log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def axis_over(
    values: Iterable[float], is_log: bool, most_ticks: int, *, is_tight: bool = False
) -> Axis:
    """Return an axis that holds all values; a linear one begins with zero or below.

    Args:
        is_tight: a log axis ends with the outermost values instead of round numbers.
    """
    kept = [value for value in values if math.isfinite(value) and (value > 0 or not is_log)]
    if is_log:
        low, high = min(kept, default=1.0), max(kept, default=10.0)
        return _log_axis(low, high, most_ticks, is_tight=is_tight and high > low)
    low, high = min(0.0, *kept, 0.0), max(0.0, *kept, 0.0)
    step = _round_step((high - low) / max(1, most_ticks - 1) or 1.0)
    first, last = math.floor(low / step), max(math.ceil(high / step - 1e-9), 1)
    ticks = tuple(index * step for index in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], False, ticks)


def _log_axis(low: float, high: float, most_ticks: int, *, is_tight: bool) -> Axis:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = [m * 10.0**e for e in range(first, last + 1) for m in (1, 2, 5)]
    start = max(step for step in steps if step <= low * (1 + 1e-9))
    end = min((step for step in steps if step >= high * (1 - 1e-9)), default=10.0 ** (last + 1))
    if is_tight:
        start, end = low, high
    elif not end > start:
        start, end = 10.0**first, 10.0 ** (first + 1)
    inside = [step for step in steps if start * (1 - 1e-9) <= step <= end * (1 + 1e-9)]
    decades = [10.0**e for e in range(first, last + 1) if 10.0**e in inside]
    if len(inside) <= most_ticks or len(decades) < 2:
        ticks = inside if len(inside) > 1 else [start, end]
    else:
        ticks = decades[:: math.ceil(len(decades) / max(2, most_ticks))]
    return Axis(start, end, True, tuple(ticks))


def _round_step(least: float) -> float:
    """Return the least of 1, 2, 5, 10, 20, … that is not below a number."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= least * (1 - 1e-9))


def draw_plot(plot: Plot, width: int, height: int) -> list[Line]:
    """Draw axes, lines and names into exactly `height` lines of at most `width` cells.

    A vertical line through a point reaches from its least to its most.
    """
    heading = _heading(plot, width)
    bottom = 2 + bool(plot.x_title)
    rows = height - len(heading) - bottom
    points = [
        point
        for line in plot.lines
        for point in line.points
        if (point.x > 0 or not plot.has_log_x) and (point.median > 0 or not plot.has_log_y)
    ]
    if not points:
        return [(("muted", fit_cells("nothing was measured", width)),)]
    spread = [value for point in points for value in (point.least, point.median, point.most)]
    y_axis = axis_over(spread, plot.has_log_y, max(2, rows // 2))
    margin = max(cell_len(plot.y_label(tick)) for tick in y_axis.ticks)
    columns = width - margin - 2
    if rows < MINIMUM_HEIGHT or columns < MINIMUM_WIDTH:
        return [(("muted", fit_cells("a larger window shows the curves", width)),)]
    across = [point.x for point in points]
    x_axis = axis_over(across, plot.has_log_x, max(2, columns // 8), is_tight=True)
    canvas = _Canvas(columns, rows, x_axis, y_axis)
    for number in reversed(range(len(plot.lines))):
        canvas.draw(number, plot.lines[number].points)
    labels = {canvas.row_of(tick): plot.y_label(tick) for tick in reversed(y_axis.ticks)}
    drawn = [*heading]
    for row in range(rows):
        label = labels.get(row, "")
        edge = f"{label:>{margin}} {'┤' if row in labels else '│'}"
        drawn.append((("axis", edge), *canvas.pieces(row, row in labels)))
    drawn += _x_lines(x_axis, canvas, margin)
    if plot.x_title:
        drawn.append((("axis", fit_cells(plot.x_title, width, right=True)),))
    return drawn


class _Canvas:
    """Braille dots, two by four in a cell; what is drawn last lies on top."""

    def __init__(self, columns: int, rows: int, x_axis: Axis, y_axis: Axis) -> None:
        self.columns, self.rows = columns, rows
        self._x_axis, self._y_axis = x_axis, y_axis
        self._bits = [[0] * columns for _ in range(rows)]
        self._owners = [[-1] * columns for _ in range(rows)]
        self._markers: dict[tuple[int, int], int] = {}

    def row_of(self, y: float) -> int:
        """Return the row of cells in which a value lies."""
        return self._dot(self._x_axis.low, y)[1] // 4

    def column_of(self, x: float) -> int:
        """Return the column of cells in which a value lies."""
        return self._dot(x, self._y_axis.low)[0] // 2

    def draw(self, number: int, points: Sequence[CurvePoint]) -> None:
        """Draw a line, its spans, and its signs."""
        shown = [point for point in points if self._has(point.x, point.median)]
        dots = [self._dot(point.x, point.median) for point in shown]
        for start, end in pairwise(dots):
            self._join(number, start, end)
        for point, dot in zip(shown, dots, strict=True):
            for outermost in (point.least, point.most):
                if self._has(point.x, outermost):
                    self._join(number, dot, self._dot(point.x, outermost))
            self._markers[dot[0] // 2, dot[1] // 4] = number

    def pieces(self, row: int, has_grid: bool) -> Iterator[tuple[str, str]]:
        """Yield the cells of a row, neighbours of one colour together."""
        component, text = "", ""
        for column in range(self.columns):
            own, cell = self._cell(column, row, has_grid)
            if own != component:
                if text:
                    yield component, text
                component, text = own, ""
            text += cell
        yield component, text

    def _cell(self, column: int, row: int, has_grid: bool) -> tuple[str, str]:
        number = self._markers.get((column, row))
        if number is not None:
            return _component(number), MARKERS[number % len(MARKERS)]
        bits = self._bits[row][column]
        if bits:
            return _component(self._owners[row][column]), chr(_BLANK + bits)
        return ("grid", "┈") if has_grid else ("", " ")

    def _has(self, x: float, y: float) -> bool:
        """Whether the axes know a place for it."""
        return (x > 0 or not self._x_axis.is_log) and (y > 0 or not self._y_axis.is_log)

    def _dot(self, x: float, y: float) -> tuple[int, int]:
        across = self._x_axis.at(x) * (2 * self.columns - 1)
        down = (1.0 - self._y_axis.at(y)) * (4 * self.rows - 1)
        return round(across), round(down)

    def _join(self, number: int, start: tuple[int, int], end: tuple[int, int]) -> None:
        """Set all dots of a straight line."""
        (x, y), (right, below) = start, end
        steps = max(abs(right - x), abs(below - y), 1)
        for step in range(steps + 1):
            across = round(x + (right - x) * step / steps)
            down = round(y + (below - y) * step / steps)
            self._bits[down // 4][across // 2] |= _DOTS[down % 4][across % 2]
            self._owners[down // 4][across // 2] = number


def _component(number: int) -> str:
    return f"line-{number % _COLOURS}"


def _heading(plot: Plot, width: int) -> list[Line]:
    """Name the axis at the left and the lines at the right, in further lines if need be."""
    names = [
        (_component(number), f"{MARKERS[number % len(MARKERS)]} {line.name}")
        for number, line in enumerate(plot.lines)
    ]
    legend: list[list[tuple[str, str]]] = [[]]
    used = cell_len(plot.y_title) + 2
    for component, name in names:
        name = fit_cells(name, min(cell_len(name), width))
        if used + cell_len(name) > width:
            legend.append([])
            used = 0
        legend[-1].append((component, name))
        used += cell_len(name) + 2
    lines: list[Line] = []
    for index, line in enumerate(legend):
        title = plot.y_title if not index else ""
        taken = sum(cell_len(name) for _, name in line) + 2 * max(0, len(line) - 1)
        pieces = [("axis", fit_cells(title, max(0, width - taken)))]
        for position, piece in enumerate(line):
            pieces += [("", "  "), piece] if position else [piece]
        lines.append(tuple(pieces))
    return lines


def _x_lines(axis: Axis, canvas: _Canvas, margin: int) -> list[Line]:
    """Draw the lower axis and the figures below it, none of them over another."""
    edge, labels = list("─" * canvas.columns), ""
    for tick in axis.ticks:
        column = canvas.column_of(tick)
        text = tick_label(tick)
        start = max(0, min(column - len(text) // 2, canvas.columns - len(text)))
        if labels and start < len(labels) + 1:
            continue
        edge[column] = "┬"
        labels = labels.ljust(start) + text
    return [
        (("axis", f"{'':>{margin}} └{''.join(edge)}"),),
        (("axis", f"{'':>{margin}}  {labels}"),),
    ]


class CurvePlot(Widget):
    """A plot that fills the widget."""

    COMPONENT_CLASSES = {
        "curve-plot--axis",
        "curve-plot--grid",
        "curve-plot--muted",
        *(f"curve-plot--line-{number}" for number in range(_COLOURS)),
    }

    DEFAULT_CSS = """
    CurvePlot {
        height: 16;

        & > .curve-plot--axis { color: $text-muted; }
        & > .curve-plot--muted { color: $text-muted; }
        & > .curve-plot--grid { color: $foreground 15%; }
        & > .curve-plot--line-0 { color: $text-primary; }
        & > .curve-plot--line-1 { color: $text-warning; }
        & > .curve-plot--line-2 { color: $text-success; }
        & > .curve-plot--line-3 { color: $text-accent; }
        & > .curve-plot--line-4 { color: $text-secondary; }
        & > .curve-plot--line-5 { color: $foreground; }
    }
    """

    plot: reactive[Plot] = reactive(Plot(()))
    """What is drawn."""

    def render(self) -> Text:
        """Draw the plot."""
        width, height = self.content_size
        lines = []
        for pieces in draw_plot(self.plot, width, height):
            line = Text()
            for component, piece in pieces:
                style = f"curve-plot--{component}"
                line.append(piece, self.get_component_rich_style(style) if component else None)
            lines.append(line)
        return Text("\n", no_wrap=True, overflow="crop", end="").join(lines)
