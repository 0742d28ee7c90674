"""Pathologies: a tree that has one, and the findings that a survey of it must report."""

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.matrix.ordinary_user import GID, UID
from tui_fs.model.finding import Severity

INFO, WARNING, CRITICAL = Severity.INFO, Severity.WARNING, Severity.CRITICAL


@dataclass(slots=True)
class Scene:
    """The scene in which one tree is made.

    Attributes:
        place: an empty directory for the tree and its surroundings.
        filesystem: that of the place, or that which the tree mounts itself.
        until_the_end: closed when the tree is no longer needed.
    """

    place: Path
    filesystem: str
    until_the_end: ExitStack = field(default_factory=ExitStack)

    def tree(self) -> Path:
        """Make the directory that is surveyed."""
        tree = self.place / "tree"
        tree.mkdir()
        return tree

    def give(self, path: Path) -> Path:
        """Make the ordinary user the owner of a name."""
        os.chown(path, UID, GID, follow_symlinks=False)
        return path


def exactly(number: int) -> range:
    """Return the range that holds one number."""
    return range(number, number + 1)


@dataclass(frozen=True, slots=True)
class Made:
    """A tree, and what is true of it.

    Attributes:
        tree: the directory to survey.
        where: the path that the finding must name; None: any path in the tree.
        numbers: ranges in which numbers of the finding must lie.
    """

    tree: Path
    where: Path | None = None
    numbers: Mapping[str, range] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pathology:
    """A tree with a pathology that a survey must report.

    Attributes:
        name: of this tree; several trees may have the same kind of finding.
        kind, severity: of the finding.
        title: what the tree is.
        filesystems: those that have the pathology.
        not_on: those on which the same tree is healthy: a survey must find nothing of this kind.
        also: kinds of further warnings that the tree deserves.
        is_ordinary: an unprivileged user surveys it.
        has_own_filesystem: the tree mounts the file system itself.
        is_settled: no process changes the tree during the survey, and nothing is mounted inside:
            other tools count the same.
    """

    name: str
    kind: str
    severity: Severity
    title: str
    make: Callable[[Scene], Made]
    filesystems: tuple[str, ...] = ("ext4", "tmpfs")
    not_on: tuple[str, ...] = ()
    also: frozenset[str] = frozenset()
    is_ordinary: bool = False
    has_own_filesystem: bool = False
    is_settled: bool = True
