"""The way to a directory of a glanced tree: by names from its root, with few descriptors held."""

import os
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tui_fs.survey.walker import OPEN_FLAGS

HELD_DESCRIPTORS = 32


class Elsewhere(OSError):
    """The directory lies on another file system than the root."""


@dataclass(eq=False, slots=True)
class Root:
    """A directory at which a look begins.

    Attributes:
        family: of its file system, see `tui_fs.survey.glance_directory`.
        mounts: absolute paths below it on which something is mounted.
    """

    path: bytes
    descriptor: int
    device: int
    family: str
    mounts: frozenset[bytes] = field(default_factory=frozenset)


@dataclass(eq=False, slots=True)
class Node:
    """A directory that was met.

    Attributes:
        size_bytes, links: of the directory itself; 0 where nobody has looked.
        guess: about how many entries there are in it and below, from these signs.
    """

    root: Root
    name: bytes
    above: "Node | None"
    depth: int
    path_bytes: int
    size_bytes: int = 0
    links: int = 0
    guess: float = 1.0

    @property
    def path(self) -> bytes:
        """The absolute path."""
        names: list[bytes] = []
        node: Node | None = self
        while node is not None and node.above is not None:
            names.append(node.name)
            node = node.above
        return b"/".join([self.root.path.rstrip(b"/"), *reversed(names)])


class Ways:
    """Opens directories, never through a symbolic link and never on another file system."""

    def __init__(self, roots: Iterable[Root]) -> None:
        self._roots = tuple(roots)
        self._held: OrderedDict[Node, int] = OrderedDict()

    def open(self, node: Node) -> tuple[int, os.stat_result]:
        """Return a descriptor, at its beginning, that stays open only until others are opened.

        Raises:
            Elsewhere: something else is mounted on it.
            OSError: it is gone, is no directory any more or must not be read.
        """
        missing: list[Node] = []
        nearest: Node | None = node
        while nearest is not None and nearest not in self._held and nearest.above is not None:
            missing.append(nearest)
            nearest = nearest.above
        assert nearest is not None
        if nearest in self._held:
            self._held.move_to_end(nearest)
            descriptor = self._held[nearest]
        else:
            descriptor = nearest.root.descriptor
        for each in reversed(missing):
            descriptor = self._open_in(descriptor, each)
        status = os.fstat(descriptor)
        if not missing:
            os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor, status

    def close(self) -> None:
        """Give back all descriptors, those of the roots too."""
        for descriptor in (*self._held.values(), *(root.descriptor for root in self._roots)):
            os.close(descriptor)
        self._held.clear()
        self._roots = ()

    def _open_in(self, directory: int, node: Node) -> int:
        descriptor = open_directory(node.name, directory)
        device = os.fstat(descriptor).st_dev
        if device != node.root.device:
            os.close(descriptor)
            raise Elsewhere("another file system is mounted there")
        self._held[node] = descriptor
        if len(self._held) > HELD_DESCRIPTORS:
            _, oldest = self._held.popitem(last=False)
            os.close(oldest)
        return descriptor


def open_directory(name: bytes, directory: int | None = None) -> int:
    """Open a directory that is no symbolic link, without changing its time of access if allowed.

    Raises:
        OSError: it cannot be opened.
    """
    try:
        return os.open(name, OPEN_FLAGS | os.O_NOATIME, dir_fd=directory)
    except PermissionError:  # only its owner may leave the time as it is
        return os.open(name, OPEN_FLAGS, dir_fd=directory)
