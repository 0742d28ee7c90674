"""A FUSE file system with a name that its directory lists and a lookup denies."""

from contextlib import AbstractContextManager
from pathlib import Path

from tests.fuse.memory_tree import DIRECTORY, FILE, MemoryTree, Node
from tests.fuse.protocol import FuseMount, Request, mounted

GHOST = "ghost"


class _GhostTree(MemoryTree):
    def __init__(self, lookup_errno: int) -> None:
        super().__init__()
        self._lookup_errno = lookup_errno
        tree = self.add(self.root, "tree", DIRECTORY)
        for name in ("a", "b", "c", GHOST):
            self.add(tree, name, FILE)
        self.add(self.add(tree, "d", DIRECTORY), "e", FILE)

    def lookup(self, request: Request) -> Node:
        if request.name() == GHOST:
            raise OSError(self._lookup_errno, "")
        return super().lookup(request)


def ghost_tree(mount_point: Path, lookup_errno: int) -> AbstractContextManager[FuseMount]:
    """Mount a directory ``tree`` with three files, a directory with one file, and ``ghost``."""
    return mounted(_GhostTree(lookup_errno), mount_point)
