"""Small trees that are made in a scratch directory and deleted, timed or counted."""

import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tui_fs.estimate.calibration import BLOCK_BYTES, CountedCalls, Sample, Shape
from tui_fs.estimate.fitted_calls import (
    CalibrationTree,
    CountedRun,
    calibration_shapes,
    fit,
    installed_versions,
    is_measured,
    versions_used,
)
from tui_fs.job.launcher import run_steps
from tui_fs.linux.filesystem import drop_caches
from tui_fs.linux.pins import pin_of
from tui_fs.model.calls import TraceSource
from tui_fs.model.errors import TuiFsError
from tui_fs.model.strategy import Options, StrategyName
from tui_fs.model.target import Pin
from tui_fs.strategies.base import ComparesPins
from tui_fs.strategies.prediction import Work
from tui_fs.strategies.registry import BATCHED, REFERENCE, STRATEGIES, tools_of
from tui_fs.survey.runner import SurveyRunner
from tui_fs.tracing.select_source import likely_source, open_source

_MOST_FILES, _FEWEST_FILES = 5_000, 100
"""They take 20 to 60 ms: with fewer, a moment in which something else has the processor decides,
and more take seconds to make (docs/decisions/0016)."""
_BUILDING_S = 0.1
"""On a slow file system the trees are as small as can be made in this time."""
_ROUNDS = 3
_NAMES_OF_AN_INODE = 4
_BESIDE = 16
"""Directories enough that every thread has its own to the end."""
_LARGE_BYTES = 32 << 20
_ORDINARY = Options(batch_size=_MOST_FILES)
"""One process of xargs: the price of several, which is noisy, is no part of that of a name."""
_ONE_BY_ONE = Options(batch_size=1)
_LEVELS = 250
_SHORTER = Options(batch_size=200)
"""Paths of 250 levels are too long for more at once."""
_TREE = "tree"
_OTHER = "other"
_EMPTY = "empty"
_READ = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class _Contents:
    """A tree to measure: directories below it, files in each (or in it), names of each inode.

    Attributes:
        is_chain: each of the directories is in the one before, and the files are in the last.
    """

    directories: int = 0
    files: int = 0
    names: int = 1
    file_bytes: int = 0
    is_chain: bool = False

    @property
    def all_files(self) -> int:
        return self.files * (1 if self.is_chain else max(1, self.directories))


