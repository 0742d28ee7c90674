"""Cases in which something in the tree leads out of it."""

import os
import subprocess
from pathlib import Path

from tests.filesystems import mount_bind, mount_tmpfs
from tests.matrix.case import DONE, REFUSED, Case, Group, Promise, Scene
from tests.trees import many_directories

_REFUSED_FOR_A_MOUNT = Promise(
    "Refused before anything is touched; the mount is named.",
    (REFUSED,),
)


def _symbolic_links(scene: Scene) -> None:
    target = scene.make_target()
    places = target / "links"
    places.mkdir()
    (places / "to-the-target").symlink_to(target)
    (places / "to-the-parent").symlink_to("..")
    (places / "out-of-the-tree").symlink_to(scene.place)
    (places / "one").symlink_to("other")
    (places / "other").symlink_to("one")
    (places / "to-a-file-outside").symlink_to(scene.sentinel.root / "inner" / "deep")


def _hard_links(scene: Scene) -> None:
    target = scene.make_target()
    for number in range(100):
        os.link(scene.sentinel.root / "linked", target / f"name-{number}")


def _names_outside(scene: Scene) -> str:
    linked = scene.sentinel.root / "linked"
    names = linked.stat().st_nlink
    assert names == 1, f"{names} names"
    return "outside, 1 of 102 names is left"


def _mount_point(scene: Scene) -> Path:
    point = scene.make_target() / "a" / "b" / "point"
    point.parent.mkdir(parents=True)
    return point


def _other_file_system(scene: Scene) -> None:
    many_directories(mount_tmpfs(_mount_point(scene)), 2, 2)


def _bind_mount(scene: Scene) -> None:
    mount_bind(scene.sentinel.root, _mount_point(scene))


def _file_bind_mount(scene: Scene) -> None:
    point = _mount_point(scene)
    point.touch()
    subprocess.run(["mount", "--bind", scene.sentinel.root / "precious", point], check=True)


def _mounted_elsewhere(scene: Scene) -> None:
    inside = scene.make_target() / "shown-elsewhere"
    inside.mkdir()
    (inside / "file").touch()
    mount_bind(inside, scene.place / "second-place")


OUTSIDE = Group(
    "Links and mounts in the tree",
    (
        Case(
            name="symbolic links out of the tree, to the parent, to each other, to nothing",
            promise=Promise("The links go; nothing that they point to is touched.", (DONE,)),
            build=_symbolic_links,
        ),
        Case(
            name="hard links to a file outside",
            promise=Promise(
                "The names in the tree go; the file outside keeps its name and its content.",
                (DONE,),
            ),
            build=_hard_links,
            after=_names_outside,
        ),
        Case(
            name="another file system mounted inside",
            promise=_REFUSED_FOR_A_MOUNT,
            build=_other_file_system,
        ),
        Case(
            name="a directory of the same file system bind-mounted inside",
            promise=_REFUSED_FOR_A_MOUNT,
            build=_bind_mount,
        ),
        Case(
            name="a file bind-mounted on a file inside",
            promise=_REFUSED_FOR_A_MOUNT,
            build=_file_bind_mount,
        ),
        Case(
            name="a directory in the tree that is mounted at another place",
            promise=_REFUSED_FOR_A_MOUNT,
            build=_mounted_elsewhere,
        ),
    ),
)
