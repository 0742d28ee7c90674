"""Decide when a survey reports its counts: at an interval or on request, with limited overhead."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator

_SHARE = 10
"""Reporting may take at most one tenth of the time."""


class ProgressTimer:
    """Schedule intermediate results.

    Args:
        interval_s: between two results; grows if reporting takes long.
    """

    def __init__(self, interval_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval_s = interval_s
        self._clock = clock
        self._began = self._reported_s = clock()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start of the survey."""
        return self._clock() - self._began

    def until_due_s(self) -> float:
        """Return the seconds until the next result is due; 0 or less if it is due now."""
        return self._interval_s - (self._clock() - self._reported_s)

    def at_once(self) -> None:
        """Make the next result due now."""
        self._reported_s = -math.inf

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Measure how long one report takes, including the time of its reader."""
        began = self._reported_s = self._clock()
        yield
        self._interval_s = max(self._interval_s, _SHARE * (self._clock() - began))
