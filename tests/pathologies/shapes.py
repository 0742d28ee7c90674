"""Trees of a bad shape: too many names in one place, too deep, or many small ones."""

import os
import stat
from pathlib import Path

from tests.pathologies.case import INFO, WARNING, Made, Pathology, Scene, exactly
from tests.trees import chain, flat

_FLAT_ENTRIES = 100_000
_SUBDIRECTORIES = 50_001
_DEEP_LEVELS = 1_000
_EMPTIED_FILES = 60_000
_LEFT_FILES = 7
_GROUPS = 20
_FILES_IN_A_GROUP = 100
_NESTED_FILES = 5


def _flat_tree(scene: Scene) -> Made:
    """Make one directory of very many names, one level down."""
    tree = scene.tree()
    flat(tree / "spool", _FLAT_ENTRIES)
    return Made(tree, tree / "spool", _size_of(tree / "spool", _FLAT_ENTRIES))


def emptied(scene: Scene, files: int = _EMPTIED_FILES, left: int = _LEFT_FILES) -> Made:
    """Make a directory that once held very many long names, and holds few."""
    tree = scene.tree()
    spool = tree / "spool"
    spool.mkdir()
    descriptor = os.open(spool, os.O_RDONLY | os.O_DIRECTORY)
    names = [f"{number:07}-{'n' * 50}" for number in range(files)]
    for name in names:
        os.mknod(name, stat.S_IFREG | 0o644, dir_fd=descriptor)
    for name in names[left:]:
        os.unlink(name, dir_fd=descriptor)
    os.close(descriptor)
    return Made(tree, spool, _size_of(spool, left))


def _many_subdirectories(scene: Scene) -> Made:
    """Make one directory of very many directories."""
    tree = scene.tree()
    crowd = tree / "crowd"
    make_subdirectories(crowd, _SUBDIRECTORIES)
    (crowd / "a file").touch()
    return Made(tree, crowd, {"subdirectories": exactly(_SUBDIRECTORIES)})


def make_subdirectories(directory: Path, number: int) -> None:
    """Make a directory of empty directories."""
    directory.mkdir(exist_ok=True)
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    for index in range(number):
        os.mkdir(f"directory-{index:06}", dir_fd=descriptor)
    os.close(descriptor)


def _deep(scene: Scene) -> Made:
    """Make a chain of directories, its paths shorter than PATH_MAX."""
    tree = scene.tree()
    chain(tree, _DEEP_LEVELS)
    return Made(tree, None, {"max_depth": exactly(_DEEP_LEVELS)})


def beyond_path_max(scene: Scene, path_bytes: int = 4_096) -> Made:
    """Make a few levels of long names; the longest path has this many bytes."""
    tree = scene.tree()
    wanted = path_bytes - len(os.fsencode(tree))
    lengths = [201] * (wanted // 201)
    lengths[-1] += wanted % 201 // 4
    lengths[0] += wanted - sum(lengths)
    descriptor = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    for length in lengths:
        name = "n" * (length - 1)
        os.mkdir(name, dir_fd=descriptor)
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    return Made(tree, None, {"max_path_bytes": exactly(path_bytes)})


def _groups(scene: Scene) -> Made:
    """Make 20 directories of one name, each with a package that has one of that name too."""
    tree = scene.tree()
    for number in range(_GROUPS):
        modules = tree / f"project-{number:02}" / "node_modules"
        modules.parent.mkdir()
        flat(modules, _FILES_IN_A_GROUP)
        (modules / "package").mkdir()
        flat(modules / "package" / "node_modules", _NESTED_FILES)
    entries = _FILES_IN_A_GROUP + _NESTED_FILES + 3
    numbers = {"directories": exactly(_GROUPS), "entries": exactly(_GROUPS * entries)}
    return Made(tree, None, numbers)


def _size_of(directory: Path, entries: int) -> dict[str, range]:
    return {"entries": exactly(entries), "index_bytes": exactly(directory.stat().st_size)}


SHAPES = (
    Pathology(
        name="flat",
        kind="flat",
        severity=WARNING,
        title="100,000 names in one directory",
        make=_flat_tree,
        filesystems=("ext4", "tmpfs"),
    ),
    Pathology(
        name="emptied",
        kind="emptied",
        severity=WARNING,
        title="a directory that held 60,000 names of 58 bytes, and holds 7",
        make=emptied,
        filesystems=("ext4",),
        not_on=("xfs", "tmpfs"),
    ),
    Pathology(
        name="many-subdirectories",
        kind="many-subdirectories",
        severity=WARNING,
        title="50,001 directories in one",
        make=_many_subdirectories,
        # Only the number decides; on btrfs the link count of the directory does not contain it.
        filesystems=("btrfs",),
    ),
    Pathology(
        name="deep",
        kind="deep",
        severity=WARNING,
        title="a chain of 1,000 directories",
        make=_deep,
        filesystems=("ext4", "xfs", "btrfs", "tmpfs"),
    ),
    Pathology(
        name="deep-path",
        kind="deep",
        severity=WARNING,
        title="a path of 4,096 bytes in 20 levels",
        make=beyond_path_max,
    ),
    Pathology(
        name="group",
        kind="group",
        severity=INFO,
        title="20 directories `node_modules` of 100 files, others nested in them",
        make=_groups,
        filesystems=("ext4", "btrfs", "tmpfs"),
    ),
)
