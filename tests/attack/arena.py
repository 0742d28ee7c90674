"""The places of an attack: the tree of the attacker, and root's files that must survive."""

import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.attack import swapper
from tests.attack.swapper import FILES_EACH, GID, INNER, READY, RECORD, UID, Pair
from tests.conftest import DEADLINE_S
from tui_fs.model.compat import StrEnum

TOPS, DEEPS = 8, 3
LEVELS = 7
"""GNU rm and find keep four descriptors to ascend by; below that they use ``..``."""

_POLL_S = 0.1
LIFTED_FROM = "top-7"
_LINKED = (
    "top-0",
    "top-1",
    "top-2/deep-0",
    "top-2/deep-1",
    "top-3/deep-2",
    f"top-4/deep-0/{INNER}/{INNER}/{INNER}",
    f"top-4/deep-1/{INNER}",
)
_MOVED = ("top-5", f"top-6/deep-0/{INNER}")
_LIFTED = ("deep-0", "deep-1")
_MOUNTED = ("top-1/deep-2", "top-3/deep-0", f"top-5/deep-1/{INNER}", "top-6", "top-7/deep-2")


class Play(StrEnum):
    """What the attackers repeatedly do to a directory of the tree.

    The first three exchange it with something else.

    Attributes:
        LINK: a symbolic link next to it, to a directory of root's with the same names.
        MOVE: such a link that waits outside the tree.
        LIFT: the directory moves into a sticky directory that has the same names as its former
            parent. A process that ascends by ``..`` arrives there.
        MOUNT: root of another mount namespace mounts a directory of root's on it.
    """

    LINK = "link"
    MOVE = "move"
    LIFT = "lift"
    MOUNT = "mount"


Names = dict[tuple[int, int], str]
"""Paths by device and inode: the attacker may have moved what it cannot delete."""


class Guarded:
    """Directories of root's whose names must survive.

    `fill` fills each, so that it holds any name that a redirected strategy would delete.
    """

    def __init__(self, roots: tuple[Path, ...], directories: tuple[Path, ...]) -> None:
        self._roots = roots
        self._directories = directories
        self.restore()

    def restore(self) -> None:
        """Make what is missing."""
        for directory in self._directories:
            directory.mkdir(parents=True, exist_ok=True)
            for number in range(FILES_EACH):
                (directory / f"file-{number:02}").touch()
        self._before = self._names()

    def __len__(self) -> int:
        """Count the names that were there in the beginning."""
        return len(self._before)

    def lost(self) -> list[str]:
        """Name what is gone, by where it was."""
        left = self._names().keys()
        return [path for identity, path in self._before.items() if identity not in left]

    def _names(self) -> Names:
        """Find every name that is root's; the attacker's may come and go."""
        names: Names = {}
        waiting = [str(root) for root in self._roots]
        while waiting:
            for entry in os.scandir(waiting.pop()):
                status = entry.stat(follow_symlinks=False)
                if status.st_uid == 0:
                    names[status.st_dev, status.st_ino] = entry.path
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
        return names


