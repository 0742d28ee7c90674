"""Cases in which the tree itself is unusual: its depth, its size, its names, its kinds."""

import os
import socket
import stat

from tests.matrix.case import DONE, USAGE, Case, Group, Promise, Scene
from tests.trees import chain, flat

# Each level is two bytes of a path: 2,500 of them do not fit into PATH_MAX, 4,096 bytes.
DEEP_LEVELS = 2_500
# Python stops at 1,000 nested calls, and a process may open 1,024 descriptors.
LEVELS_WITHIN_LIMITS = 890
# More than rm and find sort, and than one batch of xargs takes.
WIDE_FILES = 12_000
NAME_MAX_BYTES = 255

_ALL_GOES = Promise("All of it goes.", (DONE,))
_TOO_DEEP = Promise("Says before the start that it cannot; nothing is touched.", (USAGE,))
# One byte each; a name of one dot alone is the directory itself.
_NAME_BYTES = [bytes([value]) for value in range(1, 256) if value != ord("/")]


def _deep(scene: Scene) -> None:
    chain(scene.make_target() / "deep", DEEP_LEVELS)


def _rather_deep(scene: Scene) -> None:
    chain(scene.make_target() / "deep", LEVELS_WITHIN_LIMITS)


def _wide(scene: Scene) -> None:
    flat(scene.make_target() / "wide", WIDE_FILES)


def _every_byte(scene: Scene) -> None:
    """Each byte as a whole name, in a name, as a directory, and all of them in one name."""
    target = os.fsencode(scene.make_target())
    for byte in _NAME_BYTES:
        _touch(os.path.join(target, b".." + byte if byte == b"." else byte))
        _touch(os.path.join(target, b"in" + byte + b"side"))
        directory = os.path.join(target, b"directory" + byte)
        os.mkdir(directory)
        _touch(os.path.join(directory, byte + b"x"))
    _touch(os.path.join(target, b"".join(_NAME_BYTES)))


def _long_names(scene: Scene) -> None:
    """Names of the greatest length, as files and as directories inside each other."""
    directory = os.fsencode(scene.make_target())
    for letter in (b"a", b"\xff", b"\n"):
        directory = os.path.join(directory, letter * NAME_MAX_BYTES)
        os.mkdir(directory)
        for other in (b"b", b" ", b"'"):
            _touch(os.path.join(directory, other * NAME_MAX_BYTES))


def _special_files(scene: Scene) -> None:
    target = scene.make_target()
    # A socket's address may hold 107 bytes only.
    target_fd = os.open(target, os.O_PATH)
    for number in range(20):
        os.mkfifo(target / f"fifo-{number}")
        os.mknod(target / f"null-{number}", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        os.mknod(target / f"block-{number}", stat.S_IFBLK | 0o600, os.makedev(7, 250))
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"/proc/self/fd/{target_fd}/socket-{number}")
    os.close(target_fd)


SHAPES = Group(
    "The tree is unusual",
    (
        Case(
            name=f"{DEEP_LEVELS:,} directories inside each other, longer than a path may be",
            promise=_ALL_GOES,
            unlike=dict.fromkeys(("xargs", "rsync", "rmtree"), _TOO_DEEP),
            build=_deep,
        ),
        Case(
            name=f"{LEVELS_WITHIN_LIMITS} directories inside each other",
            promise=_ALL_GOES,
            build=_rather_deep,
        ),
        Case(name=f"{WIDE_FILES:,} names in one directory", promise=_ALL_GOES, build=_wide),
        Case(
            name="every byte that a name may hold: line ends, quotes, dashes, no UTF-8",
            promise=_ALL_GOES,
            build=_every_byte,
        ),
        Case(
            name="names of 255 bytes, directories of such names inside each other",
            promise=_ALL_GOES,
            build=_long_names,
        ),
        Case(
            name="FIFOs, sockets, character and block devices",
            promise=Promise("The names go; nothing is opened or waited for.", (DONE,)),
            build=_special_files,
        ),
    ),
)


def _touch(path: bytes) -> None:
    os.mknod(path, stat.S_IFREG | 0o600)
