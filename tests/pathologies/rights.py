"""Trees in which a mode, an owner or an attribute matters."""

import os
import subprocess
from functools import partial
from pathlib import Path

from tests.matrix.disks import disk_with_an_unreadable_directory, disk_with_unreadable_inodes
from tests.pathologies.case import INFO, WARNING, Made, Pathology, Scene, exactly
from tests.trees import flat

_FILES_EACH = 5
# An ext4 directory of these takes more than 1 MiB.
_MANY_FILES = 50_000
_ONE = {"directories": exactly(1)}
_ALL = ("ext4", "xfs", "btrfs", "tmpfs")


def _tree_with_directory(scene: Scene) -> tuple[Path, Path]:
    tree = scene.tree()
    flat(tree / "held", _FILES_EACH)
    return tree, tree / "held"


def _attribute(scene: Scene, *, letter: str) -> Made:
    tree, directory = _tree_with_directory(scene)
    subprocess.run(["chattr", f"+{letter}", "--", directory], check=True)
    scene.until_the_end.callback(_drop_attribute, directory, letter)
    return Made(tree, directory, _ONE)


def _drop_attribute(path: Path, letter: str) -> None:
    subprocess.run(["chattr", f"-{letter}", "--", path], check=True)


def _mode(scene: Scene, *, mode: int) -> Made:
    """Make the user the owner of all but one directory, which stays root's."""
    tree, directory = _tree_with_directory(scene)
    scene.give(tree)
    for path in directory.iterdir():
        scene.give(path)
    directory.chmod(mode)
    return Made(tree, directory, _ONE)


def _closed_large(scene: Scene) -> Made:
    """Leave to root a directory that is itself large and that only root may list."""
    tree = scene.give(scene.tree())
    full = tree / "full"
    flat(full, _MANY_FILES)
    assert full.stat().st_size >= 1 << 20
    full.chmod(0o700)
    return Made(tree, full, _ONE)


def _on_a_broken_disk(scene: Scene, *, is_list_lost: bool) -> Made:
    """Make a tree on a disk with some unreadable directory blocks or inodes."""
    break_ = disk_with_an_unreadable_directory if is_list_lost else disk_with_unreadable_inodes
    return Made(break_(scene.place) / "target")


def _names_only(scene: Scene) -> Made:
    """Make a directory that may be listed but not searched."""
    tree, directory = _tree_with_directory(scene)
    scene.give(tree)
    directory.chmod(0o744)
    return Made(tree, directory, _ONE)


def _all_unwritable(scene: Scene) -> Made:
    """Leave everything to root: the user may not even write the surveyed directory."""
    tree, _ = _tree_with_directory(scene)
    return Made(tree, None)


def _foreign_files(scene: Scene) -> Made:
    tree, directory = _tree_with_directory(scene)
    for path in directory.iterdir():
        scene.give(path)
    return Made(tree, directory, _ONE)


def _foreign_directory(scene: Scene) -> Made:
    tree, directory = _tree_with_directory(scene)
    (directory / "of another").mkdir()
    scene.give(directory / "of another")
    return Made(tree, directory, _ONE)


def _foreign_link(scene: Scene) -> Made:
    tree, directory = _tree_with_directory(scene)
    (directory / "link").symlink_to("file-0000000")
    scene.give(directory / "link")
    return Made(tree, directory, _ONE)


def _open_to_all(scene: Scene, *, mode: int) -> Made:
    tree, directory = _tree_with_directory(scene)
    directory.chmod(mode)
    return Made(tree, directory, _ONE)


def _open_to_a_group(scene: Scene) -> Made:
    tree, directory = _tree_with_directory(scene)
    os.chown(directory, 0, 65534)
    directory.chmod(0o775)
    return Made(tree, directory, _ONE)


RIGHTS = (
    Pathology(
        name="immutable",
        kind="immutable",
        severity=WARNING,
        title="a directory with chattr +i",
        make=partial(_attribute, letter="i"),
        filesystems=_ALL,
    ),
    Pathology(
        name="append-only",
        kind="append-only",
        severity=WARNING,
        title="a directory with chattr +a",
        make=partial(_attribute, letter="a"),
        filesystems=_ALL,
    ),
    Pathology(
        name="unreadable",
        kind="unreadable",
        severity=WARNING,
        title="a directory of root with mode 0700, for an ordinary user",
        make=partial(_mode, mode=0o700),
        also=frozenset({"unwritable"}),
        is_ordinary=True,
    ),
    Pathology(
        name="unreadable-full",
        kind="unreadable",
        severity=WARNING,
        title="a directory of root with 50,000 names and mode 0700, for an ordinary user",
        make=_closed_large,
        also=frozenset({"unwritable"}),
        filesystems=("ext4",),
        is_ordinary=True,
    ),
    Pathology(
        name="unreadable-not-entered",
        kind="unreadable",
        severity=WARNING,
        title="a directory of root with mode 0744: names, but nothing to know of them",
        make=_names_only,
        also=frozenset({"unwritable"}),
        is_ordinary=True,
    ),
    *(
        Pathology(
            name=f"unreadable-{what}",
            kind="unreadable",
            severity=WARNING,
            title=f"a disk that fails where {what} are",
            make=partial(_on_a_broken_disk, is_list_lost=is_list_lost),
            filesystems=("ext4",),
            also=frozenset() if is_list_lost else frozenset({"listed-only"}),
            has_own_filesystem=True,
            is_settled=False,
        )
        for what, is_list_lost in (("names", True), ("inodes", False))
    ),
    Pathology(
        name="unwritable",
        kind="unwritable",
        severity=WARNING,
        title="a directory of root in a tree of an ordinary user",
        make=partial(_mode, mode=0o755),
        is_ordinary=True,
    ),
    Pathology(
        name="unwritable-all",
        kind="unwritable",
        severity=INFO,
        title="a tree of root, for an ordinary user",
        make=_all_unwritable,
        is_ordinary=True,
    ),
    Pathology(
        name="sticky",
        kind="sticky",
        severity=INFO,
        title="a directory of root with mode 1777, for an ordinary user",
        make=partial(_mode, mode=0o1777),
        is_ordinary=True,
    ),
    Pathology(
        name="foreign-owners",
        kind="foreign-owners",
        severity=INFO,
        title="files of another user",
        make=_foreign_files,
    ),
    Pathology(
        name="foreign-owners-directory",
        kind="foreign-owners",
        severity=INFO,
        title="a directory of another user",
        make=_foreign_directory,
    ),
    Pathology(
        name="foreign-owners-link",
        kind="foreign-owners",
        severity=INFO,
        title="a symbolic link of another user",
        make=_foreign_link,
        filesystems=("tmpfs",),
    ),
    *(
        Pathology(
            name=f"writable-by-others-{mode:o}",
            kind="writable-by-others",
            severity=INFO,
            title=f"a directory of mode {mode:o}",
            make=partial(_open_to_all, mode=mode),
            filesystems=("tmpfs",),
        )
        for mode in (0o777, 0o1777)
    ),
    Pathology(
        name="writable-by-others-group",
        kind="writable-by-others",
        severity=INFO,
        title="a directory that a group may write",
        make=_open_to_a_group,
        filesystems=("tmpfs",),
    ),
)
