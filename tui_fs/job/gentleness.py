"""When a gentle job holds its tools back, so that others get at the disk."""

import time
from collections.abc import Callable

HOLD_ABOVE_PERCENT = 25.0
LET_GO_BELOW_PERCENT = 10.0
LONGEST_HOLD_S = 2.0
"""A disk that others keep busy for ever must not stop the job for ever."""

GENTLE_NICE = 19


class Gentleness:
    """Decides from the I/O pressure since the last look whether the tools may run.

    While they run, their own waiting is part of the pressure; while they are held, all of it is
    that of others.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._held_since: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the tools are held back now."""
        return self._held_since is not None

    def decide(self, pressure_percent: float | None) -> bool:
        """Return whether to hold the tools back until the next look.

        Args:
            pressure_percent: None where the kernel does not tell; then nothing is held.
        """
        now = self._clock()
        if pressure_percent is None:
            self._held_since = None
        elif self._held_since is None:
            if pressure_percent > HOLD_ABOVE_PERCENT:
                self._held_since = now
        elif pressure_percent < LET_GO_BELOW_PERCENT or now - self._held_since >= LONGEST_HOLD_S:
            self._held_since = None
        return self.holds

    def reset(self) -> None:
        """Forget a hold, because the tools run or are stopped for another reason."""
        self._held_since = None
