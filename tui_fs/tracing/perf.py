"""Exact live counts from kernel tracepoints in counting mode, at about no cost.

perf_event_open(2) with type TRACEPOINT, one descriptor for each system call's exits and one
with the filter ``ret < 0``. `inherit` adds every descendant. `enable_on_exec` leaves out
what a child does before it executes the tool. Like strace -c, the counters count returned calls.
"""

import ctypes
import errno
import fcntl
import os
import re
import resource
import struct
from collections.abc import Sequence

from tui_fs.linux.libc import system_call
from tui_fs.linux.limits import cause_of, descriptor_limits
from tui_fs.model.calls import REMOVING_CALLS, CallCount, Removed, TraceSource
from tui_fs.model.errors import Missing
from tui_fs.tracing.source import CallSource, Counts
from tui_fs.tracing.syscalls import AT_REMOVEDIR, CREATING_CALLS, SYSCALLS, tracepoint_name

TRACEFS = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")

_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
_TYPE_TRACEPOINT = 2
_ATTR_SIZE = 128
_DISABLED, _INHERIT, _ENABLE_ON_EXEC = 1 << 0, 1 << 1, 1 << 12
_CLOSE_ON_EXEC = 8
_IOC_SET_FILTER = 0x40082406
_ID = re.compile(rb"(\d{1,18})\n?")
_LONGEST_ID = 64
_SPARE_DESCRIPTORS = 128
COUNTERS_PER_PROCESS = 2 * len(SYSCALLS) + 1

_NO_EVENT = (1 << 64) - 1
"""An id that no tracepoint has. Asked for it, a kernel that permits counting answers EINVAL."""


class PerfCounters(CallSource):
    """Counters of the processes it is attached to and of all their descendants.

    Every process gets counters of its own: a child that inherits disabled counters from the
    launcher may lose them, because the kernel swaps equal counter contexts between tasks and
    clears enable_on_exec in the one that executes first (measured: one run in three).

    Only calls with a name in `SYSCALLS` are counted. One more event for all of them together
    (raw_syscalls) costs as much as everything else: it made the ratio 1.06 to 1.09.
    """

    def __init__(self, tracefs: str, processes: int = 3) -> None:
        """Prepare for `processes` processes in total, one after the other or at once."""
        super().__init__(TraceSource.PERF, "live kernel counters, exact")
        self._events = os.path.join(tracefs, "events")
        self._descriptors_needed = processes * COUNTERS_PER_PROCESS + _SPARE_DESCRIPTORS
        self._exits: dict[str, list[int]] = {}
        self._failed: dict[str, list[int]] = {}
        self._directories: list[int] = []
        self._ended: list[int] = []
        self._ended_calls: dict[str, CallCount] = {}
        self._ended_directories = 0
        self._ids: dict[str, int] = {}

    def probe(self) -> None:
        """Ask for a counter on this process that does not exist; Missing if it is not permitted.

        The kernel checks the permission first. It would take 40 ms to close a counter.
        """
        _, hard = descriptor_limits()
        needed = len(os.listdir("/proc/self/fd")) + self._descriptors_needed
        if hard != resource.RLIM_INFINITY and hard < needed:
            raise Missing(*why_not(OSError(errno.EMFILE, "")))
        try:
            self._id_of("raw_syscalls/sys_exit")
            _perf_event_open(_attributes(_NO_EVENT), os.getpid())
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise Missing(*why_not(error)) from error

    def prepare(self, launcher_pid: int) -> None:
        del launcher_pid
        self.probe()

    def attach(self, pid: int) -> None:
        """See `CallSource.attach`; Missing if the kernel refuses."""
        opened: list[tuple[list[int], int]] = []

        def open_into(descriptors: list[int], event: str, event_filter: str | None) -> None:
            opened.append((descriptors, self._open(event, pid, event_filter)))

        try:
            allow_more_descriptors(COUNTERS_PER_PROCESS + _SPARE_DESCRIPTORS)
            open_into(self._directories, "syscalls/sys_enter_unlinkat", f"flag & {AT_REMOVEDIR}")
            for name in SYSCALLS:
                event = f"syscalls/sys_exit_{tracepoint_name(name)}"
                if event not in self._ids and not os.path.exists(f"{self._events}/{event}"):
                    continue
                returned_once = "ret != 0" if name in CREATING_CALLS else None
                open_into(self._exits.setdefault(name, []), event, returned_once)
                open_into(self._failed.setdefault(name, []), event, "ret < 0")
        except OSError as error:
            for _, descriptor in opened:  # all or none: the caller may retry
                os.close(descriptor)
            raise Missing(*why_not(error)) from error
        for descriptors, descriptor in opened:
            descriptors.append(descriptor)
        # A counter keeps its process and so what Landlock has allowed it, which keeps its targets.
        # The kernel closes it fast as long as another one counts the same call.
        self._close_ended()

    def step_ended(self) -> None:
        """See `CallSource.step_ended`; the counters stay open until the next step, unread."""
        self._ended_calls = self._calls()
        self._ended_directories += _sum(self._directories)
        for descriptors in (self._directories, *self._exits.values(), *self._failed.values()):
            self._ended += descriptors
            descriptors.clear()

    def read(self, refused_directories: int = 0) -> Counts:
        calls = self._calls()
        removed = sum(calls[name].calls - calls[name].errors for name in REMOVING_CALLS & {*calls})
        directories = self._removed_directories(calls, refused_directories)
        return Counts(calls, Removed(removed, directories))

    def removed(self) -> int | None:
        """See `CallSource.removed`; every counter read interrupts the processor it counts on."""
        return sum(
            count.calls - count.errors
            for count in (self._count(name) for name in REMOVING_CALLS if name in self._exits)
        )

    def close(self) -> None:
        """See `CallSource.close`; the kernel takes about 40 ms for each counter."""
        self.step_ended()
        self._close_ended()

    def _close_ended(self) -> None:
        while self._ended:
            os.close(self._ended.pop())

    def _calls(self) -> dict[str, CallCount]:
        counts = {name: self._count(name) for name in self._exits}
        return {name: count for name, count in counts.items() if count.calls}

    def _count(self, name: str) -> CallCount:
        before = self._ended_calls.get(name, CallCount(0))
        return CallCount(
            before.calls + _sum(self._exits[name]), before.errors + _sum(self._failed[name])
        )

    def _removed_directories(self, calls: dict[str, CallCount], refused: int) -> int | None:
        """Return the number of removed directories; None if another unlinkat failed.

        The flag is counted at entry and the error at exit, so the two cannot be matched.

        Args:
            refused: at most this many failures were of directories.
        """
        errors = calls.get("unlinkat", CallCount(0)).errors
        if errors > refused:
            return None
        rmdir = calls.get("rmdir", CallCount(0))
        directories = self._ended_directories + _sum(self._directories) - errors
        return directories + rmdir.calls - rmdir.errors

    def _open(self, event: str, pid: int, event_filter: str | None) -> int:
        descriptor = _perf_event_open(_attributes(self._id_of(event)), pid)
        if event_filter is not None:
            fcntl.ioctl(descriptor, _IOC_SET_FILTER, event_filter.encode() + b"\0")
        return descriptor

    def _id_of(self, event: str) -> int:
        if event in self._ids:
            return self._ids[event]
        with open(os.path.join(self._events, event, "id"), "rb") as file:
            number = _ID.fullmatch(file.read(_LONGEST_ID))
        if number is None:
            raise OSError(errno.ENODATA, os.strerror(errno.ENODATA))
        self._ids[event] = int(number[1])
        return self._ids[event]


