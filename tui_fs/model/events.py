"""The events that a supervisor records; a journal is a list of them.

Every ``at_s`` is in seconds since the start of the job by the monotonic clock.
"""

from typing import get_args

from msgspec import Struct, field

from tui_fs.model.calls import CallCount, Removed, TraceSource
from tui_fs.model.codec import Json, decode
from tui_fs.model.errors import BadInput
from tui_fs.model.figures import MissingFigure
from tui_fs.model.outcome import Outcome
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.plan import Expected
from tui_fs.model.space import Discrepancy, Space
from tui_fs.model.strategy import Argv, Mechanism, Pace, StrategyName
from tui_fs.model.target import check_paths


class Usage(Struct, frozen=True):
    """The resource usage of all processes of the strategy at one moment.

    Attributes:
        cpu_s, system_s: user plus kernel time, and kernel time alone, since the start.
        cpu_percent: since the last sample; 100 is one core. None for the first sample.
        rss_bytes: resident memory now.
        read_bytes, written_bytes: since the start, by the I/O accounting of the kernel; None
            without it.
        busiest: name and number of the process that uses the most CPU.
        processor_wait_s, disk_wait_s: how long all threads were ready without a processor, and
            waited for block devices; None where the kernel does not measure it.
        alive_s: age of the only thread; None if there were several.
        lock_wait_s: how long all threads slept until a lock was free; None where the source of
            the counts does not measure it.
    """

    cpu_s: float
    system_s: float
    cpu_percent: float | None
    rss_bytes: int
    read_bytes: int | None
    written_bytes: int | None
    processes: int
    busiest: str
    processor_wait_s: float | None = None
    disk_wait_s: float | None = None
    alive_s: float | None = None
    lock_wait_s: float | None = None


class MachineUse(Struct, frozen=True):
    """The use of the processors from the start of the first tool to the end of the last one.

    Attributes:
        processors: the number that the job may use.
        busy_s: time in which all processors of the machine ran any process, the tools included.
        stolen_s: time in which the hypervisor let them wait.
    """

    processors: int
    busy_s: float
    stolen_s: float


class _Event(Struct, frozen=True, tag=True):
    at_s: float


class JobStarted(_Event, frozen=True):
    """The pins were checked again and the counters are ready; nothing is deleted yet.

    Attributes:
        boot_id: identifies the boot (proc_sys_kernel(5)).
        predicted_other_calls: approximate number of calls not predicted by name; None if unknown.
        missing_figures: figures that cannot be measured while it runs.
        is_filtered: only entries that match a filter are deleted; the targets stay.
        filters: what is deleted then, in words.
        share: only this share of the targets is deleted, as ``1/3``; None for all of them.
        predicted_measured_at: when the unit costs of this file system were measured (epoch
            seconds); 0 if the times rest on other ones.
    """

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
    filters: str = ""
    confined_by: tuple[Mechanism, ...] = ()
    share: str | None = None
    predicted_measured_at: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a start without targets."""
        check_paths(self.targets)

    @property
    def confined_targets(self) -> int:
        """The number of targets that the confined tools cannot remove; a single file they can."""
        return len(self.targets) if self.confined_by and self.expected.totals.directories else 0


class JobRefused(_Event, frozen=True):
    """The job was not started; nothing was changed."""

    rule: str
    sentence: str
    advice: str


class StepStarted(_Event, frozen=True):
    """A step's processes were started."""

    step: int
    pids: tuple[int, ...]


class StepFinished(_Event, frozen=True):
    """A step's processes have ended.

    Attributes:
        statuses: exit codes; negative for the signal that ended a process.
        peak_memory_bytes: the largest single process of the step.
    """

    step: int
    statuses: tuple[int, ...]
    user_s: float
    system_s: float
    peak_memory_bytes: int


class Sampled(_Event, frozen=True):
    """A sample of the counters.

    Attributes:
        strategy_s: time since the first process was started, pauses included.
        calls: the counts that changed since the last sample, as totals.
        removed: None if the source does not count removals.
        threads: number of working threads that the tool reports; 0 if it reports none.
        held_s: total time for which gentle mode has stopped the tools so far; the journal of an
            old job does not have every stop.
    """

    strategy_s: float
    calls: dict[str, CallCount]
    removed: Removed | None
    usage: Usage | None
    space: Space | None
    io_pressure_percent: float | None
    threads: int = 0
    held_s: float = 0.0


