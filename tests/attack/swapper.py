"""The attackers: they exchange names, or mount directories, as fast as the kernel can.

Run as root in the directory that holds everything, as ``python -I swapper.py ROLE ORDERS LEDGER``.

ROLE ``swap`` is a user without rights. It becomes user 65534 first and makes what its orders say
is its own. Then it exchanges the two names of one pair after another with renameat2(2), and makes
again what was deleted, until SIGTERM. With ``"on_demand": true`` it exchanges the first pair once
for each line it reads on standard input, and answers each with a line.

ROLE ``mount`` is root in a mount namespace of its own, whose mounts other namespaces receive. A
job refuses a target with a mount inside, so it waits until the tools have deleted something. Then
it bind-mounts one directory after another, and unmounts it again, until SIGTERM.

ORDERS is a JSON object; all its paths are relative to the current directory, so that nothing
above it need be open to everybody:
    tree: a directory to build, as `fill` does for each directory in `filled`.
    filled: {directory: levels}
    pairs: [[place, other, points_to]]: `place` is a directory and `other` a symbolic link to
        `points_to`, or a directory too if that is null.
    mounts: [[source, place]]: the directory `source` is mounted onto the directory `place`.

LEDGER receives a record of RECORD for every SWAPS_PER_RECORD exchanges or mounts that succeeded.
"""

import ctypes
import json
import os
import platform
import random
import signal
import stat
import struct
import sys
import time
from collections.abc import Iterator
from typing import Any

UID = GID = 65534
"""The user nobody: owns nothing else and is in no other group."""

FILES_EACH = 24
RECORD = struct.Struct("<dQ")
"""Seconds since the epoch, and the exchanges that had succeeded by then."""
SWAPS_PER_RECORD = 16
INNER = "inner"
READY = b"ready\n"

RENAMEAT2 = {"x86_64": 316, "aarch64": 276}
"""Its system call number, by machine."""
_RENAME_EXCHANGE = 2  # linux/fs.h
_MS_BIND, _MNT_DETACH, _CLONE_NEWNS = 1 << 12, 2, 1 << 17  # linux/mount.h, fs.h, sched.h
_AT_FDCWD = -100  # linux/fcntl.h
_SCHEDULE = 1009
"""A prime, so that the order in which the pairs take turns has no rhythm of its own."""
_LEVELS_MADE_AGAIN = 7

Pair = tuple[str, str, str | None]


class Attacker:
    """Repeats an attack until SIGTERM, and writes down how often it succeeded."""

    def __init__(self, ledger: int) -> None:
        self._ledger = ledger
        self._successes = 0
        self._is_over = False
        self._libc = ctypes.CDLL(None, use_errno=True)

    def _until_sigterm(self) -> Iterator[None]:
        signal.signal(signal.SIGTERM, self._end)
        while not self._is_over:
            yield
        self._write_down()

    def _succeeded(self) -> None:
        self._successes += 1
        if self._successes % SWAPS_PER_RECORD == 0:
            self._write_down()

    def _end(self, *_: object) -> None:
        self._is_over = True

    def _write_down(self) -> None:
        os.write(self._ledger, RECORD.pack(time.time(), self._successes))


class Swapper(Attacker):
    """Exchanges the names of pairs."""

    def __init__(self, pairs: list[Pair], ledger: int) -> None:
        super().__init__(ledger)
        self._pairs = pairs
        self._number = RENAMEAT2[platform.machine()]

    def exchange(self, pair: Pair) -> bool:
        """Exchange the two names of a pair; False if one of them is not there."""
        place, other, _ = pair
        return self._exchange(os.fsencode(place), os.fsencode(other))

    def storm(self) -> None:
        """Exchange until SIGTERM."""
        if not self._pairs:
            signal.pause()  # another attacker works in its tree
        turns = [
            (os.fsencode(pair[0]), os.fsencode(pair[1]), pair)
            for pair in random.choices(self._pairs, k=_SCHEDULE)
        ]
        for _ in self._until_sigterm():
            for place, other, pair in turns:
                if self._exchange(place, other):
                    self._succeeded()
                else:
                    mend(pair)

    def _exchange(self, place: bytes, other: bytes) -> bool:
        answer: int = self._libc.syscall(
            self._number, _AT_FDCWD, place, _AT_FDCWD, other, _RENAME_EXCHANGE
        )
        return answer == 0