@dataclass(frozen=True, slots=True)
class Tree:
    """Below `place`: the attacker's tree, and what surrounds it.

    outside/    root's; a copy of all names in the tree, which the links point to
    sticky/     root's, but world-writable, as /tmp is; holds the names of one of the tree's
                directories, and two directories of the attacker's
    attacker/   the attacker's: the tree, and next to it the links
    """

    place: Path

    @property
    def target(self) -> Path:
        """The directory to delete."""
        return self.place / "attacker" / "tree"

    def guard(self) -> Guarded:
        """Make what must survive, and the attacker's own directory."""
        outside, sticky = self.place / "outside", self.place / "sticky"
        attacker = self.target.parent
        attacker.mkdir(mode=0o755)
        os.chown(attacker, UID, GID)
        sticky.mkdir()
        sticky.chmod(0o1777)
        copies = [outside]
        for top in range(TOPS):
            copies.append(outside / f"top-{top}")
            for deep in range(DEEPS):
                chain = [outside / f"top-{top}" / f"deep-{deep}"]
                for _ in range(LEVELS - 1):
                    chain.append(chain[-1] / INNER)
                copies += chain
        siblings = [sticky / f"deep-{deep}" for deep in range(len(_LIFTED), DEEPS)]
        return Guarded((outside, sticky), (*copies, sticky, *siblings))

    def orders(self, plays: tuple[Play, ...]) -> dict[str, Any]:
        """Return what the attackers build, exchange and mount."""
        tree = "attacker/tree"
        filled = {tree: 1}
        for top in range(TOPS):
            filled[f"{tree}/top-{top}"] = 1
            for deep in range(DEEPS):
                filled[f"{tree}/top-{top}/deep-{deep}"] = LEVELS
        pairs: list[Pair] = []
        if Play.LINK in plays:
            for name in _LINKED:
                pairs.append((f"{tree}/{name}", f"{tree}/{name}.link", self._copy_of(name)))
        if Play.MOVE in plays:
            for name in _MOVED:
                waiting = f"attacker/{name.replace('/', '-')}.link"
                pairs.append((f"{tree}/{name}", waiting, self._copy_of(name)))
        if Play.LIFT in plays:
            pairs += [(f"{tree}/{LIFTED_FROM}/{name}", f"sticky/{name}", None) for name in _LIFTED]
        mounts: list[tuple[str, str]] = []
        if Play.MOUNT in plays:
            mounts += [(self._copy_of(name), f"{tree}/{name}") for name in _MOUNTED]
        return {"filled": filled, "pairs": pairs, "mounts": mounts, "on_demand": False}

    def clear(self) -> None:
        """Remove what is left of the attacker's, who must have ended."""
        names = [str(entry) for entry in self.target.parent.iterdir()]
        names += [str(self.place / "sticky" / name) for name in _LIFTED]
        subprocess.run(["rm", "-rf", "--", *names], check=True)

    def _copy_of(self, name: str) -> str:
        return str(self.place / "outside" / name)


class Attackers:
    """The running attackers.

    Args:
        ledgers: of each.
    """

    def __init__(self, ledgers: list[Path]) -> None:
        self._ledgers = ledgers

    def swaps_between(self, start: float, end: float) -> int:
        """Count the exchanges and mounts that certainly happened between two times."""
        return sum(_counted(ledger.read_bytes(), start, end) for ledger in self._ledgers)


def _counted(written: bytes, start: float, end: float) -> int:
    whole = len(written) - len(written) % RECORD.size
    ledger = list(struct.iter_unpack(RECORD.format, written[:whole]))
    times = [at for at, _ in ledger]
    first, last = bisect_left(times, start), bisect_right(times, end) - 1
    return max(0, ledger[last][1] - ledger[first][1]) if first <= last else 0


@contextmanager
def attacking(place: Path, orders: dict[str, Any]) -> Iterator[Attackers]:
    """Run the attackers in a place, once they have built their own files.

    With orders to act on demand, one waits on the FIFO `bell` and replies on the FIFO `answer`.
    """
    written = place / "orders.json"
    written.write_text(json.dumps(orders), encoding="utf-8")
    roles = ("swap", "mount") if orders["mounts"] else ("swap",)
    ledgers: list[Path] = []
    with ExitStack() as stack:
        # Open both ends, so that neither process blocks in open(2) until the other opens its end.
        bell, answer = (stack.enter_context(_pipe(place / name)) for name in ("bell", "answer"))
        if orders["mounts"]:
            stack.enter_context(_shared(place))
        for role in roles:
            ledgers.append(place / f"{role}-ledger")
            ledgers[-1].write_bytes(b"")
            words = (sys.executable, "-I", swapper.__file__, role, str(written), str(ledgers[-1]))
            process = subprocess.Popen(words, cwd=place, stdin=bell, stdout=answer)
            stack.callback(_end, process)
            _wait_until_ready(process, answer)
        yield Attackers(ledgers)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGTERM)
    process.wait()


@contextmanager
def _shared(place: Path) -> Iterator[None]:
    """Make a place a mount of its own, which other namespaces share."""
    for words in (("--bind", str(place), str(place)), ("--make-shared", str(place))):
        subprocess.run(("mount", *words), check=True)
    try:
        yield
    finally:
        subprocess.run(("umount", "--lazy", str(place)), check=True)


@contextmanager
def _pipe(path: Path) -> Iterator[int]:
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDWR)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
        path.unlink()


def _wait_until_ready(process: "subprocess.Popen[bytes]", answer: int) -> None:
    end = time.monotonic() + DEADLINE_S
    while not select.select([answer], [], [], _POLL_S)[0]:
        assert process.poll() is None, "the attacker has died"
        assert time.monotonic() < end, "the attacker did not begin"
    assert os.read(answer, 64) == READY
