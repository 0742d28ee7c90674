"""Inspect processes by /proc: state, resource usage, stalled system calls; call prctl(2)."""

import contextlib
import ctypes
import errno
import os
import signal
import time
from collections.abc import Callable, Collection, Iterable, Iterator

from msgspec import Struct

from tui_fs.linux.descriptors import closing
from tui_fs.linux.kernel_files import content_of
from tui_fs.linux.libc import LIBC, checked
from tui_fs.model.errors import Missing
from tui_fs.model.paths import PATH_MAX_BYTES, PathStr

_KERNEL_THREAD = 0x0020_0000  # PF_KTHREAD (linux/sched.h)
_FDINFO_BYTES = 512  # flags and mnt_id are in the first lines; locks may follow
_READ_BYTES = 8_192
_STILL = (b"T", b"t", b"Z", b"X")  # proc(5)
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_GONE = (FileNotFoundError, ProcessLookupError)


class ProcessState(Struct, frozen=True):
    """The state of a process or of a thread; readable for every user.

    Attributes:
        is_still: it is stopped, or has ended.
    """

    parent_pid: int
    is_kernel_thread: bool
    is_zombie: bool
    is_still: bool


def state_of(folder: str) -> ProcessState:
    """Return the state of the process or the thread with this directory in /proc.

    Raises:
        FileNotFoundError, ProcessLookupError: it has ended.
    """
    fields = _read(f"{folder}/stat").rpartition(b")")[2].split()  # the name may contain ")"
    return ProcessState(
        parent_pid=int(fields[1]),
        is_kernel_thread=bool(int(fields[6]) & _KERNEL_THREAD),
        is_zombie=fields[0] == b"Z",
        is_still=fields[0] in _STILL,
    )


class ProcessTimes(Struct, frozen=True):
    """The CPU times and the memory of a process.

    Attributes:
        command: chosen by the process: show it through `displayable` only.
        user_s, system_s: of its own threads.
        children_user_s, children_system_s: of its children that were waited for.
        started_ticks: start time; pid and start time identify a process.
        rss_bytes: resident memory now.
    """

    command: str
    user_s: float
    system_s: float
    children_user_s: float
    children_system_s: float
    started_ticks: int
    rss_bytes: int


def times_of(folder: str) -> ProcessTimes:
    """Return the times of the process with this directory in /proc.

    Raises:
        FileNotFoundError, ProcessLookupError: it has ended.
    """
    head, _, rest = _read(f"{folder}/stat").rpartition(b")")
    fields = rest.split()
    user_s, system_s, children_user_s, children_system_s = (
        int(ticks) / _TICKS_PER_S for ticks in fields[11:15]
    )
    return ProcessTimes(
        command=os.fsdecode(head.partition(b"(")[2]),
        user_s=user_s,
        system_s=system_s,
        children_user_s=children_user_s,
        children_system_s=children_system_s,
        started_ticks=int(fields[19]),
        rss_bytes=int(fields[21]) * _PAGE_BYTES,
    )


def waits_of(folder: str) -> dict[int, tuple[float, float]]:
    """Return by thread the seconds that it has waited for a processor, and for block devices.

    The latter are 0 unless the kernel accounts delays (`accounts_delays`).

    Raises:
        FileNotFoundError, ProcessLookupError: it has ended, or the kernel has no schedstat.
    """
    waits: dict[int, tuple[float, float]] = {}
    for thread in os.listdir(f"{folder}/task"):
        queue_ns = int(_read(f"{folder}/task/{thread}/schedstat").split()[1])
        fields = _read(f"{folder}/task/{thread}/stat").rpartition(b")")[2].split()
        waits[int(thread)] = queue_ns / 1e9, int(fields[39]) / _TICKS_PER_S
    return waits


def accounts_delays() -> bool:
    """Return whether the kernel measures waits for block devices (sysctl kernel.task_delayacct)."""
    return content_of("/proc/sys/kernel/task_delayacct").strip() == b"1"


