"""A FUSE file system in memory whose entries can be listed and removed."""

import errno
import stat
from dataclasses import dataclass, field

from tests.fuse.protocol import (
    Op,
    Request,
    attributes,
    attributes_reply,
    directory_reply,
    entry_reply,
    open_reply,
    statfs_reply,
)

DIRECTORY, FILE, LINK = stat.S_IFDIR | 0o755, stat.S_IFREG | 0o644, stat.S_IFLNK | 0o777


@dataclass(slots=True)
class Node:
    """A directory, file or symbolic link."""

    number: int
    mode: int
    link_target: str = ""
    size_bytes: int = 4096
    children: "dict[str, Node]" = field(default_factory=dict)

    def attributes(self) -> bytes:
        """Pack the attributes."""
        return attributes(self.number, self.mode, self.size_bytes)


class MemoryTree:
    """Serves a tree; a subclass fills it and overrides the replies that differ."""

    valid_s = 0
    """How long the kernel may cache names and attributes."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self.root = self.new(DIRECTORY)

    def new(self, mode: int, link_target: str = "") -> Node:
        """Make a node that has no name yet."""
        node = Node(len(self.nodes) + 1, mode, link_target)
        self.nodes[node.number] = node
        return node

    def add(self, parent: Node, name: str, node: Node | int) -> Node:
        """Name a node, or a new one of this mode, in a directory.

        Raises:
            OSError: the name exists.
        """
        if name in parent.children:
            raise OSError(errno.EEXIST, "")
        parent.children[name] = self.new(node) if isinstance(node, int) else node
        return parent.children[name]

    def lookup(self, request: Request) -> Node:
        """Return the child that the request names.

        Raises:
            OSError: there is none.
        """
        try:
            return self.nodes[request.node].children[request.name()]
        except KeyError:
            raise OSError(errno.ENOENT, "") from None

    def children(self, request: Request) -> dict[str, Node]:
        """Return the entries that the directory of the request lists."""
        return self.nodes[request.node].children

    def entry(self, node: Node) -> bytes:
        """Pack the reply that names a node."""
        return entry_reply(node.number, node.attributes(), self.valid_s)

    def reply(self, request: Request) -> bytes | None:
        """Reply to the requests that list and remove entries; ENOSYS to all others."""
        node = self.nodes[request.node]
        match request.operation:
            case Op.LOOKUP:
                return self.entry(self.lookup(request))
            case Op.GETATTR:
                return attributes_reply(node.attributes(), self.valid_s)
            case Op.OPENDIR:
                return open_reply()
            case Op.READDIR:
                listed = {".": node, "..": node, **self.children(request)}
                entries = [(name, child.number, child.mode) for name, child in listed.items()]
                return directory_reply(entries, request)
            case Op.UNLINK | Op.RMDIR:
                if self.lookup(request).children:
                    raise OSError(errno.ENOTEMPTY, "")
                del node.children[request.name()]
                return b""
            case Op.STATFS:
                return statfs_reply()
        raise OSError(errno.ENOSYS, "")
