"""Samples the counters, processes and file systems of a job a few times a second."""

import contextlib
import time
from collections.abc import Sequence

from msgspec.structs import replace

from tui_fs.job.tool_output import ToolOutput
from tui_fs.linux.filesystem import STATVFS_TIMEOUT_S, read_space
from tui_fs.linux.limits import is_limit, measured
from tui_fs.linux.pressure import io_pressure_percent
from tui_fs.linux.processes import (
    ProcessTimes,
    accounts_delays,
    age_s,
    bytes_moved,
    descendants,
    times_of,
    waits_of,
)
from tui_fs.linux.timeouts import BackgroundCall
from tui_fs.model.calls import CallCount, TraceSource
from tui_fs.model.events import Sampled, Usage
from tui_fs.model.space import Space
from tui_fs.tracing.source import CallSource, Counts

SAMPLE_EVERY_S = 0.25
"""The supervisor measures and checks a running job this often; see `RECORDED_AGE_SHARE`."""
RECORDED_AGE_SHARE = 0.001
"""Journalled samples are this share of the job's age apart, and at least `SAMPLE_EVERY_S`. Their
number grows with the logarithm of the age: 1,000 in the first 250 s, 3,300 in an hour, 7,100 in 48
hours (7 MB), 9,800 in 30 days. Views ask the supervisor for the counts in between."""
SPACE_TIMEOUT_S = 0.05
"""How long a sample waits for the file systems; commands must not wait for a dead one."""
LAST_PATIENCE_S = 10.0
"""How long the last sample retries to read counts and space while a limit prevents it."""
_RELEASE_LIMIT_S, _RELEASE_STEP_S = 1.0, 0.005
"""After a confined tool has ended, the kernel keeps the target's inode for 45 to 70 ms, because
Landlock drops its rules after a grace period."""
_SHORTEST_INTERVAL_S = 0.01
"""A tick, the unit of CPU times: over a shorter interval no share of a processor is known."""
LOOK_AT_PROCESSES_EVERY_S = 1.0
"""Listing processes takes milliseconds on a busy server, too much for each sample."""


class SampleSchedule:
    """Decides when a sample of a running job goes into its journal."""

    def __init__(self) -> None:
        self._next_at_s = 0.0

    def is_due(self, at_s: float) -> bool:
        """Return whether a sample at this age of the job must be journalled."""
        return at_s >= self._next_at_s

    def recorded(self, at_s: float) -> None:
        """Note a journalled sample, whether it was due or not."""
        self._next_at_s = at_s + max(SAMPLE_EVERY_S, RECORDED_AGE_SHARE * at_s)


