"""The events of a run of an experiment, and the results they add up to.

A run is a file with one event in each line; `fold` makes `Results` of them. The process that
measures writes them; screens, command line and reports read them.
"""

import statistics
from collections.abc import Callable, Iterable
from typing import get_args

from msgspec import Struct, field
from msgspec.structs import replace

from tui_fs.model.calls import CallCount, TraceSource
from tui_fs.model.codec import Json, decode
from tui_fs.model.compat import StrEnum
from tui_fs.model.errors import BadInput
from tui_fs.model.units import bytes_iec, count
from tui_fs.tracing.syscalls import SYSCALLS


class Measure(StrEnum):
    """A figure of a step, by its name in JSON."""

    SECONDS = "seconds"
    USER_S = "user seconds"
    SYSTEM_S = "system seconds"
    CPU_PERCENT = "CPU %"
    MICROSECONDS_PER_ENTRY = "µs per entry"
    PEAK_MEMORY_BYTES = "peak memory"
    MINOR_FAULTS = "page faults"
    CALLS = "system calls"
    APPARENT_BYTES = "apparent size"
    ALLOCATED_BYTES = "allocated size"
    EXTENTS = "extents"

    @property
    def label(self) -> str:
        """Its name beside figures that have their units."""
        return _LABELS.get(self, self.value)


_LABELS = {Measure.SECONDS: "time", Measure.USER_S: "user time", Measure.SYSTEM_S: "system time"}


class Run(Struct, frozen=True):
    """One timed run of a step's commands.

    Attributes:
        seconds: from the release of the first process to the exit of the last, over all commands.
        user_s, system_s: of all processes.
        peak_memory_bytes: of the largest process, 0 if all exited before they were sampled.
        minor_faults, major_faults: of all processes, since they executed their tools.
        output: the beginning of the last command's output, without the newline.
    """

    seconds: float
    user_s: float
    system_s: float
    peak_memory_bytes: int
    minor_faults: int
    major_faults: int
    output: str = ""


class FileState(Struct, frozen=True):
    """A file that a step has left; extents is None where the file system reports none."""

    apparent_bytes: int
    allocated_bytes: int
    extents: int | None


class StepPlan(Struct, frozen=True):
    """A step as it will run.

    Attributes:
        commands: as a user would type them.
        place: the type of the file system, `ext4` or `tmpfs`.
        tree: the tree, in words.
        entries: names in the tree, its own included; 0 without a tree.
        why_not: why it cannot run here; empty if it can.
    """

    key: str
    title: str
    commands: tuple[str, ...]
    place: str
    tree: str
    entries: int
    series: str = ""
    x: float = 0.0
    share: float = 1.0
    why_not: str = ""


class Machine(Struct, frozen=True):
    """Kernel, processors, memory, and the versions of the tools by name."""

    kernel: str
    processor: str
    processors: int
    memory_bytes: int
    distribution: str
    tools: dict[str, str]

    @property
    def facts(self) -> dict[str, str]:
        """What a reader needs to know of it, without the tools."""
        return {
            "kernel": self.kernel,
            "system": self.distribution,
            "processor": f"{self.processor}, {count(self.processors)} usable",
            "memory": bytes_iec(self.memory_bytes),
        }


class _Event(Struct, frozen=True, tag=True, tag_field="event"):
    pass


class RunBegan(_Event, frozen=True):
    """The run begins, with the plans of all steps."""

    experiment: str
    scale: str
    started_at: float
    machine: Machine
    directory: str
    steps: tuple[StepPlan, ...]
    target: str = ""


class Progressed(_Event, frozen=True):
    """The current activity.

    Attributes:
        done: between 0 and 1.
        key: of the step that runs; empty if none does.
    """

    words: str
    done: float
    key: str = ""


class StepRan(_Event, frozen=True):
    """A step was timed once more."""

    key: str
    run: Run


class StepCounted(_Event, frozen=True):
    """A step's system calls were counted."""

    key: str
    source: TraceSource
    calls: dict[str, CallCount]


