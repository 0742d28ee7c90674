"""A FUSE file system whose program decides what every process sees.

Everything in it appears as owned by root, whichever user mounted it.
"""

import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fuse.memory_tree import DIRECTORY, FILE, LINK, MemoryTree, Node
from tests.fuse.protocol import Op, Request, attributes_reply, mounted, open_reply

TREE = "tree"
"""In the place of this directory rm under xargs sees a link, if it is to be led elsewhere."""
VICTIM = "victim"
"""The name that a find that feeds xargs sees there besides."""


class _UserServer(MemoryTree):
    def __init__(self, lead: str, link: str, *, is_silent: bool) -> None:
        super().__init__()
        self._lead, self._is_silent = lead, is_silent
        self.add(self.add(self.root, "target", DIRECTORY), "file", FILE)
        if link:
            self.add(self.root, "link", self.new(LINK, link))

    def reply(self, request: Request) -> bytes | None:
        if self._is_silent:
            return None
        node = self.nodes[request.node]
        match request.operation:
            case Op.SETATTR:
                return attributes_reply(node.attributes(), self.valid_s)
            case Op.READLINK:
                return os.fsencode(node.link_target)
            case Op.MKDIR:
                (mode,) = request.numbers("I")
                return self.entry(self.add(node, request.name(8), stat.S_IFDIR | mode))
            case Op.CREATE:
                _, mode = request.numbers("II")
                file = self.add(node, request.name(16), stat.S_IFREG | mode)
                file.size_bytes = 0
                return self.entry(file) + open_reply()
            case Op.RENAME:
                (directory,) = request.numbers("Q")
                name = request.name(8)
                new_name = request.name(8 + len(os.fsencode(name)) + 1)
                self.nodes[directory].children[new_name] = node.children.pop(name)
                return b""
            case Op.LINK:
                (number,) = request.numbers("Q")
                return self.entry(self.add(node, request.name(8), self.nodes[number]))
            case Op.OPEN:
                return open_reply()
            case Op.WRITE:
                _, offset, size_bytes = request.numbers("QQI")
                node.size_bytes = max(node.size_bytes, offset + size_bytes)
                return struct.pack("=II", size_bytes, 0)
        return super().reply(request)

    def lookup(self, request: Request) -> Node:
        child = super().lookup(request)
        is_followed = request.operation == Op.LOOKUP and request.name() == TREE
        if self._lead and is_followed and _is_rm_of_xargs(request.pid):
            return self.new(LINK, self._lead)
        return child

    def children(self, request: Request) -> dict[str, Node]:
        node = self.nodes[request.node]
        is_tree = any(above.children.get(TREE) is node for above in self.nodes.values())
        if self._lead and is_tree and b"-print0" in _words_of(request.pid):
            return {**node.children, VICTIM: self.new(FILE)}
        return node.children


@contextmanager
def user_server(
    mount_point: Path,
    user: int,
    *,
    lead: Path | str = "",
    link: Path | str = "",
    is_silent: bool = False,
) -> Iterator[Path]:
    """Mount as the program of a user does, and return the directory ``target`` with a file.

    Args:
        lead: the directory that rm under xargs sees instead of a directory ``tree``.
        link: the destination of a symbolic link ``link`` next to ``target``.
        is_silent: no request is answered.
    """
    server = _UserServer(str(lead), str(link), is_silent=is_silent)
    with mounted(server, mount_point, user) as mount:
        yield mount.mount_point / "target"


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
