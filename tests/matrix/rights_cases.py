"""Cases in which a mode, an owner or an attribute forbids something."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.matrix.case import DONE, PARTIAL, Case, Group, Promise, Scene
from tests.trees import flat, many_directories

_FILES_EACH = 5
_ROOT_MAY = Promise("All of it goes: root needs no permission.", (DONE,))


def _the_rest_goes(left_entries: int) -> Promise:
    sentence = (
        f"{left_entries} entries stay: those that cannot be deleted, and the directories above; "
        "everything else is deleted, and the failures are reported."
    )
    return Promise(sentence, (PARTIAL,), left_entries)


def _target_of_three(scene: Scene) -> Path:
    """Make a target of three ordinary directories that the deleting user owns."""
    target = scene.make_target()
    many_directories(target, 3, _FILES_EACH)
    for number in range(3):
        scene.give(target / f"directory-{number:05}")
    return target


def _nothing_forbidden(scene: Scene) -> None:
    _target_of_three(scene)


def _closed_directory(mode: int) -> Callable[[Scene], None]:
    def build(scene: Scene) -> None:
        closed = _target_of_three(scene) / "closed"
        flat(closed, _FILES_EACH)
        scene.give(closed).chmod(mode)

    return build


def _immutable_file(scene: Scene) -> None:
    directory = _target_of_three(scene) / "holds an immutable file"
    flat(directory, _FILES_EACH)
    immutable = directory / os.fsdecode(b"two\nlines \xff")
    immutable.touch()
    _add_attribute(immutable, "i")


def _directory_with(attribute: str) -> Callable[[Scene], None]:
    def build(scene: Scene) -> None:
        immutable = _target_of_three(scene) / "held"
        flat(immutable, _FILES_EACH)
        _add_attribute(immutable, attribute)

    return build


def _sticky_directory(scene: Scene) -> None:
    """Like /tmp: everybody may make names in it, but remove only their own."""
    sticky = _target_of_three(scene) / "sticky"
    flat(sticky, _FILES_EACH)
    for number in range(2):
        scene.give(sticky / f"file-{number:07}")
    sticky.chmod(0o1777)


def _directory_of_another(scene: Scene) -> None:
    """The ordinary user owns the files in it, but not the directory."""
    other = _target_of_three(scene) / "of-another"
    flat(other, _FILES_EACH)
    for file in other.iterdir():
        scene.give(file)


def _add_attribute(path: Path, letter: str) -> None:
    subprocess.run(["chattr", f"+{letter}", "--", path], check=True)


RIGHTS_OF_ROOT = Group(
    "Permissions and attributes, as root",
    (
        Case(
            name="a directory without read and search permission (mode 000)",
            promise=_ROOT_MAY,
            build=_closed_directory(0o000),
        ),
        Case(
            name="a directory without write permission (mode 555)",
            promise=_ROOT_MAY,
            build=_closed_directory(0o555),
        ),
        Case(
            name="an immutable file (chattr +i), its name of two lines and no UTF-8",
            promise=_the_rest_goes(3),
            build=_immutable_file,
        ),
        Case(
            name="an immutable directory (chattr +i) with 5 files",
            promise=_the_rest_goes(7),
            build=_directory_with("i"),
        ),
        Case(
            name="an append-only directory (chattr +a) with 5 files",
            promise=_the_rest_goes(7),
            build=_directory_with("a"),
        ),
    ),
)

RIGHTS_OF_AN_ORDINARY_USER = Group(
    "Permissions and attributes, as an ordinary user",
    (
        Case(
            name="nothing that the user may not delete",
            promise=Promise("All of it goes, and no right is asked for.", (DONE,)),
            build=_nothing_forbidden,
            is_ordinary=True,
        ),
        Case(
            name="a directory that the user may not read (mode 000), with 5 files",
            promise=_the_rest_goes(7),
            build=_closed_directory(0o000),
            is_ordinary=True,
        ),
        Case(
            name="a directory that the user may not write (mode 555), with 5 files",
            promise=_the_rest_goes(7),
            unlike={
                "rsync": Promise("All of it goes: rsync gives itself the right (chmod).", (DONE,))
            },
            build=_closed_directory(0o555),
            is_ordinary=True,
        ),
        Case(
            name="a directory of root with 5 files of the user",
            promise=_the_rest_goes(7),
            build=_directory_of_another,
            is_ordinary=True,
        ),
        Case(
            name="a sticky directory of root (mode 1777) with 2 files of the user and 3 of root",
            promise=_the_rest_goes(5),
            build=_sticky_directory,
            is_ordinary=True,
        ),
    ),
)
