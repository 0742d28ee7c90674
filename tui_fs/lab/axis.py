"""An axis of a plot: the position of a value, and the round numbers of the ticks."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

_WANTED_TICKS = 5
_MOST_DECADES = 7
LEAST = 1e-12
"""What is smaller is drawn as nothing; no clock and no count tells so little."""
_LOG_BAR_STARTS_BELOW = 2.0
"""A logarithmic axis has no zero: the shortest bar begins at a half of its value."""


@dataclass(frozen=True, slots=True)
class Axis:
    """From low to high, which differ; both are positive if it is logarithmic."""

    low: float
    high: float
    is_log: bool

    def position(self, value: float) -> float:
        """Return where a value lies between 0 (low) and 1 (high); what is outside, at the end."""
        if self.is_log:
            if value <= self.low:
                return 0.0
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, share))

    def ticks(self) -> tuple[float, ...]:
        """Return the round numbers on it, ascending."""
        if not self.is_log:
            return self._even_ticks()
        exponents = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        decades = self._within(10.0**one for one in exponents)
        if len(decades) > _MOST_DECADES:
            return decades[:: math.ceil(len(decades) / _MOST_DECADES)]
        if len(decades) > 2:
            return decades
        finer = self._within(factor * 10.0**one for one in exponents for factor in (1, 2, 5))
        return finer if len(finer) > 1 else self._even_ticks()

    def _even_ticks(self) -> tuple[float, ...]:
        rough = (self.high - self.low) / _WANTED_TICKS
        decade = 10.0 ** math.floor(math.log10(rough))
        step = next(one * decade for one in (1, 2, 5, 10) if one * decade >= rough * 0.999)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return self._within(one * step for one in range(first, last + 1))

    def _within(self, values: Iterable[float]) -> tuple[float, ...]:
        return tuple(one for one in values if self.low <= one <= self.high)


def points_axis(values: Iterable[float], *, is_log: bool) -> Axis:
    """Return an axis that shows all values with a little room; an even one begins at zero."""
    known = [one for one in values if one > LEAST or not is_log]
    if not known:
        return Axis(1.0, 10.0, is_log)
    if not is_log:
        return _from_zero(known)
    low, high = min(known), max(known)
    room = max((high / low) ** 0.05, 1.2)
    return Axis(low / room, high * room, True)


def bars_axis(values: Iterable[float], *, is_log: bool) -> Axis:
    """Return an axis for bars, which begin at its low end."""
    known = [one for one in values if one > LEAST]
    if not known:
        return Axis(0.0, 1.0, False)
    if not is_log:
        return _from_zero(known)
    return Axis(min(known) / _LOG_BAR_STARTS_BELOW, max(known) * 1.1, True)


def _from_zero(values: list[float]) -> Axis:
    high = max(values)
    return Axis(0.0, high * 1.05 if high > LEAST else 1.0, False)
