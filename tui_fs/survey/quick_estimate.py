"""Estimate the size of a large tree within about a second, with a 90 % interval.

1. Census. The sampler reads directories from the top down for two thirds of the time: first huge
   ones, then those with subdirectories, then the others. It calls stat on each subdirectory found;
   st_size and st_nlink yield a rough guess of its entries. A tree read to its end is exact.
2. Samples. The directories found but not read are the frontier. It has two strata, directories with
   and without subdirectories. For the rest of the time the sampler draws independent samples: some
   directories of each stratum, with a probability that is half uniform and half by guessed size. It
   reads the trees below them level by level, at most `_WIDTH` directories a level, each weighted
   for those left out (Chen's heterogeneous sampling). The ratio of the totals of all samples to
   their guessed sizes scales the guess for the frontier.
3. Interval. The variance is that among the samples (Student's t, in logarithms, because totals of
   trees are skewed). Both ends allow for further directories like the one that contributes most.
   The low end is at least the number seen, the high end at most the file system's use.

Bytes are estimated by the mean of some files of every directory that is read. A few files hold most
of the bytes, so the high end allows for files unlike all of those examined.

Directories are opened relative to their parents, and symbolic links are not followed. Other file
systems and mounts count as one entry. Nothing is changed. At most `MAX_FRONTIER` directories are
queued, and at most `MAX_OPEN_DIRECTORIES` are open.
"""

import enum
import heapq
import math
import os
import random
import stat
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import accumulate, count

from msgspec import Struct, field

from tui_fs.linux.directories import DT_DIR, Dirent, open_unnoticed
from tui_fs.linux.mounts import MOUNTINFO, mount_of, mounts_below, read_mounts
from tui_fs.model.quick_estimate import Interval, QuickEstimate
from tui_fs.model.survey import Survey, Totals
from tui_fs.model.target import common_directory
from tui_fs.model.units import counted
from tui_fs.survey.directory_sample import DirectorySample, DirectorySampler, Family

MAX_OPEN_DIRECTORIES = 32
MAX_FRONTIER = 100_000

_CENSUS_SHARE, _CENSUS_END_SHARE = 0.65, 0.9
"""Shares of the time for the census, and for a census that will reach the end of the tree."""
_SAMPLES = 12
"""Approximate number of samples that the time allows."""
_MIN_DRAWS, _MAX_DRAWS = 4, 256
_WIDTH, _CHILDREN = 8, 32
"""Per sample: directories read on a level, and subdirectories of each to stat."""
_FEW = 4
"""A frontier of at most this many directories is read rather than sampled."""
_HUGE_ENTRIES = 2_000
_ENTRIES_BELOW = 10.0
"""Entries assumed below a subdirectory."""
_STATS_AT_ONCE = 128
_MIN_FILES, _MAX_FILES = 16, 1_024
"""Files to stat per directory."""
_ALL_FILES_SHARE = 0.1
"""`_MAX_FILES` applies until this share of the time, so the bytes of a small tree are exact."""

_PRECISE = 0.05
_T_95 = (6.31, 6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.90, 1.86, 1.83, 1.81)
"""Student's t by degrees of freedom, exceeded with a probability of 5 %."""
_NORMAL_95 = 1.645
_MIN_SPREAD = 0.006
"""Error that no sample shows: names that come and go, unevenly spread positions."""
_LINDY = 19.0
"""A quantity seen so far continues more than this many times as long with a probability of 5 %."""
_FURTHER_LEAVES, _FURTHER_TREES, _FURTHER_BYTES = 2, 6, 2
"""How many more like the largest one may have been missed, measured with first_figure.py."""
_UNSEEN_FILE_BYTES = 64 << 10
"""Mean size of the files that are unlike all of those examined."""
_BLOCK_BYTES = 512
_NAME_BYTES = 12
"""Assumed length of a name that was not read."""
_NAMES_A_READ = 1_000
"""Names of that length in one 32 KiB buffer of getdents64."""