class UsageMeter:
    """Measure all descendants of a process, without the process itself.

    It reads only the files of the processes, because a container may hide the rest of /proc.

    The CPU times of ended descendants are in the ``children`` times of their parents, so the sums
    never decrease. The bytes read and written by ended processes are kept as last seen.
    """

    def __init__(self, root_pid: int) -> None:
        self._root_pid = root_pid
        self._io: dict[tuple[int, int], tuple[int, int]] = {}
        self._waits: dict[tuple[int, int], tuple[float, float]] = {}
        self._accounts_delays = accounts_delays()
        self._last: tuple[float, float] | None = None

    def measure(self) -> Usage | None:
        """Return the current usage, None if all processes have ended.

        Raises:
            OSError: the processes cannot be read now.
        """
        try:
            root = times_of(f"/proc/{self._root_pid}")
        except (FileNotFoundError, ProcessLookupError):
            return None
        living: list[tuple[int, ProcessTimes]] = []
        for pid in descendants(self._root_pid):
            # A process may end between listing and reading; its times are then in its parent.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                times = times_of(f"/proc/{pid}")
                living.append((pid, times))
                self._note_io(pid, times)
                for thread, waits in waits_of(f"/proc/{pid}").items():
                    self._waits[thread, times.started_ticks] = waits
        busiest = max(
            living, key=lambda process: process[1].user_s + process[1].system_s, default=None
        )
        system_s = root.children_system_s
        system_s += sum(times.system_s + times.children_system_s for _, times in living)
        user_s = root.children_user_s
        user_s += sum(times.user_s + times.children_user_s for _, times in living)
        return Usage(
            cpu_s=user_s + system_s,
            system_s=system_s,
            cpu_percent=self._percent(user_s + system_s),
            rss_bytes=sum(times.rss_bytes for _, times in living),
            read_bytes=sum(read for read, _ in self._io.values()) if self._io else None,
            written_bytes=sum(written for _, written in self._io.values()) if self._io else None,
            processes=len(living),
            busiest=f"{busiest[1].command} {busiest[0]}" if busiest else "",
            processor_wait_s=self._sum_of_waits(0),
            disk_wait_s=self._sum_of_waits(1) if self._accounts_delays else None,
            alive_s=age_s(living[0][1]) if living and len(self._waits) == 1 else None,
        )

    def _sum_of_waits(self, kind: int) -> float | None:
        """Return the waits of all threads, of ended ones as last seen; None if unknown."""
        return sum(waits[kind] for waits in self._waits.values()) if self._waits else None

    def _note_io(self, pid: int, times: ProcessTimes) -> None:
        with contextlib.suppress(PermissionError):  # the I/O of another user's process is hidden
            self._io[pid, times.started_ticks] = bytes_moved(f"/proc/{pid}")

    def _percent(self, cpu_s: float) -> float | None:
        now = time.monotonic()
        last, self._last = self._last, (now, cpu_s)
        if last is None or now - last[0] < _SHORTEST_INTERVAL_S:
            return None
        return max(0.0, 100.0 * (cpu_s - last[1]) / (now - last[0]))


