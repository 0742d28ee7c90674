"""Run a program in a mount namespace of its own with very many mounts.

Run as ``unshare -m --propagation private python -m tests.many_mounts DIRECTORY NUMBER PROGRAM …``.
"""

import ctypes
import os
import sys

_MS_BIND = 0x1000  # linux/mount.h


def main() -> None:
    """Mount a directory on NUMBER sibling directories, then exec the program."""
    directory, number, *program = sys.argv[1:]
    libc = ctypes.CDLL(None, use_errno=True)
    source = os.path.join(directory, "source")
    os.makedirs(source)
    for count in range(int(number)):
        point = os.path.join(directory, f"point-{count:05}")
        os.mkdir(point)
        if libc.mount(os.fsencode(source), os.fsencode(point), None, _MS_BIND, None) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), point)
    os.execv(program[0], program)


if __name__ == "__main__":
    main()
