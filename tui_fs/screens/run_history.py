"""The rates and incidents of a job since its start, for graphs."""

from collections import deque

from msgspec import Struct, field

from tui_fs.model.calls import EXPLAINED_CALLS, OTHER_CALLS_LABEL, REMOVING_CALLS
from tui_fs.model.events import (
    CancelRequested,
    EntryFailed,
    Event,
    FailuresCounted,
    PaceChanged,
    Paused,
    Resumed,
    Sampled,
    StepStarted,
    Throttled,
    Unthrottled,
)
from tui_fs.model.snapshot import SHORTEST_SPAN_S, Snapshot
from tui_fs.widgets.rate_graph import RateHistory

_CALL_BUCKETS = 80
"""More than the cells of a graph in a table."""
_MARKS = {Paused: "P", Throttled: "T", EntryFailed: "!", FailuresCounted: "!"}
MARK_WORDS = {"P": "paused", "T": "throttled", "!": "failed"}
_INCIDENTS_KEPT = 40
_FAILURE = "the first failure"
STARTED = "started"
"""The incident that the prediction stands beside."""


class Trends(Struct, frozen=True):
    """The rates since the start, the oldest first.

    Attributes:
        calls: by name, and by `OTHER_CALLS_LABEL`.
        marks: incidents: index of the value of `removals`, and a character of `MARK_WORDS`.
        incidents: the last of them: elapsed seconds, pauses included, and words.
    """

    removals: tuple[float, ...] = ()
    calls: dict[str, tuple[float, ...]] = field(default_factory=dict)
    marks: tuple[tuple[int, str], ...] = ()
    incidents: tuple[tuple[float, str], ...] = ()


class RunHistory:
    """Collects rates from the snapshots of a job; a view that joins late reads the journal.

    Times are without pauses, as the rates are.
    """

    def __init__(self, interval_s: float) -> None:
        """Create an empty history.

        Args:
            interval_s: time between two samples.
        """
        self.removals = RateHistory(bucket_s=interval_s)
        self._interval_s = interval_s
        self._calls: dict[str, RateHistory] = {}
        self._marks: dict[float, str] = {}
        self._incidents: deque[tuple[float, str]] = deque(maxlen=_INCIDENTS_KEPT)
        self._has_failed = False
        self._first_s: float | None = None
        self._last_s = 0.0
        self._last_calls: dict[str, int] = {}

    def add(self, snapshot: Snapshot, event: Event | None = None) -> None:
        """Add the rates of a snapshot.

        Args:
            event: the event that led to it; None for the counts that a supervisor answered.
        """
        words = _incident(event)
        is_first_failure = words == _FAILURE and not self._has_failed
        self._has_failed |= is_first_failure
        if words and (words != _FAILURE or is_first_failure):
            self._incidents.append((snapshot.elapsed_s, words))
        now_s = snapshot.elapsed_s - snapshot.paused_s
        mark = _MARKS.get(type(event)) if event is not None else None
        if mark is not None:
            bucket_s = self.removals.bucket_s  # doubles, so the number of marks stays small
            self._marks[now_s // bucket_s * bucket_s] = mark
        if event is not None and not isinstance(event, Sampled):
            return
        if snapshot.paused_at_s is not None:
            return
        if snapshot.rate_per_s is not None:
            self.removals.add(now_s, snapshot.rate_per_s)
        calls: dict[str, int] = {}
        for name, call_count in snapshot.calls.items():
            key = name if name in EXPLAINED_CALLS else OTHER_CALLS_LABEL
            calls[key] = calls.get(key, 0) + call_count.calls
        # The rates of a snapshot are means of some seconds, too blurred for a few calls.
        # The time of the counts: an answered sample may be older than its answer.
        counted_s = snapshot.marks[-1].working_s if snapshot.marks else 0.0
        passed_s = counted_s - self._last_s
        if passed_s <= SHORTEST_SPAN_S:
            return
        for key, number in calls.items():
            if key not in self._calls:
                rates = self._calls[key] = RateHistory(_CALL_BUCKETS, self._interval_s)
                if self._first_s is not None:  # a later step is drawn later
                    rates.add(self._first_s, 0.0)
                    rates.add(self._last_s, 0.0)
            rate = (number - self._last_calls.get(key, 0)) / passed_s
            if key in REMOVING_CALLS:  # as the graph of removals
                rate = snapshot.call_rates.get(key, rate)
            self._calls[key].add(counted_s, rate, passed_s)
        self._first_s = counted_s if self._first_s is None else self._first_s
        self._last_s, self._last_calls = counted_s, calls

    def trends(self) -> Trends:
        """Return what was collected so far."""
        return Trends(
            self.removals.values,
            {name: history.values for name, history in self._calls.items()},
            tuple((self.removals.index_of(at_s), mark) for at_s, mark in self._marks.items()),
            tuple(self._incidents),
        )


def _incident(event: Event | None) -> str:
    """Return what happened, in words; empty for what happens all the time."""
    match event:
        case StepStarted(step=step):
            return f"step {step + 1} started" if step else STARTED
        case Paused():
            return "paused"
        case Resumed():
            return "resumed"
        case Throttled(resource=resource):
            return f"held back: others wait for the {resource}"
        case Unthrottled():
            return "continued"
        case PaceChanged(pace=pace):
            return f"pace: {pace.in_words() or 'no limits'}"
        case EntryFailed() | FailuresCounted():
            return _FAILURE
        case CancelRequested():
            return "cancelled"
        case _:
            return ""
