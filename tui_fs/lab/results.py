"""What a run of an experiment writes down, and what its lines add up to.

A run is a list of events, one in a line of its file; `fold` makes `Results` of them. The process
that measures writes them, screens, command line and reports read them.
"""

import enum
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tui_fs.model.calls import CallCount, TraceSource
from tui_fs.model.codec import Json, decode, encode
from tui_fs.model.errors import BadInput
from tui_fs.tracing.syscalls import SYSCALLS


class Measure(enum.StrEnum):
    """What is told of a step, with its unit."""

    SECONDS = "seconds"
    USER_S = "user seconds"
    SYSTEM_S = "system seconds"
    CPU_PERCENT = "CPU %"
    MICROSECONDS_PER_ENTRY = "µs per entry"
    PEAK_MEMORY_BYTES = "peak memory"
    MINOR_FAULTS = "page faults"
    MAJOR_FAULTS = "major faults"
    CALLS = "system calls"
    APPARENT_BYTES = "apparent size"
    ALLOCATED_BYTES = "allocated size"
    EXTENTS = "extents"


@dataclass(frozen=True, slots=True)
class Run:
    """One timed run of a step's commands.

    Attributes:
        seconds: from the release of the first process to the last one's end, commands added up.
        user_s, system_s: of all processes.
        peak_memory_bytes: of the largest process, 0 if none was seen in its short life.
        minor_faults, major_faults: of all processes, since they became their tools.
        output: the beginning of what the last command printed, without the line's end.
    """

    seconds: float
    user_s: float
    system_s: float
    peak_memory_bytes: int
    minor_faults: int
    major_faults: int
    output: str = ""


@dataclass(frozen=True, slots=True)
class FileState:
    """A file that a step has left; extents is None where the file system does not tell."""

    apparent_bytes: int
    allocated_bytes: int
    extents: int | None


@dataclass(frozen=True, slots=True)
class StepPlan:
    """A step as it will be done.

    Attributes:
        commands: as a person would type them.
        place: the kind of file system it is done on, `ext4` or `tmpfs`.
        tree: what it is done to, in words.
        entries: names in the tree, its own included; 0 without a tree.
        why_not: why it cannot be done here; empty if it can.
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


@dataclass(frozen=True, slots=True)
class Machine:
    """What it was measured on: kernel, processors, memory, and the tools' versions by name."""

    kernel: str
    processor: str
    processors: int
    memory_bytes: int
    distribution: str
    tools: dict[str, str]


@dataclass(frozen=True, slots=True)
class RunBegan:
    """An experiment begins; every step that belongs to it is named."""

    experiment: str
    scale: str
    started_at: float
    machine: Machine
    directory: str
    steps: tuple[StepPlan, ...]
    target: str = ""


@dataclass(frozen=True, slots=True)
class Progressed:
    """What is going on now; done lies between 0 and 1."""

    words: str
    done: float


@dataclass(frozen=True, slots=True)
class StepRan:
    """A step was timed once more."""

    key: str
    run: Run


@dataclass(frozen=True, slots=True)
class StepCounted:
    """A step's system calls were counted."""

    key: str
    source: TraceSource
    calls: dict[str, CallCount]


@dataclass(frozen=True, slots=True)
class StepLeft:
    """A file that a step has left was looked at."""

    key: str
    state: FileState


@dataclass(frozen=True, slots=True)
class StepFailed:
    """A step ended as it should not; what it took in this or an earlier round is not told."""

    key: str
    why: str


@dataclass(frozen=True, slots=True)
class Noted:
    """Something a person should know of the whole run."""

    words: str


class Ending(enum.StrEnum):
    """How a run has ended."""

    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run is over and everything is cleared away.

    Attributes:
        why: of a failure, in a sentence.
        files: kept beside the events.
    """

    ending: Ending
    elapsed_s: float
    why: str = ""
    files: tuple[str, ...] = ()


LabEvent = RunBegan | Progressed | StepRan | StepCounted | StepLeft | StepFailed | Noted | RunEnded
_EVENTS: dict[str, type[LabEvent]] = {
    one.__name__: one
    for one in (
        RunBegan, Progressed, StepRan, StepCounted, StepLeft, StepFailed, Noted, RunEnded,
    )
}  # fmt: skip


def event_to_json(event: LabEvent) -> Json:
    """Return an event as a JSON object."""
    return {"event": type(event).__name__, **encode(event)}


def event_from_json(value: Json) -> LabEvent:
    """Return the event; BadInput if it is none."""
    kind = _EVENTS.get(value.get("event", "")) if isinstance(value, dict) else None
    if kind is None:
        raise BadInput("This is no event of a lab run.")
    return decode(kind, value)


class NotMeasured(Exception):
    """A figure was asked for that the run does not have; says why."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What is known of one step."""

    plan: StepPlan
    runs: tuple[Run, ...] = ()
    calls: dict[str, CallCount] = field(default_factory=dict)
    source: TraceSource | None = None
    left: FileState | None = None
    failed: str = ""

    def values(self, measure: Measure) -> tuple[float, ...]:
        """Return what each run says, or the one figure there is; empty if there is none.

        Of a step that did a share of the work only, what the whole would have taken.
        """
        whole = 1.0 / self.plan.share
        match measure:
            case Measure.SECONDS:
                return tuple(run.seconds * whole for run in self.runs)
            case Measure.USER_S:
                return tuple(run.user_s * whole for run in self.runs)
            case Measure.SYSTEM_S:
                return tuple(run.system_s * whole for run in self.runs)
            case Measure.CPU_PERCENT:
                return tuple(
                    100.0 * (run.user_s + run.system_s) / run.seconds
                    for run in self.runs
                    if run.seconds > 0
                )
            case Measure.MICROSECONDS_PER_ENTRY:
                entries = self.plan.entries
                return tuple(run.seconds * 1e6 / entries for run in self.runs if entries)
            case Measure.PEAK_MEMORY_BYTES:
                return tuple(
                    float(run.peak_memory_bytes) for run in self.runs if run.peak_memory_bytes
                )
            case Measure.MINOR_FAULTS:
                return tuple(run.minor_faults * whole for run in self.runs)
            case Measure.MAJOR_FAULTS:
                return tuple(run.major_faults * whole for run in self.runs)
            case Measure.CALLS:
                if not self.calls or self.source is TraceSource.PERF:
                    return ()  # perf counts only the calls that it was told
                return (sum(one.calls for one in self.calls.values()) * whole,)
            case Measure.APPARENT_BYTES:
                return (float(self.left.apparent_bytes),) if self.left else ()
            case Measure.ALLOCATED_BYTES:
                return (float(self.left.allocated_bytes),) if self.left else ()
            case Measure.EXTENTS:
                known = self.left is not None and self.left.extents is not None
                return (float(self.left.extents or 0),) if self.left and known else ()

    @property
    def why_not(self) -> str:
        """Why there is nothing; empty if there is something, or nothing yet."""
        return self.plan.why_not or self.failed


