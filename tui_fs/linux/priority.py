"""Set process priorities: niceness for CPU scheduling, I/O classes for the disk."""

import contextlib
import ctypes
import errno
import os

from tui_fs.linux.libc import system_call
from tui_fs.model.strategy import IoPriority

_WATCHER_NICE = -10
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
_WHO_PROCESS, _WHO_GROUP = 1, 2  # ioprio_set(2)
_BEST_EFFORT, _IDLE = 2, 3
_CLASS_SHIFT = 13
_VALUE = {
    IoPriority.NORMAL: 0,  # derived from the niceness
    IoPriority.LOW: (_BEST_EFFORT << _CLASS_SHIFT) | 7,
    IoPriority.IDLE: _IDLE << _CLASS_SHIFT,
}


def rank_above_the_tools() -> int:
    """Raise the priority of this process if permitted; return its previous niceness.

    A process that stops the tools in time must not wait behind them.
    """
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(OSError):  # not root, or a seccomp filter
        os.setpriority(os.PRIO_PROCESS, 0, min(nice, _WATCHER_NICE))
    return nice


def rank_process(nice: int, io_priority: IoPriority) -> None:
    """Set the priorities of this process and its future children; OSError if not permitted."""
    if nice != os.getpriority(os.PRIO_PROCESS, 0):
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    if io_priority is not IoPriority.NORMAL:
        _set_io_priority(_WHO_PROCESS, 0, io_priority)


def rank_refusal(nice: int, io_priority: IoPriority) -> str | None:
    """Return why a child process cannot have these priorities; None if it can.

    A forked child tries them, because this process may not be able to restore its priority.
    """
    pid = os.fork()
    if pid == 0:
        code = 0
        try:
            rank_process(nice, io_priority)
        except OSError as error:
            code = error.errno or errno.EIO
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return os.strerror(code) if code > 0 else None


def rank_group(group: int, nice: int, io_priority: IoPriority) -> None:
    """Set the priorities of every process of a process group.

    Raises:
        ProcessLookupError: there is no such group.
        PermissionError: only root may raise a priority.
    """
    os.setpriority(os.PRIO_PGRP, group, nice)
    _set_io_priority(_WHO_GROUP, group, io_priority)


def _set_io_priority(who: int, number: int, io_priority: IoPriority) -> None:
    call = _IOPRIO_SET.get(os.uname().machine)
    if call is None:
        if io_priority is IoPriority.NORMAL:
            return
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    value = ctypes.c_long(_VALUE[io_priority])
    system_call(call, ctypes.c_long(who), ctypes.c_long(number), value)
