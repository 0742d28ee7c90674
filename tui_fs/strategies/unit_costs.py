"""What a strategy costs in seconds, for each entry, and how that relates to rm."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """What a strategy costs: its start, an empty file, a directory beside the names in it.

    Attributes:
        beside_s: what an empty file costs where threads have a directory each; None where there
            are no threads, or that was not measured: as much as in one directory.
    """

    start_s: float
    name_s: float
    directory_s: float
    beside_s: float | None = None


@dataclass(frozen=True, slots=True)
class CostRelation:
    """What is known of a strategy's unit costs before they are measured.

    Attributes:
        start_s: its start.
        typical: what a name or a directory costs, by what it costs with rm.
        name_bounds, directory_bounds: the same at least and at most. The kernel does the same for
            each strategy; a measured cost beyond is taken for a disturbance.
    """

    start_s: float
    typical: float
    name_bounds: tuple[float, float]
    directory_bounds: tuple[float, float]