class Figure(enum.IntEnum):
    """The quantities that are summed up. The first three have an interval."""

    ENTRIES = 0
    DIRECTORIES = 1
    ALLOCATED = 2
    NON_EMPTY = 3
    PARENTS = 4
    READS = 5
    PATH_BYTES = 6


_INTERVALS = (Figure.ENTRIES, Figure.DIRECTORIES, Figure.ALLOCATED)

Values = list[float]


def _zeros() -> Values:
    return [0.0] * len(Figure)


def _add(total: Values, values: Sequence[float], weight: float = 1.0) -> None:
    for figure, value in enumerate(values):
        total[figure] += weight * value


class _Root(Struct, eq=False):
    path: bytes
    descriptor: int
    device: int
    family: Family
    mounts: frozenset[bytes]


class _Node(Struct, eq=False):
    """A directory that was found.

    Attributes:
        guess: rough number of entries of its subtree, by its status.
        is_leaf: it has no subdirectories, by its link count.
        weight: number of directories that it represents.
    """

    root: _Root
    parent: "_Node | None"
    name: bytes
    depth: int
    path_bytes: int
    guess: float
    is_leaf: bool
    weight: float = 1.0

    @property
    def path(self) -> bytes:
        names: list[bytes] = []
        node = self
        while node.parent is not None:
            names.append(node.name)
            node = node.parent
        return b"/".join([self.root.path.rstrip(b"/"), *reversed(names)])


class _Reading(Struct):
    """The sums of directories that were read, without the trees below their subdirectories.

    Attributes:
        variances, met: of the first three values; `met` counts what was seen, not estimated.
        unknown: the part of the entries that is a guess without evidence.
        largest_bytes: the most bytes that one examined file represents.
        subdirectories: estimated number in a single directory.
        children: subdirectories that were examined by stat and can be entered.
    """

    values: Values = field(default_factory=_zeros)
    variances: Values = field(default_factory=_zeros)
    met: Values = field(default_factory=_zeros)
    unknown: float = 0.0
    largest_bytes: float = 0.0
    is_complete: bool = True
    subdirectories: float = 0.0
    children: list[_Node] = field(default_factory=list)

    def add(self, reading: "_Reading") -> None:
        """Add the sums of another directory."""
        _add(self.values, reading.values)
        _add(self.variances, reading.variances)
        _add(self.met, reading.met)
        self.unknown += reading.unknown
        self.largest_bytes = max(self.largest_bytes, reading.largest_bytes)
        self.is_complete = self.is_complete and reading.is_complete

    def add_closed(self, is_directory: bool = True) -> None:
        """Count an entry that is not entered."""
        for figure in (Figure.ENTRIES, Figure.DIRECTORIES)[: 1 + is_directory]:
            self.values[figure] += 1.0
            self.met[figure] += 1.0


class _Directories:
    """Open directories relative to their parents, with a cache of open ones."""

    def __init__(self) -> None:
        self._descriptors: OrderedDict[_Node, int] = OrderedDict()

    def open(self, node: _Node) -> int:
        """Return a descriptor at offset 0, valid until the next call.

        Raises:
            OSError: it is gone, was replaced, is on another file system or is not readable.
        """
        missing: list[_Node] = []
        nearest = node
        while nearest not in self._descriptors and nearest.parent is not None:
            missing.append(nearest)
            nearest = nearest.parent
        descriptor = self._descriptors.get(nearest, nearest.root.descriptor)
        if nearest in self._descriptors:
            self._descriptors.move_to_end(nearest)
        for below in reversed(missing):
            descriptor = open_unnoticed(below.name, parent=descriptor)
            self._descriptors[below] = descriptor
            if len(self._descriptors) > MAX_OPEN_DIRECTORIES:
                os.close(self._descriptors.popitem(last=False)[1])
            if os.fstat(descriptor).st_dev != node.root.device:
                raise OSError(f"{below.name!r} is on another file system")
        if not missing:
            os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.popitem()[1])


