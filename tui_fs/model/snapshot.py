"""The state of a job for all views, folded from its events."""

import errno
import math

from msgspec import Struct, field
from msgspec.structs import replace

from tui_fs.model.calls import CallCount, Removed
from tui_fs.model.compat import assert_never
from tui_fs.model.eta import blend, from_model, from_rate
from tui_fs.model.events import (
    Audited,
    CancelRequested,
    EntryFailed,
    Event,
    FailuresCounted,
    JobFinished,
    JobRefused,
    JobStarted,
    PaceChanged,
    Paused,
    RecordIncomplete,
    Resumed,
    Sampled,
    StepFinished,
    StepStarted,
    Throttled,
    ToolSaid,
    Unthrottled,
    Usage,
)
from tui_fs.model.outcome import JobState
from tui_fs.model.paths import PathStr
from tui_fs.model.space import Space
from tui_fs.model.strategy import Pace

RATE_WINDOW_S = 3.0
"""Time window of rates: short enough to follow changes, long enough not to jitter."""

LIMITED_WINDOW_S = 30.0
"""The window under a rate limit, which keeps tools stopped for seconds after each burst."""

SHORTEST_SPAN_S = 1e-9
"""Spans below the clock resolution have no rate; the quotient may not even be finite."""

EXAMPLES_PER_GROUP = 20
TOOL_LINES_KEPT = 50


class FailureGroup(Struct, frozen=True):
    """Entries that failed in the same operation with the same errno."""

    operation: str
    error: int
    number: int
    examples: tuple[PathStr, ...]
    causes: tuple[str, ...] = ()
    """The cause for each example; empty if unknown."""


class Mark(Struct, frozen=True):
    """Counts at a moment, kept for the computation of rates.

    Attributes:
        working_s: running time of the strategy without pauses.
    """

    working_s: float
    removed: int | None
    calls: dict[str, int]


