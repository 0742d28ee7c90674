"""How the kernel ranks processes: niceness for the processors, classes for the disk."""

import contextlib
import ctypes
import errno
import os

from tui_fs.model.strategy import IoPriority

_WATCHER_NICE = -10
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
_WHO_PROCESS, _WHO_GROUP = 1, 2  # ioprio_set(2)
_BEST_EFFORT, _IDLE = 2, 3
_CLASS_SHIFT = 13
_VALUE = {
    IoPriority.NORMAL: 0,  # as the niceness says
    IoPriority.LOW: (_BEST_EFFORT << _CLASS_SHIFT) | 7,
    IoPriority.IDLE: _IDLE << _CLASS_SHIFT,
}


def rank_above_the_tools() -> int:
    """Rank this process higher where that is permitted; return the niceness it had.

    Whoever is to stop others in time must not wait behind them.
    """
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(OSError):  # not root, or a seccomp filter
        os.setpriority(os.PRIO_PROCESS, 0, min(nice, _WATCHER_NICE))
    return nice


def rank_process(nice: int, io_priority: IoPriority) -> None:
    """Rank this process; its children inherit that. Raises OSError if it is not permitted."""
    if nice != os.getpriority(os.PRIO_PROCESS, 0):
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    if io_priority is not IoPriority.NORMAL:
        _set_io_priority(_WHO_PROCESS, 0, io_priority)


def rank_refusal(nice: int, io_priority: IoPriority) -> str | None:
    """Return why a process started here cannot have these ranks; None if it can.

    A forked child tries them, because this process may not get back a rank that it gave up.
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
    """Rank every process of a group.

    Raises:
        ProcessLookupError: there is no such group.
        PermissionError: only root may give a better rank than before.
    """
    os.setpriority(os.PRIO_PGRP, group, nice)
    _set_io_priority(_WHO_GROUP, group, io_priority)


def _set_io_priority(who: int, number: int, io_priority: IoPriority) -> None:
    call = _IOPRIO_SET.get(os.uname().machine)
    if call is None:
        if io_priority is IoPriority.NORMAL:
            return
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    libc = ctypes.CDLL(None, use_errno=True)
    value = ctypes.c_long(_VALUE[io_priority])
    if libc.syscall(ctypes.c_long(call), ctypes.c_long(who), ctypes.c_long(number), value) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
