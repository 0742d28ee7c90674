"""The words an experiment is written in: trees, steps, published figures, claims, views.

An experiment is a value, in a file of its own below `tui_fs.lab.experiments`. It says what is done
and never does it: `tui_fs.lab.runner` builds the trees and runs the steps.
"""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tui_fs.lab.results import Measure, NotMeasured, Results
from tui_fs.lab.tree_generators import Tree
from tui_fs.model.calls import CallCount
from tui_fs.model.strategy import Argv

Pipeline = tuple[Argv, ...]
"""Processes connected by pipes."""


class Scale(enum.StrEnum):
    """How large the trees are: `small` takes under a minute, `published` is as in the text."""

    SMALL = "small"
    PUBLISHED = "published"


class Place(enum.StrEnum):
    """Where a trial's tree lies: in the scratch directory, or on a file system made for it."""

    HERE = "here"
    TMPFS = "tmpfs"
    EXT4 = "ext4"
    XFS = "xfs"
    BTRFS = "btrfs"


class Counting(enum.StrEnum):
    """What one more run of a step, which is not timed, counts."""

    NOTHING = "nothing"
    CALLS = "calls"
    TIMES = "times"


PIN = "{pin}"
"""Stands in a command for the identity of the tree, which the engine requires."""


@dataclass(frozen=True, slots=True)
class Step:
    """Commands that run one after the other and are measured together.

    In every argument ``{tree}`` stands for the name of the tree, ``{empty}`` for that of an empty
    directory, ``{out}`` for the absolute path of the folder whose files are kept with the run, and
    ``{path:NAME}`` for the absolute path of the tool NAME. The argument ``*`` alone stands for all
    names in the tree, sorted, as a shell gives them. ``{pin}`` stands for the tree's identity,
    which the engine requires. The first word of each command is the name of a tool (``python`` is
    the interpreter). The commands run in a directory that holds nothing but
    the tree and the empty directory.

    Attributes:
        key: unique in the experiment, the same at both scales.
        title: what a person reads in a table.
        is_in_tree: the commands run in the tree instead.
        is_cold: the caches are dropped before it; root only.
        is_pinned: on one processor.
        counting: whether its system calls are counted, in a run of its own.
        series, x: which line or group of bars it belongs to, and where on the axis.
        share: of the work that is really done; times and counts stand for 1/share as much.
        expects: statuses of the last process that are no failure.
        leaves: a file, named as in the commands' directory, whose sizes are looked at afterwards.
        keeps: names of the files it puts into ``{out}``.
    """

    key: str
    title: str
    commands: tuple[Pipeline, ...]
    is_in_tree: bool = False
    is_cold: bool = False
    is_pinned: bool = False
    counting: Counting = Counting.NOTHING
    series: str = ""
    x: float = 0.0
    share: float = 1.0
    expects: frozenset[int] = frozenset({0})
    leaves: str = ""
    keeps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trial:
    """Steps on one tree, which is made anew for every round.

    Attributes:
        tree: None for an empty one.
        rounds: how often the steps are timed; the trials of an experiment alternate.
        is_reading: the steps only look at the tree; one that fails or is left out spares the rest.
        is_settled: the tree is on its disk before they begin, as one that was not made just now.
        disk_bytes, memory_bytes: what the steps need beside the tree.
    """

    steps: tuple[Step, ...]
    tree: Tree | None = None
    place: Place = Place.HERE
    rounds: int = 5
    is_reading: bool = False
    is_settled: bool = False
    disk_bytes: int = 0
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Setting:
    """What an experiment may look at before it says what is to be done.

    Attributes:
        tools: absolute paths of the installed ones, by name.
        target: the directory a person named for it, whose shape is copied; empty for none.
    """

    tools: Mapping[str, str]
    is_root: bool
    processors: int
    target: str = ""


