"""A first estimate of time: typical figures for the file system, not measured on this one."""

from dataclasses import dataclass

from tui_fs.cost.calls import batches_of
from tui_fs.model.strategy import Options, StrategyName
from tui_fs.model.survey import Survey

START_S = 0.02
"""Starting the tools themselves."""

UNCERTAINTY = 2.5
"""Between caches warm and cold, a fast disk and a busy one, lies more than this factor."""

_MICROSECONDS_PER_ENTRY = {
    "ext4": 12.0,
    "ext3": 12.0,
    "ext2": 10.0,
    "xfs": 20.0,
    "btrfs": 25.0,
    "tmpfs": 4.0,
    "overlay": 20.0,
    "zfs": 30.0,
    "nfs": 400.0,
    "nfs4": 400.0,
    "fuse": 100.0,
    "cifs": 800.0,
}
_MICROSECONDS_ELSEWHERE = 30.0
_RELATIVE_TO_RM = {
    StrategyName.RM: 1.0,
    StrategyName.FIND: 1.0,
    StrategyName.XARGS: 1.2,
    StrategyName.RSYNC: 1.15,
    StrategyName.RMTREE: 1.3,
}
_SECONDS_PER_BATCH = 0.0012
"""One more rm process: fork, execve, its libraries (measured: 200,000 files, batches of 1)."""
_SECONDS_PER_DELETED_BYTE = 1.0 / (40 << 30)
"""Giving back extents: about 40 GiB/s on ext4 with large files."""


@dataclass(frozen=True, slots=True)
class Seconds:
    """Low, expected and high."""

    low: float
    expected: float
    high: float


def first_estimate(
    survey: Survey, strategy: StrategyName, options: Options, filesystem: str, runs: int = 1
) -> Seconds:
    """Return how long the strategy may take on a file system of this type.

    Args:
        runs: how often its tools are started.
    """
    family = filesystem.partition(".")[0]
    each_s = _MICROSECONDS_PER_ENTRY.get(family, _MICROSECONDS_ELSEWHERE) / 1e6
    seconds = START_S * runs + survey.totals.entries * each_s * _RELATIVE_TO_RM[strategy]
    seconds += survey.totals.allocated_bytes * _SECONDS_PER_DELETED_BYTE
    if strategy is StrategyName.XARGS:
        seconds += batches_of(survey, options) * _SECONDS_PER_BATCH / options.processes
    return Seconds(seconds / UNCERTAINTY, seconds, seconds * UNCERTAINTY)


def rests_on(filesystem: str) -> str:
    """Return in words where these figures come from."""
    known = filesystem.partition(".")[0] in _MICROSECONDS_PER_ENTRY
    where = f"typical figures for {filesystem}" if known else "typical figures for a disk"
    return f"{where}; not measured on this machine"
