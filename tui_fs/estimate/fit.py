"""Fit the unit costs of a file system to small trees that were deleted there."""

import itertools
import statistics
from collections.abc import Sequence

from msgspec import Struct

from tui_fs.estimate.calibration import BLOCK_BYTES, Calibration
from tui_fs.linux.mounts import is_served
from tui_fs.model.compat import StrEnum
from tui_fs.model.errors import TuiFsError
from tui_fs.model.strategy import StrategyName
from tui_fs.strategies.registry import BATCHED, REFERENCE, STRATEGIES
from tui_fs.strategies.unit_costs import UnitCosts

_MOST_OF_A_BLOCK = 2.0
"""A file's one block costs no more than twice its name. A larger result means a busy machine (5
microseconds on a quiet ext4, 33 and 69 on a busy one; a name costs 12)."""
_LEAST_LARGE_BYTES = 16 << 20
_LEAST_OF_A_WAIT = 1 / 128
"""Share of the time of a name if as many threads wait for a server as the engine starts."""
TOO_SLOW = "The file system is too slow, or this machine too busy, to be measured."
_NOISE_OF_ONE_ROUND = 1.5
"""The machine was so slow or busy that nothing could be measured twice."""


class Shape(StrEnum):
    """The trees that a calibration deletes."""

    EMPTY = "empty"
    FLAT = "flat"
    FOREST = "forest"
    BESIDE = "beside"
    BATCHES = "batches"
    BLOCKS = "blocks"
    LINKS = "links"
    LARGE = "large"


class Sample(Struct, frozen=True):
    """One small tree that was deleted.

    Attributes:
        names: number of names of files; directories excluded.
        directories: without that of the tree itself.
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
        typical: replaces costs that were not measured; those of strategies are relative to rm.

    Raises:
        TuiFsError: not even rm was measured.
    """
    every = _Samples(samples)
    batch_s = _batch_s(every, typical)
    rm = _prices(every, REFERENCE, batch_s)
    if rm is None or rm.name_s == 0:
        raise TuiFsError(TOO_SLOW)
    ratio = rm.name_s / typical.prices[REFERENCE].name_s
    prices: dict[str, UnitCosts] = {}
    for name, strategy in STRATEGIES.items():
        elsewhere, bounds = typical.prices[name], strategy.cost.name_bounds
        if strategy.has_threads and is_served(typical.kind):
            bounds = _LEAST_OF_A_WAIT, bounds[1]
        costs = _prices(every, name, batch_s) or UnitCosts(
            elsewhere.start_s, elsewhere.name_s * ratio, elsewhere.directory_s * ratio
        )
        beside_s = costs.beside_s
        prices[name] = UnitCosts(
            costs.start_s,
            _between(costs.name_s, rm.name_s, bounds),
            _between(costs.directory_s, rm.directory_s, strategy.cost.directory_bounds),
            None if beside_s is None else _between(beside_s, rm.name_s, bounds),
        )
    block_s = byte_s = link_s = 0.0
    if (blocks := every.of(REFERENCE, Shape.BLOCKS)) is not None:
        measured_s = _rest(blocks.seconds - rm.start_s, blocks.names * rm.name_s, blocks.names)
        block_s = min(measured_s, _MOST_OF_A_BLOCK * rm.name_s)
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
        block_s or typical.block_s,  # nothing is free: a 0 means that the noise was larger
        byte_s or typical.byte_s,
        link_s,
        every.noise,
        is_whole,
    )


class _Samples:
    def __init__(self, samples: Sequence[Sample]) -> None:
        self._samples = samples

    def of(self, strategy: StrategyName, shape: Shape) -> Sample | None:
        """Return the sample with the median time of this strategy and shape."""
        wanted = strategy, shape
        alike = [sample for sample in self._samples if (sample.strategy, sample.shape) == wanted]
        if not alike:
            return None
        seconds = statistics.median_low(sample.seconds for sample in alike)
        return next(sample for sample in alike if sample.seconds == seconds)

    @property
    def noise(self) -> float:
        """The median over trees of the factor between repeated times, averaged over pairs."""
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
        # a directory with as many names as the forest's costs as much as there
        like_forest = min(beside.directories / max(1, forest.directories), 1.0)
        known = start_s + like_forest * max(0.0, forest.seconds - start_s)
        beside_s = _rest(beside.seconds, known, beside.names - round(like_forest * forest.names))
    each_s = name_s if beside_s is None else beside_s
    known = start_s + forest.batches * batch_s + forest.names * each_s
    return UnitCosts(start_s, name_s, _rest(forest.seconds, known, forest.directories), beside_s)


def _batch_s(every: _Samples, typical: Calibration) -> float:
    """Compare many small batches with the fewest possible large ones."""
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
    """Return the rest of the seconds per unit."""
    return max(0.0, seconds - known_s) / number if number > 0 else 0.0