def age_s(times: ProcessTimes) -> float:
    """Return how long ago a process was started, in seconds."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - times.started_ticks / _TICKS_PER_S


def bytes_moved(folder: str) -> tuple[int, int]:
    """Return the bytes that a process has read from and written to disks.

    Raises:
        FileNotFoundError, ProcessLookupError: it has ended, or the kernel does not account I/O.
        PermissionError: the process belongs to another user.
    """
    lines = dict(line.split(b": ", 1) for line in _read(f"{folder}/io").splitlines())
    return int(lines[b"read_bytes"]), int(lines[b"write_bytes"])


def name_and_user(folder: str) -> tuple[str, int]:
    """Return the name of a process (any characters), and its effective user.

    Raises:
        FileNotFoundError, ProcessLookupError: it has ended.
    """
    command = os.fsdecode(_read(f"{folder}/comm").removesuffix(b"\n"))
    users = next(line for line in _read(f"{folder}/status").splitlines() if line[:4] == b"Uid:")
    return command, int(users.split()[2])


def ancestry(proc: str, pid: int) -> frozenset[int]:
    """Return a process and its ancestors, up to one that /proc hides."""
    pids: set[int] = set()
    while pid > 0:
        pids.add(pid)
        try:
            pid = state_of(f"{proc}/{pid}").parent_pid
        except (*_GONE, PermissionError):
            break
    return frozenset(pids)


def path_of_link(link: str) -> str | None:
    """Return the target of a link of /proc: empty if too long, None if gone or not a path.

    Raises:
        PermissionError: this user may not inspect the process.
    """
    try:
        text = os.readlink(link)
    except _GONE:
        return None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # longer than one page (fs/proc/base.c)
            return ""
        raise
    return text if text.startswith("/") else None


def access_and_mount(fdinfo: str) -> tuple[bool, int] | None:
    """Return whether a descriptor is writable, and its mount id; None if it is closed."""
    try:
        text = _read(fdinfo, _FDINFO_BYTES)
    except _GONE:
        return None
    lines = dict(line.split(b":", 1) for line in text.splitlines() if b":" in line)
    return int(lines[b"flags"], 8) & os.O_ACCMODE != os.O_RDONLY, int(lines[b"mnt_id"])


def _read(path: str, most: int | None = None) -> bytes:
    """Return the content of a file, at most `most` bytes.

    A scan reads some files of each process; `open` makes twice as many system calls.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = os.read(descriptor, most or _READ_BYTES)
        while most is None and (chunk := os.read(descriptor, _READ_BYTES)):
            content += chunk
        return content
    finally:
        os.close(descriptor)


def descendants(root_pid: int) -> tuple[int, ...]:
    """Return the living descendants of a process.

    Raises:
        OSError: /proc cannot be read now.
    """
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        # It has ended, or it belongs to another user and /proc hides it.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            parent = state_of(f"/proc/{name}").parent_pid
            children.setdefault(parent, []).append(int(name))
    pids = children.get(root_pid, [])
    for pid in pids:
        pids += children.get(pid, [])
    return tuple(pids)


def all_stopped(root_pid: int) -> bool:
    """Return whether every thread of every descendant of a process is stopped, or has ended.

    A thread that is inside a system call stops only at the end of that call.
    """
    return all(map(_is_stopped, descendants(root_pid)))


def none_continued(root_pid: int) -> bool:
    """Return whether the stopped descendants of a process are still stopped.

    This is cheaper than `all_stopped`, which reads the state of every process of the machine. The
    lists of children are exact only while all children are stopped (proc(5)), which holds here
    until another process continues one.

    Raises:
        OSError: the processes cannot be read now.
    """
    waiting, has_lists = [root_pid], False
    while waiting:
        threads = f"/proc/{waiting.pop()}/task"
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            for thread in os.listdir(threads):
                words = _read(f"{threads}/{thread}/children").split()
                children = [int(word) for word in words]
                has_lists = True
                if not all(map(_is_stopped, children)):
                    return False
                waiting += children
    return has_lists or all_stopped(root_pid)  # a kernel without CONFIG_PROC_CHILDREN


def _is_stopped(pid: int) -> bool:
    threads = f"/proc/{pid}/task"
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        return all(state_of(f"{threads}/{thread}").is_still for thread in os.listdir(threads))
    return True


_FUSE_WAITS = (b"request_wait_answer", b"fuse_wait_answer")
"""Kernel functions in which a caller of FUSE sleeps interruptibly (state S)."""

_AT_FDCWD = (
    (1 << 64) - 100,
    (1 << 32) - 100,
)  # linux/fcntl.h; as a 64-bit and as a 32-bit register
_MAX_DESCRIPTOR = 1 << 30
_NOT_READABLE = (FileNotFoundError, ProcessLookupError, PermissionError)


class StalledCall(Struct, frozen=True):
    """A system call that has not returned yet.

    Attributes:
        seconds: time since it was first seen waiting.
        path: the directory or file of the call; None if unknown.
    """

    seconds: float
    path: PathStr | None


class StalledCalls:
    """Track the waiting threads of processes and of all their descendants."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, proc: str = "/proc") -> None:
        self._clock = clock
        self._proc = proc
        self._waiting_since_s: dict[tuple[str, bytes], float] = {}

    def longest(self, pids: Iterable[int]) -> StalledCall | None:
        """Return the call that has waited longest; None if no thread waits now.

        A wait has a duration only if two successive calls of this method see it.
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
        """Yield the /proc directory of each waiting thread, and its number of earlier waits."""
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
                    is_asleep = state == b"S" and content_of(f"{folder}/wchan") in _FUSE_WAITS
                    if state == b"D" or is_asleep:
                        yield folder, status[b"voluntary_ctxt_switches"]


