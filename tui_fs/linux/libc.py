"""Call functions of the C library and system calls for which Python has no bindings."""

import ctypes
import os

LIBC = ctypes.CDLL(None, use_errno=True)


def checked(result: int) -> int:
    """Return the result of a function of `LIBC`; OSError with its errno if it is negative."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def system_call(number: int, *arguments: object) -> int:
    """Make a system call for which the C library has no function (syscall(2)).

    Args:
        number: of this architecture; numbers since 424 are the same on all of them.
        arguments: ctypes values, or bytes for a path.

    Raises:
        OSError: the call fails.
    """
    return checked(int(LIBC.syscall(ctypes.c_long(number), *arguments)))
