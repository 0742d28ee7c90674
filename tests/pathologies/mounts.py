"""Trees in which something else is attached."""

import subprocess
from pathlib import Path

from tests.filesystems import mount
from tests.pathologies.case import CRITICAL, WARNING, Made, Pathology, Scene
from tests.pathologies.grounds import TMPFS_OPTIONS, mount_overlay
from tests.trees import flat

_FILES_EACH = 5


def _tree_with_room(scene: Scene, name: str = "attached") -> tuple[Path, Path]:
    tree = scene.tree()
    flat(tree / "held", _FILES_EACH)
    point = tree / "held" / name
    point.mkdir()
    return tree, point


def _tmpfs_inside(scene: Scene, name: str = "attached") -> Made:
    tree, point = _tree_with_room(scene, name)
    mount(point, "tui-fs-test", "tmpfs", TMPFS_OPTIONS)
    _detach_at_the_end(scene, point)
    flat(point / "elsewhere", _FILES_EACH)
    return Made(tree, point)


def _tmpfs_of_a_strange_name(scene: Scene) -> Made:
    return _tmpfs_inside(scene, "two words\nand\\040a\ttab")


def _bind(scene: Scene, source: Path, point: Path) -> None:
    subprocess.run(["mount", "--bind", source, point], check=True)
    _detach_at_the_end(scene, point)


def _detach_at_the_end(scene: Scene, point: Path) -> None:
    scene.until_the_end.callback(_detach, point)


def _detach(point: Path) -> None:
    subprocess.run(["umount", "--lazy", point], check=True)


def _bind_inside(scene: Scene) -> Made:
    """Show another directory of the same file system inside the tree."""
    tree, point = _tree_with_room(scene)
    flat(scene.place / "precious", _FILES_EACH)
    _bind(scene, scene.place / "precious", point)
    return Made(tree, point)


def _bind_of_a_file(scene: Scene) -> Made:
    tree = scene.tree()
    flat(tree / "held", _FILES_EACH)
    precious = scene.place / "precious"
    precious.write_bytes(b"precious\n")
    _bind(scene, precious, tree / "held" / "file-0000002")
    return Made(tree, tree / "held" / "file-0000002")


def _bind_through_a_link(scene: Scene) -> Made:
    """Survey by a path with a symbolic link in it, which the table of mounts does not know."""
    made = _bind_inside(scene)
    (scene.place / "link").symlink_to(scene.place)
    assert made.where is not None
    return Made(scene.place / "link" / "tree", made.where)


def _overlay_inside(scene: Scene) -> Made:
    tree, point = _tree_with_room(scene)
    lower, upper = scene.place / "lower", scene.place / "upper"
    lower.mkdir()
    upper.mkdir()
    mount_overlay(point, lower, upper)
    _detach_at_the_end(scene, point)
    return Made(tree, point)


def _subvolume(scene: Scene) -> Made:
    tree = scene.tree()
    flat(tree / "held", _FILES_EACH)
    point = tree / "held" / "subvolume"
    create = ["btrfs", "-q", "subvolume", "create", str(point)]
    subprocess.run(create, check=True)
    flat(point / "elsewhere", _FILES_EACH)
    return Made(tree, point)


def _snapshot(scene: Scene) -> Made:
    """Survey a subvolume that has a snapshot of itself inside."""
    tree = scene.place / "tree"
    subprocess.run(["btrfs", "-q", "subvolume", "create", str(tree)], check=True)
    flat(tree / "held", _FILES_EACH)
    point = tree / "snapshot"
    subprocess.run(["btrfs", "-q", "subvolume", "snapshot", str(tree), str(point)], check=True)
    return Made(tree, point)


MOUNTS = (
    Pathology(
        name="mount-inside-tmpfs",
        kind="mount-inside",
        severity=CRITICAL,
        title="a tmpfs mounted in the tree",
        make=_tmpfs_inside,
        filesystems=("ext4", "tmpfs", "overlay"),
        is_settled=False,
    ),
    Pathology(
        name="mount-inside-strange-name",
        kind="mount-inside",
        severity=CRITICAL,
        title="a tmpfs mounted at a name with a line break, a backslash and a tab",
        make=_tmpfs_of_a_strange_name,
        filesystems=("ext4",),
        also=frozenset({"weird-names"}),
        is_settled=False,
    ),
    Pathology(
        name="mount-inside-bind",
        kind="mount-inside",
        severity=CRITICAL,
        title="a directory of the same file system bound into the tree",
        make=_bind_inside,
        filesystems=("ext4", "xfs", "btrfs", "tmpfs", "overlay"),
        is_settled=False,
    ),
    Pathology(
        name="mount-inside-bind-file",
        kind="mount-inside",
        severity=CRITICAL,
        title="a file bound over a file of the tree",
        make=_bind_of_a_file,
        is_settled=False,
    ),
    Pathology(
        name="mount-inside-by-link",
        kind="mount-inside",
        severity=CRITICAL,
        title="a bind mount in a tree that is named by a path with a symbolic link",
        make=_bind_through_a_link,
        filesystems=("ext4",),
        is_settled=False,
    ),
    Pathology(
        name="mount-inside-overlay",
        kind="mount-inside",
        severity=CRITICAL,
        title="an overlay mounted in the tree",
        make=_overlay_inside,
        is_settled=False,
    ),
    Pathology(
        name="subvolume-inside",
        kind="subvolume-inside",
        severity=WARNING,
        title="a btrfs subvolume in the tree",
        make=_subvolume,
        filesystems=("btrfs",),
        is_settled=False,
    ),
    Pathology(
        name="subvolume-inside-snapshot",
        kind="subvolume-inside",
        severity=WARNING,
        title="a snapshot inside the subvolume that is surveyed",
        make=_snapshot,
        filesystems=("btrfs",),
        is_settled=False,
    ),
)