@dataclass(frozen=True, slots=True)
class Published:
    """A figure of the text.

    Attributes:
        note: what it was measured with, if that matters: `10,000 files, rm of 2018`.
    """

    key: str
    measure: Measure
    value: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class PublishedCalls:
    """A table of system calls of the text.

    Attributes:
        table: for each call its name, number and errors: ``unlink 10 0 select 34 1``.
    """

    key: str
    table: str
    note: str = ""

    @property
    def calls(self) -> dict[str, CallCount]:
        """The counts by name."""
        words = iter(self.table.split())
        return {
            name: CallCount(int(calls), int(errors))
            for name, calls, errors in zip(words, words, words, strict=True)
        }


class Verdict(enum.StrEnum):
    """What has become of a claim."""

    HOLDS = "holds here"
    DOES_NOT = "does not hold here"
    UNTESTED = "cannot be tested here"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with the figures it rests on, and why where that needs a word."""

    verdict: Verdict
    here: str
    why: str = ""


Judge = Callable[[Results], Judgement]


@dataclass(frozen=True, slots=True)
class Claim:
    """What the text says, in our words.

    Attributes:
        published: the figure or statement as published.
        judge: a figure it needs that was not measured (`NotMeasured`) leaves the claim untested.
    """

    text: str
    published: str
    judge: Judge

    def judged(self, results: Results) -> Judgement:
        """Return the verdict."""
        try:
            return self.judge(results)
        except NotMeasured as reason:
            return Judgement(Verdict.UNTESTED, "", str(reason))
        except (ValueError, ArithmeticError):  # nothing printed, or no time taken
            return Judgement(Verdict.UNTESTED, "", "what this run has measured tells nothing of it")


def judged(holds: bool, here: str, reason: str = "") -> Judgement:
    """Return that a claim holds, or does not."""
    return Judgement(Verdict.HOLDS if holds else Verdict.DOES_NOT, here, reason)


@dataclass(frozen=True, slots=True)
class TableView:
    """Steps as rows, measures as columns; published figures stand beside those measured."""

    title: str
    keys: tuple[str, ...]
    measures: tuple[Measure, ...]


@dataclass(frozen=True, slots=True)
class BarsView:
    """One bar for each step, grouped by series, with the least and most of its runs."""

    title: str
    keys: tuple[str, ...]
    measure: Measure


@dataclass(frozen=True, slots=True)
class CurveView:
    """A line for each series over the steps' x, on logarithmic axes.

    Attributes:
        keys: of all series; a step's own series and x place it.
    """

    title: str
    keys: tuple[str, ...]
    measure: Measure
    x_title: str


@dataclass(frozen=True, slots=True)
class RatiosView:
    """Medians of the time, in those of the first row: who takes how much of its time.

    Attributes:
        columns: their titles.
        rows: a title, and the key of a step for each column.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class CallsView:
    """Tables of system calls, each beside the published one; the first two side by side."""

    title: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FlameView:
    """Where the time went, from stacks that py-spy has collected (``record -f raw``).

    Attributes:
        file: the name it was kept under.
    """

    title: str
    file: str


View = TableView | BarsView | CurveView | RatiosView | CallsView | FlameView


@dataclass(frozen=True, slots=True)
class Experiment:
    """A published experiment, or one of our own.

    Attributes:
        name: as in ``tui-fs lab run NAME``.
        question: that it answers, in a sentence.
        source: who has published it, when and where; empty for one of our own.
        needs: tools and privileges it cannot do without, in words; what is missing for single
            steps is said there.
        trials: what is done, at a scale, with what is here.
        tools: names of the tools that its steps run, or that it reads from `Setting.tools`.
        takes_target: a directory of the person's own can be named; it is only looked at.
        refines_estimates: its times refine the unit costs of the file system.
    """

    name: str
    title: str
    question: str
    trials: Callable[[Scale, Setting], tuple[Trial, ...]]
    tools: tuple[str, ...]
    source: str = ""
    needs: tuple[str, ...] = ()
    published: tuple[Published, ...] = ()
    published_calls: tuple[PublishedCalls, ...] = ()
    claims: tuple[Claim, ...] = ()
    views: Callable[[Results], tuple[View, ...]] = field(default=lambda _: ())
    takes_target: bool = False
    refines_estimates: bool = False