class Snapshot(Struct, frozen=True):
    """The state of a job after its events so far.

    Attributes:
        state: None before the first event.
        paused_s: total duration of earlier pauses.
        paused_at_s: start of the current pause; None if it is not paused.
        record_problem: why the journal is incomplete; empty if it is complete.
        pace: the current pace.
        throttled: the event with which a gentle job stopped its tools; None while they run.
        held_s: total duration of earlier stops by gentle mode.
        rate_per_s: entries removed per second over the last seconds; None while unknown.
        peak_memory_bytes: of the largest process of the steps that have ended.
        sampled_memory_bytes: of all processes at once, the largest sample.
        usage_entries: entries removed when the usage was measured (less often than other values).
        call_rates: calls per second by name over the last seconds.
        eta_s: low and high remaining seconds; None while unknown.
    """

    state: JobState | None = None
    started: JobStarted | None = None
    refused: JobRefused | None = None
    finished: JobFinished | None = None
    at_s: float = 0.0
    first_step_at_s: float | None = None
    step: int | None = None
    step_statuses: tuple[tuple[int, ...], ...] = ()
    calls: dict[str, CallCount] = field(default_factory=dict)
    removed: Removed | None = None
    usage: Usage | None = None
    usage_entries: int = 0
    space: Space | None = None
    io_pressure_percent: float | None = None
    threads: int = 0
    peak_memory_bytes: int = 0
    sampled_memory_bytes: int = 0
    finished_user_s: float = 0.0
    finished_system_s: float = 0.0
    paused_s: float = 0.0
    paused_at_s: float | None = None
    pace: Pace = field(default_factory=Pace)
    record_problem: str = ""
    throttled: Throttled | None = None
    held_s: float = 0.0
    cancel: CancelRequested | None = None
    failures: tuple[FailureGroup, ...] = ()
    tool_lines: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()
    rate_per_s: float | None = None
    peak_rate_per_s: float = 0.0
    call_rates: dict[str, float] = field(default_factory=dict)
    eta_s: tuple[float, float] | None = None

    @property
    def failed(self) -> int:
        """The number of entries that could not be deleted; not those that were gone already."""
        return sum(group.number for group in self.failures if group.error != errno.ENOENT)

    @property
    def has_errors(self) -> bool:
        """Whether entries failed, or the tools wrote messages that name none."""
        return bool(self.failures or self.tool_lines)

    @property
    def expected_entries(self) -> int:
        """The number of entries to delete according to the survey."""
        return self.started.expected.totals.entries if self.started else 0

    @property
    def fraction(self) -> float | None:
        """Removed over expected entries; None if either is unknown."""
        if self.removed is None or self.started is None or not self.expected_entries:
            return None
        if not self.started.expected.complete:
            return None
        return min(1.0, self.removed.entries / self.expected_entries)

    @property
    def is_cut_off(self) -> bool:
        """Whether a started step has no end event, because the launcher was killed in it."""
        return self.step is not None and len(self.step_statuses) <= self.step

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start of the first process, pauses included."""
        if self.finished is not None:
            return self.finished.strategy_wall_s
        return self.at_s - self.first_step_at_s if self.first_step_at_s is not None else 0.0


def fold(snapshot: Snapshot, event: Event) -> Snapshot:  # noqa: RET503
    """Return the snapshot after one more event.

    A sample older than the snapshot changes nothing, because counts never decrease.
    """
    if isinstance(event, Sampled) and event.at_s < snapshot.at_s:
        return snapshot
    if not isinstance(event, JobStarted | JobRefused) and snapshot.at_s < event.at_s:
        snapshot = replace(snapshot, at_s=event.at_s)
    match event:
        case JobStarted():
            return replace(
                snapshot,
                state=JobState.RUNNING,
                started=event,
                space=event.space,
                pace=event.pace,
            )
        case JobRefused():
            return replace(snapshot, state=JobState.REFUSED, refused=event)
        case StepStarted():
            first = snapshot.first_step_at_s
            marks = snapshot.marks or (Mark(0.0, 0, {}),)
            first = event.at_s if first is None else first
            return replace(snapshot, step=event.step, first_step_at_s=first, marks=marks)
        case StepFinished():
            return replace(
                snapshot,
                step_statuses=(*snapshot.step_statuses, event.statuses),
                finished_user_s=snapshot.finished_user_s + event.user_s,
                finished_system_s=snapshot.finished_system_s + event.system_s,
                peak_memory_bytes=max(snapshot.peak_memory_bytes, event.peak_memory_bytes),
            )
        case Sampled():
            return _fold_sample(snapshot, event)
        case EntryFailed():
            return _fold_failure(snapshot, event.operation, event.error, 1, event.path, event.cause)
        case FailuresCounted():
            return _fold_failure(snapshot, event.operation, event.error, event.number, None)
        case ToolSaid():
            lines = (*snapshot.tool_lines, event.text)[-TOOL_LINES_KEPT:]
            return replace(snapshot, tool_lines=lines)
        case Paused():
            return replace(
                snapshot,
                state=JobState.PAUSED,
                paused_at_s=event.at_s,
                rate_per_s=0.0,
                call_rates={},
                eta_s=None,
            )
        case Resumed():
            since = snapshot.paused_at_s if snapshot.paused_at_s is not None else event.at_s
            return replace(
                snapshot,
                state=JobState.RUNNING,
                paused_at_s=None,
                paused_s=snapshot.paused_s + event.at_s - since,
            )
        case PaceChanged():
            if event.pace.rate_per_s != snapshot.pace.rate_per_s:  # no mean of both
                snapshot = replace(snapshot, marks=snapshot.marks[-1:])
            return replace(snapshot, pace=event.pace)
        case Throttled():
            return replace(snapshot, throttled=event)
        case Unthrottled():
            since = snapshot.throttled.at_s if snapshot.throttled is not None else event.at_s
            return replace(snapshot, throttled=None, held_s=snapshot.held_s + event.at_s - since)
        case Audited():
            return snapshot
        case RecordIncomplete():
            return replace(snapshot, record_problem=event.problem)
        case CancelRequested():
            # The request kills the tools
            return replace(not_standing(snapshot, event.at_s), cancel=event, eta_s=None)
        case JobFinished():
            snapshot = not_standing(snapshot, event.at_s)
            return replace(
                snapshot,
                state=JobState(event.outcome.value),
                finished=event,
                paused_s=min(snapshot.paused_s, event.strategy_wall_s),
                held_s=min(snapshot.held_s, event.strategy_wall_s),
                space=event.space or snapshot.space,
                eta_s=None,
            )
    assert_never(event)


def not_standing(snapshot: Snapshot, at_s: float) -> Snapshot:
    """Return the snapshot with an open pause and an open throttle closed at the end of the job."""
    if snapshot.paused_at_s is not None:
        snapshot = replace(
            snapshot,
            state=JobState.RUNNING,
            paused_at_s=None,
            paused_s=snapshot.paused_s + at_s - snapshot.paused_at_s,
        )
    if snapshot.throttled is not None:
        since = snapshot.throttled.at_s
        snapshot = replace(snapshot, throttled=None, held_s=snapshot.held_s + at_s - since)
    return snapshot


def _fold_sample(snapshot: Snapshot, event: Sampled) -> Snapshot:
    calls = {**snapshot.calls, **event.calls}
    if event.usage is not None and event.usage != snapshot.usage and event.removed is not None:
        snapshot = replace(snapshot, usage_entries=event.removed.entries)
    sampled_bytes = event.usage.rss_bytes if event.usage is not None else 0
    snapshot = replace(
        snapshot,
        calls=calls,
        sampled_memory_bytes=max(snapshot.sampled_memory_bytes, sampled_bytes),
        removed=event.removed if event.removed is not None else snapshot.removed,
        usage=event.usage or snapshot.usage,
        space=event.space or snapshot.space,
        io_pressure_percent=event.io_pressure_percent,
        threads=event.threads,
        held_s=max(snapshot.held_s, event.held_s),
    )
    if snapshot.paused_at_s is not None:
        return snapshot
    now_s = event.strategy_s - snapshot.paused_s
    removed = snapshot.removed.entries if snapshot.removed else None
    mark = Mark(now_s, removed, {name: call.calls for name, call in calls.items()})
    marks = (*snapshot.marks, mark)
    is_limited = snapshot.pace.rate_per_s and snapshot.throttled is None
    window_s = LIMITED_WINDOW_S if is_limited else RATE_WINDOW_S
    while len(marks) > 2 and marks[1].working_s <= now_s - window_s:
        marks = marks[1:]
    oldest = marks[0]
    span_s = now_s - oldest.working_s
    if span_s < SHORTEST_SPAN_S:
        return replace(snapshot, marks=marks)
    rates = {
        name: (number - oldest.calls.get(name, 0)) / span_s for name, number in mark.calls.items()
    }
    rate = None
    if removed is not None and oldest.removed is not None:
        rate = (removed - oldest.removed) / span_s
    return replace(
        snapshot,
        marks=marks,
        call_rates=rates,
        rate_per_s=rate,
        peak_rate_per_s=max(snapshot.peak_rate_per_s, rate or 0.0),
        eta_s=_eta(snapshot, now_s, removed, rate),
    )


def _eta(
    snapshot: Snapshot, working_s: float, removed: int | None, rate: float | None
) -> tuple[float, float] | None:
    """Return low and high remaining seconds; None while unknown.

    The prediction does not apply to a job that was throttled or has a rate limit.
    """
    fraction = snapshot.fraction
    if removed is None or fraction is None or working_s <= 0 or snapshot.cancel is not None:
        return None
    measured = None
    if removed > 0 and rate and rate > 0:
        left = max(0, snapshot.expected_entries - removed)
        # A limit is the ground for its rate; tools that are stopped and continued begin faster.
        limit = snapshot.pace.rate_per_s or math.inf
        known = 1.0 if snapshot.pace.rate_per_s else fraction
        measured = from_rate(left, min(rate, limit), min(removed / working_s, limit), known)
    started = snapshot.started
    predicted = started.predicted_seconds if started else None
    was_limited = started is not None and started.pace.rate_per_s > 0
    is_free = not (snapshot.throttled or snapshot.held_s or snapshot.pace.rate_per_s or was_limited)
    model = None
    if (
        predicted and is_free and working_s < predicted[2]
    ):  # after its high end, the prediction was wrong
        model = from_model(predicted, fraction, working_s)
    return blend(measured, model, fraction, working_s)


def _fold_failure(
    snapshot: Snapshot,
    operation: str,
    error: int,
    number: int,
    path: PathStr | None,
    cause: str = "",
) -> Snapshot:
    groups = {(group.operation, group.error): group for group in snapshot.failures}
    group = groups.get((operation, error), FailureGroup(operation, error, 0, ()))
    examples, causes = group.examples, group.causes
    if path is not None and len(examples) < EXAMPLES_PER_GROUP:
        examples, causes = (*examples, path), (*causes, cause)
    number += group.number
    groups[operation, error] = replace(group, number=number, examples=examples, causes=causes)
    return replace(snapshot, failures=tuple(groups.values()))
