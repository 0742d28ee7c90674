"""The attack from above: what is exchanged is the target itself, or the directory that holds it."""

import errno
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.acl import NAMED_USER, grant
from tests.attack.arena import Guarded, attacking
from tests.attack.swapper import GID, INNER, UID, fill
from tests.conftest import DEADLINE_S, Cli, Finished
from tests.needs import needs_tool
from tui_fs.linux.tools import ENGINE, find_engine
from tui_fs.model.compat import StrEnum

REFUSED = 3
_LEVELS = 3
_RUNG, _DOOR = "rung", "door"
_POLL_S = 0.002
_TOOLS = ("rm", "find", "rsync")
_PREPARE = """import os
import sys
from tui_fs.linux import tools
from tui_fs.survey import runner
os.environ["PATH"] = {directory!r} + ":" + os.environ["PATH"]
sys.executable = {python!r}
tools.find_engine = runner.find_engine = lambda: {engine!r}
"""


class Exchange(StrEnum):
    """What the attacker exchanges, and with what.

    Attributes:
        PARENT_LINK: the directory above, with a link to a directory of root's that holds a
            directory with the target's name.
        PARENT_ROOTS: the directory above, with such a directory of root's next to it.
        TARGET_LINK: the target, with a link to a directory of root's.
        TARGET_ROOTS: the target, with a directory of root's next to it.
        TARGET_OWN: the target, with another directory of the attacker's.
    """

    PARENT_LINK = "parent-link"
    PARENT_ROOTS = "parent-roots"
    TARGET_LINK = "target-link"
    TARGET_ROOTS = "target-roots"
    TARGET_OWN = "target-own"


ACL_EXCHANGES = (Exchange.TARGET_ROOTS, Exchange.PARENT_ROOTS, Exchange.PARENT_LINK)
"""Exchanges of names, and of a name for a link, that lead a deletion by path astray."""


