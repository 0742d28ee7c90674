"""Renaming that replaces nothing, and exchanging two names in one step: renameat2(2)."""

import ctypes
import errno
import os
from dataclasses import dataclass

from tui_fs.model.errors import Missing, Refused
from tui_fs.model.paths import PathStr

MAX_NAME_BYTES = 255
"""NAME_MAX, linux/limits.h."""

_NOREPLACE, _EXCHANGE = 1, 2  # linux/fs.h
_NO_FLAG = 1 << 30
_RENAMEAT2_NUMBERS = {"x86_64": 316, "aarch64": 276, "riscv64": 276, "ppc64le": 357, "s390x": 347}
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class DirEntryRef:
    """A name in an open directory."""

    directory: int
    name: str

    def identity(self) -> tuple[int, int] | None:
        """Return device and inode of what has this name, None if nothing has."""
        try:
            status = os.stat(self.name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino


def entry_ref(parent: int, path: PathStr) -> DirEntryRef:
    """Return the last component of a path, in the open directory that holds it."""
    return DirEntryRef(parent, os.path.basename(path))


def identity_of(descriptor: int) -> tuple[int, int]:
    """Return device and inode of an open directory."""
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def rename_new(source: DirEntryRef, goal: DirEntryRef) -> None:
    """Rename; FileExistsError if the goal exists, which stays as it is.

    Raises:
        OSError: as rename(2).
        Missing: the C library, the kernel or a seccomp filter takes renameat2 away.
        Refused: the file system cannot do this.
    """
    _renameat2(source, goal, _NOREPLACE, "rename without replacing")


def exchange(one: DirEntryRef, other: DirEntryRef) -> None:
    """Exchange what two names stand for, in one step; raises as `rename_new`."""
    _renameat2(one, other, _EXCHANGE, "exchange two names in one step")


def exchange_checked(
    one: DirEntryRef,
    other: DirEntryRef,
    at_one: tuple[int, int],
    at_other: tuple[int, int] | None = None,
) -> None:
    """Exchange two names that must stand for these directories.

    Whatever else was met under them in that very moment is put back.

    Args:
        at_other: None where nobody else can reach the other name, and so exchange what it
            stands for.

    Raises:
        OSError, Missing, Refused: as `rename_new`; nothing was exchanged. Refused with the rule
            "changed": one of the names stood for something else.
    """
    exchange(one, other)
    if other.identity() == at_one and (at_other is None or one.identity() == at_other):
        return
    exchange(one, other)
    raise Refused(
        "Somebody put something else in the directory's place in this very moment.",
        "Look who else renames directories there.",
        rule="changed",
    )


def cut_name(before: str, name: str, after: str) -> str:
    """Return the three joined, the middle one cut so that a file system takes the name."""
    room = MAX_NAME_BYTES - len(os.fsencode(before + after))
    while len(os.fsencode(name)) > room:
        name = name[:-1]
    return f"{before}{name}{after}"


def _renameat2(source: DirEntryRef, goal: DirEntryRef, flag: int, what: str) -> None:
    function = getattr(_LIBC, "renameat2", None)
    if function is None:
        raise Missing(
            "The C library of this system lacks renameat2.", "glibc has it since version 2.28."
        )
    names = os.fsencode(source.name), os.fsencode(goal.name)
    if function(source.directory, names[0], goal.directory, names[1], flag) == 0:
        return
    number = ctypes.get_errno()
    refusal = _refusal_of_call()
    if refusal is not None:
        raise Missing(
            f"The kernel or a seccomp filter refuses renameat2 ({os.strerror(refusal)}).",
            "Run tui-fs outside the container, or allow renameat2 in its seccomp profile.",
        )
    if number in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
        raise Refused(f"The file system cannot {what} (renameat2).", rule="no-exchange")
    raise OSError(number, os.strerror(number))


def _refusal_of_call() -> int | None:
    """Return the errno with which the call itself is refused, whatever it is to rename.

    The kernel rejects a flag that does not exist, and nothing else does. The C library's function
    is of no use here: glibc reports a missing renameat2 as EINVAL, too. On a machine whose number
    of the call is not known it is taken to be there.
    """
    number = _RENAMEAT2_NUMBERS.get(os.uname().machine)
    if number is None:
        return None
    nowhere = ctypes.c_long(-1)
    call, flag = ctypes.c_long(number), ctypes.c_long(_NO_FLAG)
    _LIBC.syscall(call, nowhere, b"", nowhere, b"", flag)
    answer = ctypes.get_errno()
    return None if answer == errno.EINVAL else answer
