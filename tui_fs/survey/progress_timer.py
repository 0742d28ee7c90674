"""When a survey reports its counts: at an interval or on request, never too often."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator

_SHARE = 10
"""ProgressTimer may take one part in ten of the time, not more."""


class ProgressTimer:
    """The times at which intermediate results are told.

    Args:
        interval_s: between two of them; grows if telling takes long.
    """

    def __init__(self, interval_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval_s = interval_s
        self._clock = clock
        self._began = self._told = clock()

    @property
    def elapsed_s(self) -> float:
        """Time since the beginning of the survey."""
        return self._clock() - self._began

    def until_due_s(self) -> float:
        """Return the time until the next one; nothing is left if it is 0 or less."""
        return self._interval_s - (self._clock() - self._told)

    def at_once(self) -> None:
        """Let the next one be due now."""
        self._told = -math.inf

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Measure how long telling takes, whoever listens included."""
        began = self._told = self._clock()
        yield
        self._interval_s = max(self._interval_s, _SHARE * (self._clock() - began))
