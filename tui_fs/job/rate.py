"""A limit to the entries removed in a second, kept by stopping the tools and letting them go."""

import time
from collections.abc import Callable

LONGEST_SAVING_S = 0.25
"""Time not used up is not saved for longer: after a pause there is no burst."""
SHORTEST_LOOK_S, LONGEST_LOOK_S = 0.002, 0.05


class RateLimit:
    """A token bucket: each entry removed takes a token, time brings new ones.

    The tools cannot be told to slow down, so they overshoot until the next look, and stand
    still until that is paid back: on average the limit holds to the entry.
    """

    def __init__(self, per_s: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._clock = clock
        self._looked_at = clock()
        self._removed: int | None = None
        self._tokens = 0.0
        self._speed_per_s = 0.0
        self._held = False

    def hold_s(self, removed: int) -> float:
        """Return how long the tools must stand still now; 0 to let them run.

        Args:
            removed: entries removed since the start of the job.
        """
        now = self._clock()
        passed_s, self._looked_at = now - self._looked_at, now
        before, self._removed = self._removed, removed
        taken = removed - (removed if before is None else before)
        if passed_s > 0 and not self._held:
            self._speed_per_s = max(taken / passed_s, self._speed_per_s / 2)
        saved = max(1.0, self._per_s * LONGEST_SAVING_S)
        self._tokens = min(saved, self._tokens + self._per_s * passed_s) - taken
        self._held = self._tokens < 1
        if not self._held:
            return 0.0
        return max(SHORTEST_LOOK_S, (1 - self._tokens) / self._per_s)

    def step_begins(self) -> None:
        """Forget how fast the last tools were; other ones may remove thousands before a look."""
        self._speed_per_s = 0.0

    @property
    def look_again_s(self) -> float:
        """How long the tools may run before the next look."""
        if not self._speed_per_s:
            return SHORTEST_LOOK_S
        return min(LONGEST_LOOK_S, max(SHORTEST_LOOK_S, self._tokens / self._speed_per_s))
