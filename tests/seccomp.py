"""Run a command under a filter that answers system calls with an errno, as a container does.

Run as ``python -m tests.seccomp ERRNO NAME[,NAME...] -- COMMAND...`` (seccomp(2), x86-64 only).
"""

import ctypes
import errno
import os
import struct
import sys

NUMBERS = {
    "statx": 332,
    "openat2": 437,
    "clone3": 435,
    "perf_event_open": 298,
    "unshare": 272,
    "getrandom": 318,
    "close_range": 436,
    "pidfd_open": 434,
}
"""Of arch/x86/entry/syscalls/syscall_64.tbl."""

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06  # linux/bpf_common.h
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000  # linux/seccomp.h


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


def answer_with(number: int, names: list[str]) -> None:
    """Answer these system calls with an errno from now on, in this process and its children."""
    steps = [(_LOAD, 0, 0, 0)]
    steps += [
        (_JUMP_IF_EQUAL, len(names) - place, 0, NUMBERS[name]) for place, name in enumerate(names)
    ]
    steps += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _ERRNO | number)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = _Program(len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    answer_with(getattr(errno, sys.argv[1]), sys.argv[2].split(","))
    os.execvp(sys.argv[4], sys.argv[4:])
