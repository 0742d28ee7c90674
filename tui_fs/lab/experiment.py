"""The types that describe an experiment: trials, steps, published figures, claims, views.

An experiment is a value, in a module of its own below `tui_fs.lab.experiments`. It describes the
work and never does it: `tui_fs.lab.runner` builds the trees and runs the steps.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from tui_fs.lab.results import Measure, NotMeasured, Results
from tui_fs.lab.tree_generators import Tree
from tui_fs.model.calls import CallCount
from tui_fs.model.compat import StrEnum
from tui_fs.model.paths import harmless
from tui_fs.model.strategy import Argv

Pipeline = tuple[Argv, ...]
"""Processes connected by pipes."""


class Scale(StrEnum):
    """How large the trees are: `small` takes under a minute, `published` is as in the text."""

    SMALL = "small"
    PUBLISHED = "published"


class Place(StrEnum):
    """Where a trial's tree is made: in the scratch directory, or on a file system made for it."""

    HERE = "here"
    TMPFS = "tmpfs"
    EXT4 = "ext4"
    XFS = "xfs"
    BTRFS = "btrfs"


class Counting(StrEnum):
    """What an additional, untimed run of a step counts."""

    NOTHING = "nothing"
    CALLS = "calls"
    TIMES = "times"


PIN = "{pin}"
"""Placeholder in a command for the identity of the tree, which the engine requires."""


class Step(Struct, frozen=True):
    """Commands that run one after the other and are measured together.

    The runner replaces placeholders in every argument: ``{tree}`` by the name of the tree,
    ``{empty}`` by that of an empty directory, ``{out}`` by the absolute path of the folder whose
    files are kept with the run, ``{path:NAME}`` by the absolute path of the tool NAME, and
    ``{pin}`` by the tree's identity, which the engine requires. It expands the argument ``*``
    alone to all names in the tree, sorted as by a shell. The first word of each command is the
    name of a tool (``python`` is the interpreter). The commands run in a directory that holds
    nothing but the tree and the empty directory.

    Attributes:
        key: unique in the experiment, the same at both scales.
        title: the row title in tables.
        is_in_tree: the commands run in the tree instead.
        is_cold: the caches are dropped before it; root only.
        is_pinned: on one processor.
        counting: whether its system calls are counted, in a run of its own.
        series, x: which group of bars it belongs to, and the size that distinguishes it there.
        share: of the work that the step does; results scale times and counts by 1/share.
        expects: statuses of the last process that are no failure.
        leaves: a file, named as in the commands' directory, whose sizes are read afterwards.
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


class Trial(Struct, frozen=True):
    """Steps on one tree, which is rebuilt for every round.

    Attributes:
        tree: None for an empty one.
        rounds: how often the steps are timed; the trials of an experiment alternate.
        is_reading: the steps only read the tree; one that fails or is left out stops no other.
        is_settled: the tree is on its disk before the steps begin, like a tree made long ago.
        disk_bytes, memory_bytes: what the steps need in addition to the tree.
    """

    steps: tuple[Step, ...]
    tree: Tree | None = None
    place: Place = Place.HERE
    rounds: int = 5
    is_reading: bool = False
    is_settled: bool = False
    disk_bytes: int = 0
    memory_bytes: int = 0


class Setting(Struct, frozen=True):
    """What an experiment may use to choose its trials.

    Attributes:
        tools: absolute paths of the installed ones, by name.
        target: the directory that the user named, whose shape is copied; empty for none.
    """

    tools: Mapping[str, str]
    target: str = ""


class Published(Struct, frozen=True):
    """A figure of the text.

    Attributes:
        note: what it was measured with, if that matters: `10,000 files, rm of 2018`.
    """

    key: str
    measure: Measure
    value: float
    note: str = ""


def published_times(key: str, seconds: tuple[float, float, float], note: str) -> list[Published]:
    """Return the elapsed, user and system seconds of a step."""
    measures = (Measure.SECONDS, Measure.USER_S, Measure.SYSTEM_S)
    return [
        Published(key, measure, value, note)
        for measure, value in zip(measures, seconds, strict=True)
    ]


class PublishedCalls(Struct, frozen=True):
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


class Verdict(StrEnum):
    """The result of testing a claim."""

    HOLDS = "holds here"
    DOES_NOT = "does not hold here"
    UNTESTED = "cannot be tested here"


class Judgement(Struct, frozen=True):
    """A verdict with the figures it is based on, and a reason where it needs one."""

    verdict: Verdict
    here: str
    reason: str = ""


class Judged(Struct, frozen=True):
    """A claim with the judgement on it, safe to show."""

    text: str
    published: str
    verdict: Verdict
    here: str
    reason: str


Judge = Callable[[Results], Judgement]


class Claim(Struct, frozen=True):
    """What the text says, in our words.

    Attributes:
        published: the figure or statement as published.
        judge: raises `NotMeasured` if a figure is missing, which leaves the claim untested.
    """

    text: str
    published: str
    judge: Judge

    def judged(self, results: Results) -> Judged:
        """Return the claim with its judgement."""
        try:
            judgement = self.judge(results)
        except NotMeasured as error:
            judgement = Judgement(Verdict.UNTESTED, "", str(error))
        except (ValueError, ArithmeticError):  # nothing printed, or no time taken
            reason = "this run has no figures for this claim"
            judgement = Judgement(Verdict.UNTESTED, "", reason)
        here, why = harmless(judgement.here), harmless(judgement.reason)
        return Judged(self.text, self.published, judgement.verdict, here, why)


def judged(holds: bool, here: str, reason: str = "") -> Judgement:
    """Return the judgement that a claim holds, or does not."""
    return Judgement(Verdict.HOLDS if holds else Verdict.DOES_NOT, here, reason)


class TableView(Struct, frozen=True):
    """Steps as rows, measures as columns; published figures follow in rows of their own.

    Attributes:
        has_bars: the first measure is drawn, too: a bar for each step, grouped by series.
    """

    title: str
    keys: tuple[str, ...]
    measures: tuple[Measure, ...]
    has_bars: bool = False


class RatiosView(Struct, frozen=True):
    """Medians of the time, as ratios to those of the first row.

    Attributes:
        columns: their titles.
        rows: a title, and the key of a step for each column.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


class CallsView(Struct, frozen=True):
    """Tables of system calls, each with the published counts; the first two side by side."""

    title: str
    keys: tuple[str, ...]


class FlameView(Struct, frozen=True):
    """Where the time went, from stacks that py-spy has collected (``record -f raw``).

    Attributes:
        file: the name it was kept under.
    """

    title: str
    file: str


View = TableView | RatiosView | CallsView | FlameView


class Experiment(Struct, frozen=True):
    """A published experiment, or one of our own.

    Attributes:
        name: as in ``tui-fs lab run NAME``.
        question: that it answers, in a sentence.
        source: who has published it, when and where; empty for one of our own.
        needs: required tools and privileges, in words; a step reports what it alone lacks.
        trials: returns what to run at a scale in a setting.
        tools: names of the tools that its steps run, or that it reads from `Setting.tools`.
        takes_target: the user can name a directory, which is only read.
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


def run_command(experiment: Experiment, scale: str, target: str) -> tuple[str, ...]:
    """Return the `tui-fs lab run` command.

    Args:
        target: the directory whose shape is copied, if the experiment takes one.
    """
    argv = ("tui-fs", "lab", "run", experiment.name, "--scale", str(scale))
    return (*argv, "--target", target) if experiment.takes_target and target else argv