def find_tracefs(places: Sequence[str] = TRACEFS) -> str:
    """Return the mount point of tracefs; Missing, with a remedy, if it cannot be read."""
    for place in places:
        if os.path.isfile(os.path.join(place, "events/raw_syscalls/sys_exit/id")):
            if os.access(os.path.join(place, "events/raw_syscalls/sys_exit/id"), os.R_OK):
                return place
            break
    if os.geteuid() == 0 and os.path.isdir(places[0]) and not os.listdir(places[0]):
        raise Missing(
            "Kernel counters need tracefs, which is not mounted.",
            f"Mount it: mount -t tracefs none {places[0]}",
        )
    if os.geteuid() != 0:
        raise Missing(
            "Kernel counters need root (tracefs is not readable by other users).", "Run with sudo."
        )
    raise Missing("This kernel has no system call tracepoints (CONFIG_FTRACE_SYSCALLS).")


def why_not(error: OSError) -> tuple[str, str]:
    """Return a sentence and an advice for a refusal of perf_event_open."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return (
            "The kernel does not permit counting (perf_event_paranoid, or a container without "
            "CAP_PERFMON).",
            "Run as root outside the container, or add the capability PERFMON.",
        )
    if error.errno == errno.EMFILE:
        return ("Too few file descriptors for the counters.", "Raise ulimit -n.")
    cause, advice = cause_of(error)
    return (f"The kernel refused its counters: {cause}.", advice)


def _attributes(event: int) -> bytes:
    flags = _DISABLED | _INHERIT | _ENABLE_ON_EXEC
    # struct perf_event_attr: type, size, config, sample_period, sample_type, read_format, flags
    attr = struct.pack("=IIQQQQQ", _TYPE_TRACEPOINT, _ATTR_SIZE, event, 0, 0, 0, flags)
    return attr.ljust(_ATTR_SIZE, b"\0")


def _perf_event_open(attr: bytes, pid: int) -> int:
    number = _PERF_EVENT_OPEN.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    none = ctypes.c_long(-1)  # no processor, no group
    return system_call(number, attr, ctypes.c_long(pid), none, none, ctypes.c_ulong(_CLOSE_ON_EXEC))


def _sum(descriptors: list[int]) -> int:
    total = 0
    for descriptor in descriptors:
        (value,) = struct.unpack("=Q", os.read(descriptor, 8))
        total += value
    return total


def allow_more_descriptors(number: int) -> None:
    """Raise the soft limit to permit `number` more descriptors, if the hard limit allows it."""
    soft, hard = descriptor_limits()
    try:
        wanted = len(os.listdir("/proc/self/fd")) + number
    except FileNotFoundError:  # /proc is not mounted
        wanted = soft + number
    if soft < wanted and (hard == resource.RLIM_INFINITY or hard >= wanted):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
