"""How busy a disk is, from its statistics (Documentation/block/stat.rst in the kernel)."""

import os
import time
from collections.abc import Callable

_BUSY_MS_FIELD = 9
BLOCK_DEVICES = "/sys/dev/block"


class DiskLoad:
    """The share of time in which a disk had something to do, from one look to the next."""

    def __init__(
        self,
        device: int,
        devices: str = BLOCK_DEVICES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = os.path.join(devices, f"{os.major(device)}:{os.minor(device)}", "stat")
        self._clock = clock
        self._last = (clock(), self._busy_s())

    def percent(self) -> float | None:
        """Return the share since the last call; None where there is no such disk."""
        now_s, busy_s = self._clock(), self._busy_s()
        (then_s, before_s), self._last = self._last, (now_s, busy_s)
        if busy_s is None or before_s is None or now_s <= then_s:
            return None
        return min(100.0, max(0.0, 100.0 * (busy_s - before_s) / (now_s - then_s)))

    def _busy_s(self) -> float | None:
        try:
            with open(self._path, encoding="ascii") as file:
                return int(file.read().split()[_BUSY_MS_FIELD]) / 1000
        except (OSError, ValueError, IndexError):
            return None  # not a disk of its own, or a kernel that keeps other books