@dataclass(frozen=True, slots=True)
class Results:
    """All that is known of a run, at its end or in its middle."""

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
        """Return how often a step made a system call; none at all is a count, too.

        Of a step that did a share of the work, what this share made; the total is of the whole.
        """
        one = self._of(key)
        if not one.calls:
            raise NotMeasured(self._why(key, "its system calls were not counted"))
        if one.source is TraceSource.PERF and name not in SYSCALLS:
            raise NotMeasured(self._why(key, f"{name} is not among the calls that perf counts"))
        return one.calls.get(name, CallCount(0))

    def successes(self, key: str, *names: str) -> int:
        """Return how many of these system calls a step made without an error."""
        counts = [self.calls(key, name) for name in names]
        return sum(call.calls - call.errors for call in counts)

    def call_seconds(self, key: str) -> dict[str, float]:
        """Return the time in each system call; NotMeasured if what counted has no times."""
        self.total_calls(key)
        calls = self.measured[key].calls
        if not any(call.seconds for call in calls.values()):
            raise NotMeasured("The time in system calls was not measured; bpftrace and root can.")
        return {name: call.seconds or 0.0 for name, call in calls.items()}

    def total_calls(self, key: str) -> int:
        """Return all system calls of a step."""
        return round(self.median(key, Measure.CALLS))

    def plan(self, key: str) -> StepPlan:
        """Return what a step was to do."""
        return self._of(key).plan

    def left(self, key: str) -> FileState:
        """Return the file that a step has left."""
        state = self._of(key).left
        if state is None:
            raise NotMeasured(self._why(key, "its file was not looked at"))
        return state

    def has(self, key: str) -> bool:
        """Whether a step was timed at least once."""
        return key in self.measured and bool(self.measured[key].runs)

    def values(self, key: str, measure: Measure = Measure.SECONDS) -> tuple[float, ...]:
        """Return a measure of each run of a step; NotMeasured if there is none."""
        values = self._of(key).values(measure)
        if not values:
            raise NotMeasured(self._why(key, f"no {measure} of it were measured"))
        return values

    def _of(self, key: str) -> Measured:
        if key not in self.measured:
            raise NotMeasured(f"{key} is not part of this run")
        return self.measured[key]

    def _why(self, key: str, otherwise: str) -> str:
        one = self.measured[key]
        return f"{one.plan.title}: {one.why_not or otherwise}"


def fold(events: Iterable[LabEvent]) -> Results:
    """Return what the events of a run add up to.

    Raises:
        BadInput: the first one is not its beginning, or one is of a step nobody knows.
    """
    results: Results | None = None
    for event in events:
        results = fold_one(results, event)
    if results is None:
        raise BadInput("This run has no beginning.")
    return results


def fold_one(results: Results | None, event: LabEvent) -> Results:
    """Return the results with one more event; see `fold`."""
    if isinstance(event, RunBegan):
        return Results(event, {one.key: Measured(one) for one in event.steps})
    if results is None:
        raise BadInput("This run has no beginning.")
    match event:
        case Progressed():
            return replace(results, progress=event)
        case Noted():
            return replace(results, notes=(*results.notes, event.words))
        case RunEnded():
            return replace(results, ended=event)
    measured = results.measured.get(event.key)
    if measured is None:
        raise BadInput("This run tells of a step that it does not have.")
    match event:
        case StepRan():
            measured = replace(measured, runs=(*measured.runs, event.run))
        case StepCounted():
            measured = replace(measured, calls=event.calls, source=event.source)
        case StepLeft():
            measured = replace(measured, left=event.state)
        case StepFailed():
            measured = Measured(measured.plan, failed=event.why)
    return replace(results, measured={**results.measured, event.key: measured})