def with_descendants(pids: Iterable[int], proc: str = "/proc") -> set[int]:
    """Return processes and their descendants; the latter need CONFIG_PROC_CHILDREN."""
    family: set[int] = set()
    waiting = list(pids)
    while waiting:
        pid = waiting.pop()
        if pid in family:
            continue
        family.add(pid)
        with contextlib.suppress(*_NOT_READABLE):
            for thread in os.listdir(f"{proc}/{pid}/task"):
                with contextlib.suppress(*_NOT_READABLE):
                    children = _read(f"{proc}/{pid}/task/{thread}/children")
                    waiting += map(int, children.split())
    return family


def processes_in_session(session: int, proc: str = "/proc") -> list[int]:
    """Return the processes of a session (setsid(2))."""
    pids: list[int] = []
    for name in filter(str.isdigit, os.listdir(proc)):
        with contextlib.suppress(*_NOT_READABLE):
            fields = _read(f"{proc}/{name}/stat").rpartition(b")")[2].split()
            if int(fields[3]) == session:
                pids.append(int(name))
    return pids


def blocks_signal(pid: int, number: int, proc: str = "/proc") -> bool:
    """Return whether the main thread of a process has a signal blocked."""
    lines = content_of(f"{proc}/{pid}/status").splitlines()
    mask = next((int(line[7:], 16) for line in lines if line.startswith(b"SigBlk:")), 0)
    return bool(mask >> (number - 1) & 1)


def _path_of(folder: str) -> PathStr | None:
    """Return the path that the first arguments of a thread's system call name.

    They are a descriptor, a path, or AT_FDCWD and a path. Calls with other arguments do not wait
    for a file system.
    """
    try:
        arguments = [int(word, 16) for word in _read(f"{folder}/syscall").split()[1:3]]
        if len(arguments) < 2:
            return None  # "running", or not in a system call
        first, second = arguments
        if first <= _MAX_DESCRIPTOR:
            path = path_of_link(f"{folder}/fd/{first}")
        else:
            path = _string_at(folder, second if first in _AT_FDCWD else first)
    except (OSError, ValueError):
        return None  # it has ended, or ptrace(2) is restricted
    return PathStr(path) if path else None


def _string_at(folder: str, address: int) -> str:
    """Read an absolute path from the memory of a process; empty if there is none."""
    with closing(os.open(f"{folder}/mem", os.O_RDONLY | os.O_CLOEXEC)) as memory:
        text = os.pread(memory, PATH_MAX_BYTES, address).partition(b"\0")[0]
    above = path_of_link(f"{folder}/cwd") or ""
    return os.path.normpath(os.path.join(above, os.fsdecode(text))) if text and above else ""


_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
_PR_CAPBSET_READ, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 23, 24, 38


def set_pdeathsig(number: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel send this process a signal when its parent ends, even while it is stopped.

    The parent is the thread that forked this process (PR_SET_PDEATHSIG in prctl(2)). It may have
    ended before this call, so the caller checks os.getppid() afterwards.

    Raises:
        Missing: a seccomp filter refuses the call.
    """
    _prctl(_PR_SET_PDEATHSIG, number)


def set_child_subreaper() -> None:
    """Become the reaper of orphaned descendants (PR_SET_CHILD_SUBREAPER in prctl(2)).

    Raises:
        Missing: a seccomp filter refuses the call.
    """
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def gain_no_privileges() -> None:
    """Have execve(2) grant this process and its children no privileges (PR_SET_NO_NEW_PRIVS).

    Raises:
        Missing: a seccomp filter refuses the call.
    """
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapabilitySets(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable"))


_CAPABILITY_VERSION = 0x2008_0522  # linux/capability.h, version 3: two words for each set


def keep_capabilities(kept: Collection[int]) -> None:
    """Give up all other capabilities of this process, also for what it executes later.

    Without CAP_SETPCAP the bounding set stays: such a process is not root and has none to lose.

    Raises:
        OSError: capset(2).
    """
    number = 0
    while LIBC.prctl(_PR_CAPBSET_READ, ctypes.c_ulong(number), 0, 0, 0) >= 0:
        if number not in kept:
            LIBC.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(number), 0, 0, 0)
        number += 1
    header, words = _CapabilityHeader(_CAPABILITY_VERSION, 0), (_CapabilitySets * 2)()
    checked(LIBC.capget(ctypes.byref(header), words))
    for position, sets in enumerate(words):
        mask = sum(1 << (number - 32 * position) for number in kept if number // 32 == position)
        for name in ("effective", "permitted", "inheritable"):
            setattr(sets, name, getattr(sets, name) & mask)
    checked(LIBC.capset(ctypes.byref(header), words))


def _prctl(option: int, value: int) -> None:
    if LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise Missing(
            f"The kernel refuses prctl ({reason}), so tui-fs cannot control its processes.",
            "Allow prctl in the seccomp profile of the container or service.",
        )
