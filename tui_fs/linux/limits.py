"""Limits that a process or the machine has reached, and measurements that survive them."""

import errno
import os
import resource
from collections.abc import Callable
from typing import TypeVar

from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable, harmless

_Result = TypeVar("_Result")

_THREAD_REFUSED = "can't start new thread"
"""The message of the RuntimeError for every errno of pthread_create (_threadmodule.c)."""

_EXCEPTION_LOST = "without exception set"
"""The message of the SystemError of an import for whose MemoryError there was no memory."""

_RESERVE_BYTES = 16 << 20
_PROBE_BYTES = 2 << 20
"""More than the interpreter asks the kernel for at once (an arena has 1 MiB)."""

_USUAL_DESCRIPTORS = 1024
"""What every process is given at first (INR_OPEN_CUR in linux/fs.h)."""

_CAUSES = {
    errno.EAGAIN: (
        "the limit of processes and threads is reached",
        "Raise pids.max of the control group (systemd: TasksMax) or ulimit -u.",
    ),
    errno.EMFILE: ("the limit of open files of a process is reached", "Raise ulimit -n."),
    errno.ENFILE: (
        "the limit of open files of this machine is reached",
        "Raise it with sysctl fs.file-max.",
    ),
    errno.ENOMEM: (
        "there is not enough memory",
        "Free memory, or raise memory.max of the control group or ulimit -v.",
    ),
}


def processors() -> int:
    """Return how many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except OSError:  # refused by a seccomp filter
        return os.cpu_count() or 1


def descriptor_limits() -> tuple[int, int]:
    """Return how many files this process may open now, and how many it may allow itself.

    Either may be resource.RLIM_INFINITY. The usual number where a seccomp filter refuses the call.
    """
    try:
        return resource.getrlimit(resource.RLIMIT_NOFILE)
    except OSError:
        return _USUAL_DESCRIPTORS, _USUAL_DESCRIPTORS


def is_limit(error: BaseException | None) -> bool:
    """Return whether an error comes from a limit and may be over in a moment."""
    if isinstance(error, OSError):
        return error.errno in _CAUSES or isinstance(error, TimeoutError)
    if isinstance(error, SystemError):
        return _EXCEPTION_LOST in str(error)
    return isinstance(error, MemoryError) or is_thread_refused(error) or _is_unloaded(error)


def is_thread_refused(error: BaseException | None) -> bool:
    """Return whether Python could not start a thread."""
    return isinstance(error, RuntimeError) and _THREAD_REFUSED in str(error)


def _is_unloaded(error: BaseException | None) -> bool:
    """Return whether dlopen(3) failed for a module that is there: for lack of memory or files."""
    if not isinstance(error, ImportError) or isinstance(error, ModuleNotFoundError):
        return False
    return (error.path or "").endswith(".so")


def cause_of(error: BaseException) -> tuple[str, str]:
    """Return the cause of an error in words, and advice (empty if there is none)."""
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, MemoryError):
        number = errno.ENOMEM
    elif is_thread_refused(error):
        number = errno.EAGAIN
    if number in _CAUSES:
        cause, advice = _CAUSES[number]
        return f"{cause} ({errno.errorcode[number]})", advice
    if number is None:
        return str(error) or type(error).__name__, ""
    assert isinstance(error, OSError)
    named = f": {displayable(error.filename)}" if error.filename else ""
    return f"{error.strerror or os.strerror(number)}{named}", ""


def limit_sentence(error: BaseException) -> str:
    """Return the cause of an error for which `is_limit` is true, and advice, as sentences."""
    if isinstance(error, ImportError):
        return (
            f"A module could not be loaded: {harmless(str(error))}. Raise the limits of memory "
            "and open files (ulimit -v, ulimit -n); if that changes nothing, reinstall tui-fs."
        )
    number = error.errno if isinstance(error, OSError) else errno.ENOMEM
    cause, advice = _CAUSES[number or 0]
    return f"{cause[:1].upper()}{cause[1:]} ({errno.errorcode[number or 0]}). {advice}"


def measured(measure: Callable[[], _Result]) -> _Result | None:
    """Return what a measurement returns; None if it cannot be made now.

    A figure is worth no job: whatever the kernel refuses here (files, threads, memory, a process
    that has ended) leaves the figure unknown until the next measurement.
    """
    try:
        return measure()
    except (OSError, MemoryError, BadInput):
        return None
    except (RuntimeError, ImportError) as error:
        if not is_limit(error):
            raise
        return None


class MemoryReserve:
    """Address space that is given up when the process gets no more, so that its work goes on."""

    def __init__(self) -> None:
        self._reserve: bytearray | None = None
        self.check()

    def check(self) -> None:
        """Give the reserve up if the process gets no memory now, or take it again."""
        try:
            bytearray(_PROBE_BYTES)  # calloc(3): no page of it is touched
        except MemoryError:
            self._reserve = None
            return
        if self._reserve is None:
            try:
                self._reserve = bytearray(_RESERVE_BYTES)
            except MemoryError:
                return
