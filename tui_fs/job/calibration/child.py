"""The process that measures what deleting costs: it makes and deletes small trees.

`tui_fs.job.calibration.store` runs it as ``python -m tui_fs.job.calibration.child TARGET``. This
process only waits and removes what is left; a forked child measures. If one of the two is killed,
the other cleans up; if both are, the next measurement does.
"""

import contextlib
import fcntl
import json
import math
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from tui_fs.estimate.calibration import BLOCK_BYTES, Calibration
from tui_fs.estimate.fit import TOO_SLOW, Sample, Shape, fit
from tui_fs.estimate.time import typical
from tui_fs.job.conflicts import check_conflicts, no_job_starting
from tui_fs.job.launcher import run_steps
from tui_fs.job.permission import refuse_scratch
from tui_fs.job.scratch import Scratch, place_beside, remove_left_over
from tui_fs.job.store import require_private, state_directory
from tui_fs.linux.descriptors import closing
from tui_fs.linux.directories import open_directory
from tui_fs.linux.filesystem import FileSystem, file_system_of
from tui_fs.linux.memory import children_of
from tui_fs.linux.mounts import foreign_mount_on_way, read_mounts
from tui_fs.linux.pins import pin_of, take_pin
from tui_fs.linux.processes import set_child_subreaper, waits_of
from tui_fs.linux.timeouts import is_readable
from tui_fs.model.calls import TraceSource
from tui_fs.model.codec import encode
from tui_fs.model.errors import Refused, TuiFsError
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Confine, Options, Pace, StrategyName
from tui_fs.model.target import Pin, Target
from tui_fs.model.units import bytes_iec, count, counted
from tui_fs.safety.confinement import ConfinedTarget, Enclosure, mechanisms_for
from tui_fs.safety.policy import read_policy
from tui_fs.strategies.base import ComparesPins, Invocation
from tui_fs.strategies.registry import BATCHED, REFERENCE, STRATEGIES, tools_of
from tui_fs.tracing.perf import allow_more_descriptors
from tui_fs.tracing.select_source import open_source

LIMIT_S = 8.0
"""After this long no further tree is timed."""
_KILL_AFTER_S = LIMIT_S + 9.0
_ENDS_WITHIN_S = 2.0
_LOOK_EVERY_S = 0.001
_LEAST_AVAILABLE_BYTES = 512 << 20
_LEAST_FREE_INODES = 20_000
_LEAST_FREE_SHARE = 0.02
_DESCRIPTORS = 2_000
_ANSWER_BYTES = 1 << 16
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def why_not(filesystem: FileSystem, place: str | None) -> str | None:
    """Return why nothing can be measured there, None if it can.

    Args:
        place: where the trees would be made, None if no directory suits.
    """
    if filesystem.is_read_only:
        return "the file system is read-only"
    if place is None:
        return "no parent directory is writable by this user alone"
    available, free = filesystem.available_bytes, filesystem.free_inodes
    if available is None:
        return "the file system does not report its free space"
    needed = _needed(filesystem.total_bytes, _LEAST_AVAILABLE_BYTES)
    if available < needed:
        return (
            f"measuring needs {bytes_iec(needed)} of free space, and only "
            f"{bytes_iec(available)} is free"
        )
    needed = _needed(filesystem.total_inodes, _LEAST_FREE_INODES)
    if free is not None and free < needed:
        return (
            f"measuring needs {count(needed)} free inodes, and only "
            f"{counted(free, 'is', 'are')} free"
        )
    return None


def _forbidden_by_policy() -> str | None:
    reason = read_policy(known_strategies=STRATEGIES).read_only
    return None if reason is None else f"{reason} sets read-only mode"


def _needed(total: int | None, least: int) -> int:
    return max(least, int((total or 0) * _LEAST_FREE_SHARE))


