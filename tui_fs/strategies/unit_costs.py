"""What a strategy costs in seconds, for each entry, and how that relates to rm."""

from msgspec import Struct


class UnitCosts(Struct, frozen=True):
    """What a strategy costs: its start, an empty file, a directory without the names in it.

    Attributes:
        beside_s: what an empty file costs where each thread has a directory of its own; None
            without threads or if not measured: then it costs as much as in one directory.
    """

    start_s: float
    name_s: float
    directory_s: float
    beside_s: float | None = None


class CostRelation(Struct, frozen=True):
    """What is known of a strategy's unit costs before they are measured.

    Attributes:
        start_s: its start.
        typical: cost of a name or a directory, relative to its cost with rm.
        name_bounds, directory_bounds: the least and the most of that ratio. The kernel does the
            same work for each strategy, so a measured cost outside is treated as a disturbance.
    """

    start_s: float
    typical: float
    name_bounds: tuple[float, float]
    directory_bounds: tuple[float, float]