class _Stratum:
    """Directories to draw with known probabilities, and the totals of the samples below them.

    Args:
        nodes: each with the number of directories that it represents.
        draws: approximate number of directories to draw for a sample.

    Attributes:
        samples: of each sample the values, and the guessed size of the directories drawn.
    """

    def __init__(self, nodes: Iterable[tuple[_Node, float]], draws: int) -> None:
        self._nodes = sorted(nodes, key=lambda item: (item[0].is_leaf, item[0].guess))
        self.size = sum(weight * node.guess for node, weight in self._nodes)
        number = sum(weight for _, weight in self._nodes)
        self._chances = [
            min(1.0, draws * weight * (node.guess / self.size + 1 / number) / 2)
            for node, weight in self._nodes
        ]
        self._ends = list(accumulate(self._chances))
        self.samples: list[tuple[Values, float]] = []

    def draw(self, rng: random.Random) -> Iterator[tuple[_Node, float]]:
        """Yield a sample of the directories, each with the number of directories it represents.

        This is systematic sampling: the cumulative probabilities, in order of guessed sizes, are
        walked in steps of 1 from a random start. So every sample has small and large directories.
        """
        at = rng.random()
        while at < self._ends[-1]:
            place = bisect_left(self._ends, at)
            node, weight = self._nodes[place]
            yield node, weight / self._chances[place]
            at += 1.0

    @property
    def ratio(self) -> float:
        """The factor from the mean of the samples to the total of the stratum."""
        return self.size * len(self.samples) / max(1e-9, sum(size for _, size in self.samples))

    def differences(self, figure: Figure) -> Iterator[float]:
        """Return the residual of each sample against the ratio estimate."""
        sizes = sum(size for _, size in self.samples)
        each = sum(values[figure] for values, _ in self.samples) / max(1e-9, sizes)
        ratio = self.ratio
        return (ratio * (values[figure] - each * size) for values, size in self.samples)


class _OutOfTime(Exception):
    """The time ran out within a sample; a partial sample would bias the estimate."""