class EntryFailed(_Event, frozen=True):
    """An entry could not be deleted; the job continues.

    Attributes:
        error: errno, 0 if the message of the tool cannot be parsed.
        cause: the cause found by examining the entry, as a clause; empty if unknown.
    """

    path: PathStr
    operation: str
    error: int
    cause: str = ""


class FailuresCounted(_Event, frozen=True):
    """Further failures of one kind, without their paths."""

    operation: str
    error: int
    number: int


class ToolSaid(_Event, frozen=True):
    """A line of a tool's standard error that names no entry."""

    text: str


class Paused(_Event, frozen=True):
    """The processes of the strategy were stopped; the preceding sample has their progress.

    Attributes:
        asked_at_s: time of the command.
        all_stopped: every process was seen stopped. A process in a long system call (the release
            of a huge file) stops at the end of the call.
    """

    asked_at_s: float
    all_stopped: bool


class Resumed(_Event, frozen=True):
    """The processes of the strategy were continued."""


class PaceChanged(_Event, frozen=True):
    """The user has changed the pace of the job."""

    pace: Pace


class Throttled(_Event, frozen=True, tag="HeldBack"):
    """A gentle job has stopped its tools, because other processes wait.

    Attributes:
        resource: the contended resource: ``disk`` or ``processors``.
        pressure_percent: recent share of time in which a process waited for it.
    """

    resource: str
    pressure_percent: float


class Unthrottled(_Event, frozen=True, tag="LetGo"):
    """The tools of a gentle job run again."""


class Audited(_Event, frozen=True):
    """A line for the system log.

    Attributes:
        unsent: why the line could not be logged; empty if it was.
    """

    line: str
    unsent: str


class CancelRequested(_Event, frozen=True):
    """A cancellation was requested; the processes of the job were killed.

    Attributes:
        reason: the source of the request, in words.
    """

    reason: str


class JobFinished(_Event, frozen=True):
    """All processes have ended and the targets were checked.

    Attributes:
        split_is_exact: files and directories were counted separately, not by difference.
        surviving_entries: names still below the targets (and the targets themselves, unless
            they were to be kept); None if they could not be counted.
        left: the targets that are not deleted completely.
        unknown: the targets of `left` whose state could not be determined.
        vanished: the targets that were to be kept and no longer exist.
        shared: the targets that still exist, because only a share of them was deleted.
        machine: use of the processors by all processes while the tools ran; None if unknown.
        space_causes: why the freed space differs from the expected one.
        failed: number of entries that could not be deleted; None in a journal without that sum.
        deleted_entries: by the last sample; None if no source counted them.
        calls_are_whole: no system calls were lost when the tools or their counter were stopped.
    """

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
    shared: tuple[PathStr, ...] = ()
    machine: MachineUse | None = None
    calls_are_whole: bool = True

    @property
    def reported_entries(self) -> int | None:
        """Deleted files and directories; without them, as many as the last sample had."""
        if self.deleted_files is None:
            return self.deleted_entries
        return self.deleted_files + (self.deleted_directories or 0)


class RecordIncomplete(_Event, frozen=True):
    """Writing the journal failed before the end of the job.

    Attributes:
        problem: the reason, in words.
    """

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
EVENT_TYPES: dict[str, type[Event]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(Event)
}
"""The names in journals and event streams: those of the classes, unless a tag differs."""


def event_from_json(value: Json) -> Event:
    """Return the event of a JSON object; BadInput if it is not an event."""
    if not isinstance(value, dict):
        raise BadInput("A journal line is not a JSON object.")
    name = value.get("type")
    event_type = EVENT_TYPES.get(name) if isinstance(name, str) else None
    if event_type is None:
        shown = displayable(name[:_SHOWN_OF_A_TYPE]) if isinstance(name, str) else ""
        raise BadInput(f"A journal line has the unknown type '{shown}'.")
    return decode(event_type, value)
