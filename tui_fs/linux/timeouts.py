"""Wait with a time limit for a descriptor, or for a call that may never return."""

import _thread
import errno
import select
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike


def is_readable(file: "FileDescriptorLike", timeout_s: float) -> bool:
    """Return whether a file is readable without blocking, or its peer has closed it.

    This uses poll(2): a process with many targets has descriptors above 1,023, the limit of select.
    """
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(1000 * timeout_s))


_Result = TypeVar("_Result")

_STACK_BYTES = 1 << 20


class BackgroundCall(Generic[_Result]):
    """A call in its own thread.

    `threading.Thread` is not safe here: its start() waits without a limit for the new thread to
    report that it runs, and a thread that runs out of memory never does.

    Raises:
        OSError: no thread can be started (EAGAIN).
    """

    def __init__(self, function: Callable[[], _Result]) -> None:
        self._function = function
        self._value: list[_Result] = []
        self._error: BaseException | None = None
        self._is_done = _thread.allocate_lock()
        self._is_done.acquire()
        usual = _thread.stack_size(
            _STACK_BYTES
        )  # the default of 8 MiB may exceed what a limit leaves
        try:
            _thread.start_new_thread(self._run, ())
        except RuntimeError as error:
            raise OSError(errno.EAGAIN, "no thread can be started") from error
        finally:
            _thread.stack_size(usual)

    def result(self, timeout_s: float) -> _Result:
        """Return the result of the function, or raise its exception.

        Raises:
            TimeoutError: it has not returned yet. The caller may retry.
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
        except BaseException as error:  # noqa: BLE001  raised again in `result`
            self._error = error
        finally:
            self._is_done.release()


def call_within(function: Callable[[], _Result], timeout_s: float) -> _Result:
    """Call a function with a time limit; raises like `BackgroundCall` and its `result`."""
    return BackgroundCall(function).result(timeout_s)
