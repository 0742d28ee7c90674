"""What a job's counters, processes and file system say, taken together a few times a second."""

import time
from collections.abc import Sequence
from dataclasses import replace

from tui_fs.job.tool_output import ToolOutput
from tui_fs.linux.filesystem import space_of
from tui_fs.linux.pressure import io_pressure_percent
from tui_fs.linux.processes import UsageMeter
from tui_fs.model.calls import CallCount, TraceSource
from tui_fs.model.events import (
    Sampled,
    Usage,
)
from tui_fs.model.space import Space
from tui_fs.tracing.source import CallSource, Counts

SAMPLE_EVERY_S = 0.25
"""The supervisor measures and checks a running job this often; see `RECORDED_AGE_SHARE`."""
RECORDED_AGE_SHARE = 0.001
"""Journalled samples are this share of the job's age apart, and at least `SAMPLE_EVERY_S`. Their
number grows with the logarithm of the age: 1,000 in the first 250 s, 3,300 in an hour, 7,100 in 48
hours (7 MB), 9,800 in 30 days. Views ask the supervisor for the counts in between."""
LOOK_AT_PROCESSES_EVERY_S = 1.0
"""Listing processes costs milliseconds on a busy server; four times a second would be felt."""


class SampleSchedule:
    """Decides when a sample of a running job goes into its journal."""

    def __init__(self) -> None:
        self._next_at_s = 0.0

    def is_due(self, at_s: float) -> bool:
        """Return whether a sample at this age of the job is to be journalled."""
        return at_s >= self._next_at_s

    def recorded(self, at_s: float) -> None:
        """Note a journalled sample, whether it was due or not."""
        self._next_at_s = at_s + max(SAMPLE_EVERY_S, RECORDED_AGE_SHARE * at_s)


class Sampler:
    """Makes `Sampled` events.

    Args:
        places: a directory on each file system whose free space is watched.
        launcher_pid: its descendants are the tools.
    """

    def __init__(
        self, source: CallSource, output: ToolOutput, places: Sequence[str], launcher_pid: int
    ) -> None:
        self._source = source
        self._output = output
        self._meter = UsageMeter(launcher_pid)
        self.places = tuple(places)
        self.space: Space | None = _space_of_all(self.places)
        self._space_answers = True
        self._calls: dict[str, CallCount] = {}
        self._usage: Usage | None = None
        self._looked_at_s = float("-inf")

    def removed(self) -> int | None:
        """Return the entries removed so far; None where nothing counts them."""
        if self._source.kind in (TraceSource.OUTPUT, TraceSource.ENGINE):
            return self._output.removed().entries
        return self._source.removed()

    def sample(self, at_s: float, strategy_s: float) -> Sampled:
        """Return what is known now, for the journal; see `changes`."""
        return self.changes(self.whole_sample(at_s, strategy_s))

    def changes(self, sampled: Sampled) -> Sampled:
        """Return a sample for the journal: its calls are those that changed since the last one."""
        changed = {
            name: count for name, count in sampled.calls.items() if self._calls.get(name) != count
        }
        self._calls.update(changed)
        return replace(sampled, calls=changed)

    def whole_sample(self, at_s: float, strategy_s: float) -> Sampled:
        """Return what is known now, with all calls."""
        counts = self._counts()
        if time.monotonic() - self._looked_at_s >= LOOK_AT_PROCESSES_EVERY_S:
            self._look_at_processes()
        return Sampled(
            at_s=at_s,
            strategy_s=strategy_s,
            calls=dict(counts.calls),
            removed=counts.removed,
            usage=self._usage,
            space=self.space,
            io_pressure_percent=io_pressure_percent(),
            threads=self._output.threads,
        )

    def last_sample(self, at_s: float, strategy_s: float) -> Sampled:
        """Return the counts and the space after the end, however fresh the last ones are.

        A file system that does not answer now has no space, whatever it had before.
        """
        self._looked_at_s = float("-inf")
        self._space_answers, self.space = True, None
        return self.sample(at_s, strategy_s)

    def _counts(self) -> Counts:
        """Return the counts of the source, or those that the tools tell themselves."""
        match self._source.kind:
            case TraceSource.OUTPUT:
                return Counts({}, self._output.removed())
            case TraceSource.ENGINE:
                return Counts(self._output.calls(), self._output.removed())
        return self._source.read()

    def _look_at_processes(self) -> None:
        self._looked_at_s = time.monotonic()
        self._usage = self._meter.measure() or self._usage
        if self._space_answers:
            space = _space_of_all(self.places)
            self._space_answers = space is not None
            self.space = space or self.space


def _space_of_all(places: Sequence[str]) -> Space | None:
    """Return the space of several file systems together; None if one does not answer."""
    spaces = [space_of(place) for place in places]
    known = [space for space in spaces if space is not None]
    if len(known) < len(spaces):
        return None
    inodes = [space.free_inodes for space in known if space.free_inodes is not None]
    return Space(
        sum(space.free_bytes for space in known),
        sum(inodes) if len(inodes) == len(known) else None,
    )