class StepLeft(_Event, frozen=True):
    """The size of a file that a step has left."""

    key: str
    state: FileState


class StepFailed(_Event, frozen=True):
    """A step failed; its figures, also of earlier rounds, do not count."""

    key: str
    reason: str


class Noted(_Event, frozen=True):
    """A note on the whole run."""

    words: str


class Ending(StrEnum):
    """How a run has ended."""

    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


class RunEnded(_Event, frozen=True):
    """The run is over and everything it made is removed.

    Attributes:
        reason: of a failure, in a sentence.
        files: kept in addition to the events.
    """

    ending: Ending
    elapsed_s: float
    reason: str = ""
    files: tuple[str, ...] = ()


LabEvent = RunBegan | Progressed | StepRan | StepCounted | StepLeft | StepFailed | Noted | RunEnded
_EVENTS: dict[str, type[LabEvent]] = {kind.__name__: kind for kind in get_args(LabEvent)}


def event_from_json(value: Json) -> LabEvent:
    """Return the event; BadInput if it is none."""
    kind = _EVENTS.get(value.get("event", "")) if isinstance(value, dict) else None
    if kind is None:
        raise BadInput("This is not an event of a lab run.")
    return decode(kind, value)


class NotMeasured(Exception):
    """The run does not have a figure; the message is the reason."""


_OF_RUN: dict[Measure, Callable[[Run], float]] = {
    Measure.SECONDS: lambda run: run.seconds,
    Measure.USER_S: lambda run: run.user_s,
    Measure.SYSTEM_S: lambda run: run.system_s,
    Measure.MINOR_FAULTS: lambda run: run.minor_faults,
}


class Measured(Struct, frozen=True):
    """All figures of one step."""

    plan: StepPlan
    runs: tuple[Run, ...] = ()
    calls: dict[str, CallCount] = field(default_factory=dict)
    source: TraceSource | None = None
    left: FileState | None = None
    failed: str = ""

    def values(self, measure: Measure) -> tuple[float, ...]:
        """Return the figure of each run, or the only figure; empty if there is none.

        Figures of a step that did a share of the work are extrapolated to the whole.
        """
        whole = 1.0 / self.plan.share
        if measure in _OF_RUN:
            return tuple(_OF_RUN[measure](run) * whole for run in self.runs)
        match measure:
            case Measure.CPU_PERCENT:
                runs = [run for run in self.runs if run.seconds > 0]
                return tuple(100.0 * (run.user_s + run.system_s) / run.seconds for run in runs)
            case Measure.MICROSECONDS_PER_ENTRY:
                entries = self.plan.entries
                return tuple(run.seconds * 1e6 / entries for run in self.runs if entries)
            case Measure.PEAK_MEMORY_BYTES:
                peaks = [run.peak_memory_bytes for run in self.runs]
                return tuple(float(peak) for peak in peaks if peak)
            case Measure.CALLS:
                if not self.calls or self.source is TraceSource.PERF:
                    return ()  # perf counts only the calls in its list
                return (sum(call.calls for call in self.calls.values()) * whole,)
        if self.left is None:
            return ()
        size = {
            Measure.APPARENT_BYTES: self.left.apparent_bytes,
            Measure.ALLOCATED_BYTES: self.left.allocated_bytes,
            Measure.EXTENTS: self.left.extents,
        }[measure]
        return () if size is None else (float(size),)

    @property
    def why_not(self) -> str:
        """Why the step has no figures; empty if it has some, or none yet."""
        return self.plan.why_not or self.failed


