"""Every attack on a tiny tree: at each removing call, each sequence of a few hostile operations.

Run as ``python -m tests.attack.exhaustive``. Needs root and x86-64. The tools run with the command
lines and the confinement of a job. They are stopped at the entry of each system call that removes a
name; at one of these calls, root changes the tree from the original mount namespace, and the tools
run on. The exit code is 0 if nothing outside the target was deleted, with ``--unconfined`` if
something was.
"""

import argparse
import contextlib
import ctypes
import itertools
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.attack.swapper import RENAMEAT2
from tests.attack.tracer import run_step
from tui_fs.job.path_safety import prepare_steps
from tui_fs.linux.mount_namespaces import mount_tmpfs, unmount
from tui_fs.linux.mounts import read_mounts
from tui_fs.linux.pins import open_path_fd, take_pin
from tui_fs.model.compat import StrEnum
from tui_fs.model.strategy import Confine, Mechanism, Options, confined_words
from tui_fs.safety.confinement import ConfinedTarget, Enclosure, mechanisms_for
from tui_fs.strategies.base import Strategy
from tui_fs.strategies.registry import STRATEGIES, strategy_named, tools_of

MACHINE = "x86_64"
LONGEST = 3
FILES = {"a": "x", "b": "y"}
"""The directories of the target, and the file in each."""
ORDERS = (("a", "b"), ("b", "a"))
"""An operation attacks the first of two directories in whose state it is possible."""

_LEVELS = 2
_SIZE_BYTES, _INODES = 16 << 20, 4_096
_RENAME_NOREPLACE, _RENAME_EXCHANGE = 1, 2  # linux/fs.h
_AT_FDCWD = -100  # linux/fcntl.h
_MS_BIND, _MS_SHARED = 1 << 12, 1 << 20  # linux/mount.h
_CASES_SHOWN = 12

_libc = ctypes.CDLL(None, use_errno=True)


class Operation(StrEnum):
    """A hostile change to a directory of the target.

    Attributes:
        RENAME: it moves into the other directory, or gets another name.
        EXCHANGE: it changes names with a symbolic link next to it, which leads to a sentinel; the
            second time, it changes back.
        MOVE_OUT: it moves into a directory that holds sentinels.
        HARD_LINK: it receives another link of a sentinel file.
        REPLACE: a new empty directory takes the place of an empty one, or of a name that is gone.
        MOUNT: a sentinel directory is bind-mounted onto it.
    """

    RENAME = "rename"
    EXCHANGE = "exchange"
    MOVE_OUT = "move out"
    HARD_LINK = "hard-link"
    REPLACE = "replace"
    MOUNT = "mount"


Operations = tuple[Operation, ...]
Identities = dict[str, int]
"""Inodes by path."""


def sequences(longest: int) -> tuple[Operations, ...]:
    """Return all sequences of operations up to a length."""
    lengths = range(1, longest + 1)
    return tuple(
        sequence for length in lengths for sequence in itertools.product(Operation, repeat=length)
    )


