"""A FUSE file system with directories that never answer.

A request that the server has read and does not answer keeps its caller in the kernel, and no signal
ends it, not even SIGKILL. A request that a stopped server has not read can be ended by SIGKILL.
"""

from contextlib import AbstractContextManager
from pathlib import Path

from tests.fuse.memory_tree import DIRECTORY, FILE, MemoryTree
from tests.fuse.protocol import FuseMount, Request, mounted

_DIRECTORIES, _FILES = 3, 20


class _HangingTree(MemoryTree):
    valid_s = 1

    def __init__(self, hanging: tuple[str, ...]) -> None:
        super().__init__()
        tree = self.add(self.root, "tree", DIRECTORY)
        for number in range(_DIRECTORIES):
            directory = self.add(tree, f"d{number}", DIRECTORY)
            for file in range(_FILES):
                self.add(directory, f"f{file:02}", FILE)
        self._hanging = {self.add(tree, name, DIRECTORY).number for name in hanging}

    def reply(self, request: Request) -> bytes | None:
        return None if request.node in self._hanging else super().reply(request)


def fuse_tree(mount_point: Path, *hanging: str) -> AbstractContextManager[FuseMount]:
    """Mount a directory ``tree`` of 3 directories of 20 files each.

    Args:
        hanging: names of directories in ``tree`` that never answer.
    """
    return mounted(_HangingTree(hanging), mount_point)
