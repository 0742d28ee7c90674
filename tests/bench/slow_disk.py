"""A disk with one head: a file that serves a fixed number of requests a second, one at a time.

The kernel's own throttles count reads and writes apart; on a disk they wait for each other. So
the file is in a FUSE file system served here, and a loop device on it is the disk. Needs root.
"""

import mmap
import os
import stat
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fuse.memory_tree import MemoryTree
from tests.fuse.protocol import Op, Request, attributes_reply, mounted, open_reply

_DIRECT_IO = 1  # FOPEN_DIRECT_IO


class _OneFile(MemoryTree):
    valid_s = 3600

    def __init__(self, backing: int, size_bytes: int, speed: mmap.mmap) -> None:
        super().__init__()
        self._backing = backing
        self._speed = speed
        self._free_at_s = 0.0
        self.add(self.root, "disk", stat.S_IFREG | 0o600).size_bytes = size_bytes

    def reply(self, request: Request) -> bytes | None:
        match request.operation:
            case Op.SETATTR:
                return attributes_reply(self.nodes[request.node].attributes(), self.valid_s)
            case Op.OPEN:
                return open_reply(_DIRECT_IO)
            case Op.READ:
                _, offset, size_bytes = request.numbers("QQI")
                self._seek()
                return os.pread(self._backing, size_bytes, offset)
            case Op.WRITE:
                _, offset, size_bytes = request.numbers("QQI")
                self._seek()
                data = request.body[40 : 40 + size_bytes]
                return struct.pack("=II", os.pwrite(self._backing, data, offset), 0)
        return super().reply(request)

    def _seek(self) -> None:
        """Take the time of one request, after that of the one before."""
        (requests_per_s,) = struct.unpack("=d", self._speed[:8])
        if requests_per_s:
            now_s = time.monotonic()
            self._free_at_s = max(now_s, self._free_at_s) + 1 / requests_per_s
            time.sleep(self._free_at_s - now_s)


@contextmanager
def slow_disk(place: Path, size_bytes: int) -> Iterator[tuple[str, Callable[[float], None]]]:
    """Yield a block device with one head, and a setter of its requests a second (0: no limit).

    Args:
        place: a directory for its backing file and its mount point.
    """
    speed = mmap.mmap(-1, mmap.PAGESIZE)

    def set_speed(requests_per_s: float) -> None:
        speed[:8] = struct.pack("=d", requests_per_s)

    backing = place / "backing"
    file = os.open(backing, os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(file, size_bytes)
    with mounted(_OneFile(file, size_bytes, speed), place / "slow") as mount:
        disk = str(mount.mount_point / "disk")
        loop = _output("losetup", "--find", "--show", disk)
        try:
            yield loop, set_speed
        finally:
            set_speed(0)
            subprocess.run(["losetup", "--detach", loop], check=False)
            while _output("losetup", "--associated", disk):
                time.sleep(0.5)  # the device is still in use
    os.close(file)
    backing.unlink()


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