class Scene:
    """A tree to delete, and the sentinels around it, all on one file system.

    target/a/x, target/b/y
    beside-a/a, beside-a/b/y    where the directory a moves to; b leads here
    beside-b/a/x, beside-b/b    where the directory b moves to; a leads here

    Everything in the directories beside is a sentinel. A tool that is redirected there finds the
    names it is about to remove. The one directory that it could have emptied itself is empty.

    Args:
        place: an empty directory.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self.target = f"{place}/target"
        self.empty = f"{place}/empty"
        self._sentinels: Identities = {}
        self._moved: Identities = {}

    def build(self) -> None:
        """Remove everything and make it again."""
        for name in FILES:
            # A tool in another namespace that removes a mount point detaches the mount
            with contextlib.suppress(OSError):
                unmount(f"{self.target}/{name}", is_lazy=True)
        for entry in os.scandir(self.place):
            shutil.rmtree(entry.path)
        os.mkdir(self.empty)
        os.mkdir(self.target)
        for name in FILES:
            _fill(self.target, name)
        for moved in FILES:
            beside = f"{self.place}/beside-{moved}"
            os.mkdir(beside)
            for name in FILES:
                if name == moved:
                    os.mkdir(f"{beside}/{name}")
                else:
                    _fill(beside, name)
        self._sentinels = self._beside()
        self._moved = {}

    def perform(self, operation: Operation, order: tuple[str, str]) -> bool:
        """Perform an operation on the first directory that permits it; return if one does."""
        for name, other in (order, order[::-1]):
            try:
                self._perform(operation, name, other)
            except OSError:
                continue
            return True
        return False

    def note_moved(self) -> None:
        """Take down which entries are outside of the target now."""
        self._moved = {
            path: inode for path, inode in self._beside().items() if path not in self._sentinels
        }

    def lost(self) -> list[str]:
        """Return the sentinels that are gone."""
        return _gone(self._sentinels)

    def lost_after_move(self) -> list[str]:
        """Return the entries that are gone of those that were noted outside of the target."""
        return _gone(self._moved)

    def _perform(self, operation: Operation, name: str, other: str) -> None:
        """Raise OSError, and change nothing, if the operation is not possible now."""
        path = f"{self.target}/{name}"
        sentinel = f"{self.place}/beside-{other}/{name}"
        match operation:
            case Operation.RENAME:
                _require_directory(path)
                try:
                    _require_directory(f"{self.target}/{other}")
                    _rename(path, f"{self.target}/{other}/{name}", _RENAME_NOREPLACE)
                except OSError:
                    _rename(path, f"{path}.renamed", _RENAME_NOREPLACE)
            case Operation.EXCHANGE:
                self._exchange(path, sentinel)
            case Operation.MOVE_OUT:
                _require_directory(path)
                _rename(path, f"{self.place}/beside-{name}/moved", _RENAME_NOREPLACE)
            case Operation.HARD_LINK:
                _require_directory(path)
                os.link(f"{sentinel}/{FILES[name]}", f"{path}/linked")
            case Operation.REPLACE:
                with contextlib.suppress(FileNotFoundError):
                    os.rmdir(path)
                os.mkdir(path)
            case Operation.MOUNT:
                _require_directory(path)
                if os.path.samefile(path, sentinel):
                    raise FileExistsError
                _mount(sentinel, path, _MS_BIND)

    @staticmethod
    def _exchange(path: str, sentinel: str) -> None:
        link = f"{path}.link"
        if os.path.lexists(link):
            _rename(path, link, _RENAME_EXCHANGE)
            return
        _require_directory(path)
        os.symlink(sentinel, link)
        try:
            _rename(path, link, _RENAME_EXCHANGE)
        except OSError:
            os.unlink(link)
            raise

    def _beside(self) -> Identities:
        found: Identities = {}
        waiting = [f"{self.place}/beside-{name}" for name in FILES]
        while waiting:
            path = waiting.pop()
            status = os.lstat(path)
            found[path] = status.st_ino
            if stat.S_ISDIR(status.st_mode):
                waiting += [f"{path}/{name}" for name in os.listdir(path)]
        return found


def _fill(above: str, name: str) -> None:
    os.mkdir(f"{above}/{name}")
    os.close(os.open(f"{above}/{name}/{FILES[name]}", os.O_WRONLY | os.O_CREAT))


def _gone(before: Identities) -> list[str]:
    return [path for path, inode in before.items() if _inode(path) != inode]


def _inode(path: str) -> int:
    try:
        return os.lstat(path).st_ino
    except OSError:
        return 0


def _require_directory(path: str) -> None:
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        raise NotADirectoryError


def _rename(path: str, other: str, flags: int) -> None:
    names = os.fsencode(path), os.fsencode(other)
    _check(_libc.syscall(RENAMEAT2[MACHINE], _AT_FDCWD, names[0], _AT_FDCWD, names[1], flags))


def _mount(source: str, path: str, flags: int) -> None:
    names = os.fsencode(source), os.fsencode(path)
    _check(_libc.mount(*names, None, ctypes.c_ulong(flags), None))


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextmanager
def scratch() -> Iterator[Scene]:
    """Yield a scene on a tmpfs of its own, whose mounts other namespaces receive."""
    with tempfile.TemporaryDirectory(prefix="tui-fs-exhaustive-") as place:
        mount_tmpfs(place, _SIZE_BYTES, _INODES)
        try:
            _mount("", place, _MS_SHARED)
            yield Scene(os.path.realpath(place))
        finally:
            unmount(place, is_lazy=True)


@dataclass(frozen=True, slots=True)
class Case:
    """One attack, and what it made the tools delete outside of the target.

    Attributes:
        call: the number of the removing call at which it happened; 0 for no attack.
        order: the directories, the one to be attacked first.
        done: how many of the operations were possible.
        calls: how many removing calls the tools made.
        lost: sentinels that are gone.
        lost_after_move: entries that are gone although they had left the target before the call.
    """

    call: int
    order: tuple[str, str]
    operations: Operations
    done: int
    calls: int
    lost: tuple[str, ...]
    lost_after_move: tuple[str, ...]


@dataclass(slots=True)
class Tally:
    """The results of all attacks on a strategy.

    Attributes:
        calls: how many removing calls it makes if it is not attacked.
        harmful: the cases in which something was deleted outside of the target.
    """

    strategy: str
    calls: int
    cases: int = 0
    done: int = 0
    not_possible: int = 0
    harmful: list[Case] = field(default_factory=list)

    @property
    def lost(self) -> int:
        """How many sentinels were deleted in all cases together."""
        return sum(len(case.lost) for case in self.harmful)

    @property
    def lost_after_move(self) -> int:
        """How many entries were deleted after they had left the target."""
        return sum(len(case.lost_after_move) for case in self.harmful)


def attack_everywhere(
    scene: Scene, name: str, longest: int, mechanisms: tuple[Mechanism, ...]
) -> Tally:
    """Perform every sequence of operations at every removing call of a strategy.

    Args:
        longest: the number of operations in the longest sequence.
        mechanisms: how the tools are confined; empty if they are not.
    """
    strategy = strategy_named(name)
    untouched = attack(scene, strategy, mechanisms)
    if os.path.lexists(scene.target):
        raise RuntimeError(f"{name} did not delete the target")
    tally = Tally(name, untouched.calls)
    calls = range(1, tally.calls + 1)
    for call, order, operations in itertools.product(calls, ORDERS, sequences(longest)):
        case = attack(scene, strategy, mechanisms, call, order, operations)
        if case.calls < call:
            raise RuntimeError(f"{name} made {case.calls} removing calls, not {call}")
        tally.cases += 1
        tally.done += case.done
        tally.not_possible += len(operations) - case.done
        if case.lost or case.lost_after_move:
            tally.harmful.append(case)
    return tally


def attack(
    scene: Scene,
    strategy: Strategy,
    mechanisms: tuple[Mechanism, ...],
    call: int = 0,
    order: tuple[str, str] = ORDERS[0],
    operations: Operations = (),
) -> Case:
    """Delete the target, and perform the operations at one removing call; see `Case`."""
    scene.build()
    calls = done = 0

    def at_call() -> None:
        nonlocal calls, done
        calls += 1
        if calls == call:
            done = sum([scene.perform(operation, order) for operation in operations])
            scene.note_moved()

    pins = (take_pin(scene.target),)
    inputs = strategy, (scene.target,), Options(), tools_of(strategy)[0], scene.empty
    place, target = open_path_fd(scene.place), open_path_fd(scene.target)
    try:
        for prepared in prepare_steps(*inputs, pins=pins, confined_by=mechanisms):
            enclosure = None
            if mechanisms and not prepared.is_rmdir:
                confined = ConfinedTarget.of(target, scene.target, read_mounts())
                enclosure = Enclosure(mechanisms, (confined,), prepared.is_inside)
            directory = target if prepared.is_inside else place
            run_step(prepared.step, directory, enclosure, at_call)
    finally:
        os.close(place)
        os.close(target)
    lost, lost_after_move = tuple(scene.lost()), tuple(scene.lost_after_move())
    return Case(call, order, operations, done, calls, lost, lost_after_move)


_HEADINGS = (
    "strategy",
    "removing calls",
    "cases",
    "operations done",
    "not possible",
    "sentinels lost",
    "moved out and deleted",
)


def main(arguments: list[str]) -> int:
    """Attack, print a Markdown table, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack.exhaustive", description=__doc__)
    lengths = range(1, LONGEST + 1)
    parser.add_argument("--longest", type=int, choices=lengths, default=LONGEST)
    parser.add_argument("--strategy", choices=list(STRATEGIES), help="only this one")
    parser.add_argument("--unconfined", action="store_true", help="the control")
    parsed = parser.parse_args(arguments)
    if os.geteuid() != 0 or os.uname().machine != MACHINE:
        parser.error(f"needs root and {MACHINE}")
    names = [parsed.strategy] if parsed.strategy else list(STRATEGIES)
    mechanisms = mechanisms_for(Confine.OFF if parsed.unconfined else Confine.AUTO, _LEVELS)
    begun_s = time.monotonic()
    print(f"Confined by: {confined_words(mechanisms)}\n")
    print(_row(_HEADINGS))
    print(_row(["---", *["---:"] * (len(_HEADINGS) - 1)]))
    tallies: list[Tally] = []
    with scratch() as scene:
        for name in names:
            tally = attack_everywhere(scene, name, parsed.longest, mechanisms)
            numbers = (tally.calls, tally.cases, tally.done, tally.not_possible)
            harm = tally.lost, tally.lost_after_move
            print(_row([name, *(f"{number:,}" for number in (*numbers, *harm))]), flush=True)
            tallies.append(tally)
        for tally in tallies:
            _print_harmful(scene, tally)
    print(f"\n{time.monotonic() - begun_s:.0f} s")
    return int(any(tally.harmful for tally in tallies) != parsed.unconfined)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _print_harmful(scene: Scene, tally: Tally) -> None:
    """Print the first cases in which something was deleted outside of the target."""
    if not tally.harmful:
        return
    print(f"\n{tally.strategy}, {len(tally.harmful):,} cases; the first ones:\n")
    for case in tally.harmful[:_CASES_SHOWN]:
        gone = ", ".join(
            os.path.relpath(path, scene.place) for path in (*case.lost, *case.lost_after_move)
        )
        operations = ", ".join(case.operations)
        print(f"- at call {case.call}, {' before '.join(case.order)}: {operations}: {gone}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