class Mounter(Attacker):
    """Mounts directories onto others.

    Args:
        mounts: sources and places.
        probes: files that are all there until the tools begin.
    """

    def __init__(self, mounts: list[tuple[str, str]], probes: list[str], ledger: int) -> None:
        super().__init__(ledger)
        self._mounts = [(os.fsencode(source), os.fsencode(place)) for source, place in mounts]
        self._probes = probes
        if self._libc.unshare(_CLONE_NEWNS) != 0:
            raise OSError(ctypes.get_errno(), "unshare")

    def storm(self) -> None:
        """Mount and unmount until SIGTERM."""
        has_begun = False
        for _ in self._until_sigterm():
            has_begun = has_begun or not all(map(os.path.lexists, self._probes))
            if not has_begun:
                continue
            for source, place in self._mounts:
                if self._libc.mount(source, place, None, ctypes.c_ulong(_MS_BIND), None) == 0:
                    self._succeeded()
                    self._libc.umount2(place, _MNT_DETACH)


def fill(directory: str, levels: int) -> None:
    """Make a directory of FILES_EACH files, and as many directories inside each other below."""
    for _ in range(levels):
        os.mkdir(directory)
        for number in range(FILES_EACH):
            os.close(os.open(f"{directory}/file-{number:02}", os.O_WRONLY | os.O_CREAT, 0o644))
        directory = f"{directory}/{INNER}"


def mend(pair: Pair) -> None:
    """Recreate what was deleted of a pair. What blocks it now is left until its next turn."""
    place, other, points_to = pair
    kinds = [_kind(place), _kind(other)]
    try:
        if kinds == [0, 0]:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            kinds = [0, stat.S_IFDIR if points_to is None else stat.S_IFLNK]
            _make(other, points_to)
        for name, kind, facing in ((place, kinds[0], kinds[1]), (other, kinds[1], kinds[0])):
            if kind == 0:
                _make(name, points_to if facing == stat.S_IFDIR else None)
    except OSError:
        return  # the job is deleting here in this very moment


def _make(name: str, points_to: str | None) -> None:
    if points_to is None:
        fill(name, _LEVELS_MADE_AGAIN)
    else:
        os.symlink(points_to, name)


def _kind(name: str) -> int:
    try:
        return stat.S_IFMT(os.lstat(name).st_mode)
    except OSError:
        return 0


def become_nobody() -> None:
    """Drop every privilege permanently."""
    os.setgroups([])
    os.setresgid(GID, GID, GID)
    os.setresuid(UID, UID, UID)
    os.umask(0o022)


def main(role: str, orders_path: str, ledger_path: str) -> None:
    """Build, print a line when built, and attack."""
    with open(orders_path, encoding="utf-8") as file:
        orders: dict[str, Any] = json.load(file)
    ledger = os.open(ledger_path, os.O_WRONLY | os.O_APPEND)
    if role == "mount":
        mounts = [(source, place) for source, place in orders["mounts"]]
        probes = [f"{place}/file-00" for place in orders["filled"]]
        mounter = Mounter(mounts, probes, ledger)
        os.write(1, READY)
        mounter.storm()
        return
    become_nobody()
    for directory, levels in orders["filled"].items():
        fill(directory, levels)
    pairs: list[Pair] = [(place, other, points_to) for place, other, points_to in orders["pairs"]]
    for pair in pairs:
        mend(pair)
    swapper = Swapper(pairs, ledger)
    os.write(1, READY)
    if not orders["on_demand"]:
        swapper.storm()
        return
    for _ in sys.stdin:
        os.write(1, b"exchanged\n" if swapper.exchange(pairs[0]) else b"failed\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
