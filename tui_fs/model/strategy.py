"""Strategies by name, their options, and what each promises."""

import enum
from dataclasses import dataclass
from typing import NewType

StrategyName = NewType("StrategyName", str)
"""The name of a strategy in `tui_fs.strategies.registry`."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Which entries to delete; directories are kept whenever a filter is set.

    Attributes:
        name_glob: shell pattern on the last component, as find -name.
        min_size_bytes: files of at least this apparent size.
        modified_before_s: entries last modified at or before this moment (epoch seconds).
    """

    name_glob: str | None = None
    min_size_bytes: int | None = None
    modified_before_s: int | None = None

    @property
    def active(self) -> bool:
        """Whether anything is filtered at all."""
        return (self.name_glob, self.min_size_bytes, self.modified_before_s) != (None, None, None)


class IoPriority(enum.StrEnum):
    """How the disk's scheduler ranks the tools, as far as it ranks at all (ioprio_set(2))."""

    NORMAL = "normal"
    LOW = "low"
    IDLE = "idle"


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a strategy may go; can be changed while it runs.

    Attributes:
        gentle: hold the tools back while others wait for the disk or the processors.
        rate_per_s: entries removed in a second at most; 0 for no limit.
        nice: niceness of the tools.
        io_priority: their rank at the disk.
        threads: of a tool that takes their number; 0 lets it choose.
    """

    gentle: bool = False
    rate_per_s: int = 0
    nice: int = 0
    io_priority: IoPriority = IoPriority.NORMAL
    threads: int = 0


@dataclass(frozen=True, slots=True)
class Options:
    """How a strategy is to run.

    Attributes:
        keep_root: empty the target, but keep the directory itself.
        batch_size: names that xargs gives to one rm.
        processes: rm processes that xargs runs side by side.
        pace: how fast it may go at the start.
        accept_races: run a strategy that is not safe against races where others may write.
    """

    keep_root: bool = False
    batch_size: int = 1000
    processes: int = 1
    pace: Pace = Pace()
    accept_races: bool = False
    filters: Filters = Filters()


@dataclass(frozen=True, slots=True)
class Guarantees:
    """What a strategy promises whatever is in the tree.

    Attributes:
        race_safe: a hostile writer in the tree cannot lead it outside.
        mount_safe: it stops at other file systems.
        any_depth: it deletes paths longer than PATH_MAX.
        max_levels: directories inside each other that it survives; None for any number.
        speaks: its tool counts and reports its own calls, and takes commands while it runs.
    """

    race_safe: bool
    mount_safe: bool
    any_depth: bool
    takes_filters: bool
    max_levels: int | None = None
    speaks: bool = False


Argv = tuple[str, ...]
Step = tuple[Argv, ...]
"""Processes connected by pipes; the steps of a strategy run one after the other."""


def flatten(steps: tuple[Step, ...]) -> tuple[Argv, ...]:
    """Return every argv list in the order of its start."""
    return tuple(argv for step in steps for argv in step)