@dataclass(frozen=True, slots=True)
class Spool:
    """Below `place`: a directory to delete that another user owns, and its ancestors.

    home/             the attacker's, in a directory of root's
    home/spool/       the attacker's
    home/spool/target the attacker's; the target
    decoy/target      root's; the links point here
    home/roots/target, home/spool/roots
                      root's, in directories of the attacker's, who can rename but not empty them

    With `by_acl` all of it is root's, and an access control list grants the attacker write access
    to home/ and home/spool/.
    """

    place: Path
    by_acl: bool = False

    @property
    def spool(self) -> Path:
        """The directory that holds the target."""
        return self.place / "home" / "spool"

    @property
    def target(self) -> Path:
        """The directory to delete."""
        return self.spool / "target"

    def guard(self) -> Guarded:
        """Make what must survive, and the attacker's own directories."""
        self.spool.mkdir(parents=True)
        for directory in (self.spool, self.spool.parent):
            if self.by_acl:
                grant(directory, NAMED_USER, UID)
            else:
                os.chown(directory, UID, GID)
        roots = (self.place / "decoy", self.spool.parent / "roots", self.spool / "roots")
        filled = [roots[0] / "target", roots[1] / "target", roots[2]]
        guarded = Guarded((self.place,), tuple(d for top in filled for d in (top, top / INNER)))
        if self.by_acl:
            fill(str(self.target), _LEVELS)  # root's, but the job may delete it
        return guarded

    def orders(self, exchange: Exchange, *, on_demand: bool) -> dict[str, object]:
        """Return what the attacker builds, and what it exchanges."""
        spool, target = "home/spool", "home/spool/target"
        filled = {} if self.by_acl else {target: _LEVELS}
        pair: tuple[str, str, str | None]
        match exchange:
            case Exchange.PARENT_LINK:
                pair = spool, "home/link", str(self.place / "decoy")
            case Exchange.PARENT_ROOTS:
                pair = spool, "home/roots", None
            case Exchange.TARGET_LINK:
                pair = target, "home/spool/link", str(self.place / "decoy" / "target")
            case Exchange.TARGET_ROOTS:
                pair = target, "home/spool/roots", None
            case Exchange.TARGET_OWN:
                pair = target, "home/spool/own", None
        return {"filled": filled, "pairs": [pair], "mounts": [], "on_demand": on_demand}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one job under attack.

    Attributes:
        message: why it was refused; empty if it was not.
        was_rung: whether a tool waited for the exchange.
    """

    code: int
    message: str
    lost: tuple[str, ...]
    was_rung: bool


def attack_at_the_last_moment(
    cli: Cli, place: Path, exchange: Exchange, strategy: str, *options: str, by_acl: bool = False
) -> Verdict:
    """Exchange once, after the last check and before the first tool reads its argument.

    Args:
        place: an empty directory that every user may enter.
        by_acl: the attacker owns nothing and may write only through an access control list.
    """
    scene = Spool(place, by_acl)
    guarded = scene.guard()
    waiting = with_waiting_tools(cli, place)
    with attacking(place, scene.orders(exchange, on_demand=True)), _ringing(place):
        finished = waiting.delete(scene.target, strategy, "--trace", "off", *options)
    return _verdict(finished, guarded, (place / _RUNG).exists())


def attack_rm_by_path(
    cli: Cli, place: Path, exchange: Exchange, *, by_acl: bool = False
) -> Verdict:
    """Do the same to ``rm -rf PATH``, which has no check and shows that the attack works."""
    scene = Spool(place, by_acl)
    guarded = scene.guard()
    with_waiting_tools(cli, place)
    with attacking(place, scene.orders(exchange, on_demand=True)), _ringing(place):
        command = [str(place / "tools" / "rm"), "-rf", "--", str(scene.target)]
        ended = subprocess.run(command, capture_output=True, timeout=DEADLINE_S, check=False)
    return Verdict(ended.returncode, "", tuple(guarded.lost()), (place / _RUNG).exists())


def attack_all_the_time(
    cli: Cli, place: Path, exchange: Exchange, strategy: str, *options: str
) -> Verdict:
    """Exchange as fast as it goes, from before the program starts until it has ended."""
    scene = Spool(place)
    guarded = scene.guard()
    with attacking(place, scene.orders(exchange, on_demand=False)):
        finished = cli.delete(scene.target, strategy, "--trace", "off", *options)
    return _verdict(finished, guarded, was_rung=False)


def with_waiting_tools(cli: Cli, place: Path) -> Cli:
    """Return the program with tools whose first one waits at a FIFO until the exchange is done.

    A confined tool may not write, so it rings by opening the FIFO for reading.
    A busy machine has the same effect: it delays a process for any time before execve(2).
    """
    tools = place / "tools"
    tools.mkdir()
    os.mkfifo(place / _DOOR, 0o644)
    rung, door = (shlex.quote(str(place / name)) for name in (_RUNG, _DOOR))
    ring = f"[ -e {rung} ] || read -r _ < {door}"
    for name in _TOOLS:
        path = needs_tool(name, package=name)
        answers = f'[ "$1" = --version ] && exec {path} --version'
        _script(tools / name, answers, ring, f'exec {path} "$@"')
    engine = tools / ENGINE
    if (real := find_engine()) is not None:
        # It also counts, before the job begins.
        counts = f'[ "$1" = delete ] || exec {real} "$@"'
        _script(engine, counts, ring, f'exec {real} "$@"')
    python = tools / "python"
    _script(python, f'case "$*" in *rmtree_child*) {ring};; esac', f'exec {sys.executable} "$@"')
    paths = {"directory": str(tools), "python": str(python), "engine": str(engine)}
    return cli.prepared(_PREPARE.format(**paths))


@contextmanager
def _ringing(place: Path) -> Iterator[None]:
    """Have the attacker exchange as soon as a tool waits at its door, and let the tool go on."""
    is_over = threading.Event()

    def attend() -> None:
        while not is_over.is_set():
            try:
                door = os.open(place / _DOOR, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:  # ENXIO: no tool has opened it yet
                    raise
                time.sleep(_POLL_S)
                continue
            (place / _RUNG).touch()
            (place / "bell").write_text("\n")
            with open(place / "answer", encoding="ascii") as answer:
                answer.readline()
            os.write(door, b"\n")
            os.close(door)
            return

    attendant = threading.Thread(target=attend)
    attendant.start()
    try:
        yield
    finally:
        is_over.set()
        attendant.join()


def _script(path: Path, *lines: str) -> None:
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)


def _verdict(finished: Finished, guarded: Guarded, was_rung: bool) -> Verdict:
    assert "Traceback" not in finished.stderr, finished.stderr
    refusals = [event["sentence"] for event in finished.stream() if event["type"] == "JobRefused"]
    message = " ".join(refusals) or (finished.stderr.strip() if finished.code == REFUSED else "")
    return Verdict(finished.code, message, tuple(guarded.lost()), was_rung)
