"""A hand-made experiment, its run, and a process that plays it back."""

import os
import threading
from collections.abc import Callable, Iterator
from types import TracebackType

from tests.conftest import DEADLINE_S
from tui_fs.lab.experiment import (
    CallsView,
    Claim,
    Counting,
    Experiment,
    FlameView,
    Judgement,
    Published,
    PublishedCalls,
    Scale,
    Step,
    TableView,
    Trial,
    View,
    judged,
)
from tui_fs.lab.results import (
    Ending,
    LabEvent,
    Machine,
    Measure,
    Noted,
    NotMeasured,
    Progressed,
    Results,
    Run,
    RunBegan,
    RunEnded,
    StepCounted,
    StepFailed,
    StepPlan,
    StepRan,
)
from tui_fs.lab.runs import Recorder
from tui_fs.model.calls import CallCount, TraceSource

BEGAN_AT = 1_700_000_000.0
SIZES = (10, 100, 1_000)
TOOLS = ("rm", "rsync", "find")


def _unlinks(results: Results) -> Judgement:
    made = results.calls("rsync-1000", "unlink").calls
    return judged(made == 0, f"{made:,} unlink for 1,000 files", "A name leaves by unlink only.")


def _slower(results: Results) -> Judgement:
    rm, rsync = results.median("rm-1000"), results.median("rsync-1000")
    return judged(rsync > rm, f"rm {rm:.3f} s, rsync {rsync:.3f} s")


def _old(_: Results) -> Judgement:
    raise NotMeasured("It needs a kernel of before 2018.")


def _views(results: Results) -> tuple[View, ...]:
    keys = tuple(results.measured)
    largest = tuple(f"{tool}-1000" for tool in TOOLS)
    return (
        TableView(
            "Deleting empty files",
            keys,
            (
                Measure.SECONDS, Measure.USER_S, Measure.SYSTEM_S, Measure.CPU_PERCENT,
                Measure.PEAK_MEMORY_BYTES, Measure.CALLS,
            ),
        ),
        TableView("Time for 1,000 files", largest, (Measure.SECONDS,), has_bars=True),
        CallsView("System calls for 1,000 files", largest),
        FlameView("Where the time goes", "stacks.txt"),
    )  # fmt: skip


def _trials(scale: Scale, _: object) -> tuple[Trial, ...]:
    step = Step("python-1", "python", ((("python", "-c", "pass"),),), counting=Counting.CALLS)
    return (Trial((step,), rounds=2 if scale is Scale.SMALL else 3, disk_bytes=3 << 20),)


EXPERIMENT = Experiment(
    name="rsync-vs-rm",
    title="rsync --delete against rm",
    question="Does rsync empty a directory with fewer system calls than rm, and faster?",
    source="A post of 30 April 2018",
    needs=("rm and rsync", "root for the time in each system call"),
    trials=_trials,
    tools=("python",),
    published=(Published("rm-1000", Measure.SECONDS, 0.002, "rm of 2018"),),
    published_calls=(PublishedCalls("rm-1000", "unlinkat 1000 0 lstat 1 0", "2018"),),
    claims=(
        Claim("rsync deletes without an unlink for every file.", "1,000 unlink", _unlinks),
        Claim("rsync is slower than rm for a thousand files.", "rm 0.2 s, rsync 0.6 s", _slower),
        Claim("An older rm may have been slow with long lists of names.", "supposed", _old),
    ),
    views=_views,
)
OWN = Experiment(
    name="race-your-strategies",
    title="race on a shape of your own",
    question="Which strategy is the fastest for the shape of one's own tree?",
    trials=_trials,
    tools=(),
    takes_target=True,
)

_PLANS = tuple(
    StepPlan(
        key=f"{tool}-{size}",
        title=f"{tool}, {size:,} files",
        commands=(f"{tool} --option tree",),
        place="ext4",
        tree=f"{size:,} empty files in one directory",
        entries=size + 1,
        series=tool,
        x=size,
        why_not="find is not installed" if (tool, size) == ("find", 10) else "",
    )
    for tool in TOOLS
    for size in SIZES
)
BEGAN = RunBegan(
    experiment="rsync-vs-rm",
    scale="small",
    started_at=BEGAN_AT,
    machine=Machine(
        "Linux 6.18.5",
        "A Processor",
        2,
        8 << 30,
        "A Distribution",
        {"rm": "rm 9.1 [b]", "find": ""},
    ),
    directory="/home/me/.cache/tui-fs/lab",
    steps=_PLANS,
)


