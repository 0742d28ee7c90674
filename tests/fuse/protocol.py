"""The FUSE kernel protocol (linux/fuse.h, version 7.31) and the process that serves it."""

import ctypes
import errno
import multiprocessing
import os
import signal
import stat
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Protocol

from tests.needs import needs_root
from tui_fs.linux.processes import set_pdeathsig

ROOT = 1
"""The number of the node at the mount point."""

_IN_HEADER, _OUT_HEADER = struct.Struct("=IIQQIIII"), struct.Struct("=IiQ")
_DIRENT = struct.Struct("=QQII")
_MAX_WRITE_BYTES = 128 << 10
_MS_NOSUID_NODEV, _MNT_DETACH = 2 | 4, 2  # linux/mount.h
_BLOCKS_AND_INODES = (1 << 20, 1 << 19, 1 << 19, 1 << 20, 1 << 19)


class Op(IntEnum):
    """The operations that the servers of the tests know."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    READLINK = 5
    MKDIR = 9
    UNLINK = 10
    RMDIR = 11
    RENAME = 12
    LINK = 13
    OPEN = 14
    READ = 15
    WRITE = 16
    STATFS = 17
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    CREATE = 35
    INTERRUPT = 36
    BATCH_FORGET = 42


@dataclass(frozen=True, slots=True)
class Request:
    """An operation on a node, requested by a process."""

    operation: int
    node: int
    pid: int
    body: bytes

    def numbers(self, layout: str) -> tuple[int, ...]:
        """Unpack the beginning of the body."""
        return struct.unpack_from("=" + layout, self.body)

    def name(self, offset: int = 0) -> str:
        """Return the name at an offset of the body."""
        return os.fsdecode(self.body[offset:].partition(b"\0")[0])


class Server(Protocol):
    """A file system: what it replies to each request but INIT."""

    def reply(self, request: Request) -> bytes | None:
        """Return the payload of the reply, None for a request that stays unanswered.

        Raises:
            OSError: the reply is this error. The kernel goes on without FLUSH, FSYNC, ACCESS and
                most other operations where the first reply is ENOSYS.
        """
        ...


def attributes(number: int, mode: int, size_bytes: int, links: int = 1) -> bytes:
    """Pack the attributes of a node that root owns."""
    times = (0,) * 6
    owner_and_device = (0,) * 3
    blocks = -(-size_bytes // 512)
    return struct.pack(
        "=6Q10I", number, size_bytes, blocks, *times, mode, links, *owner_and_device, 4096, 0
    )


def attributes_reply(packed: bytes, valid_s: int) -> bytes:
    """Pack a reply to GETATTR or SETATTR that the kernel may cache for `valid_s`."""
    return struct.pack("=QII", valid_s, 0, 0) + packed


def entry_reply(number: int, packed: bytes, valid_s: int) -> bytes:
    """Pack a reply to LOOKUP, or what makes an entry, that the kernel may cache for `valid_s`."""
    return struct.pack("=QQQQII", number, 0, valid_s, valid_s, 0, 0) + packed


def open_reply(flags: int = 0) -> bytes:
    """Pack a reply to OPEN or OPENDIR."""
    return struct.pack("=QII", 0, flags, 0)


def statfs_reply() -> bytes:
    """Pack a reply to STATFS: half of all blocks and inodes is free."""
    return struct.pack("=5Q3I28x", *_BLOCKS_AND_INODES, 4096, 255, 4096)


def directory_reply(entries: Iterable[tuple[str, int, int]], request: Request) -> bytes:
    """Pack as many entries (name, number, mode) as a READDIR has room for, from its offset on."""
    _, offset, size_bytes = request.numbers("QQI")
    payload = b""
    for position, (name, number, mode) in list(enumerate(entries, start=1))[offset:]:
        encoded = os.fsencode(name)
        entry = _DIRENT.pack(number, position, len(encoded), stat.S_IFMT(mode) >> 12) + encoded
        entry += bytes(-len(entry) % 8)
        if len(payload) + len(entry) > size_bytes:
            break
        payload += entry
    return payload


@dataclass(frozen=True, slots=True)
class FuseMount:
    """A mounted file system and the process that serves it."""

    mount_point: Path
    _process: ForkProcess

    @property
    def tree(self) -> Path:
        """The directory ``tree`` of the file system."""
        return self.mount_point / "tree"

    def stop_answering(self) -> None:
        """Stop the server: nothing on the file system returns any more."""
        self._signal(signal.SIGSTOP)

    def answer_again(self) -> None:
        """Continue the server."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)


@contextmanager
def mounted(server: Server, mount_point: Path, user: int = 0) -> Iterator[FuseMount]:
    """Mount a file system that a child process serves. Skip the test without root.

    Args:
        mount_point: a directory, made where it is missing.
        user: the owner of the mount point and the user whose program serves it by the mount table.
    """
    needs_root("mounting FUSE")
    mount_point.mkdir(exist_ok=True)
    os.chown(mount_point, user, user)
    libc = ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    try:
        options = f"fd={device},rootmode=40000,user_id={user},group_id={user},allow_other"
        words = (b"tui-fs-test", os.fsencode(mount_point), b"fuse")
        _check(libc.mount(*words, _MS_NOSUID_NODEV, options.encode()), mount_point)
        context = multiprocessing.get_context("fork")
        process = context.Process(target=_serve, args=(server, device), daemon=True)
        process.start()
    finally:
        os.close(device)  # the file system lives as long as the server has it open
    try:
        yield FuseMount(mount_point, process)
    finally:
        process.kill()  # all calls that wait for it fail (ENOTCONN)
        process.join()
        _check(libc.umount2(os.fsencode(mount_point), _MNT_DETACH), mount_point)


def _check(status: int, mount_point: Path) -> None:
    if status != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), mount_point)


def _serve(server: Server, device: int) -> None:
    """Reply to the kernel's requests until the file system is unmounted."""
    set_pdeathsig()
    os.setsid()
    while True:
        try:
            message = os.read(device, _MAX_WRITE_BYTES + 4096)
        except FileNotFoundError:  # the caller was killed meanwhile
            continue
        except OSError as error:
            if error.errno == errno.ENODEV:
                return
            raise
        _, operation, unique, node, _, _, pid, _ = _IN_HEADER.unpack_from(message)
        if operation in (Op.FORGET, Op.BATCH_FORGET, Op.INTERRUPT):
            continue
        error_number = 0
        try:
            request = Request(operation, node, pid, message[_IN_HEADER.size :])
            payload = _init_reply() if operation == Op.INIT else server.reply(request)
        except OSError as error:
            error_number, payload = error.errno or errno.EIO, b""
        if payload is not None:
            header = _OUT_HEADER.pack(_OUT_HEADER.size + len(payload), -error_number, unique)
            with suppress(FileNotFoundError):
                os.write(device, header + payload)


def _init_reply() -> bytes:
    max_readahead_bytes, flags, max_background, congestion_threshold = 1 << 17, 0, 64, 48
    limits = (max_readahead_bytes, flags, max_background, congestion_threshold)
    return struct.pack("=IIIIHHII36x", 7, 31, *limits, _MAX_WRITE_BYTES, 1)