class Sampler:
    """Estimate the trees below some directories.

    Args:
        clock: returns seconds.
    """

    def __init__(
        self, roots: Sequence[_Root], rng: random.Random, clock: Callable[[], float], limit_s: float
    ) -> None:
        self._rng, self._clock, self._limit_s = rng, clock, limit_s
        self._began_s = clock()
        self._roots = roots
        self._directories = _Directories()
        self._reader = DirectorySampler(rng, lambda: self._is_over(1.0))
        self._known = _Reading()
        self._queue: list[tuple[tuple[bool, bool, bool, float], int, _Node]] = []
        self._numbers = count()
        self._weighted: list[_Node] = []
        self._strata: list[_Stratum] = []
        self._largest: Values = _zeros()
        self._directories_read = self._files_examined = 0
        self._bytes_by_name = self._bytes_once = 0.0
        self._max_entries = self._max_depth = self._max_path_bytes = self._unreadable = 0
        for root in roots:
            self._push(_node(root, None, b"", os.fstat(root.descriptor)))

    def run(self) -> QuickEstimate:
        """Read and sample until the time is up, and return the estimate."""
        try:
            self._take_census()
            self._take_samples()
        except _OutOfTime:
            pass
        finally:
            self._directories.close()
        return self._estimate()

    def _is_over(self, share: float) -> bool:
        return self._clock() >= self._began_s + share * self._limit_s

    def _push(self, node: _Node) -> None:
        rank = (node.depth > 0, node.guess < _HUGE_ENTRIES, node.is_leaf, -node.guess)
        heapq.heappush(self._queue, (rank, next(self._numbers), node))

    def _take_census(self) -> None:
        while self._queue and self._has_census_time():
            *_, node = heapq.heappop(self._queue)
            now_s = self._clock()
            end_s = self._began_s + _CENSUS_SHARE * self._limit_s
            # No directory may take more than half of the remaining time of the census.
            reading = self._read(node, MAX_FRONTIER, (now_s + end_s) / 2)
            self._known.add(reading)
            seen = len(reading.children)
            if reading.subdirectories > seen + 0.5:
                # These directories also represent unseen ones: reading them yields no exact count.
                for child in reading.children:
                    child.weight = reading.subdirectories / seen
                self._weighted += reading.children
            else:
                for child in reading.children:
                    self._push(child)

    def _has_census_time(self) -> bool:
        waiting = len(self._queue) + len(self._weighted)
        if not self._directories_read:
            return True
        if waiting <= _FEW:
            return not self._is_over(1.0)
        if not self._is_over(_CENSUS_SHARE):
            return waiting < MAX_FRONTIER
        each_s = (self._clock() - self._began_s) / self._directories_read
        left_s = self._began_s + _CENSUS_END_SHARE * self._limit_s - self._clock()
        are_leaves = self._queue[0][-1].is_leaf and not self._weighted
        return are_leaves and waiting * each_s < left_s

    @property
    def _frontier(self) -> list[_Node]:
        return [node for *_, node in self._queue] + self._weighted

    def _take_samples(self) -> None:
        used_s = max(1e-6, self._clock() - self._began_s)
        affordable = (self._limit_s - used_s) / used_s * self._directories_read / _SAMPLES
        draws = max(_MIN_DRAWS, min(_MAX_DRAWS, round(affordable)))
        frontier = self._frontier
        for is_leaf in (True, False):
            nodes = [(node, node.weight) for node in frontier if node.is_leaf == is_leaf]
            if nodes:
                number = draws // 4 if is_leaf else draws // 2
                self._strata.append(_Stratum(nodes, max(2, number)))
        while self._strata:
            sample = [
                [(self._below(node), node, weight) for node, weight in stratum.draw(self._rng)]
                for stratum in self._strata
            ]
            for stratum, drawn in zip(self._strata, sample, strict=True):
                totals = _zeros()
                for values, _, weight in drawn:
                    _add(totals, values, weight)
                    for figure in _INTERVALS:
                        largest = max(self._largest[figure], weight * values[figure])
                        self._largest[figure] = largest
                size = sum(weight * node.guess for _, node, weight in drawn)
                stratum.samples.append((totals, size))

    def _below(self, top: _Node) -> Values:
        """Estimate the tree below a directory, without the directory itself.

        Raises:
            _OutOfTime: the time was up before all chosen directories were read.
        """
        total = _zeros()
        total[Figure.ENTRIES] = total[Figure.DIRECTORIES] = -1.0
        level = [(top, 1.0)]
        while level:
            if len(level) > _WIDTH:
                level = list(_Stratum(level, _WIDTH).draw(self._rng))
            below: list[tuple[_Node, float]] = []
            for node, weight in level:
                if self._is_over(1.0):
                    raise _OutOfTime
                reading = self._read(node, _CHILDREN, self._began_s)
                _add(total, reading.values, weight)
                scale = weight * reading.subdirectories / max(1, len(reading.children))
                below += [(child, scale) for child in reading.children]
            level = below
        return total

    def _read(self, node: _Node, max_children: int, until_s: float) -> _Reading:
        """Read a directory, and stat some of its files and subdirectories.

        Args:
            until_s: the moment until which it examines more than a few subdirectories.
        """
        reading = _Reading()
        self._directories_read += 1
        try:
            descriptor = self._directories.open(node)
            status = os.fstat(descriptor)
            sample = self._reader.read(
                descriptor, status, node.root.family, lambda: self._clock() < until_s
            )
        except (FileNotFoundError, NotADirectoryError):
            return reading
        except OSError:  # no permission, a loop, a stale handle, a damaged block, another mount
            self._unreadable += 1
            reading.add_closed()
            return reading
        covered = _leave_out_mounts(node, sample) if node.root.mounts else 0
        for _ in range(covered):
            reading.add_closed()
        self._max_entries = max(self._max_entries, round(sample.entries) + covered)
        others = [name for name in sample.names if name.kind != DT_DIR]
        self._count(reading, node, status, sample, others)
        self._examine_files(reading, descriptor, sample, others)
        if sample.directories > 0.5:
            names = [name for name in sample.names if name.kind == DT_DIR]
            chosen = self._rng.sample(names, min(len(names), max_children))
            self._find_children(reading, descriptor, node, sample, chosen, until_s)
        return reading

    def _count(
        self,
        reading: _Reading,
        node: _Node,
        status: os.stat_result,
        sample: DirectorySample,
        others: list[Dirent],
    ) -> None:
        number = max(0.0, sample.entries - sample.directories)
        own_bytes = float(status.st_blocks * _BLOCK_BYTES)
        lengths = [len(name.name) for name in others]
        name_bytes = sum(lengths) / max(1, len(others))
        values = {
            Figure.ENTRIES: 1.0 + number,
            Figure.DIRECTORIES: 1.0,
            Figure.ALLOCATED: own_bytes,
            Figure.NON_EMPTY: float(sample.entries > 0),
            Figure.PARENTS: float(sample.directories > 0),
            Figure.READS: 2.0 + sample.entries // _NAMES_A_READ,
            Figure.PATH_BYTES: number * (node.path_bytes + 1 + name_bytes),
        }
        for figure, value in values.items():
            reading.values[figure] += value
        _add(reading.variances, (sample.variance, sample.directories_variance))
        _add(reading.met, (1.0 + min(number, len(others)), 1.0, own_bytes))
        reading.unknown, reading.is_complete = sample.unknown, sample.is_complete
        if sample.entries > 0:
            self._max_depth = max(self._max_depth, node.depth + 1)
        longest = node.path_bytes + max(lengths, default=-1) + 1
        self._max_path_bytes = max(self._max_path_bytes, longest)

    def _examine_files(
        self, reading: _Reading, descriptor: int, sample: DirectorySample, others: list[Dirent]
    ) -> None:
        """Estimate the bytes of a directory's files from a random sample of them."""
        number = sample.entries - sample.directories
        wanted, share = _MAX_FILES, _ALL_FILES_SHARE
        if self._is_over(_ALL_FILES_SHARE):
            wanted, share = max(_MIN_FILES, min(_MAX_FILES, round(number / 16))), 1.0
        chosen = self._rng.sample(others, min(len(others), wanted))
        end_s = self._began_s + share * self._limit_s
        files = [status for _, status in self._stat(descriptor, chosen, end_s) if status]
        if not files or number <= 0:
            return
        self._files_examined += len(files)
        # `once` splits the bytes of a file among its links; `by_name` counts them for each name.
        by_name = [file.st_blocks * _BLOCK_BYTES for file in files]
        once = [bytes_ / max(1, file.st_nlink) for bytes_, file in zip(by_name, files, strict=True)]
        self._bytes_by_name += sum(by_name)
        self._bytes_once += sum(once)
        mean = sum(once) / len(files)
        scale = number / len(files)
        reading.values[Figure.ALLOCATED] += number * mean
        reading.met[Figure.ALLOCATED] += sum(once)
        reading.largest_bytes = (scale - 1) * max(once)
        squares = sum((bytes_ - mean) ** 2 for bytes_ in once) / max(1, len(files) - 1)
        spread = squares if len(files) > 1 else mean * mean
        reading.variances[Figure.ALLOCATED] = number * max(0.0, scale - 1) * spread

    def _find_children(
        self,
        reading: _Reading,
        descriptor: int,
        node: _Node,
        sample: DirectorySample,
        chosen: list[Dirent],
        until_s: float,
    ) -> None:
        examined = 0
        for name, status in self._stat(descriptor, chosen, until_s):
            examined += 1
            if status is None:
                self._unreadable += 1
            if status is None or status.st_dev != node.root.device:
                reading.add_closed()
            elif stat.S_ISDIR(status.st_mode):
                reading.children.append(_node(node.root, node, name, status))
            else:  # replaced since it was read
                reading.add_closed(is_directory=False)
        # Only children that can be entered represent unseen subdirectories.
        each = max(1.0, sample.directories / max(1, examined))
        reading.subdirectories = each * len(reading.children)

    def _stat(
        self, descriptor: int, names: list[Dirent], until_s: float
    ) -> Iterator[tuple[bytes, os.stat_result | None]]:
        """Yield names with their status, None if stat fails, until `until_s`.

        The names are in random order, but each part of them is sorted by inode number, because
        neighbouring inodes are close on the disk.
        """
        for at in range(0, len(names), _STATS_AT_ONCE):
            if at and self._clock() >= until_s:
                return
            part = names[at : at + _STATS_AT_ONCE]
            for name in sorted(part, key=lambda name: name.inode):
                try:
                    yield name.name, os.stat(name.name, dir_fd=descriptor, follow_symlinks=False)
                except FileNotFoundError:
                    continue
                except OSError:  # no permission to search, a damaged inode
                    yield name.name, None

    def _estimate(self) -> QuickEstimate:
        known, frontier = self._known, self._frontier
        nodes = sum(node.weight for node in frontier)
        number = len(self._strata[0].samples) if self._strata else 0
        below = _zeros()
        for stratum in self._strata:
            for totals, _ in stratum.samples:
                _add(below, totals, stratum.ratio / number)
        values, met = [*known.values], [*known.met]
        _add(values, below)
        _add(values, (nodes, nodes))
        _add(met, (len(frontier), len(frontier)))
        met[Figure.ENTRIES] = max(met[Figure.ENTRIES], self._max_depth + 1.0)
        met[Figure.DIRECTORIES] = max(met[Figure.DIRECTORIES], float(self._max_depth))
        unknown = [known.unknown, 0.0, 0.0]
        if frontier and not number:
            guess = self._guess(frontier)
            _add(unknown, guess[: len(unknown)])
            _add(values, guess)
        share = known.unknown / max(1.0, values[Figure.ENTRIES])
        unknown[Figure.ALLOCATED] += share * values[Figure.ALLOCATED]
        are_leaves = all(node.is_leaf for node in frontier)
        further = _FURTHER_LEAVES if are_leaves else _FURTHER_TREES
        ranges = []
        for figure in _INTERVALS:
            variance = known.variances[figure]
            if number > 1:
                series = zip(*(s.differences(figure) for s in self._strata), strict=True)
                variance += sum(sum(each) ** 2 for each in series) / (number - 1) / number
            elif number:
                variance += below[figure] ** 2
            largest = self._largest[figure] / max(1, number)
            below_it, above_it = largest, further * largest
            if figure is Figure.ALLOCATED:
                below_it += known.largest_bytes
                above_it = _FURTHER_BYTES * (above_it + known.largest_bytes)
            below_it += unknown[figure]
            above_it += _LINDY * unknown[figure]
            deviation = math.sqrt(variance)
            ranges.append(
                _interval(values[figure], met[figure], deviation, number, below_it, above_it)
            )
        return self._result(values, met, ranges, known.is_complete and not frontier)

    def _guess(self, frontier: Sequence[_Node]) -> Values:
        """Return a guess of the tree below a frontier without samples."""
        known = self._known.values
        entries, directories = sum(node.weight * node.guess for node in frontier), 0.0
        if not all(node.is_leaf for node in frontier):
            # Without evidence, assume that as much remains as was read.
            entries = max(entries, known[Figure.ENTRIES])
            directories = max(entries / _ENTRIES_BELOW, known[Figure.DIRECTORIES])
        each_bytes = known[Figure.ALLOCATED] / max(1.0, known[Figure.ENTRIES])
        nodes = sum(node.weight for node in frontier)
        each_path = sum(node.weight * node.path_bytes for node in frontier) / nodes
        guess = _zeros()
        guess[Figure.ENTRIES] = entries
        guess[Figure.DIRECTORIES] = directories
        guess[Figure.ALLOCATED] = entries * each_bytes
        guess[Figure.NON_EMPTY] = nodes + directories
        guess[Figure.PARENTS] = min(nodes, directories)
        guess[Figure.READS] = 2.0 * (nodes + directories) + entries // _NAMES_A_READ
        guess[Figure.PATH_BYTES] = max(0.0, entries - directories)
        guess[Figure.PATH_BYTES] *= each_path + 1 + _NAME_BYTES
        return guess

    def _result(
        self, values: Values, met: Values, ranges: Sequence[Interval], is_complete: bool
    ) -> QuickEstimate:
        entries, directories, allocated = ranges
        inodes, used_bytes = _used(self._roots)
        by_name = self._bytes_by_name / self._bytes_once if self._bytes_once else 1.0
        if is_complete:
            entries, directories = (
                Interval(number, number, number)
                for number in (round(values[Figure.ENTRIES]), round(values[Figure.DIRECTORIES]))
            )
        else:
            entries = _at_most(entries, met[Figure.ENTRIES], inodes * by_name)
        directories = _at_most(directories, met[Figure.DIRECTORIES], inodes)
        # The other links of a file may all be inside the tree, or all outside.
        high = max(allocated.high, allocated.expected * by_name)
        # Rule of three: at most 3 / n of all files are unlike all of the n examined (95 %).
        unseen = min(1.0, 3 / max(1, self._files_examined))
        unseen *= max(0, entries.high - directories.low - self._files_examined)
        high = max(high, allocated.expected + unseen * _UNSEEN_FILE_BYTES)
        allocated = Interval(allocated.low, allocated.expected, math.ceil(high))
        allocated = _at_most(allocated, met[Figure.ALLOCATED], used_bytes)
        read = counted(self._directories_read, "directory", "directories")
        about = f"about {directories.expected:,}"
        basis = f"Estimated from a sample: {read} of {about}."
        if is_complete:
            basis = f"Every directory was read ({self._directories_read:,})."
        elif directories.expected <= 1:
            basis = "Extrapolated from a part of the directory."
        return QuickEstimate(
            entries=entries,
            directories=directories,
            allocated_bytes=allocated,
            elapsed_s=self._clock() - self._began_s,
            is_complete=is_complete,
            samples=self._directories_read + self._files_examined,
            basis=basis,
            survey=self._survey(values, entries.expected - directories.expected, directories),
        )

    def _survey(self, values: Values, others: int, directories: Interval) -> Survey:
        path = common_directory([os.fsdecode(root.path) for root in self._roots])
        above_bytes = others * (len(os.fsencode(path)) + 1)
        path_bytes = round(values[Figure.PATH_BYTES])
        allocated_bytes = round(values[Figure.ALLOCATED])
        return Survey(
            path=path,
            totals=Totals(others, directories.expected, allocated_bytes=allocated_bytes),
            freed_bytes_max=allocated_bytes,
            max_depth=self._max_depth,
            max_path_bytes=self._max_path_bytes,
            max_entries_in_directory=self._max_entries,
            non_empty_directories=round(values[Figure.NON_EMPTY]),
            directory_reads=round(values[Figure.READS]),
            parent_directories=round(values[Figure.PARENTS]),
            non_directory_path_bytes=path_bytes,
            non_directory_levels=others,
            non_directory_name_bytes=max(0, path_bytes - above_bytes),
            unreadable=self._unreadable,
            backend="quick estimate",
            inodes=others + directories.expected,
        )


