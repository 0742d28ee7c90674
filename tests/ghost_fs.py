"""A FUSE file system in memory with a name that its directory lists and a lookup denies.

Run as ``python -m tests.ghost_fs MOUNTPOINT ERRNO`` by root. It holds the directory ``tree`` with
three files, a subdirectory with one file, and the name ``ghost``, whose lookup fails with ERRNO.
It prints ``ready`` when it is mounted, and ends when it is unmounted.
"""

import ctypes
import enum
import errno
import os
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

GHOST = "ghost"

_NOSUID_NODEV = 2 | 4  # linux/mount.h
_ROOT, _FILE_BYTES = 1, 5000
_NO_INODE = 99
_CALL, _REPLY = struct.Struct("<IIQQIIIHH"), struct.Struct("<IiQ")


class _Call(enum.IntEnum):
    """Of linux/fuse.h."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    UNLINK = 10
    RMDIR = 11
    STATFS = 17
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    BATCH_FORGET = 42


class _Server:
    def __init__(self, device: int, ghost_error: int) -> None:
        self._device = device
        self._ghost_error = ghost_error
        self._tree: dict[int, dict[str, int]] = {
            _ROOT: {"tree": 2},
            2: {"a": 10, "b": 11, "c": 12, "d": 3, GHOST: _NO_INODE},
            3: {"e": 13},
        }

    def serve(self) -> None:
        while True:
            try:
                call = os.read(self._device, 1 << 20)
            except OSError:  # unmounted
                return
            _, operation, unique, node, *_ = _CALL.unpack_from(call)
            if operation in (_Call.FORGET, _Call.BATCH_FORGET):
                continue
            number, answer = 0, b""
            try:
                answer = self._answer(operation, node, call[_CALL.size :])
            except OSError as error:
                number = error.errno or errno.EIO
            os.write(self._device, _REPLY.pack(_REPLY.size + len(answer), -number, unique) + answer)

    def _answer(self, operation: int, node: int, body: bytes) -> bytes:
        name = body.split(b"\0")[0].decode(errors="replace")
        match operation:
            case _Call.INIT:
                return struct.pack("<IIIIHHII", 7, 31, 1 << 17, 0, 12, 9, 1 << 17, 1).ljust(
                    64, b"\0"
                )
            case _Call.LOOKUP:
                inode = self._child(node, name)
                return struct.pack("<QQQQII", inode, 0, 0, 0, 0, 0) + self._attributes(inode)
            case _Call.GETATTR:
                return struct.pack("<QII", 0, 0, 0) + self._attributes(node)
            case _Call.OPENDIR:
                return struct.pack("<QII", 1, 0, 0)
            case _Call.READDIR:
                _, offset, size = struct.unpack_from("<QQI", body)
                return self._records(node, offset, size)
            case _Call.UNLINK | _Call.RMDIR:
                inode = self._child(node, name)
                if self._tree.get(inode):
                    raise OSError(errno.ENOTEMPTY, "")
                del self._tree[node][name]
                return b""
            case _Call.STATFS:
                return struct.pack(
                    "<QQQQQIIII24x", 1 << 20, 1 << 19, 1 << 19, 1, 1, 4096, 255, 4096, 0
                )
            case _Call.RELEASEDIR:
                return b""
        raise OSError(errno.ENOSYS, "")

    def _child(self, node: int, name: str) -> int:
        if name == GHOST and name in self._tree[node]:
            raise OSError(self._ghost_error, "")
        try:
            return self._tree[node][name]
        except KeyError:
            raise OSError(errno.ENOENT, "") from None

    def _attributes(self, inode: int) -> bytes:
        is_directory = inode in self._tree
        mode = stat.S_IFDIR | 0o755 if is_directory else stat.S_IFREG | 0o644
        size, links = (4096, 2) if is_directory else (_FILE_BYTES, 1)
        numbers = (inode, size, -(-size // 512), 0, 0, 0, 0, 0, 0, mode, links, 0, 0, 0, 4096, 0)
        return struct.pack("<QQQQQQIIIIIIIIII", *numbers)

    def _records(self, node: int, offset: int, size: int) -> bytes:
        names = [(".", node), ("..", _ROOT), *self._tree[node].items()]
        records = b""
        for place, (name, inode) in enumerate(names[offset:], offset + 1):
            kind = (stat.S_IFDIR if inode in self._tree else stat.S_IFREG) >> 12
            text = name.encode()
            record = struct.pack("<QQII", inode, place, len(text), kind) + text
            record += b"\0" * (-len(record) % 8)
            if len(records) + len(record) > size:
                break
            records += record
        return records


@contextmanager
def ghost_file_system(point: Path, error: str) -> Iterator[Path]:
    """Mount it, and give its directory ``tree``."""
    command = [sys.executable, "-m", "tests.ghost_fs", str(point), error]
    repository = Path(__file__).parents[1]
    with subprocess.Popen(command, cwd=repository, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            assert server.stdout.readline() == b"ready\n"
            yield point / "tree"
        finally:
            subprocess.run(["umount", "--lazy", str(point)], check=False)
            server.kill()


def main(point: str, error: str) -> None:
    """Mount it and serve."""
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"ghost", os.fsencode(point), b"fuse", _NOSUID_NODEV, options) != 0:
        raise OSError(ctypes.get_errno(), "mount")
    print("ready", flush=True)
    _Server(device, getattr(errno, error)).serve()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
