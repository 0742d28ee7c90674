"""Read pressure stall information (PSI), the load of a disk, and the use of the processors."""

import os
import re
import time
from collections.abc import Callable

from msgspec import Struct

from tui_fs.linux.kernel_files import content_of

PRESSURE_IO = "/proc/pressure/io"
PRESSURE_CPU = "/proc/pressure/cpu"

_LONGEST_BYTES = 4096
_SOME = re.compile(rb"some avg10=(\d{1,3}\.\d\d) avg60=\S+ avg300=\S+ total=(\d{1,20})\n")


def io_pressure_percent(path: str = PRESSURE_IO) -> float | None:
    """Return the share of the last 10 s in which some task waited for I/O; None without PSI."""
    some = _some(path)
    return None if some is None else some.percent


class PressureMeter:
    """Measure the share of time in which some task waited, between two calls of `percent`."""

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
        if total_s is None or before_s is None or now_s <= then_s or total_s < before_s:
            return None
        return min(100.0, 100.0 * (total_s - before_s) / (now_s - then_s))

    def _total_s(self) -> float | None:
        some = _some(self._path)
        return None if some is None else some.total_s


class _Some(Struct, frozen=True):
    """The line ``some``: at least one task waited."""

    percent: float
    total_s: float


def _some(path: str) -> _Some | None:
    """Parse a PSI file; None if it is absent or malformed."""
    match = _SOME.match(content_of(path, _LONGEST_BYTES))
    if match is None or float(match[1]) > 100.0:
        return None
    return _Some(float(match[1]), int(match[2]) / 1e6)


_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class ProcessorUse(Struct, frozen=True):
    """The use of all processors of the machine since it started.

    Attributes:
        busy_s: time in which they ran any process, the kernel's threads included.
        stolen_s: time in which the hypervisor let them wait.
    """

    busy_s: float
    stolen_s: float


def processor_use(path: str = "/proc/stat") -> ProcessorUse | None:
    """Return the use of the processors; None if the kernel does not report it."""
    try:
        with open(path, encoding="ascii") as file:
            name, *fields = file.readline().split()
        # proc_stat(5): user nice system idle iowait irq softirq steal
        user, nice, system, _, _, irq, softirq, steal = map(int, fields[:8])
    except (OSError, ValueError):
        return None
    busy = user + nice + system + irq + softirq
    return ProcessorUse(busy / _TICKS_PER_S, steal / _TICKS_PER_S) if name == "cpu" else None


_BUSY_MS_FIELD = 9
BLOCK_DEVICES = "/sys/dev/block"


class DiskLoad:
    """Measure the share of time in which a disk was busy, between two calls of `percent`."""

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
        """Return the share since the last call; None if there is no such disk."""
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
            return None  # not a disk, or a kernel with another format of stat
