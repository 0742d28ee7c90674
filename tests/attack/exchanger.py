"""Exchanges two names as fast as the kernel can, or in pairs of exchanges with pauses.

Run as ``python -I exchanger.py FIRST SECOND PAUSE_S``; the names are in the current directory.
"""

import ctypes
import platform
import sys
import time

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # linux/fcntl.h, linux/fs.h
_RENAMEAT2 = {"x86_64": 316, "aarch64": 276}


def main(first: bytes, second: bytes, pause_s: float) -> None:
    """Exchange until killed; a missing name is no error."""
    syscall = ctypes.CDLL(None).syscall
    number = _RENAMEAT2[platform.machine()]
    print("ready", flush=True)
    while True:
        for _ in range(2):
            syscall(number, _AT_FDCWD, first, _AT_FDCWD, second, _RENAME_EXCHANGE)
        if pause_s:
            time.sleep(pause_s)


if __name__ == "__main__":
    main(sys.argv[1].encode(), sys.argv[2].encode(), float(sys.argv[3]))
