"""Measure memory: the peak use of processes, and the amount left for another one."""

import os
import re

from msgspec import Struct

from tui_fs.linux.kernel_files import content_of

MEMINFO = "/proc/meminfo"
CGROUP_OF_SELF = "/proc/self/cgroup"
CGROUPS = "/sys/fs/cgroup"

_FORKED_ONLY = 0x40
"""PF_FORKNOEXEC of linux/sched.h: forked, but has not executed a program."""

_FLAGS_FIELD = 6
"""Index in /proc/PID/stat, counted from the field after the name (proc(5))."""

_MINOR_FAULTS_FIELD, _MAJOR_FAULTS_FIELD = 7, 9

_PEAK = re.compile(rb"^VmHWM:\s+(\d{1,15}) kB$", re.MULTILINE)
_PARENT = re.compile(rb"^PPid:\s+(\d{1,10})$", re.MULTILINE)
_AVAILABLE = re.compile(rb"^MemAvailable:\s+(\d{1,15}) kB$", re.MULTILINE)
_RECLAIMABLE = re.compile(rb"^(?:inactive_file|active_file|slab_reclaimable) (\d{1,18})$", re.M)


class MemoryRoom(Struct, frozen=True):
    """The memory that a new process can allocate.

    Attributes:
        bytes_left: until the kernel refuses, kills or throttles.
        limited_by: the limiting resource, in words.
    """

    bytes_left: int
    limited_by: str


def memory_room(
    meminfo: str = MEMINFO, own_cgroup: str = CGROUP_OF_SELF, cgroups: str = CGROUPS
) -> MemoryRoom | None:
    """Return the minimum of the free memory of the machine and of all cgroups of this process.

    Reclaimable page cache counts as free, as in MemAvailable. Only the unified hierarchy (cgroup2)
    is read. None if nothing can be read.
    """
    rooms: list[MemoryRoom] = []
    available = _AVAILABLE.search(content_of(meminfo))
    if available is not None:
        rooms.append(MemoryRoom(int(available[1]) * 1024, "the memory of this machine"))
    for group in _groups_above(own_cgroup, cgroups):
        limits = [
            _number(content_of(os.path.join(group, name))) for name in ("memory.max", "memory.high")
        ]
        used = _number(content_of(os.path.join(group, "memory.current")))
        limit = min((value for value in limits if value is not None), default=None)
        if limit is None or used is None:
            continue
        statistics = content_of(os.path.join(group, "memory.stat"))
        droppable = sum(map(int, _RECLAIMABLE.findall(statistics)))
        left = max(0, limit - max(0, used - droppable))
        rooms.append(MemoryRoom(left, "the memory limit of this control group"))
    return min(rooms, key=lambda room: room.bytes_left, default=None)


def has_executed(pid: int, proc: str = "/proc") -> bool:
    """Return whether a forked process has executed its own program."""
    fields = content_of(f"{proc}/{pid}/stat").rpartition(b")")[2].split()
    if len(fields) <= _FLAGS_FIELD or not fields[_FLAGS_FIELD].isdigit():
        return False
    return not int(fields[_FLAGS_FIELD]) & _FORKED_ONLY


def processor_s_of(pid: int, proc: str = "/proc") -> float | None:
    """Return how long the main thread of a process has run; None without schedstat."""
    fields = content_of(f"{proc}/{pid}/schedstat").split()
    return int(fields[0]) / 1e9 if fields and fields[0].isdigit() else None


def peak_bytes_of(pid: int, proc: str = "/proc", parent: int | None = None) -> int:
    """Return the peak resident memory (VmHWM) of a running process in bytes; 0 if it has ended.

    Args:
        parent: if set, return 0 also for a process that is not a child of this one.
    """
    status = content_of(f"{proc}/{pid}/status")
    if parent is not None:
        above = _PARENT.search(status)
        if above is None or int(above[1]) != parent:
            return 0
    peak = _PEAK.search(status)
    return int(peak[1]) * 1024 if peak else 0


def faults_of(pid: int, proc: str = "/proc") -> tuple[int, int]:
    """Return the minor and major page faults of a running process; zeros if it has ended."""
    fields = content_of(f"{proc}/{pid}/stat").rpartition(b")")[2].split()
    numbers = fields[_MINOR_FAULTS_FIELD : _MAJOR_FAULTS_FIELD + 1 : 2]
    if len(numbers) != 2 or not all(number.isdigit() for number in numbers):
        return 0, 0
    return int(numbers[0]), int(numbers[1])


def children_of(pid: int, proc: str = "/proc") -> tuple[int, ...]:
    """Return the children of the main thread of a process; empty if the kernel lists none."""
    words = content_of(f"{proc}/{pid}/task/{pid}/children").split()
    return tuple(int(word) for word in words if word.isdigit())


def _groups_above(own_cgroup: str, cgroups: str) -> list[str]:
    """Return the cgroup directories of this process and all their parents but the root."""
    for line in content_of(own_cgroup).splitlines():
        number, _, path = line.partition(b"::")
        if number == b"0" and path:
            names = [name for name in os.fsdecode(path).split("/") if name not in ("", "..")]
            return [os.path.join(cgroups, *names[: end + 1]) for end in range(len(names))] or [
                cgroups
            ]
    return []


def _number(text: bytes) -> int | None:
    """Return the number in the content of a file; None for ``max`` and for an absent file."""
    stripped = text.strip()
    return int(stripped) if stripped.isdigit() else None
