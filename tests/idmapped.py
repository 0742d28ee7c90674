"""Mounts that show other owners than the file system has: mount_setattr(2), MOUNT_ATTR_IDMAP."""

import ctypes
import os
import struct
import subprocess
from pathlib import Path

_AT_FDCWD, _AT_EMPTY_PATH = -100, 0x1000
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH, _MOUNT_ATTR_IDMAP = 1, 4, 0x100000
_LIBC = ctypes.CDLL(None, use_errno=True)


def mount_idmapped(source: Path, point: Path, owner: int, shown_as: int) -> None:
    """Mount a directory a second time; what `owner` owns appears there as owned by `shown_as`.

    Raises:
        OSError: the kernel or the file system cannot do that.
    """
    point.mkdir(exist_ok=True)
    process = subprocess.Popen(["unshare", "--user", "cat"], stdin=subprocess.PIPE)
    try:
        while os.readlink(f"/proc/{process.pid}/ns/user") == os.readlink("/proc/self/ns/user"):
            os.sched_yield()
        for kind in ("uid", "gid"):
            Path(f"/proc/{process.pid}/{kind}_map").write_text(f"{owner} {shown_as} 1\n")
        namespace = os.open(f"/proc/{process.pid}/ns/user", os.O_RDONLY)
        tree = _call(_OPEN_TREE, _AT_FDCWD, bytes(source), _OPEN_TREE_CLONE)
        attributes = struct.pack("=4Q", _MOUNT_ATTR_IDMAP, 0, 0, namespace)
        _call(_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH, attributes, len(attributes))
        _call(_MOVE_MOUNT, tree, b"", _AT_FDCWD, bytes(point), _MOVE_MOUNT_F_EMPTY_PATH)
        os.close(tree)
        os.close(namespace)
    finally:
        process.communicate()


def _call(number: int, *arguments: int | bytes) -> int:
    words = [
        ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments
    ]
    result = int(_LIBC.syscall(ctypes.c_long(number), *words))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
