"""Trees that nearly have a pathology, where the file system or other processes decide.

Thresholds that only a number decides are in `tests/unit/test_survey_findings.py`.
"""

import os
import time
from functools import partial
from pathlib import Path

from tests.filesystems import mount
from tests.pathologies.busy import MIB
from tests.pathologies.case import CRITICAL, INFO, Made, Pathology, Scene
from tests.pathologies.grounds import TMPFS_OPTIONS
from tests.pathologies.processes import hold
from tests.pathologies.shapes import emptied
from tests.pathologies.space import fragmented, inodes_low, space_low
from tests.trees import flat

_ORDINARY_NAMES = ("caf\u00e9", "\u65e5\u672c", "a-b-", "two words", ".hidden", "~", "a\u0301")


def _ordinary_names(scene: Scene) -> Made:
    tree = scene.tree()
    for name in _ORDINARY_NAMES:
        (tree / name).mkdir()
        (tree / name / name).touch()
    return Made(tree)


def _from_the_future(scene: Scene) -> Made:
    """Date a quiet directory a day ahead, as a clock that was wrong does."""
    tree = scene.tree()
    flat(tree / "spool", 2_000)
    tomorrow_s = time.time() + 86_400
    os.utime(tree / "spool", (tomorrow_s, tomorrow_s))
    return Made(tree)


def _tree_and_neighbour(scene: Scene) -> tuple[Path, Path]:
    """Make a tree, and a sibling whose name begins with the same letters."""
    tree, beside = scene.tree(), scene.place / "tree-2"
    beside.mkdir()
    (beside / "file").write_bytes(b"x" * 4096)
    return tree, beside


def _mounted_beside(scene: Scene) -> Made:
    tree, beside = _tree_and_neighbour(scene)
    mount(beside, "tui-fs-test", "tmpfs", TMPFS_OPTIONS)
    return Made(tree)


def _used_beside(scene: Scene) -> Made:
    tree, beside = _tree_and_neighbour(scene)
    hold(scene, "stand", beside)
    hold(scene, "write", beside / "file")
    return Made(tree)


def _deleted_elsewhere(scene: Scene) -> Made:
    """Start a process that holds a deleted file of a file system mounted next to the tree."""
    tree, beside = _tree_and_neighbour(scene)
    mount(beside, "tui-fs-test", "tmpfs", TMPFS_OPTIONS)
    (beside / "file").write_bytes(b"x" * MIB)
    hold(scene, "delete", beside / "file")
    return Made(tree)


NEAR: tuple[Pathology, ...] = tuple(
    Pathology(
        name=f"{kind}: {title}",
        kind=kind,
        severity=severity,
        title=title,
        make=make,
        filesystems=(filesystem,),
        has_own_filesystem=kind.endswith("-low"),
    )
    for kind, severity, title, filesystem, make in (
        ("emptied", INFO, "1,000 long names once", "ext4", partial(emptied, files=1_000)),
        (
            "emptied",
            INFO,
            "a third of the names left",
            "ext4",
            partial(emptied, files=24_000, left=8_000),
        ),
        ("inodes-low", INFO, "11 % left", "ext4", partial(inodes_low, left_percent=11)),
        ("inodes-low", CRITICAL, "3 % left", "tmpfs", partial(inodes_low, left_percent=3)),
        ("space-low", INFO, "6 % left", "ext4", partial(space_low, left_percent=6)),
        ("space-low", CRITICAL, "1.5 % left", "tmpfs", partial(space_low, left_percent=1.5)),
        ("sparse", INFO, "half of a file allocated", "xfs", partial(fragmented, fragments=100)),
        ("refilled", INFO, "a quiet directory of tomorrow", "ext4", _from_the_future),
        ("weird-names", INFO, "letters, spaces and dashes inside", "ext4", _ordinary_names),
        ("mount-inside", INFO, "mounted beside the tree", "ext4", _mounted_beside),
        ("in-use", INFO, "used beside the tree", "tmpfs", _used_beside),
        ("deleted-but-open", INFO, "on another file system", "xfs", _deleted_elsewhere),
    )
)
"""What must not be found: nothing of the kind that is as grave as the severity."""