class Results(Struct, frozen=True):
    """All figures of a run, at its end or while it runs."""

    began: RunBegan
    measured: dict[str, Measured]
    progress: Progressed = Progressed("", 0.0)
    notes: tuple[str, ...] = ()
    ended: RunEnded | None = None

    def median(self, key: str, measure: Measure = Measure.SECONDS) -> float:
        """Return the median of a measure of a step; NotMeasured if there is none."""
        return statistics.median(self.values(key, measure))

    def span(self, key: str, measure: Measure = Measure.SECONDS) -> tuple[float, float]:
        """Return the least and the most."""
        values = self.values(key, measure)
        return min(values), max(values)

    def calls(self, key: str, name: str) -> CallCount:
        """Return how often a step made a system call, 0 if never.

        For a step that did a share of the work, the calls of this share; `total_calls` is of
        the whole.
        """
        measured = self._of(key)
        if not measured.calls:
            raise NotMeasured(self._reason(key, "its system calls were not counted"))
        if measured.source is TraceSource.PERF and name not in SYSCALLS:
            raise NotMeasured(self._reason(key, f"{name} is not among the calls that perf counts"))
        return measured.calls.get(name, CallCount(0))

    def successes(self, key: str, *names: str) -> int:
        """Return how many of these system calls a step made without an error."""
        counts = [self.calls(key, name) for name in names]
        return sum(call.calls - call.errors for call in counts)

    def call_seconds(self, key: str) -> dict[str, float]:
        """Return the time in each system call; NotMeasured if the call source has no times."""
        self.total_calls(key)
        calls = self.measured[key].calls
        if not any(call.seconds for call in calls.values()):
            raise NotMeasured(
                "The time in system calls was not measured; this needs bpftrace and root."
            )
        return {name: call.seconds or 0.0 for name, call in calls.items()}

    def total_calls(self, key: str) -> int:
        """Return all system calls of a step."""
        return round(self.median(key, Measure.CALLS))

    def plan(self, key: str) -> StepPlan:
        """Return the plan of a step."""
        return self._of(key).plan

    def left(self, key: str) -> FileState:
        """Return the file that a step has left."""
        state = self._of(key).left
        if state is None:
            raise NotMeasured(self._reason(key, "its file was not examined"))
        return state

    def has(self, key: str) -> bool:
        """Whether a step was timed at least once."""
        return key in self.measured and bool(self.measured[key].runs)

    def values(self, key: str, measure: Measure = Measure.SECONDS) -> tuple[float, ...]:
        """Return a measure of each run of a step; NotMeasured if there is none."""
        values = self._of(key).values(measure)
        if not values:
            raise NotMeasured(self._reason(key, f"no measurement of {measure}"))
        return values

    def _of(self, key: str) -> Measured:
        if key not in self.measured:
            raise NotMeasured(f"{key} is not part of this run")
        return self.measured[key]

    def _reason(self, key: str, otherwise: str) -> str:
        measured = self.measured[key]
        return f"{measured.plan.title}: {measured.why_not or otherwise}"


def fold(events: Iterable[LabEvent]) -> Results:
    """Return the results of the events of a run.

    Raises:
        BadInput: the first event is not RunBegan, or one is of an unknown step.
    """
    results: Results | None = None
    for event in events:
        results = fold_one(results, event)
    if results is None:
        raise BadInput("The first event of this run is missing.")
    return results


def fold_one(results: Results | None, event: LabEvent) -> Results:
    """Return the results with one more event; see `fold`."""
    if isinstance(event, RunBegan):
        return Results(event, {plan.key: Measured(plan) for plan in event.steps})
    if results is None:
        raise BadInput("The first event of this run is missing.")
    match event:
        case Progressed():
            return replace(results, progress=event)
        case Noted():
            return replace(results, notes=(*results.notes, event.words))
        case RunEnded():
            return replace(results, ended=event)
    measured = results.measured.get(event.key)
    if measured is None:
        raise BadInput("This run has an event of an unknown step.")
    match event:
        case StepRan():
            measured = replace(measured, runs=(*measured.runs, event.run))
        case StepCounted():
            measured = replace(measured, calls=event.calls, source=event.source)
        case StepLeft():
            measured = replace(measured, left=event.state)
        case StepFailed():
            measured = Measured(measured.plan, failed=event.reason)
    return replace(results, measured={**results.measured, event.key: measured})
