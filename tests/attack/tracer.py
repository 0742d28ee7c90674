"""Stops tools at the entry of each system call that removes a name (ptrace(2), x86-64 only).

A seccomp filter selects the calls, so that the tools run at full speed in between. All processes
and threads that a tool starts are traced, too.
"""

import contextlib
import ctypes
import os
import signal
from collections import deque
from collections.abc import Callable
from typing import NoReturn

from tests.seccomp import stop_at
from tui_fs.job.launcher import ENVIRONMENT
from tui_fs.model.errors import Missing
from tui_fs.model.strategy import Argv, Step
from tui_fs.safety.confinement import Enclosure

REMOVING = ["unlink", "unlinkat", "rmdir"]

_TRACEME, _CONTINUE, _CONTINUE_TO_EXIT, _SET_OPTIONS = 0, 7, 24, 0x4200  # linux/ptrace.h
_SECCOMP_EVENT = 7
_OPTIONS = 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 1 << _SECCOMP_EVENT | 1 << 20
"""TRACESYSGOOD, and the events fork, vfork, clone, exec and seccomp; EXITKILL."""
_EXIT_OF_A_CALL = signal.SIGTRAP | 0x80
_ALL_KINDS = 0x40000000  # __WALL of waitpid(2)
_NOT_STARTED = 127

_libc = ctypes.CDLL(None, use_errno=True)


def run_step(
    step: Step, directory: int, enclosure: Enclosure | None, at_call: Callable[[], None]
) -> None:
    """Run the piped tools of a step to their end, as the launcher of a job does.

    Args:
        directory: the tools run in this open directory.
        enclosure: how each tool is confined; None if it is not.
        at_call: called at the entry of each call that removes a name. Not more than one such call
            is in progress at a time, and none while this runs.
    """
    pids = _fork(step, directory, enclosure)
    try:
        for pid in pids:
            _, status = os.waitpid(pid, _ALL_KINDS)
            if not os.WIFSTOPPED(status):
                raise RuntimeError(f"{step} was not started")
            _ptrace(_SET_OPTIONS, pid, _OPTIONS)
        for pid in pids:
            _ptrace(_CONTINUE, pid)
        _trace(pids, at_call)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pids[0], signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-pids[0], _ALL_KINDS)
        raise


def _fork(step: Step, directory: int, enclosure: Enclosure | None) -> list[int]:
    """Fork the processes of a step, in one process group; each stops before execve(2)."""
    pids: list[int] = []
    null = os.open(os.devnull, os.O_RDWR)
    source = os.dup(null)
    for position, argv in enumerate(step):
        following, sink = (-1, os.dup(null)) if position == len(step) - 1 else os.pipe()
        group = pids[0] if pids else 0
        pid = os.fork()
        if pid == 0:
            _become(argv, group, (source, sink, null), directory, enclosure)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.setpgid(pid, group or pid)
        pids.append(pid)
        os.close(source)
        os.close(sink)
        source = following
    os.close(null)
    return pids


def _become(
    argv: Argv,
    group: int,
    channels: tuple[int, int, int],
    directory: int,
    enclosure: Enclosure | None,
) -> NoReturn:
    """In the forked child: wait for the tracer, then execute the tool."""
    try:
        os.setpgid(0, group)
        for number in (signal.SIGPIPE, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        for target, channel in enumerate(channels):
            os.dup2(channel, target, inheritable=True)
        os.fchdir(directory)
        if enclosure is not None:
            enclosure.enter()
        _ptrace(_TRACEME, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        stop_at(REMOVING)
        os.execve(argv[0], argv, ENVIRONMENT)
    except (OSError, Missing):
        pass
    finally:
        os._exit(_NOT_STARTED)


def _trace(pids: list[int], at_call: Callable[[], None]) -> None:
    """Trace the processes and everything they start to their end."""
    begun = set(pids)
    waiting: deque[int] = deque()
    removing = 0
    while True:
        try:
            pid, status = os.waitpid(-pids[0], _ALL_KINDS)
        except ChildProcessError:
            return
        if not os.WIFSTOPPED(status):
            if pid in pids and os.waitstatus_to_exitcode(status) == _NOT_STARTED:
                raise RuntimeError("a tool was not executed")
            begun.discard(pid)
            if pid in waiting:
                waiting.remove(pid)
            removing = 0 if pid == removing else removing
        else:
            reason = os.WSTOPSIG(status)
            if status >> 16 == _SECCOMP_EVENT:
                waiting.append(pid)
            elif reason == _EXIT_OF_A_CALL:
                removing = 0
                _ptrace(_CONTINUE, pid)
            elif status >> 16 or pid not in begun:  # a new process begins with a SIGSTOP
                _ptrace(_CONTINUE, pid)
            else:
                _ptrace(_CONTINUE, pid, reason)
            begun.add(pid)
        if not removing and waiting:
            at_call()
            removing = waiting.popleft()
            _ptrace(_CONTINUE_TO_EXIT, removing)


def _ptrace(request: int, pid: int, data: int = 0) -> None:
    words = (ctypes.c_long(request), ctypes.c_long(pid), ctypes.c_void_p(0), ctypes.c_void_p(data))
    _libc.ptrace.restype = ctypes.c_long
    if _libc.ptrace(*words) < 0:
        code = ctypes.get_errno()
        with contextlib.suppress(ProcessLookupError):  # another thread has ended its process
            raise OSError(code, os.strerror(code))
