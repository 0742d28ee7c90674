"""When a gentle job holds its tools back, so that others get at the disk and the processors.

Pressure stall information says how much of the time somebody waited, not who. While the tools
run, their own waiting is part of it; while they stand still, all of it is that of others. So a
high pressure is followed by a short hold that asks, and only what is seen there decides.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tui_fs.linux.pressure import PRESSURE_CPU, PRESSURE_IO, DiskLoad, PressureMeter

ASK_ABOVE_PERCENT = 20.0
OTHERS_WAIT_ABOVE_PERCENT = 10.0
GENTLE_NICE = 19

LOOK_EVERY_S = 0.25
ASKING_S = 0.1
RUN_S, HOLD_S = 0.1, 0.6
"""While others wait the tools get a seventh of the time: even if they took all of the disk
meanwhile, the others would keep more than four fifths."""
_SHORTEST_S = 0.01
FIRST_TRUST_S, LONGEST_TRUST_S = 1.0, 8.0
"""After nobody else was found waiting, nobody is asked for so long; then for twice as long."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """Somebody waits.

    Attributes:
        resource: ``disk`` or ``processors``.
        percent: the share of the last moments.
    """

    resource: str
    percent: float


Measure = Callable[[], float | None]
"""Return the pressure since the last call in percent; None where the kernel tells none."""


def disk_pressure(devices: Iterable[int]) -> Measure:
    """Return how much is waited for disks: by the highest load if the kernel tells no pressure."""
    pressure, loads = PressureMeter(PRESSURE_IO), [DiskLoad(device) for device in devices]

    def percent() -> float | None:
        waited, busy = pressure.percent(), [load.percent() for load in loads]
        known = [one for one in busy if one is not None]
        return max(known, default=None) if waited is None else waited

    return percent


class PressureThrottle:
    """Decides from the pressure since the last decision whether the tools may run."""

    def __init__(
        self,
        disk: Measure | None = None,
        processors: Measure | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._disk = disk or PressureMeter(PRESSURE_IO).percent
        self._processors = processors or PressureMeter(PRESSURE_CPU).percent
        self._clock = clock
        self._held_since: float | None = None
        self._others_wait = False
        self._trusts_until = 0.0
        self._trust_s = FIRST_TRUST_S

    @property
    def holds(self) -> bool:
        """Whether the tools are held back now."""
        return self._held_since is not None

    def decide(self) -> tuple[Pressure | None, float]:
        """Return who waits if the tools are to stand still, and when to decide again (seconds)."""
        now = self._clock()
        waiting = self._waiting()
        if self._held_since is None:
            return self._decide_running(now, waiting)
        return self._decide_held(now, waiting, now - self._held_since)

    def reset(self) -> None:
        """Forget a hold, because the tools run or stand still for another reason."""
        self._held_since = None
        self._others_wait = False

    def _decide_running(
        self, now: float, waiting: Pressure | None
    ) -> tuple[Pressure | None, float]:
        if waiting is None or (waiting.percent < ASK_ABOVE_PERCENT and not self._others_wait):
            self._others_wait = False
            return None, LOOK_EVERY_S
        if not self._others_wait and now < self._trusts_until:
            return None, LOOK_EVERY_S
        self._held_since = now
        return waiting, ASKING_S

    def _decide_held(
        self, now: float, waiting: Pressure | None, held_s: float
    ) -> tuple[Pressure | None, float]:
        if waiting is None or waiting.percent < OTHERS_WAIT_ABOVE_PERCENT:
            self._trust_s = (
                FIRST_TRUST_S if self._others_wait else min(2 * self._trust_s, LONGEST_TRUST_S)
            )
            self._trusts_until = now + self._trust_s
            self.reset()
            return None, LOOK_EVERY_S
        self._others_wait = True
        if HOLD_S - held_s > _SHORTEST_S:
            return waiting, min(LOOK_EVERY_S, HOLD_S - held_s)
        self._held_since = None
        return None, RUN_S

    def _waiting(self) -> Pressure | None:
        known = [
            Pressure(resource, percent)
            for resource, percent in (("disk", self._disk()), ("processors", self._processors()))
            if percent is not None
        ]
        return max(known, key=lambda one: one.percent, default=None)
