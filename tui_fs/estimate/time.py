"""How long a deletion will take: the counts of the survey times their unit costs."""

import math

from msgspec import Struct

from tui_fs.estimate.calibration import BLOCK_BYTES, Calibration
from tui_fs.model.calls import TraceSource
from tui_fs.model.strategy import StrategyName
from tui_fs.model.survey import Survey
from tui_fs.strategies.base import Strategy
from tui_fs.strategies.prediction import Work
from tui_fs.strategies.registry import REFERENCE, STRATEGIES
from tui_fs.strategies.unit_costs import UnitCosts

UNCERTAINTY_UNMEASURED = 2.5
"""Warm and cold caches, a fast disk and a busy one differ by more than this factor."""
UNCERTAINTY_ELSEWHERE = 2.0
"""Measured on another file system of the same type."""
NOISE_BORNE = 1.3
"""Repeated times within this factor do not cast doubt on the measurement, which is the median of
three."""
UNCERTAINTY_MEASURED = 2**0.5
"""Nine of ten trees of a second or more were within this factor (docs/testing.md)."""
RATE_SPREAD = 1.1
"""Under a rate limit, the tools are slower than it where they wait."""
BURST_S = 0.01
"""A tool without commands runs freely until it is stopped, and its last burst is not paid back by
waiting. It ran for 1 to 4 ms (rm, find and rmtree, 1,500 files on ext4, at most 1,000 per second:
1.25 to 1.45 s instead of 1.50 s)."""

GROWTH_PER_DOUBLING = 0.03
GROWTH_FROM_ENTRIES = 10_000
"""Trees larger than this miss the processor's caches more often: each doubling costs 3 % more
(ext4, xfs and tmpfs, up to 378,000 entries: tests/bench/estimate_accuracy.py)."""
SECONDS_A_COUNTED_CALL = {TraceSource.PERF: 0.2e-6, TraceSource.STRACE: 40e-6}
"""Under the kernel's counters 100,000 files on ext4 took 1.20 s instead of 1.17; under strace,
where each call stops twice, 9.2 s instead of 1.2 (200,000 calls)."""
NAME_BYTE_S = 2.5e-9
"""Longer names cost more: 200 bytes 0.4 microseconds on ext4, 0.7 on tmpfs (measured)."""
LEVEL_S = 0.07e-6
"""One more level of a path that rm under xargs walks, for its status and for its removal."""
_CROWDED_LEVELS = 800
"""With this many levels each costs twice as much as in short paths, because the path is not in the
nearest cache (68 ns a level in chains of 300, 74 of 500, 108 of 1,000, 132 of 1,900; names are half
as deep on average: tests/bench/path_levels.py)."""
COUNTED_PROCESS_S = 0.0009
"""Extra cost of a process under the kernel's counters, which it inherits."""

_NAME_S = {
    "ext4": 12e-6,
    "ext3": 12e-6,
    "ext2": 10e-6,
    "xfs": 17e-6,
    "btrfs": 25e-6,
    "tmpfs": 5e-6,
    "overlay": 20e-6,
    "zfs": 30e-6,
    "nfs": 400e-6,
    "nfs4": 400e-6,
    "fuse": 100e-6,
    "cifs": 800e-6,
}
_NAME_ELSEWHERE_S = 30e-6


class Seconds(Struct, frozen=True):
    """Low, expected and high."""

    low: float
    expected: float
    high: float


def typical(kind: str) -> Calibration:
    """Return the unit costs of a type of file system, as measured elsewhere."""
    name_s = _NAME_S.get(kind.partition(".")[0], _NAME_ELSEWHERE_S)
    costs = {name: strategy.cost for name, strategy in STRATEGIES.items()}
    prices = {
        str(name): UnitCosts(cost.start_s, name_s * cost.typical, name_s * cost.typical)
        for name, cost in costs.items()
    }
    return Calibration(
        kind,
        measured_at=0.0,
        kernel="",
        prices=prices,
        batch_s=0.0008,  # fork, execve, its libraries (200,000 files, batches of 1)
        block_s=name_s * 0.2,
        byte_s=1.0 / (40 << 30),  # extents of large files on ext4
        link_s=name_s * 0.4,
    )


