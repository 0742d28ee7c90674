"""Delete a tree with a strategy's own tools, and count what they call."""

import os
import select
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from tests.unit.survey_trees import surveyed
from tui_fs.job.launcher import Launcher, StepEnd
from tui_fs.job.path_safety import PreparedStep
from tui_fs.linux.pins import take_pin
from tui_fs.model.strategy import IoPriority, Options, Step, StrategyName
from tui_fs.model.survey import Survey
from tui_fs.strategies.base import ComparesPins, Invocation
from tui_fs.strategies.registry import STRATEGIES, tools_of
from tui_fs.tracing.perf import PerfCounters, find_tracefs

_PROCESSES = 5


@dataclass(frozen=True, slots=True)
class Deleted:
    """The inputs of a deletion's prediction, and its cost.

    Attributes:
        processes: how many ran, forked ones among them.
    """

    survey: Survey
    calls: dict[str, int]
    processes: int
    ends: tuple[StepEnd, ...]

    @property
    def peak_memory_bytes(self) -> int:
        """The largest process of all steps."""
        return max(end.peak_memory_bytes for end in self.ends)


def delete(
    target: Path, strategy: StrategyName, options: Options, empty: Path, *, is_inside: bool = False
) -> Deleted:
    """Delete as a job would; the target is gone then, or empty if it is kept.

    Args:
        empty: an empty directory on the same file system.
        is_inside: run the tools in the target, and rmdir after them.
    """
    survey = surveyed(target)
    steps = prepared_steps(target, strategy, options, empty, is_inside=is_inside)
    counters = PerfCounters(find_tracefs(), _PROCESSES)
    ends: list[StepEnd] = []
    with ExitStack() as stack:
        stack.callback(counters.close)
        places = []
        for directory in (target.parent, target):
            places.append(os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
            stack.callback(os.close, places[-1])
        launcher = Launcher(
            tuple(step.step for step in steps),
            tuple(places[step.is_inside] for step in steps),
            0,
            IoPriority.NORMAL,
        )
        stack.callback(launcher.close)
        for number in range(len(steps)):
            for pid in launcher.fork_step(number):
                counters.attach(pid)
            launcher.release()
            ends.append(_ended(launcher))
            counters.step_ended()
        read = counters.read().calls
    calls = {name: count.calls for name, count in read.items()}
    assert all(status == 0 for end in ends for status in end.statuses), ends
    assert target.exists() is options.keep_root
    forked = calls.get("clone", 0) + calls.get("vfork", 0) + calls.get("clone3", 0)
    if strategy == StrategyName("parallel"):
        forked = 0  # these are its threads
    return Deleted(survey, calls, forked + sum(len(step.step) for step in steps), tuple(ends))


def prepared_steps(
    target: Path, strategy: StrategyName, options: Options, empty: Path, *, is_inside: bool
) -> list[PreparedStep]:
    """Return the steps that delete the target; see `delete`."""
    build = STRATEGIES[strategy]
    tools, missing = tools_of(build)
    assert not missing, missing

    def pinned(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        if not isinstance(build, ComparesPins):
            return steps
        return build.pinned(steps, [take_pin(str(target))])

    if not is_inside:
        steps = pinned(build.steps(Invocation((str(target),), options, tools, str(empty))))
        return [PreparedStep(step, (0,), False) for step in steps]
    emptying = replace(options, keep_root=True)
    inside = pinned(build.steps(Invocation((".",), emptying, tools, str(empty))))
    prepared_steps = [PreparedStep(step, (0,), True) for step in inside]
    if not options.keep_root:
        prepared_steps.append(
            PreparedStep(((tools["rmdir"], "--", f"./{target.name}"),), (0,), False)
        )
    return prepared_steps


def _ended(launcher: Launcher) -> StepEnd:
    """Read what the tools say, so that they do not wait, until the step has ended."""
    poll = select.poll()
    for descriptor in (launcher.fileno(), launcher.out, launcher.err):
        poll.register(descriptor, select.POLLIN)
    while True:
        ready = [descriptor for descriptor, _ in poll.poll()]
        for descriptor in ready:
            if descriptor != launcher.fileno():
                os.read(descriptor, 1 << 16)
        if launcher.fileno() in ready:
            return launcher.ended()