class SmallTrees:
    """Makes trees in a scratch directory and deletes them with the real tools.

    Args:
        path: of that directory.
        goes_on: asked before each tree.
        is_exchangeable: another machine or program answers for what is in the directory, and could
            exchange it. Tools that work by path are left out then, because they could be led
            outside.

    Attributes:
        is_whole: no tree was left out because it did not go on.
    """

    def __init__(
        self,
        directory: int,
        path: str,
        goes_on: Callable[[], bool],
        *,
        is_exchangeable: bool = False,
    ) -> None:
        self.is_whole = True
        self._directory = directory
        self._path = path
        self._goes_on = goes_on
        self._is_exchangeable = is_exchangeable
        # Calls are counted by the path of the tree.
        self._counts = likely_source(None) is TraceSource.PERF and not is_exchangeable
        os.mkdir(_EMPTY, 0o700, dir_fd=directory)

    def samples(self) -> Iterator[Sample]:
        """Yield what was measured, the most telling first, three times where the time permits.

        Processes under counters once, and last: the kernel takes two seconds to give them up.
        """
        size, rm, xargs = self._size(), REFERENCE, BATCHED
        few = _Contents(0, max(_FEWEST_FILES, size // 100))
        for strategy in STRATEGIES:
            list(self._run(strategy, Shape.EMPTY, _Contents()))  # its programs are in memory now
        for _ in range(_ROUNDS):
            for strategy in STRATEGIES:
                yield from self._run(strategy, Shape.EMPTY, _Contents())
                yield from self._run(strategy, Shape.FLAT, _Contents(0, size))
                # directories take long to make
                yield from self._run(strategy, Shape.FOREST, _Contents(size // 8, 1))
                if STRATEGIES[strategy].has_threads:
                    beside = _Contents(_BESIDE, size // _BESIDE)
                    yield from self._run(strategy, Shape.BESIDE, beside)
            yield from self._run(xargs, Shape.BATCHES, few, _ONE_BY_ONE)
            deep = _Contents(_LEVELS, size // 2, is_chain=True)
            yield from self._run(xargs, Shape.DEEP, deep, _SHORTER)
            yield from self._run(rm, Shape.BLOCKS, _Contents(0, size // 2, 1, BLOCK_BYTES))
            links = _Contents(0, size // _NAMES_OF_AN_INODE, _NAMES_OF_AN_INODE)
            yield from self._run(rm, Shape.LINKS, links)
            yield from self._run(rm, Shape.LARGE, _Contents(0, 1, 1, _LARGE_BYTES))
        if self._counts:
            counted = _Contents(0, 2 * few.files)
            yield from self._run(xargs, Shape.COUNTED, counted, _ONE_BY_ONE)

    def cold_samples(self) -> Iterator[Sample]:
        """Yield trees that had to be read from the disk; the whole machine's caches are dropped."""
        for _ in range(2):
            flat, forest = _Contents(0, _MOST_FILES), _Contents(_MOST_FILES // 8, 1)
            yield from self._run(REFERENCE, Shape.COLD_FLAT, flat)
            yield from self._run(REFERENCE, Shape.COLD_FOREST, forest)

    def _size(self) -> int:
        _, reasons = tools_of(STRATEGIES[REFERENCE])
        if reasons:
            raise TuiFsError(f"{REFERENCE} cannot run here: {reasons[0]}.")
        began = time.perf_counter()
        self._build(_Contents(0, _FEWEST_FILES))
        each_s = (time.perf_counter() - began) / _FEWEST_FILES
        self._delete(REFERENCE, _TREE)
        return max(_FEWEST_FILES, min(_MOST_FILES, int(_BUILDING_S / each_s)))

    def _run(
        self,
        strategy: StrategyName,
        shape: Shape,
        contents: _Contents,
        options: Options = _ORDINARY,
    ) -> Iterator[Sample]:
        """Delete a tree, newly made of `contents`; nothing where the strategy cannot run."""
        chosen = STRATEGIES[strategy]
        if self._is_exchangeable and not chosen.guarantees.race_safe:
            return
        _, reasons = tools_of(chosen)
        if reasons:
            return
        if not self._goes_on():
            self.is_whole = False
            return
        allocated = self._build(contents)
        if shape in (Shape.COLD_FLAT, Shape.COLD_FOREST):
            drop_caches(self._directory)
            os.mkdir(_OTHER, 0o700, dir_fd=self._directory)
            self._delete(strategy, _OTHER)  # its programs are in memory again
        seconds, _ = self._delete(strategy, _TREE, options, is_counted=shape is Shape.COUNTED)
        files = contents.all_files
        names = files * contents.names
        yield Sample(
            strategy,
            shape,
            seconds,
            names=names,
            directories=contents.directories,
            inodes=files,
            allocated_bytes=allocated,
            batches=math.ceil(names / options.batch_size) if strategy == BATCHED else 0,
            levels=contents.directories if contents.is_chain else 0,
        )

    def _build(self, contents: _Contents) -> int:
        """Make a tree; return the bytes its files occupy."""
        os.mkdir(_TREE, 0o700, dir_fd=self._directory)
        top = os.open(_TREE, _READ, dir_fd=self._directory)
        try:
            if not contents.directories:
                return _fill(top, contents)
            if contents.is_chain:
                return _fill_chain(top, contents)
            allocated = 0
            for number in range(contents.directories):
                os.mkdir(f"directory-{number:06}", 0o700, dir_fd=top)
                one = os.open(f"directory-{number:06}", _READ, dir_fd=top)
                try:
                    allocated += _fill(one, contents)
                finally:
                    os.close(one)
            return allocated
        finally:
            os.close(top)

    def counted(self) -> dict[str, CountedCalls]:
        """Return what the installed tools call, for those that no formula is known for."""
        found: dict[str, CountedCalls] = {}
        versions = installed_versions()
        for name, strategy in STRATEGIES.items() if self._counts else ():
            _, reasons = tools_of(strategy)
            if reasons or is_measured(strategy, versions):
                continue
            runs: list[CountedRun] = []
            for tree in calibration_shapes():
                if not self._goes_on():
                    return found
                runs.append(self._count(name, tree))
            used = versions_used(strategy, versions)
            found[name] = CountedCalls(used, fit(strategy, runs))
        return found

    def _count(self, strategy: StrategyName, tree: CalibrationTree) -> CountedRun:
        os.mkdir(_TREE, 0o700, dir_fd=self._directory)
        for name in tree.directories:
            os.mkdir(f"{_TREE}/{name}", 0o700, dir_fd=self._directory)
        for name in tree.files:
            os.close(os.open(f"{_TREE}/{name}", _NEW, 0o600, dir_fd=self._directory))
        options = Options(batch_size=tree.batch_size)
        target = f"{self._path}/{_TREE}"
        *_, survey = SurveyRunner([target], threads=1, checks_surroundings=False).run()
        # by the path that was counted: its length matters
        _, calls = self._delete(strategy, _TREE, options, self._path, is_counted=True)
        return CountedRun(Work(survey, options), calls)

    def _delete(
        self,
        strategy: StrategyName,
        tree: str,
        options: Options = _ORDINARY,
        above: str = "",
        *,
        is_counted: bool = False,
    ) -> tuple[float, dict[str, int]]:
        """Return the seconds from the release of the tools to their end, and their calls.

        Args:
            above: the path the trees are named by; empty for their bare names, which lead nowhere
                but into the directory that is held.
        """
        tools, _ = tools_of(STRATEGIES[strategy])
        target, empty = os.path.join(above, tree), os.path.join(above, _EMPTY)
        chosen = STRATEGIES[strategy]
        steps = chosen.steps((target,), options, tools, empty)
        if isinstance(chosen, ComparesPins):
            steps = chosen.pinned(steps, [_pin_of(tree, self._directory)])
        processes = sum(len(step) for step in steps)
        source = open_source(TraceSource.PERF if is_counted else TraceSource.OFF, processes)
        ended = run_steps(steps, self._directory, source)
        if _exists(tree, self._directory):
            raise TuiFsError(f"{strategy} could not delete a scratch tree.")
        calls = {name: one.calls for name, one in ended.counts.calls.items()}
        return sum(one.wall_s for one in ended.steps), calls


def _pin_of(name: str, directory: int) -> Pin:
    descriptor = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
    try:
        return pin_of(descriptor)
    finally:
        os.close(descriptor)


def _fill_chain(top: int, contents: _Contents) -> int:
    directory = os.dup(top)
    try:
        for _ in range(contents.directories):
            os.mkdir("d", 0o700, dir_fd=directory)
            below = os.open("d", _READ, dir_fd=directory)
            os.close(directory)
            directory = below
        return _fill(directory, contents)
    finally:
        os.close(directory)


def _fill(directory: int, contents: _Contents) -> int:
    allocated = 0
    for number in range(contents.files):
        name = f"file-{number:06}"
        descriptor = os.open(name, _NEW, 0o600, dir_fd=directory)
        try:
            if contents.file_bytes:
                os.posix_fallocate(descriptor, 0, contents.file_bytes)
                allocated += os.fstat(descriptor).st_blocks * 512
        finally:
            os.close(descriptor)
        for other in range(1, contents.names):
            os.link(name, f"{name}-{other}", src_dir_fd=directory, dst_dir_fd=directory)
    return allocated


def _exists(name: str, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
