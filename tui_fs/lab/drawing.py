"""Plots as SVG elements for a page, coloured by the classes of its style sheet."""

from collections.abc import Iterable
from html import escape

from tui_fs.lab.axis import LEAST, Axis, bars_axis, points_axis
from tui_fs.lab.exhibits import Bar, Bars, Curves, Line, Point
from tui_fs.lab.figures import safe, shown_tick

SERIES_COLOURS = 8
"""Lines beyond these take the colours again; their marks differ still."""
_WIDTH = 640.0
_CHARACTER_WIDTH = 7.2
"""About that of a letter at 13 units."""
_ROOM_FOR_CHARACTER = 8.6
"""Texts are cut before they run into others, even on a narrow screen, where they are larger."""
_LINE_HEIGHT = 20.0
_BAR_ROW_HEIGHT = 46.0
_BAR_HEIGHT = 14.0
_BAR_SPARE = 8.0
_PLOT_HEIGHT = 300.0
_MARK = 4.5
_MARKS = (
    "M{l} {y}A{r} {r} 0 1 0 {R} {y}A{r} {r} 0 1 0 {l} {y}Z",
    "M{l} {t}H{R}V{b}H{l}Z",
    "M{x} {t}L{R} {b}H{l}Z",
    "M{x} {t}L{R} {y}L{x} {b}L{l} {y}Z",
    "M{l} {t}H{R}L{x} {b}Z",
)


def text(value: str) -> str:
    """Return text as it may stand in a page or an attribute."""
    return escape(safe(value), quote=True)


def bars_svg(bars: Bars) -> str:
    """Return horizontal bars: medians, whiskers from least to most, marks for published ones."""
    values = [value for one in bars.bars for value in (one.median, one.least, one.most)]
    values += [one.published for one in bars.bars if one.published is not None]
    axis = bars_axis(values, is_log=bars.is_log)
    rows_end = _BAR_ROW_HEIGHT * len(bars.bars)
    body = [
        line
        for tick in axis.ticks()
        for line in _upright_tick(_across(axis, tick), 0.0, rows_end, shown_tick(bars.unit, tick))
    ]
    for index, one in enumerate(bars.bars):
        body += _bar(one, axis, index * _BAR_ROW_HEIGHT)
    scale = ", logarithmic" if axis.is_log else ""
    body.append(_label(_WIDTH / 2, rows_end + 38, f"{bars.unit}{scale}", "axis middle"))
    summary = f"{bars.title}: " + "; ".join(f"{one.label} {one.shown}" for one in bars.bars)
    return _svg(summary, rows_end + 46, body)


def curves_svg(curves: Curves) -> str:
    """Return lines over an axis, with whiskers from least to most, and their legend."""
    points = [point for line in curves.lines for point in line.points]
    x_axis = points_axis((one.x for one in points), is_log=curves.has_log_x)
    if not curves.has_log_x and points:
        x_axis = _tight(x_axis, points)
    heights = [value for one in points for value in (one.median, one.least, one.most)]
    y_axis = points_axis(heights, is_log=curves.has_log_y)
    labels = {tick: shown_tick(curves.y_title, tick) for tick in y_axis.ticks()}
    left = 14 + _ROOM_FOR_CHARACTER * max((len(one) for one in labels.values()), default=1)
    frame = _Frame(x_axis, y_axis, left, 30.0, _WIDTH - 16, 30.0 + _PLOT_HEIGHT)
    body = [_label(4, 14, _with_log(curves.y_title, curves.has_log_y), "axis")]
    for tick, label in labels.items():
        y = frame.y(tick)
        body.append(_line(frame.left, y, frame.right, y, "grid"))
        body.append(_label(frame.left - 8, y + 4, label, "tick end"))
    for tick in x_axis.ticks():
        body += _upright_tick(frame.x(tick), frame.top, frame.bottom, shown_tick("", tick))
    x_title = _with_log(curves.x_title, curves.has_log_x)
    middle = (frame.left + frame.right) / 2
    body.append(_label(middle, frame.bottom + 40, x_title, "axis middle"))
    for index, line in enumerate(curves.lines):
        body += _curve(line, index, frame)
    legend, height = _legend(curves.lines, frame.bottom + 64)
    names = ", ".join(line.name for line in curves.lines)
    summary = f"{curves.title}: {curves.y_title} over {curves.x_title}; {names}"
    return _svg(summary, height, [*body, *legend])


class _Frame:
    """Where values lie in a plot's rectangle."""

    def __init__(
        self, x_axis: Axis, y_axis: Axis, left: float, top: float, right: float, bottom: float
    ) -> None:
        self._x_axis, self._y_axis = x_axis, y_axis
        self.left, self.top, self.right, self.bottom = left, top, right, bottom

    def x(self, value: float) -> float:
        return self.left + self._x_axis.position(value) * (self.right - self.left)

    def y(self, value: float) -> float:
        return self.bottom - self._y_axis.position(value) * (self.bottom - self.top)


