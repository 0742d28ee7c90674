"""Waiting with a time limit: for a descriptor, and for a call that may never return."""

import _thread
import errno
import select
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class HasFileno(Protocol):
    """A file, a socket, or anything else with a descriptor."""

    def fileno(self) -> int:
        """Return the descriptor."""
        ...


def is_readable(file: int | HasFileno, timeout_s: float) -> bool:
    """Return whether a file can be read without waiting, or its other end is closed.

    A process with many targets has descriptors above 1,023, which select(2) does not know.
    """
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(1000 * timeout_s))


_Result = TypeVar("_Result")

_STACK_BYTES = 1 << 20


class BackgroundCall(Generic[_Result]):
    """A call in a thread of its own.

    A thread of `threading` is not safe here: its start() waits without a limit for the thread to
    report that it runs, and one that finds no memory never does.

    Raises:
        OSError: no thread can be started (EAGAIN).
    """

    def __init__(self, function: Callable[[], _Result]) -> None:
        self._function = function
        self._value: list[_Result] = []
        self._error: BaseException | None = None
        self._is_done = _thread.allocate_lock()
        self._is_done.acquire()
        usual = _thread.stack_size(_STACK_BYTES)  # the usual 8 MiB may be all that a limit leaves
        try:
            _thread.start_new_thread(self._run, ())
        except RuntimeError as error:
            raise OSError(errno.EAGAIN, "no thread can be started") from error
        finally:
            _thread.stack_size(usual)

    def result(self, timeout_s: float) -> _Result:
        """Return what the function returns, or raise what it raises.

        Raises:
            TimeoutError: it has not returned yet; ask again later.
        """
        if not self._is_done.acquire(timeout=timeout_s):
            raise TimeoutError(errno.ETIMEDOUT, "the file system does not answer")
        self._is_done.release()
        if self._error is not None:
            raise self._error
        return self._value[0]

    def _run(self) -> None:
        try:
            self._value.append(self._function())
        except BaseException as error:  # noqa: BLE001  raised again in the thread that asks
            self._error = error
        finally:
            self._is_done.release()


def call_within(function: Callable[[], _Result], timeout_s: float) -> _Result:
    """Return what a function returns within a time; see `BackgroundCall` for what it raises."""
    return BackgroundCall(function).result(timeout_s)
