"""What /proc tells of one process and of one of its descriptors (proc(5))."""

import errno
import os
from dataclasses import dataclass

_KERNEL_THREAD = 0x0020_0000  # PF_KTHREAD (linux/sched.h)
_FDINFO_BYTES = 512  # flags and mnt_id stand in the first lines; locks may follow
_STILL = (b"T", b"t", b"Z", b"X")  # proc(5)
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


def name_and_user(folder: str) -> tuple[str, int]:
    """Return what a process calls itself (any characters), and its effective user.

    Raises:
        FileNotFoundError, ProcessLookupError: it has ended.
    """
    command = os.fsdecode(_read(f"{folder}/comm").removesuffix(b"\n"))
    users = next(line for line in _read(f"{folder}/status").splitlines() if line[:4] == b"Uid:")
    return command, int(users.split()[2])


def ancestry(proc: str, pid: int) -> frozenset[int]:
    """Return a process and all it descends from."""
    pids: set[int] = set()
    while pid > 0:
        pids.add(pid)
        try:
            pid = state_of(f"{proc}/{pid}").parent_pid
        except _GONE:
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
