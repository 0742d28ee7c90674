"""Unit costs of deleting on one file system."""

from msgspec import Struct, field

from tui_fs.strategies.unit_costs import UnitCosts

BLOCK_BYTES = 4_096


class LearnedFactor(Struct, frozen=True):
    """How long finished jobs took, relative to their prediction.

    Attributes:
        jobs: number of jobs.
        factor: measured divided by predicted seconds, the geometric mean of recent jobs.
    """

    jobs: int = 0
    factor: float = 1.0

    def refined(self, factor: float) -> "LearnedFactor":
        """Return the factor with one more job; the last five weigh most."""
        weight = 1.0 / min(self.jobs + 1, 5)
        return LearnedFactor(self.jobs + 1, self.factor ** (1 - weight) * factor**weight)


class Calibration(Struct, frozen=True):
    """The unit costs of deleting on one file system.

    Attributes:
        kind: type of the file system.
        measured_at: seconds since the epoch; 0 if not measured on this file system.
        kernel: release of the kernel it was measured with.
        prices: by strategy.
        batch_s: cost of one more rm process that xargs starts.
        block_s: extra cost of a file with blocks over an empty one.
        byte_s: cost of each byte beyond the first block of a file.
        link_s: reduction of a name's cost if its inode stays, or has other names.
        noise: factor between repeated times of the same tree; large on a busy machine.
        is_whole: everything was measured in the time available.
        slowdown: how many times longer a thread took beside the load of the measurement.
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
    noise: float = 1.0
    is_whole: bool = True
    slowdown: float = 1.0
    experience: dict[str, LearnedFactor] = field(default_factory=dict)
