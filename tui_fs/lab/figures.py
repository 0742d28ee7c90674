"""Figures formatted for the user, with their unit and only significant digits."""

import math
from collections.abc import Callable, Iterable

from msgspec import Struct

from tui_fs.lab.results import Measure
from tui_fs.model.units import bytes_iec, count, duration

_TIMES = frozenset({Measure.SECONDS, Measure.USER_S, Measure.SYSTEM_S})
_SIZES = frozenset({Measure.PEAK_MEMORY_BYTES, Measure.APPARENT_BYTES, Measure.ALLOCATED_BYTES})
_MEASURES = frozenset(measure.value for measure in Measure)
_FROM_HOURS_S = 7_200.0
_MAX_TICKS = 7
MIN_VALUE = 1e-12
"""Smaller values are drawn as zero; no clock and no counter resolves them."""
_LOG_BARS_START_BELOW = 2.0
"""A logarithmic axis has no zero: it begins at half of the shortest bar's value."""


def shown(measure: Measure, value: float) -> str:
    """Return a figure with its unit: ``12.3 ms``, ``3.2 MiB``, ``20,063``."""
    if measure in _TIMES:
        return duration(value) if value >= _FROM_HOURS_S else _time(value, _three_digits)
    if measure in _SIZES:
        return bytes_iec(round(value))
    if measure is Measure.MICROSECONDS_PER_ENTRY:
        return f"{_three_digits(value)} µs"
    if measure is Measure.CPU_PERCENT:
        return f"{value:.0f} %"
    return count(round(value))


def shown_span(unit: str, least: float, most: float, beside: str) -> str:
    """Return ``11.2–13.4``; a unit only where it differs from that of the figure `beside`.

    Empty if both ends read alike.

    Args:
        unit: a measure's name, or any other text for plain numbers.
    """
    if unit in _MEASURES:
        low, high = (shown(Measure(unit), value) for value in (least, most))
    else:
        low, high = (_three_digits(value) for value in (least, most))
    if low == high:
        return ""
    unit = _unit(beside)
    if _unit(low) == _unit(high):
        low = _bare(low)
        high = _bare(high) if _unit(high) == unit else high
    return f"{low}–{high}"


def shown_tick(unit: str, value: float) -> str:
    """Return a round number for an axis; its title is a measure's name or any other."""
    if unit in _TIMES:
        return _time(value, lambda scaled: f"{scaled:,g}")
    if unit in _SIZES:
        number = _round_number(value)
        return f"{number}B" if number[-1:].isalpha() else f"{number} B"
    return _round_number(value)


def _time(value_s: float, number: Callable[[float], str]) -> str:
    if value_s <= 0:
        return "0 s"
    for limit_s, factor, unit in ((0.9995e-3, 1e6, "µs"), (0.9995, 1e3, "ms")):
        if value_s < limit_s:
            return f"{number(value_s * factor)} {unit}"
    return f"{number(value_s)} s"


def _three_digits(value: float) -> str:
    if value < 0.9995:
        return f"{value:.3g}"
    if value < 9.995:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"


def _round_number(value: float) -> str:
    for factor, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor and value >= 1e4:
            return f"{value / factor:,g} {suffix}"
    return f"{value:,g}"


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

    def ticks(self) -> tuple[float, ...]:
        """Return round numbers of a logarithmic axis, ascending: decades, or 1, 2, 5 on a few."""
        factors = (1, 2, 5) if self.high <= 100 * self.low else (1,)
        numbers = _round_numbers(self.low, self.high, factors)
        return tuple(numbers[:: math.ceil(len(numbers) / _MAX_TICKS)])


def points_axis(values: Iterable[float]) -> Axis:
    """Return a logarithmic axis for points, from a round number to a round number."""
    positive = [value for value in values if value > MIN_VALUE] or [1.0]
    grid = _round_numbers(min(positive) / 10, max(positive) * 10, (1, 2, 5))
    low = max(number for number in grid if number < min(positive))
    return Axis(low, min(number for number in grid if number > max(positive)), True)


def bars_axis(values: Iterable[float], *, is_log: bool) -> Axis:
    """Return an axis for bars, which begin at its low end."""
    positive = [value for value in values if value > MIN_VALUE]
    if not positive:
        return Axis(0.0, 1.0, False)
    if is_log:
        return Axis(min(positive) / _LOG_BARS_START_BELOW, max(positive) * 1.1, True)
    return Axis(0.0, max(positive) * 1.05, False)


def _round_numbers(low: float, high: float, factors: tuple[int, ...]) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    numbers = (factor * 10.0**decade for decade in decades for factor in factors)
    return [number for number in numbers if low <= number <= high]
