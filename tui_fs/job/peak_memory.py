"""The largest process among a step's tools, from what the kernel keeps of each.

ru_maxrss is not enough: exec(2) hands the old program's high-water mark on (fs/exec.c,
setmax_mm_hiwater_rss), so every tool begins with that of the forked interpreter. Below it only
VmHWM tells, and only while the process lives: one that ends within milliseconds is not seen.
"""

import time
from collections.abc import Iterable

from tui_fs.linux.memory import children_of, has_executed, peak_bytes_of

FIRST_LOOK_S = 0.001
LAST_LOOK_S = 0.05
"""A tool is looked at after a thousandth of a second, and then after ever longer times. What the
first look finds is not counted: the tool may still be loading its libraries."""

FORKED_EXTRA_BYTES = 1 << 20
"""What a fork of the interpreter may touch before it executes its tool."""


class PeakMemory:
    """Watches the processes of one step.

    Args:
        pids: processes that are forked from this one and not waited for; they have not yet
            executed their tools.
        forked_bytes: the peak of the process they were forked from, at that moment.
    """

    def __init__(self, pids: Iterable[int], forked_bytes: int, proc: str = "/proc") -> None:
        self._pids = dict.fromkeys(pids, False)
        self._inherited_bytes = forked_bytes + FORKED_EXTRA_BYTES
        self._proc = proc
        self._pause_s = FIRST_LOOK_S
        self._next_look: float | None = None
        self.bytes = 0
        """The largest so far; 0 if none was seen."""

    def released(self) -> None:
        """Begin to look: the processes are about to execute their tools."""
        self._next_look = time.monotonic() + FIRST_LOOK_S

    def wait_s(self) -> float | None:
        """Return how long to wait until the next `look`, None if nothing is to be looked at."""
        if self._next_look is None or not self._pids:
            return None
        return max(0.0, self._next_look - time.monotonic())

    def look(self) -> None:
        """Look at what runs, if it is time; nothing that was waited for is looked at."""
        now = time.monotonic()
        if self._next_look is None or now < self._next_look:
            return
        for pid, was_seen in self._pids.items():
            if not was_seen:
                self._pids[pid] = has_executed(pid, self._proc)
                continue
            seen = [peak_bytes_of(pid, self._proc)]
            seen += [
                peak_bytes_of(child, self._proc, pid) for child in children_of(pid, self._proc)
            ]
            self.bytes = max(self.bytes, *seen)
        self._pause_s = min(2 * self._pause_s, LAST_LOOK_S)
        self._next_look = now + self._pause_s

    def ended(self, pid: int, ru_maxrss_bytes: int) -> None:
        """Take what wait4(2) tells of a process, its own children included."""
        self._pids.pop(pid, None)
        if ru_maxrss_bytes > self._inherited_bytes:
            self.bytes = max(self.bytes, ru_maxrss_bytes)
