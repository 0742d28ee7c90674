"""The options and guarantees of strategies."""

import zlib
from typing import NewType

from msgspec import Struct
from msgspec.structs import replace

from tui_fs.model.compat import StrEnum
from tui_fs.model.units import count, counted

StrategyName = NewType("StrategyName", str)
"""The name of a strategy in `tui_fs.strategies.registry`."""


class Share(Struct, frozen=True):
    """One of several shares of the entries directly in a target, each for another machine.

    The names decide, so that all machines divide a directory equally without a message between
    them: a name belongs to share ``crc32(name) mod of + 1``. A directory belongs to its share with
    everything in it.

    Attributes:
        number: 1 to `of`.
    """

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def contains(self, name: bytes) -> bool:
        """Return whether a name directly in a target belongs to this share."""
        return zlib.crc32(name) % self.of == self.number - 1


class Filters(Struct, frozen=True):
    """Select the entries to delete.

    Attributes:
        name_glob: shell pattern for the last component, as in find -name.
        min_size_bytes: files of at least this apparent size.
        size_below_bytes: files smaller than this apparent size.
        modified_before_s: entries last modified at or before this time (epoch seconds).
        modified_after_s: entries last modified after this time (epoch seconds).
        share: only this share of the entries; the entries of others are not even counted.
    """

    name_glob: str | None = None
    min_size_bytes: int | None = None
    size_below_bytes: int | None = None
    modified_before_s: int | None = None
    modified_after_s: int | None = None
    share: Share | None = None

    @property
    def active(self) -> bool:
        """Whether a condition on single entries is set, which keeps all directories."""
        return replace(self, share=None) != Filters()


class IoPriority(StrEnum):
    """The I/O priority of the tools, if the I/O scheduler supports it (ioprio_set(2))."""

    NORMAL = "normal"
    LOW = "low"
    IDLE = "idle"


class Pace(Struct, frozen=True):
    """The speed limits of a strategy; they can be changed while it runs.

    Attributes:
        gentle: stop the tools while other processes wait for the disk or the processors.
        rate_per_s: maximum number of entries removed per second; 0 for no limit.
        nice: niceness of the tools.
        io_priority: I/O priority of the tools.
        threads: number of threads for a tool with that option; 0 for automatic.
    """

    gentle: bool = False
    rate_per_s: int = 0
    nice: int = 0
    io_priority: IoPriority = IoPriority.NORMAL
    threads: int = 0

    @property
    def limits(self) -> list[str]:
        """All but `gentle` and `threads` in words, as far as they differ from the normal pace."""
        words = [f"limit {count(self.rate_per_s)} /s"] if self.rate_per_s else []
        words += [f"nice {self.nice}"] if self.nice else []
        is_normal = self.io_priority is IoPriority.NORMAL
        return words if is_normal else [*words, f"ionice {self.io_priority}"]

    def in_words(self) -> str:
        """Return what differs from the normal pace; empty if nothing does."""
        return " · ".join(self.words)

    @property
    def words(self) -> list[str]:
        """What differs from the normal pace."""
        words = ["gentle"] if self.gentle else []
        words += self.limits
        if self.threads:
            words.append(f"up to {counted(self.threads, 'thread', 'threads')}")
        return words


class Mechanism(StrEnum):
    """A kernel mechanism that keeps the tools inside the targets."""

    NAMESPACE = "namespace"
    LANDLOCK = "landlock"


class Confine(StrEnum):
    """Whether the kernel must keep the tools inside the targets."""

    AUTO = "auto"
    ALWAYS = "always"
    OFF = "off"


_MECHANISM_NAMES = {Mechanism.NAMESPACE: "mount namespace", Mechanism.LANDLOCK: "Landlock"}


def confined_words(mechanisms: tuple[Mechanism, ...]) -> str:
    """Return the mechanisms in words: ``mount namespace + Landlock``, or ``nothing``."""
    return " + ".join(_MECHANISM_NAMES[mechanism] for mechanism in mechanisms) or "nothing"


class Options(Struct, frozen=True):
    """The options of a strategy.

    Attributes:
        keep_root: empty the target, but keep the directory itself.
        batch_size: names that xargs passes to one rm.
        processes: rm processes that xargs runs in parallel.
        pace: the initial pace.
        accept_races: run a strategy that is not race-safe even if others may write in the tree.
        confine: whether the kernel keeps the tools inside the targets.
    """

    keep_root: bool = False
    batch_size: int = 1000
    processes: int = 1
    pace: Pace = Pace()
    accept_races: bool = False
    filters: Filters = Filters()
    confine: Confine = Confine.AUTO


class Guarantees(Struct, frozen=True):
    """The guarantees of a strategy for every tree.

    Attributes:
        race_safe: a hostile writer in the tree cannot redirect it outside.
        mount_safe: it stops at other file systems.
        any_depth: it deletes paths longer than PATH_MAX.
        max_levels: maximum depth of nested directories that it can delete; None for any depth.
        takes_shares: it can delete one share of a directory.
        takes_files: it can delete a single file, which it compares with the confirmed one
            immediately before.
        speaks: its tool counts and reports its own calls, and accepts commands while it runs.
    """

    race_safe: bool
    mount_safe: bool
    any_depth: bool
    takes_filters: bool
    max_levels: int | None = None
    speaks: bool = False
    takes_shares: bool = False
    takes_files: bool = False


Argv = tuple[str, ...]
Step = tuple[Argv, ...]
"""Processes connected by pipes; the steps of a strategy run one after the other."""


def program_of(argv: Argv) -> str:
    """Return the program of a command line; empty for one of a damaged journal without words."""
    return argv[0] if argv else ""


def flatten(steps: tuple[Step, ...]) -> tuple[Argv, ...]:
    """Return all argv lists in the order of their start."""
    return tuple(argv for step in steps for argv in step)