def estimates(
    paths: Sequence[str],
    limit_s: float = 1.0,
    seed: int | None = None,
    clock: Callable[[], float] = time.monotonic,
    mountinfo: str = MOUNTINFO,
) -> Iterator[QuickEstimate]:
    """Yield an estimate after `limit_s`, then further ones that each take twice as long.

    The iterator ends when the whole tree was read, or the interval of the entries is narrow enough.

    Args:
        paths: absolute paths of directories, none inside another.
        seed: makes the random choices reproducible for the same times of the clock.

    Raises:
        OSError: one of the directories cannot be opened.
        BadInput: the mount table cannot be parsed.
    """
    rng = random.Random(seed)
    with ExitStack() as descriptors:
        roots = _open_roots(paths, mountinfo, descriptors)
        while True:
            estimate = Sampler(roots, rng, clock, limit_s).run()
            yield estimate
            if estimate.is_complete or estimate.entries.is_within(_PRECISE):
                return
            limit_s *= 2


def quick_estimate(paths: Sequence[str]) -> QuickEstimate:
    """Return the first estimate, after about a second; see `estimates`."""
    return next(estimates(paths))


def _open_roots(paths: Sequence[str], mountinfo: str, descriptors: ExitStack) -> list[_Root]:
    table = read_mounts(mountinfo)
    roots: list[_Root] = []
    for path in paths:
        descriptor = open_unnoticed(os.fsencode(path))
        descriptors.callback(os.close, descriptor)
        mount = mount_of(path, table)
        family = Family.of(mount.filesystem) if mount else Family.OTHER
        below = frozenset(os.fsencode(at.mount_point) for at in mounts_below(path, table))
        device = os.fstat(descriptor).st_dev
        roots.append(_Root(os.fsencode(path), descriptor, device, family, below))
    return roots


