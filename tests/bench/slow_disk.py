"""A disk with one head: a file that answers so many requests a second, one after the other.

The kernel's own throttles count reads and writes apart; on a disk they wait for each other. So
the file lives in a FUSE file system served here, and a loop device on it is the disk. Needs root.
"""

import contextlib
import ctypes
import errno
import mmap
import os
import stat
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_IN_HEADER = struct.Struct("=IIQQIIII")  # linux/fuse.h, protocol 7.31
_LOOKUP, _FORGET, _GETATTR, _SETATTR, _OPEN, _READ, _WRITE = 1, 2, 3, 4, 14, 15, 16
_STATFS, _RELEASE, _FSYNC, _FLUSH, _INIT, _OPENDIR, _RELEASEDIR = 17, 18, 20, 25, 26, 27, 29
_INTERRUPT, _DESTROY, _BATCH_FORGET = 36, 38, 42
_LARGEST_BYTES = 128 << 10
_DIRECT_IO = 1
_ROOT, _DISK = 1, 2


class _Server:
    """Answers the kernel's requests for a file system of one file."""

    def __init__(self, device: int, backing: int, size_bytes: int, speed: mmap.mmap) -> None:
        self._device = device
        self._backing = backing
        self._size_bytes = size_bytes
        self._speed = speed
        self._free_at_s = 0.0

    def serve(self) -> None:
        """Answer until it is unmounted."""
        while True:
            try:
                request = os.read(self._device, _LARGEST_BYTES + 4096)
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return
                if error.errno in (errno.EINTR, errno.ENOENT):
                    continue
                raise
            _, code, unique, node, *_ = _IN_HEADER.unpack_from(request)
            if code in (_FORGET, _BATCH_FORGET, _INTERRUPT):
                continue
            answer = self._answer(code, node, request[_IN_HEADER.size :])
            failed = isinstance(answer, int)
            payload = b"" if isinstance(answer, int) else answer
            number = -answer if isinstance(answer, int) and failed else 0
            header = struct.pack("=IiQ", 16 + len(payload), number, unique)
            with contextlib.suppress(FileNotFoundError):  # interrupted meanwhile
                os.write(self._device, header + payload)
            if code == _DESTROY:
                return

    def _answer(self, code: int, node: int, body: bytes) -> bytes | int:
        if code == _INIT:
            limits = struct.pack("=IIIIHHIIHH", 7, 31, 1 << 17, 0, 64, 48, _LARGEST_BYTES, 1, 32, 0)
            return limits.ljust(64, b"\0")
        if code == _LOOKUP:
            if body != b"disk\0":
                return errno.ENOENT
            return struct.pack("=QQQQII", _DISK, 0, 3600, 3600, 0, 0) + self._attributes(_DISK)
        if code in (_GETATTR, _SETATTR):
            return struct.pack("=QII", 3600, 0, 0) + self._attributes(node)
        if code in (_OPEN, _OPENDIR):
            return struct.pack("=QII", 1, _DIRECT_IO, 0)
        if code == _READ:
            _, offset, size = struct.unpack_from("=QQI", body)
            self._seek()
            return os.pread(self._backing, size, offset)
        if code == _WRITE:
            _, offset, size = struct.unpack_from("=QQI", body)
            self._seek()
            return struct.pack("=II", os.pwrite(self._backing, body[40 : 40 + size], offset), 0)
        if code == _STATFS:
            return struct.pack("=QQQQQIIII", 1 << 20, 0, 0, 1, 0, 4096, 255, 4096, 0).ljust(
                80, b"\0"
            )
        known = (_FLUSH, _FSYNC, _RELEASE, _RELEASEDIR, _DESTROY)
        return b"" if code in known else errno.ENOSYS

    def _attributes(self, node: int) -> bytes:
        mode = stat.S_IFDIR | 0o755 if node == _ROOT else stat.S_IFREG | 0o600
        size = 0 if node == _ROOT else self._size_bytes
        return struct.pack(
            "=6Q10I", node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0
        )

    def _seek(self) -> None:
        """Take the time of one request, after that of the one before."""
        (requests_per_s,) = struct.unpack("=d", self._speed[:8])
        if requests_per_s:
            now_s = time.monotonic()
            self._free_at_s = max(now_s, self._free_at_s) + 1 / requests_per_s
            time.sleep(self._free_at_s - now_s)


@contextlib.contextmanager
def slow_disk(place: Path, size_bytes: int) -> Iterator[tuple[str, Callable[[float], None]]]:
    """Give a block device of one head, and what sets its requests a second (0: no limit).

    Args:
        place: a directory for its backing file and its mount point.
    """
    speed = mmap.mmap(-1, mmap.PAGESIZE)

    def set_speed(requests_per_s: float) -> None:
        speed[:8] = struct.pack("=d", requests_per_s)

    point, backing = place / "slow", place / "backing"
    point.mkdir()
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    file = os.open(backing, os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(file, size_bytes)
    _mount(point, device)
    server = os.fork()
    if server == 0:
        try:
            _Server(device, file, size_bytes, speed).serve()
        finally:
            os._exit(0)
    os.close(device)
    loop = ""
    try:
        loop = _output("losetup", "--find", "--show", str(point / "disk"))
        yield loop, set_speed
    finally:
        set_speed(0)
        if loop:
            subprocess.run(["losetup", "--detach", loop], check=False)
        while subprocess.run(["umount", point], check=False).returncode != 0:
            time.sleep(0.5)
        os.waitpid(server, 0)
        os.close(file)
        backing.unlink()


def _mount(point: Path, device: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    if libc.mount(b"slow-disk", os.fsencode(point), b"fuse", 0, options.encode()) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
