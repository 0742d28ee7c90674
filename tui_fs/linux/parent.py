"""Processes that must not outlive the one that started them."""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with_parent(parent: int | None = None) -> None:
    """Have the kernel kill this process when its parent ends, even while it is stopped.

    Args:
        parent: who it was when this process was forked; None where that cannot be told.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:
        os._exit(1)  # it had ended before the kernel was asked
