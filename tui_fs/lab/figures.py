"""Figures as a person reads them: with their unit, and no more digits than they are worth."""

from collections.abc import Callable

from tui_fs.lab.results import Measure
from tui_fs.model.paths import displayable
from tui_fs.model.units import bytes_iec, count, duration

_TIMES = frozenset({Measure.SECONDS, Measure.USER_S, Measure.SYSTEM_S})
_SIZES = frozenset({Measure.PEAK_MEMORY_BYTES, Measure.APPARENT_BYTES, Measure.ALLOCATED_BYTES})
_MEASURES = frozenset(measure.value for measure in Measure)
_FROM_HOURS_S = 7_200.0


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
        unit: a measure's name, or anything else for plain numbers.
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
    """Return a round number at an axis whose title is a measure's name, or another one."""
    if unit in _TIMES:
        return _time(value, lambda scaled: f"{scaled:,g}")
    if unit in _SIZES:
        number = _round_number(value)
        return f"{number}B" if number[-1:].isalpha() else f"{number} B"
    return _round_number(value)


def shown_times(ratio: float) -> str:
    """Return how many times as much: ``0.52``, ``3.1``, ``140``."""
    if ratio < 9.95:
        return f"{ratio:.2f}"
    return f"{ratio:.1f}" if ratio < 99.5 else f"{ratio:,.0f}"


def safe(text: str) -> str:
    """Return text with everything that a terminal or a page could act on written as an escape.

    Other than a name's, its backslashes stay single.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else displayable(one) for one in text)


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