def _bar(one: Bar, axis: Axis, top: float) -> list[str]:
    figure = one.shown + (f" · published {one.published_shown}" if one.published_shown else "")
    room = int((_WIDTH - 2 * _BAR_SPARE) / _ROOM_FOR_CHARACTER) - len(figure) - 2
    y = top + 21
    end = _across(axis, one.median)
    parts = [
        _label(_BAR_SPARE, top + 16, one.label, "label", room),
        _label(_WIDTH - _BAR_SPARE, top + 16, figure, "figure end"),
        f'<rect class="bar" x="{_n(_BAR_SPARE)}" y="{_n(y)}" rx="2" '
        f'width="{_n(max(end - _BAR_SPARE, 1.0))}" height="{_n(_BAR_HEIGHT)}"/>',
    ]
    middle = y + _BAR_HEIGHT / 2
    if one.most > one.least:
        low, high = _across(axis, one.least), _across(axis, one.most)
        caps = f"M{_n(low)} {_n(middle - 4)}V{_n(middle + 4)}M{_n(high)} {_n(middle - 4)}"
        parts.append(
            f'<path class="whisker" d="{caps}V{_n(middle + 4)}M{_n(low)} {_n(middle)}H{_n(high)}"/>'
        )
    if one.published is not None:
        parts.append(_mark(3, _across(axis, one.published), middle, "published", size=6.0))
    return parts


def _curve(line: Line, index: int, frame: _Frame) -> list[str]:
    series = f"s{index % SERIES_COLOURS}"
    places = [(frame.x(one.x), frame.y(one.median)) for one in line.points]
    steps = "L".join(f"{_n(x)} {_n(y)}" for x, y in places)
    parts = [f'<path class="line {series}" d="M{steps}"/>'] if len(places) > 1 else []
    for one, (x, y) in zip(line.points, places, strict=True):
        if one.most > one.least:
            low, high = frame.y(one.least), frame.y(one.most)
            parts.append(_line(x, low, x, high, f"spread {series}"))
        parts.append(_mark(index, x, y, f"point {series}"))
    return parts


def _legend(lines: tuple[Line, ...], top: float) -> tuple[list[str], float]:
    """Return the names of the lines in two columns, and where they end."""
    parts = []
    half = _WIDTH / 2
    room = int((half - 40) / _ROOM_FOR_CHARACTER)
    for index, line in enumerate(lines):
        x, y = 16 + half * (index % 2), top + _LINE_HEIGHT * (index // 2)
        parts.append(_mark(index, x, y - 4, f"key s{index % SERIES_COLOURS}"))
        parts.append(_label(x + 14, y, line.name, "label", room))
    return parts, top + _LINE_HEIGHT * ((len(lines) + 1) // 2) - 8


def _tight(axis: Axis, points: list[Point]) -> Axis:
    """Return an even x axis that does not begin at zero where the points are far from it."""
    low, high = min(one.x for one in points), max(one.x for one in points)
    if low <= LEAST or high - low > 0.5 * high:
        return axis
    spare = (high - low) * 0.05 or high * 0.1
    return Axis(low - spare, high + spare, False)


def _with_log(title: str, is_log: bool) -> str:
    return f"{title}, logarithmic" if is_log else title


def _across(axis: Axis, value: float) -> float:
    return _BAR_SPARE + axis.position(value) * (_WIDTH - 2 * _BAR_SPARE)


def _upright_tick(x: float, top: float, bottom: float, label: str) -> tuple[str, str]:
    half = _CHARACTER_WIDTH * len(label) / 2
    place = min(max(x, half), _WIDTH - half)
    return (
        _line(x, top, x, bottom, "grid"),
        _label(place, bottom + 18, label, "tick middle"),
    )


def _mark(index: int, x: float, y: float, classes: str, size: float = _MARK) -> str:
    corners = {
        "x": _n(x), "y": _n(y), "r": _n(size), "l": _n(x - size), "R": _n(x + size),
        "t": _n(y - size), "b": _n(y + size),
    }  # fmt: skip
    return f'<path class="{classes}" d="{_MARKS[index % len(_MARKS)].format(**corners)}"/>'


def _line(x: float, y: float, to_x: float, to_y: float, classes: str) -> str:
    ends = f'x1="{_n(x)}" y1="{_n(y)}" x2="{_n(to_x)}" y2="{_n(to_y)}"'
    return f'<line class="{classes}" {ends}/>'


def _label(x: float, y: float, value: str, classes: str, room: int = 0) -> str:
    """Return a text; cut to `room` characters, if that is not 0, with the whole as its tooltip."""
    whole, tooltip = safe(value), ""
    cut = whole
    if room and len(whole) > room:
        cut = whole[: max(room - 1, 1)] + "…"
        tooltip = f"<title>{escape(whole)}</title>"
    return f'<text class="{classes}" x="{_n(x)}" y="{_n(y)}">{tooltip}{escape(cut)}</text>'


def _svg(summary: str, height: float, body: Iterable[str]) -> str:
    return (
        f'<svg role="img" aria-label="{text(summary)}" '
        f'viewBox="0 0 {_n(_WIDTH)} {_n(height)}">\n' + "\n".join(body) + "\n</svg>"
    )


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