def _used(roots: Sequence[_Root]) -> tuple[float, float]:
    """Return inodes and bytes in use; infinite where unknown, or where files may share blocks."""
    inodes = bytes_ = 0.0
    for root in {root.device: root for root in roots}.values():
        room = os.fstatvfs(root.descriptor)
        has_inodes = room.f_files and root.family is not Family.OTHER
        inodes += room.f_files - room.f_ffree if has_inodes else math.inf
        has_own_blocks = root.family in (Family.EXT, Family.TMPFS)
        bytes_ += (room.f_blocks - room.f_bfree) * room.f_frsize if has_own_blocks else math.inf
    return inodes, bytes_


def _node(root: _Root, parent: _Node | None, name: bytes, status: os.stat_result) -> _Node:
    number = root.family.subdirectories(status)
    guess = 1.0 + root.family.guess_names(status.st_size) + _ENTRIES_BELOW * (number or 0)
    depth, path_bytes = 0, len(root.path)
    if parent is not None:
        depth, path_bytes = parent.depth + 1, parent.path_bytes + 1 + len(name)
    return _Node(root, parent, name, depth, path_bytes, guess, number == 0)


def _leave_out_mounts(node: _Node, sample: DirectorySample) -> int:
    """Remove mount points from the sample; return their number."""
    path = node.path.rstrip(b"/") + b"/"
    inside = [name for name in sample.names if path + name.name not in node.root.mounts]
    covered = len(sample.names) - len(inside)
    sample.names = inside
    sample.directories -= covered
    sample.entries -= covered
    return covered


def _interval(
    value: float, met: float, deviation: float, samples: int, below: float, above: float
) -> Interval:
    """Return the interval of a sum that is at least `met`."""
    rest = max(0.0, value - met)
    relative = deviation / rest if rest else 0.0
    freedom = samples - 1 if samples else 20
    t = _T_95[freedom] if freedom < len(_T_95) else _NORMAL_95 * (1 + 0.9 / freedom)
    spread = min(50.0, math.sqrt(math.log1p(relative * relative)) * t + _MIN_SPREAD)
    low = met + max(0.0, rest * math.exp(-spread) - below)
    high = met + rest * math.exp(spread) + above
    return Interval(math.floor(low), round(met + rest), math.ceil(high))


def _at_most(interval: Interval, met: float, limit: float) -> Interval:
    if interval.high <= limit:
        return interval
    # The limit does not narrow the relative error: scale the low end down with the estimate.
    low = math.floor(max(met, interval.low * min(1.0, limit / max(1, interval.expected))))
    high = max(low, math.floor(limit))
    return Interval(low, min(interval.expected, high), high)
