"""Figures formatted for the user, with their unit and only significant digits."""

import math
from collections.abc import Iterable

from msgspec import Struct

from tui_fs.lab.results import Measure
from tui_fs.model.units import bytes_iec, count, duration

_TIMES = frozenset({Measure.SECONDS, Measure.USER_S, Measure.SYSTEM_S})
_SIZES = frozenset({Measure.PEAK_MEMORY_BYTES, Measure.APPARENT_BYTES, Measure.ALLOCATED_BYTES})
_FROM_HOURS_S = 7_200.0
MIN_VALUE = 1e-12
"""Smaller values are drawn as zero; no clock and no counter resolves them."""
_LOG_BARS_START_BELOW = 2.0
"""A logarithmic axis has no zero: it begins at half of the shortest bar's value."""


def shown(measure: Measure, value: float) -> str:
    """Return a figure with its unit: ``12.3 ms``, ``3.2 MiB``, ``20,063``."""
    if measure in _TIMES:
        return duration(value) if value >= _FROM_HOURS_S else _time(value)
    if measure in _SIZES:
        return bytes_iec(round(value))
    if measure is Measure.MICROSECONDS_PER_ENTRY:
        return f"{_three_digits(value)} µs"
    if measure is Measure.CPU_PERCENT:
        return f"{value:.0f} %"
    return count(round(value))


def shown_span(measure: Measure, least: float, most: float, beside: str) -> str:
    """Return ``11.2–13.4``; a unit only where it differs from that of the figure `beside`.

    Empty if both ends read alike.
    """
    low, high = shown(measure, least), shown(measure, most)
    if low == high:
        return ""
    unit = _unit(beside)
    if _unit(low) == _unit(high):
        low = _bare(low)
        high = _bare(high) if _unit(high) == unit else high
    return f"{low}–{high}"


def _time(value_s: float) -> str:
    if value_s <= 0:
        return "0 s"
    for limit_s, factor, unit in ((0.9995e-3, 1e6, "µs"), (0.9995, 1e3, "ms")):
        if value_s < limit_s:
            return f"{_three_digits(value_s * factor)} {unit}"
    return f"{_three_digits(value_s)} s"


def _three_digits(value: float) -> str:
    if value < 0.9995:
        return f"{value:.3g}"
    if value < 9.995:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"


def _unit(figure: str) -> str:
    return figure.partition(" ")[2]


def _bare(figure: str) -> str:
    return figure.partition(" ")[0]


class Axis(Struct, frozen=True):
    """From low to high, which differ; both are positive if it is logarithmic."""

    low: float
    high: float
    is_log: bool

    def position(self, value: float) -> float:
        """Return the position of a value from 0 (low) to 1 (high), clamped to that range."""
        if self.is_log:
            if value <= self.low:
                return 0.0
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, share))


def bars_axis(values: Iterable[float], *, is_log: bool) -> Axis:
    """Return an axis for bars, which begin at its low end."""
    positive = [value for value in values if value > MIN_VALUE]
    if not positive:
        return Axis(0.0, 1.0, False)
    if is_log:
        return Axis(min(positive) / _LOG_BARS_START_BELOW, max(positive) * 1.1, True)
    return Axis(0.0, max(positive) * 1.05, False)
