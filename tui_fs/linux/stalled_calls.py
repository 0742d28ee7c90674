"""Threads that wait in a system call for a file system which does not answer.

Such a call cannot always be interrupted: a FUSE server that has read a request keeps its caller in
the kernel until it answers, whatever signal comes. The wait is only visible from outside, in /proc.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tui_fs.linux.process_files import path_of_link
from tui_fs.model.paths import PATH_MAX_BYTES, PathStr

_FUSE_WAITS = (b"request_wait_answer", b"fuse_wait_answer")
"""Kernel functions in which a caller of FUSE sleeps in the state S until a signal comes."""

_AT_FDCWD = ((1 << 64) - 100, (1 << 32) - 100)  # linux/fcntl.h; an int fills half a register
_MAX_DESCRIPTOR = 1 << 30
_NOT_READABLE = (FileNotFoundError, ProcessLookupError, PermissionError)


@dataclass(frozen=True, slots=True)
class StalledCall:
    """A system call that has not returned yet.

    Attributes:
        seconds: since it was first seen waiting.
        path: the directory or file that the call works on; None where that is not known.
    """

    seconds: float
    path: PathStr | None


class StalledCalls:
    """Follows the threads of processes and of all their descendants."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, proc: str = "/proc") -> None:
        self._clock = clock
        self._proc = proc
        self._waiting_since_s: dict[tuple[str, bytes], float] = {}

    def longest(self, pids: Iterable[int]) -> StalledCall | None:
        """Return the call that waits longest; None if no thread waits now.

        Only waits that are seen by two calls of this function in a row are followed.
        """
        now_s = self._clock()
        waiting = {
            wait: self._waiting_since_s.get(wait, now_s)
            for pid in with_descendants(pids, self._proc)
            for wait in self._waits_of(pid)
        }
        self._waiting_since_s = waiting
        if not waiting:
            return None
        wait = min(waiting, key=lambda each: waiting[each])
        return StalledCall(now_s - waiting[wait], _path_of(wait[0]))

    def _waits_of(self, pid: int) -> Iterator[tuple[str, bytes]]:
        """Yield the folder of each waiting thread, and how often it had waited before."""
        with contextlib.suppress(*_NOT_READABLE):
            for thread in os.listdir(f"{self._proc}/{pid}/task"):
                folder = f"{self._proc}/{pid}/task/{thread}"
                with contextlib.suppress(*_NOT_READABLE):
                    status = dict(
                        line.split(b":\t", 1)
                        for line in _read(f"{folder}/status").splitlines()
                        if b":\t" in line
                    )
                    state = status[b"State"][:1]
                    if state == b"D" or (state == b"S" and _wchan(folder) in _FUSE_WAITS):
                        yield folder, status[b"voluntary_ctxt_switches"]


def with_descendants(pids: Iterable[int], proc: str = "/proc") -> set[int]:
    """Return processes and all that descend from them; needs CONFIG_PROC_CHILDREN for these."""
    found: set[int] = set()
    waiting = list(pids)
    while waiting:
        pid = waiting.pop()
        if pid in found:
            continue
        found.add(pid)
        with contextlib.suppress(*_NOT_READABLE):
            for thread in os.listdir(f"{proc}/{pid}/task"):
                with contextlib.suppress(*_NOT_READABLE):
                    children = _read(f"{proc}/{pid}/task/{thread}/children")
                    waiting += map(int, children.split())
    return found


def processes_in_session(session: int, proc: str = "/proc") -> list[int]:
    """Return the processes of a session (setsid(2))."""
    found: list[int] = []
    for name in filter(str.isdigit, os.listdir(proc)):
        with contextlib.suppress(*_NOT_READABLE):
            fields = _read(f"{proc}/{name}/stat").rpartition(b")")[2].split()
            if int(fields[3]) == session:
                found.append(int(name))
    return found


def blocks_signal(pid: int, number: int, proc: str = "/proc") -> bool:
    """Return whether the main thread of a process has a signal blocked."""
    try:
        lines = _read(f"{proc}/{pid}/status").splitlines()
    except _NOT_READABLE:
        return False
    mask = next((int(line[7:], 16) for line in lines if line.startswith(b"SigBlk:")), 0)
    return bool(mask >> (number - 1) & 1)


def _wchan(folder: str) -> bytes:
    try:
        return _read(f"{folder}/wchan")
    except PermissionError:
        return b""


def _path_of(folder: str) -> PathStr | None:
    """Return what the first arguments of a thread's system call name.

    That is a descriptor, a path, or AT_FDCWD and a path; calls with other arguments than these do
    not wait for a file system.
    """
    try:
        arguments = [int(word, 16) for word in _read(f"{folder}/syscall").split()[1:3]]
        if len(arguments) < 2:
            return None  # "running", or in no system call
        first, second = arguments
        if first <= _MAX_DESCRIPTOR:
            path = path_of_link(f"{folder}/fd/{first}")
        else:
            path = _string_at(folder, second if first in _AT_FDCWD else first)
    except (OSError, ValueError):
        return None  # it has ended, or ptrace(2) is restricted
    return PathStr(path) if path else None


def _string_at(folder: str, address: int) -> str:
    """Return a path in the memory of a process, absolute; empty if there is none."""
    memory = os.open(f"{folder}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = os.pread(memory, PATH_MAX_BYTES, address).partition(b"\0")[0]
    finally:
        os.close(memory)
    above = path_of_link(f"{folder}/cwd") or ""
    return os.path.normpath(os.path.join(above, os.fsdecode(text))) if text and above else ""


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()
