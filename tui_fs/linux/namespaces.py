"""Mounts that only this process and its children see, and that end with them."""

import ctypes
import os

_CLONE_NEWNS = 0x00020000  # linux/sched.h
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_SLAVE = 0x2, 0x4, 0x4000, 0x80000  # linux/mount.h
_MNT_DETACH, _UMOUNT_NOFOLLOW = 0x2, 0x8


def own_mounts() -> None:
    """Give this process a table of mounts of its own (mount_namespaces(7)).

    What is mounted from now on is seen by this process and its children alone, and the kernel
    takes it down when the last of them has ended. What others unmount meanwhile goes here, too, or
    their disks would stay in use (MS_SLAVE). To be called before there are other threads:
    they would keep the old table. Descriptors that are open already lead through the old one, to
    what lies below a mount: paths are to be opened anew.

    Raises:
        OSError: it is not permitted (CAP_SYS_ADMIN).
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.unshare(_CLONE_NEWNS))
    _check(libc.mount(None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_SLAVE), None))


def mount_tmpfs(path: str, size_bytes: int, inodes: int) -> None:
    """Mount a new tmpfs that only this user may look into.

    Raises:
        OSError: it cannot be mounted.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    flags = ctypes.c_ulong(_MS_NOSUID | _MS_NODEV)
    options = f"size={size_bytes},nr_inodes={inodes},mode=0700".encode()
    _check(libc.mount(b"tui-fs", os.fsencode(path), b"tmpfs", flags, options))


def unmount(path: str, *, is_lazy: bool = False) -> None:
    """Take down what is mounted at a path; a link there is not followed.

    Args:
        is_lazy: it disappears at once, and is taken down when nobody uses it any more.

    Raises:
        OSError: EBUSY if it is in use, EINVAL if nothing is mounted there (umount(2)).
    """
    libc = ctypes.CDLL(None, use_errno=True)
    flags = _UMOUNT_NOFOLLOW | (_MNT_DETACH if is_lazy else 0)
    _check(libc.umount2(os.fsencode(path), flags))


def _check(result: int) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
