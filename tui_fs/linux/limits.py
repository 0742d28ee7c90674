"""Recognize limits that this process or the machine has reached, and survive them."""

import errno
import os
import resource
import time
from collections.abc import Callable
from typing import TypeVar

from tui_fs.linux.processes import age_s, times_of
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable, harmless

_Result = TypeVar("_Result")

_THREAD_REFUSED = "can't start new thread"
"""The message of the RuntimeError for every errno of pthread_create (_threadmodule.c)."""

_EXCEPTION_LOST = "without exception set", "without setting an exception"
"""The messages of a SystemError: an import failed without memory for its MemoryError."""

_RESERVE_BYTES = 16 << 20
_PROBE_BYTES = 2 << 20
"""More than the interpreter allocates from the kernel at once (an arena has 1 MiB)."""

_USUAL_DESCRIPTORS = 1024
"""The default soft limit (INR_OPEN_CUR in linux/fs.h)."""

_CAUSES = {
    errno.EAGAIN: (
        "the limit on processes and threads is reached",
        "Raise pids.max of the control group (systemd: TasksMax) or ulimit -u.",
    ),
    errno.EMFILE: ("the limit on open files per process is reached", "Raise ulimit -n."),
    errno.ENFILE: (
        "the system-wide limit on open files is reached",
        "Raise fs.file-max with sysctl.",
    ),
    errno.ENOMEM: (
        "there is not enough memory",
        "Free memory, or raise memory.max of the control group or ulimit -v.",
    ),
}


def processors() -> int:
    """Return the number of processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except OSError:  # refused by a seccomp filter
        return os.cpu_count() or 1


def descriptor_limits() -> tuple[int, int]:
    """Return the soft and the hard limit of open files.

    Either may be resource.RLIM_INFINITY. If a seccomp filter refuses the call, this returns
    the default.
    """
    try:
        return resource.getrlimit(resource.RLIMIT_NOFILE)
    except OSError:
        return _USUAL_DESCRIPTORS, _USUAL_DESCRIPTORS


def is_limit(error: BaseException | None) -> bool:
    """Return whether an error comes from a limit and may be temporary."""
    if isinstance(error, OSError):
        return error.errno in _CAUSES or isinstance(error, TimeoutError)
    if isinstance(error, SystemError):
        return any(words in str(error) for words in _EXCEPTION_LOST)
    return isinstance(error, MemoryError) or is_thread_refused(error) or _is_unloaded(error)


def is_thread_refused(error: BaseException | None) -> bool:
    """Return whether Python could not start a thread."""
    return isinstance(error, RuntimeError) and _THREAD_REFUSED in str(error)


def _is_unloaded(error: BaseException | None) -> bool:
    """Return whether dlopen(3) failed for an existing module: for lack of memory or files."""
    if not isinstance(error, ImportError) or isinstance(error, ModuleNotFoundError):
        return False
    return (error.path or "").endswith(".so")


def cause_of(error: BaseException) -> tuple[str, str]:
    """Return the cause of an error in words, and advice (may be empty)."""
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
    """Return the cause of an `is_limit` error, and advice, as sentences."""
    if isinstance(error, ImportError):
        return (
            f"A module could not be loaded: {harmless(str(error))}. Raise the limits of memory "
            "and open files (ulimit -v, ulimit -n); if that changes nothing, reinstall tui-fs."
        )
    number = error.errno if isinstance(error, OSError) else errno.ENOMEM
    cause, advice = _CAUSES[number or 0]
    return f"{cause[:1].upper()}{cause[1:]} ({errno.errorcode[number or 0]}). {advice}"


def measured(measure: Callable[[], _Result]) -> _Result | None:
    """Return the result of a measurement; None if it is not possible now.

    A missing figure must not abort a job. If the kernel refuses files, threads or memory, or the
    process has ended, the figure stays unknown until the next measurement.
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
    """Address space to release when the process runs out of memory, so that it can continue."""

    def __init__(self) -> None:
        self._reserve: bytes | None = None
        self.check()

    def check(self) -> None:
        """Release the reserve if no memory can be allocated; else reallocate it if necessary."""
        try:
            bytes(_PROBE_BYTES)  # from calloc(3), which touches no page; a bytearray touches all
        except MemoryError:
            self._reserve = None
            return
        if self._reserve is None:
            try:
                self._reserve = bytes(_RESERVE_BYTES)
            except MemoryError:
                return


_PROBE_S, _PROBE_LIMIT_S, _YOUNG_S = 0.02, 0.25, 1.0


def slowdown_by_load(
    clock: Callable[[], float] = time.monotonic,
    processor_time: Callable[[], float] = time.thread_time,
) -> float:
    """Return how many times longer a thread takes beside the present load; 1 on an idle machine.

    It computes for `_PROBE_S`, and compares the time that passes with the processor time that it
    gets. So it counts only what takes the processors from this process: not tasks of low priority
    or those that wait for a disk, which the load average contains, but a limit of a control group,
    and time that a hypervisor steals. If this thread has waited more in its life, that counts: so
    short a computation may by chance not have to wait. A thread that has just been started, and has
    computed for as long since, as in a command, need not do so again.
    """
    slowdown, is_recent = _slowdown_of_thread()
    if is_recent:
        return slowdown
    began_s, used_before_s = clock(), processor_time()
    used_s = passed_s = 0.0
    while used_s < _PROBE_S and passed_s < _PROBE_LIMIT_S:
        used_s, passed_s = processor_time() - used_before_s, clock() - began_s
    return max(1.0, passed_s / max(used_s, 1e-4), slowdown)


def _slowdown_of_thread() -> tuple[float, bool]:
    """Return the time that this thread has run or was ready to run, relative to that it has run.

    The second value is whether this shows the present load: the thread is young, and has run long.
    """
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as file:
            run_ns, waited_ns, _ = map(int, file.read().split())
        age = age_s(times_of("/proc/thread-self"))
    except (OSError, ValueError):
        return 1.0, False  # a kernel without schedstat, or a hidden /proc
    is_recent = age < _YOUNG_S and run_ns >= 1e9 * _PROBE_S
    return 1.0 + waited_ns / max(run_ns, 1), is_recent
