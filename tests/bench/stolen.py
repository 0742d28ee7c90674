"""What others take of the processors: other guests of a virtual machine, and busy loops."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

MOST_STOLEN = 0.05
"""Of the time in which this machine wanted its processors."""
STARTS = 200
_LONGEST_WAIT_S = 120.0
_PAUSE_S = 2.0
SETTLE_LIMIT_S = 100.0
"""The load average covers about a minute."""


class Stolen:
    """The share of the processors' busy time, since this was made, in which others held them."""

    def __init__(self) -> None:
        self._before = psutil.cpu_times()

    @property
    def share(self) -> float:
        """From 0 to 1; always 0 on a machine whose hypervisor does not report steal time."""
        now = psutil.cpu_times()
        passed_s = {name: getattr(now, name) - getattr(self._before, name) for name in now._fields}
        busy_s = sum(passed_s[name] for name in ("user", "nice", "system", "irq", "softirq"))
        stolen_s = float(passed_s.get("steal", 0.0))
        return stolen_s / max(0.01, float(busy_s) + stolen_s)


def seconds_of_starts_when_quiet() -> float:
    """Wait until others leave the machine alone, for two minutes at most.

    Returns:
        How long `STARTS` processes took at last, one after the other, that do nothing.
    """
    until_s = time.monotonic() + _LONGEST_WAIT_S
    while True:
        stolen, began_s = Stolen(), time.monotonic()
        for _ in range(STARTS):
            subprocess.run(["/bin/true"], check=True)
        taken_s = time.monotonic() - began_s
        if stolen.share <= MOST_STOLEN or time.monotonic() > until_s:
            return taken_s
        time.sleep(_PAUSE_S)


@contextmanager
def busy_loops(number: int) -> Iterator[None]:
    """Run loops at niceness 0 until the end of the block."""
    command = ["/usr/bin/yes"]
    processes = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=_nice_zero)
        for _ in range(number)
    ]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _nice_zero() -> None:
    os.setpriority(os.PRIO_PROCESS, 0, 0)


def wait_for_load(number: int) -> None:
    """Wait until the load average is near the number of loops, or the time limit."""
    deadline = time.monotonic() + SETTLE_LIMIT_S
    while abs(os.getloadavg()[0] - number) > 0.6 and time.monotonic() < deadline:
        time.sleep(1)
