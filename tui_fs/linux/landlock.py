"""Landlock: the kernel lets a process change only what lies beneath given directories.

System calls and rights: landlock(7), linux/landlock.h. A ruleset binds the calling process and all
that it starts, and cannot be lifted. No privilege is needed.
"""

import ctypes
import os
from collections.abc import Sequence

from tui_fs.linux.descriptors import closing
from tui_fs.linux.libc import system_call

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""The same numbers on every architecture that Python and this project support."""

_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1

WRITE_FILE = 1 << 1
REMOVE_DIR = 1 << 4
REMOVE_FILE = 1 << 5
_MAKE = 0b1111111 << 6  # a character device, a directory, a regular file, a socket, a FIFO …
_REFER, _TRUNCATE = 1 << 13, 1 << 14

_SINCE_ABI = ((1, WRITE_FILE | REMOVE_DIR | REMOVE_FILE | _MAKE), (2, _REFER), (3, _TRUNCATE))
"""Rights that change the file system, with the version of the interface that has them."""


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def abi_version() -> int:
    """Return the version of the kernel's interface.

    Raises:
        OSError: ENOSYS: the kernel has no Landlock. EOPNOTSUPP: it was not enabled at boot. Any
            other: a seccomp filter refuses the call.
    """
    return system_call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))


def create_ruleset() -> int:
    """Return a descriptor of a ruleset that forbids every change of the file system.

    Raises:
        OSError: as `abi_version`.
    """
    version = abi_version()
    handled = 0
    for since, rights in _SINCE_ABI:
        handled |= rights if version >= since else 0
    attribute = ctypes.c_uint64(handled)
    return system_call(
        _CREATE_RULESET,
        ctypes.byref(attribute),
        ctypes.c_size_t(ctypes.sizeof(attribute)),
        ctypes.c_uint32(0),
    )


def allow_beneath(ruleset: int, descriptor: int, rights: int) -> None:
    """Allow rights for a file, or for everything beneath a directory but not for itself.

    Args:
        descriptor: may be an O_PATH descriptor.

    Raises:
        OSError: landlock_add_rule(2).
    """
    rule = _PathBeneath(rights, descriptor)
    system_call(
        _ADD_RULE,
        ctypes.c_int(ruleset),
        ctypes.c_int(_RULE_PATH_BENEATH),
        ctypes.byref(rule),
        ctypes.c_uint32(0),
    )


def restrict_self(ruleset: int) -> None:
    """Bind this process and its future children; it needs no_new_privs or CAP_SYS_ADMIN.

    Raises:
        OSError: landlock_restrict_self(2).
    """
    system_call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))


def removal_ruleset(directories: Sequence[int]) -> int:
    """Return a descriptor of a ruleset that allows only removals beneath some directories.

    Writing to /dev/null stays allowed.

    Args:
        directories: open descriptors.

    Raises:
        OSError: as `abi_version` and `allow_beneath`.
    """
    ruleset = create_ruleset()
    try:
        for directory in directories:
            allow_beneath(ruleset, directory, REMOVE_FILE | REMOVE_DIR)
        try:
            null = os.open(os.devnull, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            return ruleset  # a root directory without devices
        with closing(null):
            allow_beneath(ruleset, null, WRITE_FILE)
    except OSError:
        os.close(ruleset)
        raise
    return ruleset