class Sampler:
    """Makes `Sampled` events; a figure that cannot be measured now keeps its last value.

    Args:
        places: a directory on each file system whose free space is watched.
        launcher_pid: its descendants are the tools.
    """

    def __init__(
        self, source: CallSource, output: ToolOutput, places: Sequence[str], launcher_pid: int
    ) -> None:
        self._source = source
        self._output = output
        self._meter = UsageMeter(launcher_pid)
        self.places = tuple(places)
        self.space: Space | None = None
        self._space_question: BackgroundCall[Space] | None = None
        self._measure_space(STATVFS_TIMEOUT_S)
        self._counts_read = Counts()
        self._removed: int | None = None
        self.has_last_counts = False
        """Whether `last_sample` could read the counts."""
        self._calls: dict[str, CallCount] = {}
        self._usage: Usage | None = None
        self._looked_at_s = float("-inf")

    def removed(self) -> int | None:
        """Return the entries removed so far; None where nothing counts them."""
        removed = measured(self._read_removed)
        self._removed = self._removed if removed is None else removed
        return self._removed

    def _read_removed(self) -> int | None:
        if self._is_in_output:
            return self._output.removed().entries
        return self._source.removed()

    @property
    def _is_in_output(self) -> bool:
        """Whether the tools report their removals, even where no calls are to be counted."""
        kind = self._source.kind
        is_counted = kind in (TraceSource.OUTPUT, TraceSource.ENGINE)
        return is_counted or (kind is TraceSource.OFF and self._output.has_totals)

    def sample(self, at_s: float, strategy_s: float) -> Sampled:
        """Return the current sample for the journal; see `changes`."""
        return self.changes(self.whole_sample(at_s, strategy_s))

    def changes(self, sampled: Sampled) -> Sampled:
        """Return a sample for the journal, with only the calls that changed since the last one."""
        changed = {
            name: count for name, count in sampled.calls.items() if self._calls.get(name) != count
        }
        self._calls.update(changed)
        return replace(sampled, calls=changed)

    def whole_sample(self, at_s: float, strategy_s: float) -> Sampled:
        """Return the current sample with all calls."""
        self._read_counts()
        counts = self._counts_read
        if time.monotonic() - self._looked_at_s >= LOOK_AT_PROCESSES_EVERY_S:
            self._sample_processes(SPACE_TIMEOUT_S)
        return Sampled(
            at_s=at_s,
            strategy_s=strategy_s,
            calls=dict(counts.calls),
            removed=counts.removed,
            usage=self._usage,
            space=self.space,
            io_pressure_percent=measured(io_pressure_percent),
            threads=self._output.threads,
        )

    def last_sample(
        self,
        at_s: float,
        strategy_s: float,
        awaited_inodes: int | None = None,
        most_late_inodes: int | None = None,
    ) -> Sampled:
        """Read and return the counts and the space after the end.

        A file system that does not answer now has no space; an earlier value is dropped.

        Args:
            awaited_inodes: how many free inodes there should be after a job that Landlock has
                confined, because the kernel releases its targets late; None to wait for nothing.
            most_late_inodes: if more are missing, other processes have created files, and it does
                not wait for the rest; None to wait in any case.
        """
        deadline = time.monotonic() + LAST_PATIENCE_S
        while not (has_counts := self._read_counts()) and time.monotonic() < deadline:
            time.sleep(SAMPLE_EVERY_S)
        self.has_last_counts = has_counts
        if self.space is None:
            deadline = 0.0  # with nothing to compare, the space is not worth waiting for
        self.space, self._space_question = None, None
        self._sample_processes(STATVFS_TIMEOUT_S)
        while self.space is None and self._is_limited and time.monotonic() < deadline:
            time.sleep(SAMPLE_EVERY_S)
            self._measure_space(STATVFS_TIMEOUT_S)
        if awaited_inodes is not None:
            self._await_release(awaited_inodes, most_late_inodes)
        return self.sample(at_s, strategy_s)

    def _await_release(self, awaited_inodes: int, most_late_inodes: int | None) -> None:
        """Wait until this number of inodes is free, for at most `_RELEASE_LIMIT_S`."""
        deadline, step_s = time.monotonic() + _RELEASE_LIMIT_S, _RELEASE_STEP_S
        while self.space is not None and time.monotonic() < deadline:
            missing = awaited_inodes - (self.space.free_inodes or 0)
            if missing <= 0 or (most_late_inodes is not None and missing > most_late_inodes):
                return
            time.sleep(min(step_s, max(deadline - time.monotonic(), 0.0)))
            step_s *= 1.5  # where others create files meanwhile, all of the time passes
            self._measure_space(STATVFS_TIMEOUT_S)

    def _read_counts(self) -> bool:
        """Read the counts; return whether that was possible."""
        counts = measured(self._counts)
        self._counts_read = counts or self._counts_read
        return counts is not None

    def _counts(self) -> Counts:
        """Return the counts of the source, or those that the tools report."""
        if not self._is_in_output:
            return self._source.read(self._output.refused_targets)
        is_engine = self._source.kind is TraceSource.ENGINE
        return Counts(self._output.calls() if is_engine else {}, self._output.removed())

    def _sample_processes(self, space_timeout_s: float) -> None:
        self._looked_at_s = time.monotonic()
        usage = measured(self._meter.measure)
        if usage is not None:
            self._usage = replace(usage, lock_wait_s=self._counts_read.lock_wait_s)
        self._measure_space(space_timeout_s)

    def _measure_space(self, timeout_s: float) -> None:
        """Read the free space in the background; a hanging call is not repeated."""
        self._is_limited = False
        try:
            if self._space_question is None:
                self._space_question = BackgroundCall(lambda: _space_of_all(self.places))
            self.space = self._space_question.result(timeout_s)
        except TimeoutError:
            return
        except (OSError, MemoryError) as error:
            self._is_limited = is_limit(error)
        self._space_question = None


def _space_of_all(places: Sequence[str]) -> Space:
    """Return the summed space of several file systems; OSError if one cannot be read."""
    spaces = [read_space(place) for place in places]
    inodes = [space.free_inodes for space in spaces if space.free_inodes is not None]
    return Space(
        sum(space.free_bytes for space in spaces),
        sum(inodes) if len(inodes) == len(spaces) else None,
        sum(space.reserved_bytes for space in spaces),
    )
