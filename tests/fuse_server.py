"""A FUSE file system in memory, some directories of which never answer. Needs root.

A request that the server has read and does not answer keeps its caller in the kernel, and no signal
ends it, not even SIGKILL. A request that a stopped server has not read can be ended by SIGKILL.
Run as ``python -m tests.fuse_server MOUNT_POINT HANGING_NAME …``.
"""

import ctypes
import errno
import os
import signal
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

_IN_HEADER = struct.Struct("=IIQQIIII")  # linux/fuse.h, protocol 7.31
_OUT_HEADER = struct.Struct("=IiQ")
_MS_NOSUID_NODEV = 2 | 4  # linux/mount.h
_MNT_DETACH = 2
_VALID_S = 1  # how long the kernel keeps names and attributes
_DIRECTORIES, _FILES = 3, 20


class _Op(IntEnum):
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
    INTERRUPT = 36
    DESTROY = 38
    BATCH_FORGET = 42


class FuseTree:
    """A mounted file system with a directory ``tree`` of 3 directories of 20 files each."""

    def __init__(self, mount_point: Path, server: "subprocess.Popen[bytes]") -> None:
        self.mount_point = mount_point
        self.tree = mount_point / "tree"
        self._server = server

    def stop_answering(self) -> None:
        """Stop the server: nothing on the file system returns any more."""
        self._server.send_signal(signal.SIGSTOP)

    def answer_again(self) -> None:
        """Continue the server."""
        self._server.send_signal(signal.SIGCONT)


@contextmanager
def fuse_tree(mount_point: Path, *hanging: str) -> Iterator[FuseTree]:
    """Mount the file system.

    Args:
        hanging: names of directories in ``tree`` that never answer.
    """
    mount_point.mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "tests.fuse_server", str(mount_point), *hanging],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"mounted\n"
        try:
            yield FuseTree(mount_point, server)
        finally:
            server.kill()  # which ends all calls that wait for it (ENOTCONN)
            server.wait()
            ctypes.CDLL(None).umount2(os.fsencode(mount_point), _MNT_DETACH)


@dataclass(slots=True)
class _Node:
    number: int
    children: "dict[str, _Node] | None"  # None: a file
    is_hanging: bool = False

    @property
    def mode(self) -> int:
        return stat.S_IFREG | 0o644 if self.children is None else stat.S_IFDIR | 0o755

    @property
    def attributes(self) -> bytes:
        size_bytes, blocks, links = 4096, 8, 1
        times = (0,) * 6
        return struct.pack(
            "=QQQQQQIIIIIIIIII",
            *(self.number, size_bytes, blocks, *times, self.mode, links),
            *(os.getuid(), os.getgid(), 0, 4096, 0),
        )


class _Server:
    def __init__(self, device: int, hanging: list[str]) -> None:
        self._device = device
        self._nodes: dict[int, _Node] = {}
        tree = self._add(self._new({}), "tree", {})
        for number in range(_DIRECTORIES):
            directory = self._add(tree, f"d{number}", {})
            for file in range(_FILES):
                self._add(directory, f"f{file:02}", None)
        for name in hanging:
            self._add(tree, name, {}).is_hanging = True

    def _new(self, children: dict[str, _Node] | None) -> _Node:
        node = _Node(len(self._nodes) + 1, children)
        self._nodes[node.number] = node
        return node

    def _add(self, parent: _Node, name: str, children: dict[str, _Node] | None) -> _Node:
        assert parent.children is not None
        parent.children[name] = self._new(children)
        return parent.children[name]

    def serve(self) -> None:
        """Answer until it is unmounted."""
        while True:
            try:
                request = os.read(self._device, 1 << 20)
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return
                if error.errno in (errno.EINTR, errno.ENOENT):
                    continue
                raise
            length, code, unique, number, *_ = _IN_HEADER.unpack_from(request)
            answer = self._answer(code, number, request[_IN_HEADER.size : length])
            if answer is None:
                continue
            failure, payload = (answer, b"") if isinstance(answer, int) else (0, answer)
            header = _OUT_HEADER.pack(_OUT_HEADER.size + len(payload), -failure, unique)
            with suppress(FileNotFoundError):  # the caller was killed meanwhile
                os.write(self._device, header + payload)

    def _answer(self, code: int, number: int, body: bytes) -> bytes | int | None:
        """Return a payload or an errno; None for no answer."""
        match code:
            case _Op.INIT:
                version = 7, 31, 1 << 17, 0, 12, 9, 1 << 17, 1
                return struct.pack("=IIIIHHII", *version).ljust(64, b"\0")
            case _Op.FORGET | _Op.BATCH_FORGET | _Op.INTERRUPT:
                return None
            case _Op.DESTROY | _Op.RELEASEDIR:
                return b""
            case _Op.STATFS:
                room = 1 << 20, 1 << 19, 1 << 19, 1 << 20, 1 << 19, 4096, 255, 4096
                return struct.pack("=QQQQQIII", *room).ljust(80, b"\0")
        node = self._nodes[number]
        if node.is_hanging:
            return None
        match code:
            case _Op.GETATTR:
                return struct.pack("=QII", _VALID_S, 0, 0) + node.attributes
            case _Op.OPENDIR:
                return struct.pack("=QII", 0, 0, 0)
            case _Op.READDIR:
                return _directory_entries(node, *struct.unpack_from("=QI", body, 8))
            case _Op.LOOKUP | _Op.UNLINK | _Op.RMDIR:
                return _answer_of_name(code, node, body.partition(b"\0")[0].decode())
        return errno.ENOSYS


def _answer_of_name(code: int, parent: _Node, name: str) -> bytes | int:
    children = parent.children
    if children is None or name not in children:
        return errno.ENOENT
    node = children[name]
    if code == _Op.LOOKUP:
        return struct.pack("=QQQQII", node.number, 0, _VALID_S, _VALID_S, 0, 0) + node.attributes
    if node.children:
        return errno.ENOTEMPTY
    del children[name]
    return b""


def _directory_entries(node: _Node, offset: int, size_bytes: int) -> bytes:
    assert node.children is not None
    entries = [(".", node), ("..", node), *node.children.items()]
    payload = b""
    for position, (name, child) in enumerate(entries[offset:], start=offset + 1):
        kind = stat.S_IFMT(child.mode) >> 12
        record = struct.pack("=QQII", child.number, position, len(name), kind) + name.encode()
        record += bytes(-len(record) % 8)
        if len(payload) + len(record) > size_bytes:
            break
        payload += record
    return payload


def main() -> None:
    """Mount the file system and serve it until it is unmounted."""
    mount_point, *hanging = sys.argv[1:]
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = b"silent", os.fsencode(mount_point), b"fuse", _MS_NOSUID_NODEV, options.encode()
    if libc.mount(*arguments) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), mount_point)
    print("mounted", flush=True)
    _Server(device, hanging).serve()


if __name__ == "__main__":
    main()