def _measure(scratch: Scratch, filesystem: FileSystem, parent: int) -> Calibration:
    deadline = time.monotonic() + LIMIT_S
    allow_more_descriptors(_DESCRIPTORS)

    def goes_on() -> bool:
        return time.monotonic() < deadline and os.getppid() == parent

    foreign = foreign_mount_on_way(scratch.path, read_mounts())
    trees = SmallTrees(scratch.descriptor, goes_on, is_exchangeable=foreign is not None)
    used_s, waited_s = time.process_time(), _processor_wait_s()
    samples, kind = list(trees.samples()), filesystem.kind
    costs = fit(samples, typical(kind), time.time(), os.uname().release, is_whole=trees.is_whole)
    used_s, waited_s = time.process_time() - used_s, _processor_wait_s() - waited_s
    # This process makes the trees, and so needs the processors as the tools do.
    return replace(costs, slowdown=1.0 + max(0.0, waited_s) / max(used_s, 1e-3))


def _processor_wait_s() -> float:
    """Return how long this process was ready without a processor; 0 if nothing measures it."""
    try:
        return sum(processor_s for processor_s, _ in waits_of("/proc/self").values())
    except OSError:
        return 0.0  # a kernel without schedstat, or a hidden /proc


def _measure_in_child(
    scratch: Scratch, filesystem: FileSystem, answer: int, parent: int
) -> NoReturn:
    """In the forked child: send the calibration, or the error that prevented it."""
    code = 1
    try:
        for number in _ENDING:
            signal.signal(number, signal.SIG_DFL)
        try:
            answer_json = encode(_measure(scratch, filesystem, parent))
        except (OSError, EOFError, TuiFsError) as error:
            answer_json = _problem(error)
        os.write(answer, json.dumps(answer_json).encode())
        code = 0
    except BaseException:  # noqa: BLE001  nothing may run on in a copy of the parent
        traceback.print_exc()
    finally:
        try:
            if os.getppid() != parent:
                scratch.remove()
        finally:
            os._exit(code)


def _run_child(target: str) -> dict[str, Any]:
    """Let a child measure; return its answer, and remove what it leaves."""
    filesystem, place = file_system_of(target), place_beside(target)
    reason = why_not(filesystem, place)
    reason = reason or _forbidden_by_policy()
    if reason is not None or place is None:
        return {"problem": f"{reason}."}
    refuse_scratch(PathStr(place))
    set_child_subreaper()
    device = os.lstat(target).st_dev
    with _exclusive_measurement(), no_job_starting():
        check_conflicts((Target(place, take_pin(place)),))
        remove_left_over(device)
        scratch = Scratch(place, device)
    child, parent = 0, os.getpid()
    try:
        answers, answer = os.pipe()
        child = os.fork()
        if child == 0:
            _measure_in_child(scratch, filesystem, answer, parent)
        os.close(answer)
        if not is_readable(answers, _KILL_AFTER_S):
            return {"problem": TOO_SLOW}
        text = os.read(answers, _ANSWER_BYTES)
        return (
            json.loads(text)
            if text
            else {"problem": "the measuring process ended without a result"}
        )
    finally:
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)  # no signal may interrupt the removal
        if not child or _end_children(child):
            scratch.remove()


