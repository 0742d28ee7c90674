"""When a survey reports its counts: at an interval or on request, never too often."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator

_SHARE = 10
"""ProgressTimer may take one part in ten of the time, not more."""


class ProgressTimer:
    """The times at which intermediate results are reported.

    Args:
        interval_s: between two of them; grows if reporting takes long.
    """

    def __init__(self, interval_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval_s = interval_s
        self._clock = clock
        self._began = self._reported_s = clock()

    @property
    def elapsed_s(self) -> float:
        """Time since the beginning of the survey."""
        return self._clock() - self._began

    def until_due_s(self) -> float:
        """Return the time until the next one; nothing is left if it is 0 or less."""
        return self._interval_s - (self._clock() - self._reported_s)

    def at_once(self) -> None:
        """Let the next one be due now."""
        self._reported_s = -math.inf

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Measure how long a report takes, its reader included."""
        began = self._reported_s = self._clock()
        yield
        self._interval_s = max(self._interval_s, _SHARE * (self._clock() - began))
