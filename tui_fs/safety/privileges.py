"""Refuse to run with privileges that the calling user does not have."""

import ctypes
import os

from tui_fs.model.errors import Refused

_AT_SECURE = 23  # elf.h


def refuse_borrowed_privileges() -> None:
    """Raise Refused if the program was started setuid, setgid or with file capabilities.

    Such a program would let every user delete what only its owner may delete. An untrusted user
    controls its environment, current directory and arguments.
    """
    is_other = os.getuid() != os.geteuid() or os.getgid() != os.getegid()
    if is_other or _is_secure_execution():
        raise Refused(
            "tui-fs was started with borrowed privileges (setuid, setgid or file capabilities).",
            "Use sudo instead, and remove the privileges: chmod u-s,g-s FILE; setcap -r FILE.",
            rule="setuid",
        )


def _is_secure_execution() -> bool:
    """Read AT_SECURE from the auxiliary vector (getauxval(3))."""
    libc = ctypes.CDLL(None)
    libc.getauxval.restype = ctypes.c_ulong
    return bool(libc.getauxval(ctypes.c_ulong(_AT_SECURE)))
