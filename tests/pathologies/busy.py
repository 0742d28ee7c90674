"""Trees that other processes use, hold on to, or change."""

import os
from functools import partial
from pathlib import Path

from tests.pathologies.case import INFO, WARNING, Made, Pathology, Scene, exactly
from tests.pathologies.processes import hold, run_from, run_in_a_container
from tests.trees import flat

MIB = 1 << 20
_FILES_EACH = 5
_REFILLED_FILES = 20_000
_ONE = {"processes": exactly(1)}


def _held(scene: Scene) -> tuple[Path, Path]:
    tree = scene.tree()
    flat(tree / "held", _FILES_EACH)
    (tree / "held" / "open").write_bytes(b"x" * 4096)
    return tree, tree / "held" / "open"


def _in_use(scene: Scene, *, use: str, is_own_session: bool = True) -> Made:
    tree, file = _held(scene)
    path = file.parent if use in ("stand", "live", "list") else file
    hold(scene, use, path, is_own_session=is_own_session)
    return Made(tree, None, {**_ONE, "written_files": exactly(int(use == "write"))})


def _running(scene: Scene) -> Made:
    tree, file = _held(scene)
    run_from(scene, file.parent)
    return Made(tree, None, _ONE)


def _deleted_by_name(scene: Scene) -> Made:
    """Start a process in a directory whose name ends in the kernel's mark of deleted ones."""
    tree = scene.tree()
    (tree / "held (deleted)").mkdir()
    hold(scene, "stand", tree / "held (deleted)")
    return Made(tree, None, _ONE)


def _in_a_container(scene: Scene) -> Made:
    """Let a process see a part of the tree as another place, in mounts of its own."""
    tree, file = _held(scene)
    run_in_a_container(scene, file.parent)
    return Made(tree, None, _ONE)


def _deleted(scene: Scene, *, size_bytes: int) -> Made:
    """Start a process that holds a deleted file outside the tree, on the same file system."""
    tree, _ = _held(scene)
    file = scene.place / "log"
    with file.open("wb") as log:
        os.posix_fallocate(log.fileno(), 0, size_bytes)
    held_bytes = hold(scene, "delete", file)
    assert held_bytes >= size_bytes
    return Made(tree, None, {"held_bytes": exactly(held_bytes)})


def _refilled(scene: Scene) -> Made:
    """Let a process make and remove names in a directory of many, all the time."""
    tree = scene.tree()
    flat(tree / "spool", _REFILLED_FILES)
    hold(scene, "refill", tree / "spool")
    return Made(tree, tree / "spool")


BUSY = (
    *(
        Pathology(
            name=f"in-use-{word}",
            kind="in-use",
            severity=INFO,
            title=f"a process {use_text}",
            make=partial(_in_use, use=use),
            filesystems=filesystems,
        )
        for word, use, use_text, filesystems in (
            ("cwd", "stand", "whose directory lies in the tree", ("ext4", "btrfs", "overlay")),
            ("root", "live", "whose root lies in the tree", ("tmpfs",)),
            ("directory", "list", "that holds a directory open", ("tmpfs",)),
            ("reading", "read", "that reads a file", ("tmpfs",)),
            ("mapped", "map", "that maps a file", ("ext4", "btrfs", "overlay")),
        )
    ),
    Pathology(
        name="in-use-executable",
        kind="in-use",
        severity=INFO,
        title="a process that runs a program in the tree",
        make=_running,
    ),
    Pathology(
        name="in-use-strange-name",
        kind="in-use",
        severity=INFO,
        title="a process in a directory named `held (deleted)`",
        make=_deleted_by_name,
        filesystems=("ext4",),
    ),
    Pathology(
        name="in-use-container",
        kind="in-use",
        severity=INFO,
        title="a process that sees a part of the tree as /mnt, in a mount namespace of its own",
        make=_in_a_container,
        filesystems=("ext4", "btrfs"),
        also=frozenset({"used-elsewhere"}),
    ),
    Pathology(
        name="in-use-writing",
        kind="in-use",
        severity=WARNING,
        title="a process of another session that writes a file",
        make=partial(_in_use, use="write"),
        filesystems=("ext4", "xfs", "btrfs", "tmpfs", "overlay"),
    ),
    Pathology(
        name="in-use-writing-here",
        kind="in-use",
        severity=INFO,
        title="a process of the same session that writes a file",
        make=partial(_in_use, use="write", is_own_session=False),
        filesystems=("tmpfs",),
    ),
    Pathology(
        name="deleted-but-open",
        kind="deleted-but-open",
        severity=WARNING,
        title="a deleted file of 120 MiB that a process holds open",
        make=partial(_deleted, size_bytes=120 * MIB),
        filesystems=("ext4", "xfs", "btrfs", "tmpfs", "overlay"),
    ),
    Pathology(
        name="deleted-but-open-small",
        kind="deleted-but-open",
        severity=INFO,
        title="a deleted file of 1 MiB that a process holds open",
        make=partial(_deleted, size_bytes=MIB),
        filesystems=("ext4",),
    ),
    Pathology(
        name="refilled",
        kind="refilled",
        severity=WARNING,
        title="a process that makes and removes names in a directory of 20,000",
        make=_refilled,
        filesystems=("ext4", "xfs", "btrfs", "tmpfs"),
        also=frozenset({"in-use"}),
        is_settled=False,
    ),
)
