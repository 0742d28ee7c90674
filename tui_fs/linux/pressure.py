"""Pressure stall information: how much of the time somebody waited for a resource."""

import time
from collections.abc import Callable

PRESSURE_IO = "/proc/pressure/io"
PRESSURE_CPU = "/proc/pressure/cpu"


def io_pressure_percent(path: str = PRESSURE_IO) -> float | None:
    """Return the share of the last 10 s in which some task waited for I/O; None without PSI."""
    value = _some(path, "avg10=")
    return None if value is None else float(value)


class PressureMeter:
    """The share of time in which some task waited, between one look and the next."""

    def __init__(
        self, path: str = PRESSURE_IO, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._clock = clock
        self._last = (clock(), self._total_s())

    def percent(self) -> float | None:
        """Return the share since the last call; None without PSI."""
        now_s, total_s = self._clock(), self._total_s()
        (then_s, before_s), self._last = self._last, (now_s, total_s)
        if total_s is None or before_s is None or now_s <= then_s:
            return None
        return min(100.0, 100.0 * (total_s - before_s) / (now_s - then_s))

    def _total_s(self) -> float | None:
        value = _some(self._path, "total=")
        return None if value is None else int(value) / 1e6


def _some(path: str, name: str) -> str | None:
    try:
        with open(path, encoding="ascii") as lines:
            for line in lines:
                if line.startswith("some "):
                    return line.split(name, 1)[1].split()[0]
    except OSError:
        return None  # a kernel without PSI: there is no figure
    return None
