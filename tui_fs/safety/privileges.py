"""Refusing to run with privileges that the person did not have before."""

import ctypes
import os

from tui_fs.model.errors import Refused

_AT_SECURE = 23  # elf.h


def refuse_borrowed_privileges() -> None:
    """Raise Refused if the program was started setuid, setgid or with file capabilities.

    Such a program would delete for anybody what only its owner may delete; its environment,
    its current directory and its arguments are in the hands of a stranger.
    """
    is_other = os.getuid() != os.geteuid() or os.getgid() != os.getegid()
    if is_other or _is_secure_execution():
        raise Refused(
            "tui-fs was started with borrowed privileges (setuid, setgid or file capabilities).",
            "Use sudo instead, and take the bit away: chmod u-s,g-s.",
            rule="setuid",
        )


def _is_secure_execution() -> bool:
    """Ask the kernel's auxiliary vector, see getauxval(3)."""
    libc = ctypes.CDLL(None)
    libc.getauxval.restype = ctypes.c_ulong
    return bool(libc.getauxval(ctypes.c_ulong(_AT_SECURE)))
