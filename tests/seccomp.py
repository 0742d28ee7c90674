"""Run a command under a filter that answers system calls with an errno, as a container does.

Run as ``python -m tests.seccomp ERRNO NAME[,NAME...] -- COMMAND...`` (seccomp(2), x86-64 only).
``NAME>N`` is a call whose third argument is above N, as ``getdents64>32768`` with its buffer size,
and ``number>N`` is every call whose number is above N.
"""

import ctypes
import errno
import os
import struct
import sys
from pathlib import Path

UNKNOWN_TO_4_18 = "number>334"
"""What Linux 4.18 has not: its last call is rseq."""

NUMBERS = {
    "bpf": 321,
    "clone3": 435,
    "close_range": 436,
    "faccessat2": 439,
    "fadvise64": 221,
    "getdents64": 217,
    "getrandom": 318,
    "inotify_init1": 294,
    "ioprio_set": 251,
    "kcmp": 312,
    "landlock_create_ruleset": 444,
    "listmount": 458,
    "mount_setattr": 442,
    "memfd_create": 319,
    "name_to_handle_at": 303,
    "open_tree": 428,
    "openat2": 437,
    "perf_event_open": 298,
    "pidfd_open": 434,
    "pidfd_send_signal": 424,
    "prctl": 157,
    "prlimit64": 302,
    "process_vm_readv": 310,
    "ptrace": 101,
    "quotactl": 179,
    "renameat2": 316,
    "rmdir": 84,
    "sched_getaffinity": 204,
    "sched_setaffinity": 203,
    "setpriority": 141,
    "statmount": 457,
    "statx": 332,
    "unlink": 87,
    "unlinkat": 263,
    "unshare": 272,
}
"""Of arch/x86/entry/syscalls/syscall_64.tbl."""

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2
_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_ABOVE, _RETURN = 0x20, 0x15, 0x25, 0x06  # linux/bpf_common.h
_ALLOW, _TRACE, _ERRNO = 0x7FFF0000, 0x7FF00000, 0x00050000  # linux/seccomp.h
_NUMBER_AT, _THIRD_ARGUMENT_AT = 0, 32  # in struct seccomp_data

_Instruction = tuple[int, int, int, int]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


def under_filter(error: str, call: str) -> list[str]:
    """Return what runs a command with a system call that fails."""
    if os.uname().machine != "x86_64":
        import pytest  # takes longer than a short command

        pytest.skip("the filter knows the system calls of x86-64 only")
    script = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
    script += "import runpy; runpy.run_module('tests.seccomp', run_name='__main__')"
    return [sys.executable, "-c", script, error, call, "--"]


def answer_with(number: int, names: list[str]) -> None:
    """Answer these system calls with an errno from now on, in this process and its children."""
    _filter(names, _ERRNO | number)


def stop_at(names: list[str]) -> None:
    """Stop at the entry of these system calls from now on, for the tracer (ptrace(2))."""
    _filter(names, _TRACE)


def _filter(names: list[str], answer: int) -> None:
    steps: list[_Instruction] = [(_LOAD, 0, 0, _NUMBER_AT)]
    for name in names:
        steps += _answer(name, answer)
    steps.append((_RETURN, 0, 0, _ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = _Program(len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _answer(name: str, answer: int) -> list[_Instruction]:
    """Return the instructions for one call; they begin and end with its number loaded."""
    call, _, limit = name.partition(">")
    returned = (_RETURN, 0, 0, answer)
    if call == "number":
        return [(_JUMP_IF_ABOVE, 0, 1, int(limit)), returned]
    if not limit:
        return [(_JUMP_IF_EQUAL, 0, 1, NUMBERS[call]), returned]
    return [
        (_JUMP_IF_EQUAL, 0, 4, NUMBERS[call]),
        (_LOAD, 0, 0, _THIRD_ARGUMENT_AT),
        (_JUMP_IF_ABOVE, 0, 1, int(limit)),
        returned,
        (_LOAD, 0, 0, _NUMBER_AT),
    ]


if __name__ == "__main__":
    answer_with(getattr(errno, sys.argv[1]), sys.argv[2].split(","))
    os.execvp(sys.argv[4], sys.argv[4:])
