"""Processes that end with the one that started them, and those that take over orphans."""

import ctypes
import os
import signal

from tui_fs.model.errors import Missing

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h


def set_pdeathsig() -> None:
    """Have the kernel kill this process when its parent ends, even while it is stopped.

    The parent may have ended before this; whoever forked compares os.getppid() afterwards.

    Raises:
        Missing: a filter refuses that.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def continue_when_parent_ends() -> None:
    """Have the kernel continue this process when its parent's thread ends, if it is stopped then.

    The thread is the one that forked this process (PR_SET_PDEATHSIG in prctl(2)).

    Raises:
        Missing: a filter refuses that.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)


def set_child_subreaper() -> None:
    """Become the parent of descendants whose own parents end (prctl(2)).

    Raises:
        Missing: a filter refuses that.
    """
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise Missing(
            f"The kernel refuses prctl ({reason}), so processes could outlive tui-fs.",
            "Allow prctl in the seccomp profile of the container or service.",
        )