def _ran(tool: str, size: int, number: int) -> StepRan:
    seconds = {"rm": 1.0, "rsync": 2.5, "find": 1.1}[tool] * size * 1e-5 * (1 + 0.2 * number)
    run = Run(seconds, 0.2 * seconds, 0.7 * seconds, 2 << 20, 120, 0)
    return StepRan(f"{tool}-{size}", run)


def _counted(tool: str, size: int) -> StepCounted:
    removing = "unlink" if tool == "rsync" else "unlinkat"
    calls = {
        removing: CallCount(size, 0, 0.010),
        "newfstatat": CallCount(size if tool == "rsync" else 4, 0, 0.004),
        "openat": CallCount(23, 13, 0.001),
        "brk": CallCount(6, 0, 0.0),
    }
    if tool == "rsync":
        calls |= {"wait4": CallCount(9, 5, 0.030), "connect": CallCount(8, 8, 0.0)}
    return StepCounted(f"{tool}-{size}", TraceSource.STRACE, calls)


_DONE_HERE = tuple((plan.series, int(plan.x)) for plan in _PLANS if not plan.why_not)
COUNTED = tuple(_counted(tool, size) for tool, size in _DONE_HERE)
FIRST_ROUND = tuple(_ran(tool, size, 0) for tool, size in _DONE_HERE)
RUNNING: tuple[LabEvent, ...] = (
    BEGAN,
    Progressed("making 10 empty files in one directory", 0.0),
    *COUNTED,
    *FIRST_ROUND[:5],
    StepFailed("find-100", "find ended with status 1: [red]no[/red]"),
    Progressed("running rsync, 1,000 files", 0.62, "rsync-1000"),
)
DONE: tuple[LabEvent, ...] = (
    BEGAN,
    *COUNTED,
    *(_ran(tool, size, number) for number in range(3) for tool, size in _DONE_HERE),
    Noted("The caches were warm."),
    RunEnded(Ending.DONE, 12.5, "", ("stacks.txt",)),
)
STACKS = "main;rmtree;unlink 60\nmain;rmtree;scandir 30\nmain;<module> 10\n"


def store(events: tuple[LabEvent, ...], name: str = "rsync-vs-rm-1") -> str:
    """Write a run below the current directory; return its folder."""
    folder = os.path.join("runs", name)
    os.makedirs(folder)
    recorder = Recorder(folder)
    for event in events:
        recorder.write(event)
    recorder.sync()
    with open(os.path.join(folder, "stacks.txt"), "w", encoding="utf-8") as file:
        file.write(STACKS)
    return folder


class PlayedRun:
    """Stand-in for a run: replays events, then waits for the test to continue or end it.

    Attributes:
        goes_on: set by a test that wants the end.
        cancelled: whether it was cancelled before its end.
        cleared: set when its context was left.
    """

    def __init__(self, folder: str, before: tuple[LabEvent, ...], after: tuple[LabEvent, ...]):
        self.folder = folder
        self._before, self._after = before, after
        self.goes_on = threading.Event()
        self.cancelled = False
        self.cleared = threading.Event()

    def __enter__(self) -> "PlayedRun":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cleared.set()

    def events(self) -> Iterator[LabEvent]:
        """Play."""
        yield from self._before
        assert self.goes_on.wait(DEADLINE_S)
        if self.cancelled:
            yield RunEnded(Ending.CANCELLED, 3.0)
        else:
            yield from self._after

    def cancel(self) -> None:
        """End before the end."""
        self.cancelled = not self.goes_on.is_set() or self.cancelled
        self.goes_on.set()


def starter(run: PlayedRun) -> Callable[[str, Scale, str | None, str], PlayedRun]:
    """Return a stand-in for the class `LabRun`."""

    def start(name: str, scale: Scale, directory: str | None, target: str) -> PlayedRun:
        assert (name, scale, directory, target) == ("rsync-vs-rm", Scale.SMALL, None, "")
        return run

    return start
