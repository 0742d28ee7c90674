"""One process and one of its descriptors, from /proc (proc(5))."""

import errno
import os
from dataclasses import dataclass

_KERNEL_THREAD = 0x0020_0000  # PF_KTHREAD (linux/sched.h)
_FDINFO_BYTES = 512  # flags and mnt_id stand in the first lines; locks may follow
_STILL = (b"T", b"t", b"Z", b"X")  # proc(5)
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_GONE = (FileNotFoundError, ProcessLookupError)


@dataclass(frozen=True, slots=True)
class ProcessState:
    """The state of a process or of one thread, of which every user may know.

    Attributes:
        is_still: it is stopped, or has ended.
    """

    parent_pid: int
    is_kernel_thread: bool
    is_zombie: bool
    is_still: bool


def state_of(folder: str) -> ProcessState:
    """Return the state of the process, or the thread, with this folder in /proc.

    Raises:
        FileNotFoundError, ProcessLookupError: it has ended.
    """
    fields = _read(f"{folder}/stat").rpartition(b")")[2].split()  # its name may hold ")"
    return ProcessState(
        parent_pid=int(fields[1]),
        is_kernel_thread=bool(int(fields[6]) & _KERNEL_THREAD),
        is_zombie=fields[0] == b"Z",
        is_still=fields[0] in _STILL,
    )


@dataclass(frozen=True, slots=True)
class ProcessTimes:
    """What a process has used.

    Attributes:
        command: as the process named itself: show it through `displayable` only.
        user_s, system_s: of its own threads.
        children_user_s, children_system_s: of those that have ended and were waited for.
        started_ticks: when it started; with its number it identifies the process.
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
    """Return what the process with this folder in /proc has used.

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


def bytes_moved(folder: str) -> tuple[int, int]:
    """Return the bytes that a process has read from and written to disks.

    Raises:
        FileNotFoundError, ProcessLookupError: it has ended, or the kernel does not account them.
        PermissionError: it is another user's.
    """
    lines = dict(line.split(b": ", 1) for line in _read(f"{folder}/io").splitlines())
    return int(lines[b"read_bytes"]), int(lines[b"write_bytes"])


def name_and_user(folder: str) -> tuple[str, int]:
    """Return what a process calls itself (any characters), and its effective user.

    Raises:
        FileNotFoundError, ProcessLookupError: it has ended.
    """
    command = os.fsdecode(_read(f"{folder}/comm").removesuffix(b"\n"))
    users = next(line for line in _read(f"{folder}/status").splitlines() if line[:4] == b"Uid:")
    return command, int(users.split()[2])


def ancestry(proc: str, pid: int) -> frozenset[int]:
    """Return a process and all it descends from, up to one that /proc hides."""
    pids: set[int] = set()
    while pid > 0:
        pids.add(pid)
        try:
            pid = state_of(f"{proc}/{pid}").parent_pid
        except (*_GONE, PermissionError):
            break
    return frozenset(pids)


def path_of_link(link: str) -> str | None:
    """Return the path a link of /proc tells: empty if it is too long, None if it is gone or none.

    Raises:
        PermissionError: this user may not look into the process.
    """
    try:
        text = os.readlink(link)
    except _GONE:
        return None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # longer than a page (fs/proc/base.c)
            return ""
        raise
    return text if text.startswith("/") else None


def access_and_mount(fdinfo: str) -> tuple[bool, int] | None:
    """Return whether a descriptor writes, and its mount's number; None if it is closed."""
    try:
        text = _read(fdinfo, _FDINFO_BYTES)
    except _GONE:
        return None
    lines = dict(line.split(b":", 1) for line in text.splitlines() if b":" in line)
    return int(lines[b"flags"], 8) & os.O_ACCMODE != os.O_RDONLY, int(lines[b"mnt_id"])


def _read(path: str, size: int = -1) -> bytes:
    with open(path, "rb") as file:
        return file.read(size)
