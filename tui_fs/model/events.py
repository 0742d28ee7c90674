"""What a supervisor writes down while it works; the journal is a list of these.

Every ``at_s`` is seconds since the job's start by the monotonic clock.
"""

from dataclasses import dataclass, field

from tui_fs.model.calls import CallCount, Removed, TraceSource
from tui_fs.model.codec import Json, decode, encode
from tui_fs.model.errors import BadInput
from tui_fs.model.figures import MissingFigure
from tui_fs.model.outcome import Outcome
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.plan import Expected
from tui_fs.model.space import Discrepancy, Space
from tui_fs.model.strategy import Argv, Pace, StrategyName
from tui_fs.model.target import check_paths


@dataclass(frozen=True, slots=True)
class Usage:
    """What the strategy's processes use at one moment, all of them together.

    Attributes:
        cpu_s, system_s: user plus kernel time, and kernel time alone, since the start.
        cpu_percent: since the last sample, 100 is one core; None for the first sample.
        rss_bytes: resident memory now.
        read_bytes, written_bytes: since the start, as the kernel accounts to processes; None where
            it does not.
        busiest: name and number of the process that uses the most CPU.
    """

    cpu_s: float
    system_s: float
    cpu_percent: float | None
    rss_bytes: int
    read_bytes: int | None
    written_bytes: int | None
    processes: int
    busiest: str


@dataclass(frozen=True, slots=True)
class JobStarted:
    """The pins were checked again, the counters stand ready; nothing is deleted yet.

    Attributes:
        boot_id: which run of the kernel it is (proc_sys_kernel(5)).
        predicted_other_calls: about how many calls are not predicted by name; None if not known.
        missing_figures: what cannot be measured while it runs.
        is_filtered: only entries that match a filter are deleted; the targets stay.
    """

    at_s: float
    job_id: str
    started_at: float
    supervisor_pid: int
    targets: tuple[PathStr, ...]
    strategy: StrategyName
    keep_root: bool
    command: tuple[Argv, ...]
    expected: Expected
    predicted_calls: dict[str, int]
    predicted_seconds: tuple[float, float, float] | None
    source: TraceSource
    source_note: str
    space: Space | None
    pace: Pace = field(default_factory=Pace)
    boot_id: str = ""
    predicted_peak_memory_bytes: int | None = None
    predicted_processes: int | None = None
    predicted_other_calls: int | None = None
    missing_figures: tuple[MissingFigure, ...] = ()
    is_filtered: bool = False

    def __post_init__(self) -> None:
        """Refuse a start of nothing."""
        check_paths(self.targets)


@dataclass(frozen=True, slots=True)
class JobRefused:
    """The job was not started; nothing was touched."""

    at_s: float
    rule: str
    sentence: str
    advice: str


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step's processes were started."""

    at_s: float
    step: int
    pids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StepFinished:
    """A step's processes have ended.

    Attributes:
        statuses: exit codes, negative for the signal that ended it.
        peak_memory_bytes: the largest single process of the step.
    """

    at_s: float
    step: int
    statuses: tuple[int, ...]
    user_s: float
    system_s: float
    peak_memory_bytes: int


@dataclass(frozen=True, slots=True)
class Sampled:
    """A sample of the counters.

    Attributes:
        strategy_s: time since the first process was started, pauses included.
        calls: the counts that changed since the last sample, as totals.
        removed: None where the source does not count.
        threads: that the tool says are at work; 0 if it says nothing of them.
        held_s: how long gentleness has held the tools back so far; the journal of an old job
            does not have every hold.
    """

    at_s: float
    strategy_s: float
    calls: dict[str, CallCount]
    removed: Removed | None
    usage: Usage | None
    space: Space | None
    io_pressure_percent: float | None
    threads: int = 0
    held_s: float = 0.0


@dataclass(frozen=True, slots=True)
class EntryFailed:
    """An entry could not be deleted; the run goes on.

    Attributes:
        error: errno, 0 where the tool's message is not understood.
        cause: what the entry shows of the reason, as a clause; empty if nothing.
    """

    at_s: float
    path: PathStr
    operation: str
    error: int
    cause: str = ""


@dataclass(frozen=True, slots=True)
class FailuresCounted:
    """Further failures of one kind whose paths are not kept."""

    at_s: float
    operation: str
    error: int
    number: int