def predicted_seconds(
    strategy: Strategy,
    work: Work,
    calibration: Calibration,
    *,
    is_of_this: bool = True,
    trace: TraceSource = TraceSource.OFF,
    calls: int = 0,
    slowdown: float = 1.0,
) -> Seconds:
    """Return how long the strategy will take.

    Args:
        is_of_this: the calibration was made on the target's own file system.
        trace: source that counts its calls, which takes time.
        calls: number of its calls.
        slowdown: by the present load, which may end or last: it extends only the high end, as far
            as it exceeds the load of the calibration. That load extends the low end.
    """
    survey, totals = work.survey, work.survey.totals
    own, rm = calibration.prices[strategy.name], calibration.prices[REFERENCE]
    costs, gain = strategy.unit_costs(work, own, rm)
    seconds = costs.start_s * work.runs + _entries_s(survey, costs, calibration, gain)
    levels = _walked_levels(totals.non_directories, strategy.path_levels(work))
    seconds += levels * LEVEL_S
    start_s = calibration.batch_s
    if trace is TraceSource.PERF:
        start_s += COUNTED_PROCESS_S
    seconds += strategy.repeated_starts(work) * start_s
    seconds += calls * SECONDS_A_COUNTED_CALL.get(trace, 0.0)
    seconds *= learned_factor(calibration, strategy.name, is_of_this=is_of_this)
    spread = UNCERTAINTY_UNMEASURED
    if calibration.measured_at:
        spread = UNCERTAINTY_MEASURED if is_of_this else UNCERTAINTY_ELSEWHERE
        spread *= max(1.0, calibration.noise / NOISE_BORNE)
    calibrated = calibration.slowdown if is_of_this else 1.0
    rate_per_s = work.options.pace.rate_per_s
    limit_s = (survey.matched or totals).entries / rate_per_s if rate_per_s else 0.0
    low = seconds / spread / calibrated
    # Only a tool that takes commands keeps the limit by itself, from the first entry to the last.
    burst = 0.0 if strategy.guarantees.speaks or low <= 0 else min(1.0, BURST_S / low)
    return Seconds(
        max(low, limit_s * (1.0 - burst)),
        max(seconds, limit_s),
        max(seconds * spread * max(1.0, slowdown / calibrated), limit_s * RATE_SPREAD),
    )


def learned_factor(calibration: Calibration, strategy: StrategyName, *, is_of_this: bool) -> float:
    """Return how long finished jobs there took, relative to their prediction; 1 without any."""
    experience = calibration.experience.get(strategy)
    return experience.factor if experience is not None and is_of_this else 1.0


def _entries_s(
    survey: Survey, price: UnitCosts, calibration: Calibration, gain: float = 1.0
) -> float:
    """Return the time that the entries take.

    Args:
        gain: factor on the costs that were measured with rm alone.
    """
    totals = survey.totals
    names, directories = totals.non_directories, totals.directories
    inodes = survey.inodes - directories if survey.inodes else names
    of_files = max(0, totals.allocated_bytes - directories * BLOCK_BYTES)
    with_blocks = min(inodes, of_files // BLOCK_BYTES)
    more_s = survey.non_directory_name_bytes * NAME_BYTE_S
    more_s -= max(0, names - inodes) * calibration.link_s
    more_s += with_blocks * calibration.block_s
    more_s += (of_files - with_blocks * BLOCK_BYTES) * calibration.byte_s
    seconds = names * price.name_s + directories * price.directory_s + gain * more_s
    return seconds * _growth(totals.entries)


def _walked_levels(names: int, levels: int) -> float:
    """Return how many levels of short paths cost as much as the levels of some names.

    Args:
        levels: sum over all names.
    """
    return levels * (1 + (levels / max(1, names) / _CROWDED_LEVELS) ** 2)


def _growth(entries: int) -> float:
    if entries <= GROWTH_FROM_ENTRIES:
        return 1.0
    return 1.0 + GROWTH_PER_DOUBLING * math.log2(entries / GROWTH_FROM_ENTRIES)
