"""The system calls that are counted by name, with their numbers and tracepoints."""

import os
from typing import NamedTuple

from tui_fs.tracing.syscall_names import AARCH64, X86_64


class _Numbers(NamedTuple):
    """A system call's number on each machine that has it."""

    x86_64: int | None
    aarch64: int | None


# Those that rm, find, xargs, rsync and the engine make with the C libraries of the last ten years.
# Each name is two more counters, which the kernel exchanges at every switch between tasks.
SYSCALLS: dict[str, _Numbers] = {
    "access": _Numbers(21, None),
    "brk": _Numbers(12, 214),
    "chdir": _Numbers(80, 49),
    "clone": _Numbers(56, 220),
    "clone3": _Numbers(435, 435),
    "close": _Numbers(3, 57),
    "dup2": _Numbers(33, None),
    "execve": _Numbers(59, 221),
    "faccessat": _Numbers(269, 48),
    "faccessat2": _Numbers(439, 439),
    "fchdir": _Numbers(81, 50),
    "fcntl": _Numbers(72, 25),
    "fstat": _Numbers(5, 80),
    "fstatfs": _Numbers(138, 44),
    "futex": _Numbers(202, 98),
    "getdents64": _Numbers(217, 61),
    "getrandom": _Numbers(318, 278),
    "ioctl": _Numbers(16, 29),
    "lseek": _Numbers(8, 62),
    "lstat": _Numbers(6, None),
    "mmap": _Numbers(9, 222),
    "mprotect": _Numbers(10, 226),
    "mremap": _Numbers(25, 216),
    "munmap": _Numbers(11, 215),
    "newfstatat": _Numbers(262, 79),
    "openat": _Numbers(257, 56),
    "openat2": _Numbers(437, 437),
    "pipe2": _Numbers(293, 59),
    "poll": _Numbers(7, None),
    "pread64": _Numbers(17, 67),
    "prlimit64": _Numbers(302, 261),
    "pselect6": _Numbers(270, 72),
    "read": _Numbers(0, 63),
    "rmdir": _Numbers(84, None),
    "rseq": _Numbers(334, 293),
    "rt_sigaction": _Numbers(13, 134),
    "rt_sigprocmask": _Numbers(14, 135),
    "set_robust_list": _Numbers(273, 99),
    "set_tid_address": _Numbers(218, 96),
    "stat": _Numbers(4, None),
    "statfs": _Numbers(137, 43),
    "statx": _Numbers(332, 291),
    "uname": _Numbers(63, 160),
    "unlink": _Numbers(87, None),
    "unlinkat": _Numbers(263, 35),
    "vfork": _Numbers(58, None),
    "wait4": _Numbers(61, 260),
    "write": _Numbers(1, 64),
}

CREATING_CALLS = frozenset({"clone", "clone3", "vfork"})
"""Calls that return twice: with the child's number in the parent, with 0 in the child."""

AT_REMOVEDIR = 0x200

_TRACEPOINT_NAMES = {
    "fstat": "newfstat",
    "lstat": "newlstat",
    "stat": "newstat",
    "uname": "newuname",
}


def tracepoint_name(syscall: str) -> str:
    """Return the name the kernel's tracepoints use (they follow its functions' names)."""
    return _TRACEPOINT_NAMES.get(syscall, syscall)


def native_syscall_numbers() -> dict[str, int]:
    """Return name to number for the running kernel's machine; empty on unknown machines."""
    machine = os.uname().machine
    found: dict[str, int] = {}
    for name, numbers in SYSCALLS.items():
        number = {"x86_64": numbers.x86_64, "aarch64": numbers.aarch64}.get(machine)
        if number is not None:
            found[name] = number
    return found


def native_syscall_names() -> dict[int, str]:
    """Return number to name of all system calls, counted by tracepoints or not.

    What rt_sigreturn(2) returns from has no number any more, and is told as -1.
    """
    tables = {"x86_64": X86_64, "aarch64": AARCH64}.get(os.uname().machine, {})
    found = {-1: "rt_sigreturn"}
    for first, names in tables.items():
        found.update(enumerate(names.split(), first))
    return found