@dataclass(frozen=True, slots=True)
class ToolSaid:
    """A line of a tool's standard error that names no entry."""

    at_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Paused:
    """The strategy's processes were stopped; the sample before this says how far they came.

    Attributes:
        asked_at_s: when the command came.
        all_stopped: every process was seen standing; one in a long call to the kernel (a huge
            file being given back) ends that call first.
    """

    at_s: float
    asked_at_s: float
    all_stopped: bool


@dataclass(frozen=True, slots=True)
class Resumed:
    """The strategy's processes go on."""

    at_s: float


@dataclass(frozen=True, slots=True)
class PaceChanged:
    """A person has changed how fast the job may go."""

    at_s: float
    pace: Pace


@dataclass(frozen=True, slots=True)
class Throttled:
    """A gentle job has stopped its tools, because other processes wait.

    Attributes:
        resource: what they wait for: ``disk`` or ``processors``.
        pressure_percent: the share of the last moments in which a process waited for it.
    """

    at_s: float
    resource: str
    pressure_percent: float


@dataclass(frozen=True, slots=True)
class Unthrottled:
    """The tools of a gentle job run again."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Audited:
    """A line for the system's log.

    Attributes:
        unsent: why the system's log did not get it; empty if it did.
    """

    at_s: float
    line: str
    unsent: str


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """Somebody asked for the end of the job; its processes were killed.

    Attributes:
        reason: who or what asked, in words.
    """

    at_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class JobFinished:
    """All processes have ended and the targets were checked.

    Attributes:
        split_is_exact: files and directories were distinguished by counting, not by difference.
        surviving_entries: names still below the targets (and the targets themselves, unless
            they were to be kept); None if that could not be counted.
        left: the targets of which something is left.
        unknown: those of `left` of which it is not known whether anything is left.
        vanished: the targets that were to be kept and are gone themselves.
        space_causes: why the space that came back is not what was expected.
        failed: entries that could not be deleted; None in a journal that does not add them up.
        deleted_entries: by the last sample; None where nothing could count them.
    """

    at_s: float
    outcome: Outcome
    explanation: str
    strategy_wall_s: float
    deleted_files: int | None
    deleted_directories: int | None
    split_is_exact: bool
    surviving_entries: int | None
    space: Space | None
    left: tuple[PathStr, ...]
    space_causes: tuple[Discrepancy, ...] = ()
    unknown: tuple[PathStr, ...] = ()
    failed: int | None = None
    deleted_entries: int | None = None
    vanished: tuple[PathStr, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordIncomplete:
    """The journal could not be written to the end of the job.

    Attributes:
        problem: why, in words.
    """

    at_s: float
    problem: str


Event = (
    JobStarted
    | JobRefused
    | StepStarted
    | StepFinished
    | Sampled
    | EntryFailed
    | FailuresCounted
    | ToolSaid
    | Paused
    | Resumed
    | PaceChanged
    | Throttled
    | Unthrottled
    | Audited
    | CancelRequested
    | JobFinished
    | RecordIncomplete
)

_SHOWN_OF_A_TYPE = 40
_TYPES_BY_WIRE_NAME: dict[str, type[Event]] = {
    "JobStarted": JobStarted,
    "JobRefused": JobRefused,
    "StepStarted": StepStarted,
    "StepFinished": StepFinished,
    "Sampled": Sampled,
    "EntryFailed": EntryFailed,
    "FailuresCounted": FailuresCounted,
    "ToolSaid": ToolSaid,
    "Paused": Paused,
    "Resumed": Resumed,
    "PaceChanged": PaceChanged,
    "HeldBack": Throttled,
    "LetGo": Unthrottled,
    "Audited": Audited,
    "CancelRequested": CancelRequested,
    "JobFinished": JobFinished,
    "RecordIncomplete": RecordIncomplete,
}
"""Journals and event streams have these names, whatever the classes are called."""
_WIRE_NAMES = {event_type: name for name, event_type in _TYPES_BY_WIRE_NAME.items()}


def event_to_json(event: Event) -> dict[str, Json]:
    """Return the JSON object of one event, its wire name under ``type``."""
    return {"type": _WIRE_NAMES[type(event)], **encode(event)}


def event_from_json(value: Json) -> Event:
    """Return the event of a JSON object; BadInput if it is none."""
    if not isinstance(value, dict):
        raise BadInput("A journal line is not a JSON object.")
    name = value.get("type")
    event_type = _TYPES_BY_WIRE_NAME.get(name) if isinstance(name, str) else None
    if event_type is None:
        shown = displayable(name[:_SHOWN_OF_A_TYPE]) if isinstance(name, str) else ""
        raise BadInput(f"A journal line has the unknown type '{shown}'.")
    return decode(event_type, value)
