"""What deleting costs on one file system: fitted to small trees that were deleted there."""

import enum
import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from tui_fs.model.errors import TuiFsError
from tui_fs.model.strategy import StrategyName
from tui_fs.strategies.registry import BATCHED, REFERENCE, STRATEGIES
from tui_fs.strategies.unit_costs import UnitCosts


class Shape(enum.StrEnum):
    """The trees that are deleted to measure."""

    EMPTY = "empty"
    FLAT = "flat"
    FOREST = "forest"
    BESIDE = "beside"
    BATCHES = "batches"
    BLOCKS = "blocks"
    LINKS = "links"
    LARGE = "large"
    COLD_FLAT = "cold flat"
    COLD_FOREST = "cold forest"


@dataclass(frozen=True, slots=True)
class Sample:
    """One small tree that was deleted.

    Attributes:
        names: of files; directories are not among them.
        directories: that of the tree itself left out.
        inodes: of the files.
        allocated_bytes: of the files.
        batches: rm processes that xargs started.
    """

    strategy: StrategyName
    shape: Shape
    seconds: float
    names: int = 0
    directories: int = 0
    inodes: int = 0
    allocated_bytes: int = 0
    batches: int = 0


@dataclass(frozen=True, slots=True)
class LearnedFactor:
    """What finished jobs have taken, compared with what was measured for them before the start.

    Attributes:
        jobs: how many.
        factor: measured by predicted seconds, the geometric mean of late ones.
    """

    jobs: int = 0
    factor: float = 1.0

    def refined(self, factor: float) -> "LearnedFactor":
        """Return the experience with one more job; the last five weigh most."""
        weight = 1.0 / min(self.jobs + 1, 5)
        return LearnedFactor(self.jobs + 1, self.factor ** (1 - weight) * factor**weight)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What deleting costs on one file system.

    Attributes:
        kind: type of the file system.
        measured_at: seconds since the epoch; 0 for what nobody has measured here.
        kernel: release of the kernel it was measured with.
        prices: by strategy.
        batch_s: one more rm process that xargs starts.
        block_s: what a file with blocks costs beside an empty one.
        byte_s: what each byte beyond the first block of a file costs.
        link_s: what a name costs less if its inode stays, or has other names.
        cold_name_s, cold_directory_s: what each costs more if nothing of it is in memory; None if
            that was not measured.
        noise: by which factor times of the same lay apart; a busy machine's is large.
        is_whole: there was time to measure everything.
        experience: by strategy, of jobs that were predicted with these prices.
    """

    kind: str
    measured_at: float
    kernel: str
    prices: dict[str, UnitCosts]
    batch_s: float
    block_s: float
    byte_s: float
    link_s: float
    cold_name_s: float | None = None
    cold_directory_s: float | None = None
    noise: float = 1.0
    is_whole: bool = True
    experience: dict[str, LearnedFactor] = field(default_factory=dict)


BLOCK_BYTES = 4_096
_MOST_OF_A_BLOCK = 2.0
"""A file's one block costs no more than twice its name: beyond, the machine was held up (5
microseconds on a quiet ext4, 33 and 69 on a busy one, beside 12 for a name)."""
_LEAST_LARGE_BYTES = 16 << 20
_NOISE_OF_ONE_ROUND = 1.5
"""The machine was so slow or busy that nothing could be measured twice."""


def fit(
    samples: Sequence[Sample],
    typical: Calibration,
    measured_at: float,
    kernel: str,
    *,
    is_whole: bool = True,
) -> Calibration:
    """Return the prices that explain the samples.

    Args:
        typical: for what was not measured; its prices of strategies are taken relative to rm.

    Raises:
        TuiFsError: not even rm was measured.
    """
    every = _Samples(samples)
    batch_s = _batch_s(every, typical)
    rm = _prices(every, REFERENCE, batch_s)
    if rm is None or rm.name_s == 0:
        raise TuiFsError("The file system is too slow to be measured.")
    ratio = rm.name_s / typical.prices[REFERENCE].name_s
    prices: dict[str, UnitCosts] = {}
    for name, strategy in STRATEGIES.items():
        elsewhere = typical.prices[name]
        found = _prices(every, name, batch_s) or UnitCosts(
            elsewhere.start_s, elsewhere.name_s * ratio, elsewhere.directory_s * ratio
        )
        beside_s = found.beside_s
        prices[name] = UnitCosts(
            found.start_s,
            _between(found.name_s, rm.name_s, strategy.cost.name_bounds),
            _between(found.directory_s, rm.directory_s, strategy.cost.directory_bounds),
            None if beside_s is None else _between(beside_s, rm.name_s, strategy.cost.name_bounds),
        )
    block_s = byte_s = link_s = 0.0
    if (blocks := every.of(REFERENCE, Shape.BLOCKS)) is not None:
        found_s = _rest(blocks.seconds - rm.start_s, blocks.names * rm.name_s, blocks.names)
        block_s = min(found_s, _MOST_OF_A_BLOCK * rm.name_s)
    if (large := every.of(REFERENCE, Shape.LARGE)) is not None:
        known = rm.start_s + large.names * (rm.name_s + block_s)
        byte_s = _rest(large.seconds, known, large.allocated_bytes - large.names * BLOCK_BYTES)
        if large.allocated_bytes < _LEAST_LARGE_BYTES:
            byte_s = 0.0  # a file system that compresses, or allocates late
    if (links := every.of(REFERENCE, Shape.LINKS)) is not None:
        without = rm.start_s + links.names * rm.name_s
        link_s = min(rm.name_s, _rest(without, links.seconds, links.names - links.inodes))
    return Calibration(
        typical.kind,
        measured_at,
        kernel,
        prices,
        batch_s,
        block_s or typical.block_s,  # nothing is free: then the noise was larger
        byte_s or typical.byte_s,
        link_s,
        *_cold(every, rm),
        every.noise,
        is_whole,
    )


class _Samples:
    def __init__(self, samples: Sequence[Sample]) -> None:
        self._samples = samples

    def of(self, strategy: StrategyName, shape: Shape) -> Sample | None:
        """Return a sample with the median of the times of all its like."""
        wanted = strategy, shape
        alike = [sample for sample in self._samples if (sample.strategy, sample.shape) == wanted]
        if not alike:
            return None
        seconds = statistics.median_low(sample.seconds for sample in alike)
        return next(sample for sample in alike if sample.seconds == seconds)

    @property
    def noise(self) -> float:
        """The median factor by which two times of the same lie apart, of more the mean of pairs."""
        times: dict[tuple[StrategyName, Shape], list[float]] = {}
        for sample in self._samples:
            if sample.shape in (Shape.FLAT, Shape.FOREST, Shape.BLOCKS):
                times.setdefault((sample.strategy, sample.shape), []).append(sample.seconds)
        factors = [_factor_between(alike) for alike in times.values() if len(alike) > 1]
        return statistics.median(factors) if factors else _NOISE_OF_ONE_ROUND


def _factor_between(times: Sequence[float]) -> float:
    pairs = itertools.combinations(times, 2)
    return statistics.geometric_mean(max(pair) / min(pair) for pair in pairs)


def _prices(every: _Samples, strategy: StrategyName, batch_s: float) -> UnitCosts | None:
    empty = every.of(strategy, Shape.EMPTY)
    flat = every.of(strategy, Shape.FLAT)
    forest = every.of(strategy, Shape.FOREST)
    if empty is None or flat is None or forest is None:
        return None
    start_s = empty.seconds
    name_s = _rest(flat.seconds - flat.batches * batch_s, start_s, flat.names)
    beside_s = None
    if (beside := every.of(strategy, Shape.BESIDE)) is not None:
        # a directory with the names of the forest's costs as much as there
        like_forest = min(beside.directories / max(1, forest.directories), 0.5)
        known = start_s + like_forest * max(0.0, forest.seconds - start_s)
        beside_s = _rest(beside.seconds, known, beside.names - round(like_forest * forest.names))
    each_s = name_s if beside_s is None else beside_s
    known = start_s + forest.batches * batch_s + forest.names * each_s
    return UnitCosts(start_s, name_s, _rest(forest.seconds, known, forest.directories), beside_s)


def _cold(every: _Samples, rm: UnitCosts) -> tuple[float | None, float | None]:
    """Compare trees that were not in memory with what rm takes for those that are."""
    flat, forest = (every.of(REFERENCE, shape) for shape in (Shape.COLD_FLAT, Shape.COLD_FOREST))
    if flat is None or forest is None:
        return None, None
    name_s = _rest(flat.seconds, rm.start_s + flat.names * rm.name_s, flat.names)
    known = rm.start_s + forest.names * (rm.name_s + name_s) + forest.directories * rm.directory_s
    return name_s, _rest(forest.seconds, known, forest.directories)


def _batch_s(every: _Samples, typical: Calibration) -> float:
    """Compare many batches of few names with as few as there can be, of many."""
    many = every.of(BATCHED, Shape.BATCHES)
    few = every.of(BATCHED, Shape.FLAT)
    empty = every.of(BATCHED, Shape.EMPTY)
    if many is None or few is None or empty is None:
        return typical.batch_s
    # many = start + names_m·name + batches_m·batch; few alike: eliminate the price of a name
    share = many.names / few.names
    known = empty.seconds + share * (few.seconds - empty.seconds)
    return _rest(many.seconds, known, many.batches - share * few.batches)


def _between(price_s: float, other_s: float, of_other: tuple[float, float]) -> float:
    least, most = of_other
    return min(max(price_s, least * other_s), most * other_s)


def _rest(seconds: float, known_s: float, number: float) -> float:
    """Return what is left for each of a number."""
    return max(0.0, seconds - known_s) / number if number > 0 else 0.0
