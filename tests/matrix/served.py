"""Repeats cases of the strategy parallel on a file system that a server answers late."""

import os
from contextlib import ExitStack
from dataclasses import replace

from tests.fuse.latency import served_late
from tests.matrix.case import Case, Scene
from tests.matrix.groups import DISTURBED_GROUPS, QUIET_GROUPS
from tests.matrix.outside_cases import OUTSIDE
from tests.matrix.served_cases import DELAY_MS, SERVED

_OWN_DISK = "the case needs a disk or a mount of its own for the target"
_NO_ATTRIBUTES = "the FUSE server passes on no file attributes (chattr)"

NOT_SERVED = {
    "2,500 directories inside each other, longer than a path may be": (
        "the FUSE server opens entries by path"
    ),
    "an access control list lets another user write in the tree, with --confine off": (
        "the FUSE server passes on no extended attributes"
    ),
    "an immutable file (chattr +i), its name of two lines and no UTF-8": _NO_ATTRIBUTES,
    "an immutable directory (chattr +i) with 5 files": _NO_ATTRIBUTES,
    "an append-only directory (chattr +a) with 5 files": _NO_ATTRIBUTES,
    "the target's file system is full to the last block": _OWN_DISK,
    "the target's file system is mounted read-only in mid-run": _OWN_DISK,
    "I/O error: a directory whose list of names cannot be read": _OWN_DISK,
    "I/O error: files whose inodes cannot be read": _OWN_DISK,
}
"""Cases that are not repeated on a served file system, with the reason."""

SERVED_CASES = [
    case
    for group in (*QUIET_GROUPS, *DISTURBED_GROUPS)
    for case in group.cases
    if case.name not in NOT_SERVED and SERVED not in case.not_for
]
_BUILT_BEHIND_SERVER = {case.name for case in OUTSIDE.cases}
"""Their builders mount something in the tree, which the mount of the server would cover."""


WITHOUT_TYPES = ("--without-d-type",)
CASES_WITHOUT_TYPES = [
    case
    for case in SERVED_CASES
    if case.name
    in {
        "symbolic links out of the tree, to the parent, to each other, to nothing",
        "hard links to a file outside",
        "every byte that a name may hold: line ends, quotes, dashes, no UTF-8",
        "FIFOs, sockets, character and block devices",
        "a directory that the user may not read (mode 000), with 5 files",
        "directories are replaced by symbolic links out of the tree in mid-run",
        "another file system is mounted on directories of the tree in mid-run",
    }
]
"""Cases in which the type of an entry matters."""

LONG = {
    "12,000 names in one directory",
    "890 directories inside each other",
    "directories vanish in mid-run",
}
"""Their requests follow each other and would take 6 to 30 seconds, so the server adds no delay."""


def behind_server(case: Case, options: tuple[str, ...], until: ExitStack) -> Case:
    """Return the case with its place on a FUSE file system.

    The tree is built before the server covers the place, which saves the delay.

    Args:
        options: of `latency_fs.c`.
        until: closed when the server may end.
    """

    def build(scene: Scene) -> None:
        if case.name not in _BUILT_BEHIND_SERVER:
            case.build(scene)
        delay_ms = 0.0 if case.name in LONG else DELAY_MS
        until.enter_context(served_late(scene.place, scene.place, delay_ms, *options))
        if case.name in _BUILT_BEHIND_SERVER:
            case.build(scene)
        assert os.path.ismount(scene.place) and scene.target.is_relative_to(scene.place)

    return replace(case, build=build)
