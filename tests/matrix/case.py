"""Cases of the contract matrix: a tree, the promise about it, and the events."""

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import Cli, wait_until
from tests.matrix.ordinary_user import GID, UID
from tests.trees import Sentinel
from tui_fs.strategies.registry import STRATEGIES

DONE, PARTIAL, USAGE, REFUSED, MISSING, DIED, CANCELLED = 0, 1, 2, 3, 4, 5, 130


@dataclass(frozen=True, slots=True)
class Promise:
    """An outcome of a case that a test can refute.

    Attributes:
        codes: the exit codes that keep it.
        left_entries: how many names must be left; None if any number may.
        covers_outside: it also holds outside the target. Where it does not, what happens there
            depends on timing and is not on the page.
    """

    sentence: str
    codes: tuple[int, ...]
    left_entries: int | None = None
    covers_outside: bool = True


@dataclass(slots=True)
class Scene:
    """The scene of a cell.

    Attributes:
        place: an ext4 directory with the target and the sentinel.
        runtime: the fallback directory for jobs without room elsewhere; the case must make it.
        built_entries: names in the target before the job, the target included.
        until_the_end: closed when the job has ended.
    """

    cli: Cli
    strategy: str
    place: Path
    target: Path
    sentinel: Sentinel
    runtime: Path
    is_ordinary: bool = False
    built_entries: int = 0
    until_the_end: ExitStack = field(default_factory=ExitStack)

    @property
    def state_home(self) -> Path:
        """The directory below which jobs are written down."""
        return self.cli.jobs_directory.parent.parent

    def make_target(self) -> Path:
        """Make the target, with links to the sentinel, owned by the user that deletes it."""
        self.sentinel.plant(self.target)
        self.give(self.target / "places")
        return self.give(self.target)

    def give(self, path: Path) -> Path:
        """Make the deleting user the owner of a name."""
        if self.is_ordinary:
            os.chown(path, UID, GID, follow_symlinks=False)
        return path


class Job:
    """A job that is slowed down, and has deleted something."""

    def __init__(self, cli: Cli, job_id: str) -> None:
        """Wait until it says that a hundred entries are gone."""
        self.id = job_id
        self._cli = cli
        wait_until(lambda: self._removed_entries() >= 100, "the first removals")

    def tool_pids(self) -> list[int]:
        """List the processes that were started for the last step."""
        steps = [line for line in self._cli.journal(self.id) if line["type"] == "StepStarted"]
        return [int(pid) for pid in steps[-1]["pids"]]

    def pause(self) -> None:
        """Pause it; its tools are stopped when this returns."""
        self._cli.run("pause", self.id).expect(0)

    def resume(self) -> None:
        """Let it go on."""
        self._cli.run("resume", self.id).expect(0)

    def lift_rate(self) -> None:
        """Let it delete the rest at full speed, if it has not ended."""
        self._cli.run("rate", self.id, "off")

    def cancel(self) -> None:
        """Cancel it."""
        self._cli.run("cancel", self.id).expect(0)

    def _removed_entries(self) -> int:
        samples = (line for line in self._cli.journal(self.id) if line["type"] == "Sampled")
        return max((line["removed"]["entries"] for line in samples if line["removed"]), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of the matrix.

    Attributes:
        name: the tree's peculiarity; the row's heading.
        promise: the promise of every strategy except those in `unlike`.
        build: makes the target.
        during: happens in mid-run, in a job of at most `rate` entries a second.
        after: checks beyond the laws of every cell; the page also prints what it returns.
        options: for `tui-fs delete`.
        is_ordinary: a user without rights deletes.
        is_without_tool: the strategy's tool is missing.
        is_counted: no other process writes or deletes and the disk is readable, so that the
            numbers of built, reported and remaining entries must add up.
        fails_by_chance: what fails depends on timing and is not in the cell.
        failed_names: paths below the target that the report must name, and no others; None if any.
        not_for: why the case says nothing about a strategy.
    """

    name: str
    promise: Promise
    build: Callable[[Scene], None]
    unlike: Mapping[str, Promise] = field(default_factory=dict)
    during: Callable[[Scene, Job], None] | None = None
    after: Callable[[Scene], str] | None = None
    options: tuple[str, ...] = ()
    rate: int = 0
    is_ordinary: bool = False
    is_without_tool: bool = False
    is_counted: bool = True
    fails_by_chance: bool = False
    failed_names: frozenset[str] | None = None
    not_for: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_exact(self) -> bool:
        """Whether the numbers are the same in every run."""
        return self.is_counted and self.during is None

    def promise_of(self, strategy: str) -> Promise:
        """Return what this strategy promises."""
        return self.unlike.get(strategy, self.promise)


@dataclass(frozen=True, slots=True)
class Group:
    """A table of the page.

    Attributes:
        strategies: those with a column.
    """

    title: str
    cases: tuple[Case, ...]
    strategies: tuple[str, ...] = tuple(map(str, STRATEGIES))