def _end_children(child: int) -> bool:
    """Kill the child and its descendants; return whether all have ended."""
    deadline = time.monotonic() + _ENDS_WITHIN_S
    os.kill(child, signal.SIGKILL)
    while time.monotonic() < deadline:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if not ended:
            for orphan in children_of(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(orphan, signal.SIGKILL)
            time.sleep(_LOOK_EVERY_S)
    return False


@contextlib.contextmanager
def _exclusive_measurement() -> Iterator[None]:
    """Lock out other measurements of this user; Refused if one is running."""
    state = state_directory()
    require_private(os.path.join(state, "calibrations"))
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(os.path.join(state, "measuring"), flags, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise Refused("Another measurement is under way.") from None
    yield  # the lock lasts until this process ends, so it covers the removal


def _problem(error: OSError | EOFError | TuiFsError) -> dict[str, Any]:
    if isinstance(error, TuiFsError):
        return {"problem": error.sentence}
    return {"problem": getattr(error, "strerror", None) or str(error) or "a process was killed"}


def _end(*_: object) -> NoReturn:
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise SystemExit(1)


def main() -> None:
    """Measure next to the target named on the command line; print the answer as JSON."""
    for number in _ENDING:
        signal.signal(number, _end)
    try:
        answer = _run_child(sys.argv[1])
    except (OSError, TuiFsError) as error:
        answer = _problem(error)
    print(json.dumps(answer))


_MOST_FILES, _FEWEST_FILES = 5_000, 100
"""Their deletion takes 20 to 60 ms. With fewer, one preemption would dominate the time; more take
seconds to create (docs/decisions/0016)."""
_BUILDING_S = 0.1
"""On a slow file system a tree has only the files that can be created in this time."""
_SLOW_S = 0.001
"""If a file takes longer to create than this, a server has to answer, and few files are enough: a
preemption hardly changes their time."""
_PROBED_FILES = 12
_WAITING_FILES, _FEWEST_WAITING_FILES = 24, 6
_WAITING_S = 0.4
"""With a server that takes longer to create the files of a tree one by one, it has fewer."""
_WAITING_THREADS = 64
"""With as many directories, all of them wait at the same time; so do those that make a tree."""
_FORGOTTEN_S = 1.1
"""FUSE usually lets the kernel remember a name for a second. Names of a large tree are forgotten,
so each removal asks the server for its name first."""
_ROUNDS = 3
_NAMES_OF_AN_INODE = 4
_BESIDE = 16
"""Enough directories for every thread to have its own to the end."""
_LARGE_BYTES = 32 << 20
_ORDINARY = Options(batch_size=_MOST_FILES)
"""One process of xargs: the noisy cost of several processes must not add to that of a name."""
_ONE_BY_ONE = Options(batch_size=1)
_TREE = "tree"
_EMPTY = "empty"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class _Contents(Struct, frozen=True):
    """A tree to measure: directories in it, files in each (or in itself), names of each inode."""

    directories: int = 0
    files: int = 0
    names: int = 1
    file_bytes: int = 0

    @property
    def all_files(self) -> int:
        return self.files * max(1, self.directories)


class _Tree(Struct, frozen=True):
    """A tree in the scratch directory, and how it will be deleted."""

    name: str
    strategy: StrategyName
    shape: Shape
    contents: _Contents
    options: Options = _ORDINARY


def _most_informative_first() -> list[StrategyName]:
    """Return all strategies; all but rm and those with threads take about as long as rm."""
    return sorted(
        STRATEGIES, key=lambda name: name != REFERENCE and not STRATEGIES[name].has_threads
    )


def _waiting_shapes(
    strategy: StrategyName, files: int
) -> Iterator[tuple[Shape, _Contents, Options]]:
    """Yield the trees that a strategy deletes where each request waits."""
    yield Shape.EMPTY, _Contents(), _ORDINARY
    yield Shape.FLAT, _Contents(0, files), _ORDINARY
    if not STRATEGIES[strategy].has_threads:
        yield Shape.FOREST, _Contents(files // 2, 1), _ORDINARY
    else:
        threads = replace(_ORDINARY, pace=Pace(threads=_WAITING_THREADS))
        yield Shape.FOREST, _Contents(_WAITING_THREADS, 1), threads
        yield Shape.BESIDE, _Contents(_WAITING_THREADS, files), threads


class SmallTrees:
    """Makes trees in a scratch directory and deletes them with the real tools.

    Args:
        goes_on: called before each tree; no further tree is timed once it returns False.
        is_exchangeable: another machine or program serves the directory, and could replace its
            entries. Tools that work by path are skipped then: they could be redirected outside.

    Attributes:
        is_whole: no tree was skipped because of `goes_on`.
    """

    def __init__(
        self,
        directory: int,
        goes_on: Callable[[], bool],
        *,
        is_exchangeable: bool = False,
    ) -> None:
        self.is_whole = True
        self._is_slow = False
        self._directory = directory
        self._goes_on = goes_on
        self._is_exchangeable = is_exchangeable
        os.mkdir(_EMPTY, 0o700, dir_fd=directory)

    def samples(self) -> Iterator[Sample]:
        """Yield samples, the most informative first, in up to three rounds as time permits."""
        size, rm, xargs = self._size(), REFERENCE, BATCHED
        if self._is_slow:
            yield from self._samples_of_server(size)
            return
        few = _Contents(0, max(min(_FEWEST_FILES, size), size // 100))
        strategies = _most_informative_first()
        for strategy in strategies:
            list(self._run(strategy, Shape.EMPTY, _Contents()))  # loads its programs into memory
        for _ in range(_ROUNDS):
            for strategy in strategies:
                yield from self._run(strategy, Shape.EMPTY, _Contents())
                yield from self._run(strategy, Shape.FLAT, _Contents(0, size))
                # fewer: directories are slow to create
                yield from self._run(strategy, Shape.FOREST, _Contents(size // 8, 1))
                if STRATEGIES[strategy].has_threads:
                    beside = _Contents(_BESIDE, size // _BESIDE)
                    yield from self._run(strategy, Shape.BESIDE, beside)
            yield from self._run(xargs, Shape.BATCHES, few, _ONE_BY_ONE)
            yield from self._run(rm, Shape.BLOCKS, _Contents(0, size // 2, 1, BLOCK_BYTES))
            links = _Contents(0, size // _NAMES_OF_AN_INODE, _NAMES_OF_AN_INODE)
            yield from self._run(rm, Shape.LINKS, links)
            yield from self._run(rm, Shape.LARGE, _Contents(0, 1, 1, _LARGE_BYTES))

    def _samples_of_server(self, files: int) -> Iterator[Sample]:
        """Yield samples where each request waits; all trees of a round are made together.

        The second round, of rm alone, shows how much the answers vary.
        """
        trees = [
            _Tree(f"{_TREE}-{strategy}-{shape}", strategy, shape, contents, options)
            for strategy in _most_informative_first()
            for shape, contents, options in _waiting_shapes(strategy, files)
            if self._can_run(strategy)
        ]
        for round_ in (trees, [tree for tree in trees if tree.strategy == REFERENCE]):
            with ThreadPoolExecutor(len(round_)) as pool:
                allocated = list(pool.map(self._build, round_))
            time.sleep(_FORGOTTEN_S)
            for tree, allocated_bytes in zip(round_, allocated, strict=True):
                if not self._goes_on():
                    self.is_whole = False
                    return
                yield self._timed(tree, allocated_bytes)

    def _size(self) -> int:
        _, reasons = tools_of(STRATEGIES[REFERENCE])
        if reasons:
            raise TuiFsError(f"{REFERENCE} cannot run here: {reasons[0]}.")
        each_s = self._time_to_create(_PROBED_FILES)
        self._is_slow = each_s > _SLOW_S
        if self._is_slow:
            files = int(_WAITING_S / each_s)
            return max(_FEWEST_WAITING_FILES, min(_WAITING_FILES, files))
        each_s = self._time_to_create(_FEWEST_FILES)
        return max(_FEWEST_FILES, min(_MOST_FILES, int(_BUILDING_S / each_s)))

    def _time_to_create(self, files: int) -> float:
        """Return the seconds that the creation of a file takes; remove the files again."""
        probe = _Tree(_TREE, REFERENCE, Shape.FLAT, _Contents(0, files))
        began = time.perf_counter()
        self._build(probe)
        each_s = (time.perf_counter() - began) / files
        self._delete(probe)
        return each_s

    def _can_run(self, strategy: StrategyName) -> bool:
        chosen = STRATEGIES[strategy]
        if self._is_exchangeable and not chosen.guarantees.race_safe:
            return False
        _, reasons = tools_of(chosen)
        return not reasons

    def _run(
        self,
        strategy: StrategyName,
        shape: Shape,
        contents: _Contents,
        options: Options = _ORDINARY,
    ) -> Iterator[Sample]:
        """Time the deletion of a new tree; yield nothing if the strategy cannot run."""
        if not self._can_run(strategy):
            return
        if not self._goes_on():
            self.is_whole = False
            return
        tree = _Tree(_TREE, strategy, shape, contents, options)
        allocated = self._build(tree)
        yield self._timed(tree, allocated)

    def _timed(self, tree: _Tree, allocated_bytes: int) -> Sample:
        """Delete a tree, and return how long that took."""
        seconds, contents = self._delete(tree), tree.contents
        files = contents.all_files
        names = files * contents.names
        batches = math.ceil(names / tree.options.batch_size) if tree.strategy == BATCHED else 0
        return Sample(
            tree.strategy,
            tree.shape,
            seconds,
            names=names,
            directories=contents.directories,
            inodes=files,
            allocated_bytes=allocated_bytes,
            batches=batches,
        )

    def _build(self, tree: _Tree) -> int:
        """Create a tree; return the bytes its files occupy."""
        contents = tree.contents
        os.mkdir(tree.name, 0o700, dir_fd=self._directory)
        with closing(open_directory(tree.name, self._directory)) as top:
            if not contents.directories:
                return _fill(top, contents)
            names = [f"directory-{number:06}" for number in range(contents.directories)]
            if not self._is_slow:
                return sum(_fill_directory(top, name, contents) for name in names)
            with ThreadPoolExecutor(_WAITING_THREADS) as threads:
                fill = partial(_fill_directory, top, contents=contents)
                return sum(threads.map(fill, names))

    def _delete(self, tree: _Tree) -> float:
        """Return the seconds from the release of the tools to their end.

        A tree is passed by its bare name, which resolves only inside the open directory.
        """
        chosen = STRATEGIES[tree.strategy]
        tools, _ = tools_of(chosen)
        steps = chosen.steps(Invocation((tree.name,), tree.options, tools, _EMPTY))
        if isinstance(chosen, ComparesPins):
            steps = chosen.pinned(steps, [_pin_of(tree.name, self._directory)])
        # The same confinement as in a job, whose cost belongs to the unit costs.
        path = os.readlink(f"/proc/self/fd/{self._directory}")
        mechanisms = mechanisms_for(Confine.AUTO, levels=0)
        scratch = ConfinedTarget.of(self._directory, path, read_mounts())
        enclosure = Enclosure(mechanisms, (scratch,), is_inside=True)
        source = open_source(TraceSource.OFF)
        ended = run_steps(steps, self._directory, source, enclosure=enclosure)
        if _exists(tree.name, self._directory):
            raise TuiFsError(f"{tree.strategy} could not delete a scratch tree.")
        return sum(step.wall_s for step in ended.steps)


def _pin_of(name: str, directory: int) -> Pin:
    with closing(open_directory(name, directory)) as descriptor:
        return pin_of(descriptor)


def _fill_directory(above: int, name: str, contents: _Contents) -> int:
    os.mkdir(name, 0o700, dir_fd=above)
    with closing(open_directory(name, above)) as directory:
        return _fill(directory, contents)


def _fill(directory: int, contents: _Contents) -> int:
    allocated = 0
    for number in range(contents.files):
        name = f"file-{number:06}"
        with closing(os.open(name, _NEW, 0o600, dir_fd=directory)) as descriptor:
            if contents.file_bytes:
                os.posix_fallocate(descriptor, 0, contents.file_bytes)
                allocated += os.fstat(descriptor).st_blocks * 512
        for link_number in range(1, contents.names):
            os.link(name, f"{name}-{link_number}", src_dir_fd=directory, dst_dir_fd=directory)
    return allocated


def _exists(name: str, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


if __name__ == "__main__":
    main()
