"""A process that uses something in a tree until its standard input ends.

``python -I holder.py USE PATH`` prints a number when it has begun: the bytes it holds of a
deleted file, else 0.
"""

import ctypes
import mmap
import os
import select
import sys


def _use(use: str, path: str) -> int:
    match use:
        case "stand":
            os.chdir(path)
        case "live":
            os.chroot(path)
        case "list":
            os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        case "read":
            os.open(path, os.O_RDONLY)
        case "write":
            os.open(path, os.O_WRONLY)
        case "map":
            # Python's mmap keeps a descriptor of its own.
            descriptor = os.open(path, os.O_RDONLY)
            libc = ctypes.CDLL(None, use_errno=True)
            libc.mmap.restype = ctypes.c_void_p
            size, offset = ctypes.c_size_t(mmap.PAGESIZE), ctypes.c_long(0)
            mapped = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_PRIVATE, descriptor, offset)
            assert mapped != ctypes.c_void_p(-1).value, os.strerror(ctypes.get_errno())
            os.close(descriptor)
        case "delete":
            descriptor = os.open(path, os.O_RDWR)
            os.unlink(path)
            return os.fstat(descriptor).st_blocks * 512
        case _:
            raise ValueError(use)
    return 0


def _refill(path: str) -> None:
    """Make and remove names in a directory without a pause; at most two are there at once."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    number = 0
    while number % 64 or not select.select([0], [], [], 0)[0]:
        os.close(os.open(f"new-{number}", os.O_WRONLY | os.O_CREAT, dir_fd=directory))
        if number:
            os.unlink(f"new-{number - 1}", dir_fd=directory)
        number += 1


def _disturb(path: str) -> None:
    """Continuously rename, remove and make directories and files in a tree of two levels.

    For a moment a link to the directory `outside` next to the tree replaces a directory.
    """
    os.chdir(path)
    number = 0
    while number % 64 or not select.select([0], [], [], 0)[0]:
        here = f"directory-{number % 40:05}"
        match number % 5:
            case 0:
                os.rename(here, "moved")
                os.rename("moved", here)
            case 4:
                os.rename(here, "moved")
                os.symlink("../outside", here)
                os.unlink(here)
                os.rename("moved", here)
            case 1:
                for name in os.listdir(here)[:20]:
                    os.unlink(f"{here}/{name}")
                for again in range(20):
                    os.close(os.open(f"{here}/{number}-{again}", os.O_CREAT | os.O_WRONLY))
            case 2:
                os.mkdir(f"short-{number}")
                os.close(os.open(f"short-{number}/file", os.O_CREAT | os.O_WRONLY))
            case 3:
                os.unlink(f"short-{number - 1}/file")
                os.rmdir(f"short-{number - 1}")
        number += 1


if __name__ == "__main__":
    use, path = sys.argv[1:]
    endless = {"refill": _refill, "disturb": _disturb}.get(use)
    print(0 if endless else _use(use, path), flush=True)
    if endless:
        endless(path)
    else:
        sys.stdin.read()
