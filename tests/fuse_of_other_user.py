"""A file system in memory whose program decides what every process sees (FUSE, raw /dev/fuse).

Run as ``python -m tests.fuse_of_other_user MOUNTPOINT USER [lead=DIRECTORY] [silent] [link=TEXT]``.
Everything in it appears as owned by root, whoever mounted it.
"""

import ctypes
import errno
import os
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.needs import needs_root

TREE = "tree"
"""In the place of this directory rm under xargs sees a link, if it is to be led elsewhere."""
VICTIM = "victim"
"""The name that a find that feeds xargs sees there besides."""
FORGET, BATCH_FORGET, INTERRUPT, INIT = 2, 42, 36, 26
_READY = b"ready\n"
_DIRENT = struct.Struct("=QQII")
_BLOCKS = (1 << 20, 1 << 19, 1 << 19, 1 << 20, 1 << 19)
_MS_NOSUID_NODEV = 2 | 4


class Node:
    """A directory, file or link; `names` are those in a directory."""

    number = 0

    def __init__(self, mode: int, text: str = "") -> None:
        Node.number += 1
        self.id, self.mode, self.text, self.size = Node.number, mode, text, 0
        self.names: dict[str, Node] = {}


class Server:
    """Answers the requests of the kernel."""

    def __init__(self, device: int, lead: str, link: str, *, is_silent: bool) -> None:
        self._device, self._lead, self._is_silent = device, lead, is_silent
        self._root = Node(stat.S_IFDIR | 0o755)
        self._nodes = {self._root.id: self._root}
        target = self._add(self._root, "target", Node(stat.S_IFDIR | 0o755))
        self._add(target, "file", Node(stat.S_IFREG | 0o644))
        if link:
            self._add(self._root, "link", Node(stat.S_IFLNK | 0o777, link))

    def serve(self) -> None:
        """Answer until the file system is unmounted."""
        while True:
            try:
                request = os.read(self._device, 1 << 20)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.ENOENT):
                    continue
                return
            _, call, unique, node, _, _, pid = struct.unpack_from("=IIQQIII", request)
            if call in (FORGET, BATCH_FORGET, INTERRUPT) or (self._is_silent and call != INIT):
                continue
            try:
                error_number, answer = 0, self._answer(call, node, request[40:], pid)
            except OSError as error:
                error_number, answer = error.errno or errno.EIO, b""
            header = struct.pack("=IiQ", 16 + len(answer), -error_number, unique)
            try:
                os.write(self._device, header + answer)
            except OSError as error:
                if error.errno != errno.ENOENT:  # nobody waits any more
                    raise

    def _answer(self, call: int, number: int, body: bytes, pid: int) -> bytes:
        node = self._nodes.get(number, self._root)  # INIT has none
        words = [os.fsdecode(word) for word in body.split(b"\0")]
        match call:
            case 26:
                return struct.pack("=IIIIHHIIHH32x", 7, 31, 1 << 17, 0, 12, 9, 1 << 17, 1, 0, 0)
            case 1:  # LOOKUP
                return self._entry(self._found(node, words[0], pid))
            case 3 | 4:  # GETATTR, SETATTR
                return struct.pack("=QII", 0, 0, 0) + self._attributes(node)
            case 5:  # READLINK
                return os.fsencode(node.text)
            case 9:  # MKDIR
                made = Node(stat.S_IFDIR | struct.unpack_from("=I", body)[0])
                return self._entry(self._add(node, self._name(body, 8), made))
            case 35:  # CREATE
                made = Node(stat.S_IFREG | struct.unpack_from("=I", body, 4)[0])
                entry = self._entry(self._add(node, self._name(body, 16), made))
                return entry + struct.pack("=QII", 1, 0, 0)
            case 10 | 11:  # UNLINK, RMDIR
                if self._found(node, words[0], 0).names:
                    raise OSError(errno.ENOTEMPTY, "")
                del node.names[words[0]]
                return b""
            case 12:  # RENAME
                goal = self._nodes[struct.unpack_from("=Q", body)[0]]
                old, new = (os.fsdecode(word) for word in body[8:].split(b"\0")[:2])
                goal.names[new] = node.names.pop(old)
                return b""
            case 13:  # LINK
                linked = self._nodes[struct.unpack_from("=Q", body)[0]]
                return self._entry(self._add(node, self._name(body, 8), linked))
            case 14 | 27:  # OPEN, OPENDIR
                return struct.pack("=QII", 1, 0, 0)
            case 28:  # READDIR
                offset, size = struct.unpack_from("=QI", body, 8)
                return self._listed(node, offset, size, pid)
            case 16:  # WRITE
                offset, size = struct.unpack_from("=QI", body, 8)
                node.size = max(node.size, offset + size)
                return struct.pack("=II", size, 0)
            case 17:  # STATFS
                return struct.pack("=QQQQQIIII24x", *_BLOCKS, 4096, 255, 4096, 0)
            case 18 | 20 | 25 | 29 | 30 | 34:  # RELEASE, FSYNC, FLUSH and their like, ACCESS
                return b""
        raise OSError(errno.ENOSYS, "")

    def _found(self, node: Node, name: str, pid: int) -> Node:
        if name not in node.names:
            raise OSError(errno.ENOENT, "")
        if self._lead and name == TREE and pid and _is_rm_of_xargs(pid):
            link = Node(stat.S_IFLNK | 0o777, self._lead)
            self._nodes[link.id] = link
            return link
        return node.names[name]

    def _listed(self, node: Node, offset: int, size: int, pid: int) -> bytes:
        names = [(".", node), ("..", node), *node.names.items()]
        is_tree = any(above.names.get(TREE) is node for above in self._nodes.values())
        if self._lead and is_tree and b"-print0" in _words_of(pid):
            names.append((VICTIM, Node(stat.S_IFREG | 0o644)))
        listed = b""
        for number, (name, one) in enumerate(names[offset:], offset + 1):
            encoded = os.fsencode(name)
            entry = _DIRENT.pack(one.id, number, len(encoded), one.mode >> 12) + encoded
            entry += b"\0" * (-len(entry) % 8)
            if len(listed) + len(entry) > size:
                break
            listed += entry
        return listed

    def _add(self, above: Node, name: str, node: Node) -> Node:
        if name in above.names:
            raise OSError(errno.EEXIST, "")
        above.names[name] = node
        self._nodes[node.id] = node
        return node

    def _entry(self, node: Node) -> bytes:
        return struct.pack("=QQQQII", node.id, 0, 0, 0, 0, 0) + self._attributes(node)

    @staticmethod
    def _attributes(node: Node) -> bytes:
        numbers = (node.id, node.size, -(-node.size // 512), 0, 0, 0, 0, 0, 0)
        return struct.pack("=6Q10I", *numbers, node.mode, 2, 0, 0, 0, 4096, 0)

    @staticmethod
    def _name(body: bytes, offset: int) -> str:
        return os.fsdecode(body[offset:].split(b"\0")[0])


@contextmanager
def served(point: Path, user: int, *options: str) -> Iterator[Path]:
    """Mount it on a new directory of a user, and give its one directory with a file."""
    needs_root("mounting FUSE")
    point.mkdir()
    os.chown(point, user, user)
    command = [sys.executable, "-m", "tests.fuse_of_other_user", str(point), str(user), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == _READY
        try:
            yield point / "target"
        finally:
            subprocess.run(["umount", "-l", point], check=True)
            server.kill()


def main() -> None:
    """Mount and serve."""
    point, user, *options = sys.argv[1:]
    values = dict([*option.split("=", 1), ""][:2] for option in options)
    device = os.open("/dev/fuse", os.O_RDWR)
    data = f"fd={device},rootmode=40000,user_id={user},group_id={user},allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    source, kind = b"tui-fs-test", b"fuse"
    if libc.mount(source, os.fsencode(point), kind, _MS_NOSUID_NODEV, data.encode()) != 0:
        raise OSError(ctypes.get_errno(), "mount")
    sys.stdout.buffer.write(_READY)
    sys.stdout.flush()
    lead, link = values.get("lead", ""), values.get("link", "")
    Server(device, lead, link, is_silent="silent" in values).serve()


def _words_of(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _is_rm_of_xargs(pid: int) -> bool:
    try:
        parent = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1]
    except OSError:
        return False
    return _words_of(pid)[0].endswith(b"rm") and _words_of(int(parent))[0].endswith(b"xargs")


if __name__ == "__main__":
    main()
