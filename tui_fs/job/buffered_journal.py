"""The events of a running job on their way to its journal, also while the disk is full or fails."""

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from tui_fs.job.end_reserve import EndReserve
from tui_fs.job.journal import JournalWriter
from tui_fs.model.events import (
    EntryFailed,
    Event,
    FailuresCounted,
    RecordIncomplete,
    Sampled,
    Throttled,
    ToolSaid,
    Unthrottled,
)

PATIENCE_S = 30.0
"""A deletion that nobody can follow is ended after this long."""
LAST_PATIENCE_S = 30.0


class BufferedJournal:
    """Writes events in their order; those that cannot be written now are kept and written later.

    The job may be about to free a full disk. What the journal cannot take until the job
    has ended goes to the reserve, shortened.
    """

    def __init__(
        self,
        writer: JournalWriter,
        reserve: EndReserve,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._writer = writer
        self._reserve = reserve
        self._clock = clock
        self._pending: list[Event] = []
        self._failing_since: float | None = None
        self._is_final = False
        self.problem = ""

    @property
    def is_behind(self) -> bool:
        """Whether there are events that could not be written yet."""
        return bool(self._pending)

    @property
    def is_lost(self) -> bool:
        """Whether nothing could be written for so long that the job must end."""
        since = self._failing_since
        return since is not None and self._clock() - since > PATIENCE_S

    def write(self, event: Event) -> None:
        """Append one event, now or later."""
        self._pending.append(event)
        self._flush()

    def sync(self) -> None:
        """Wait until all that was written is on the disk."""
        try:
            self._writer.sync()
        except OSError as error:
            self._note_problem(error)

    def finish(self, sleep: Callable[[float], None] = time.sleep) -> bool:
        """Write the pending events to the journal, trying for `LAST_PATIENCE_S`, or to the reserve.

        Returns:
            Whether the journal is complete.

        Raises:
            OSError: the reserve cannot be written either.
        """
        deadline = self._clock() + LAST_PATIENCE_S
        while not self._flush() and not self._is_final and self._clock() < deadline:
            sleep(1.0)
        self.sync()
        if not self._pending:
            self._reserve.release()
            return True
        incomplete = RecordIncomplete(self._pending[0].at_s, self.problem)
        self._reserve.write([incomplete, *shortened(self._pending)])
        return False

    def _flush(self) -> bool:
        written = 0
        try:
            for event in self._pending:
                self._writer.write(event)
                written += 1
        except OSError as error:
            self._note_problem(error)
        else:
            self._failing_since = None
        del self._pending[:written]
        return not self._pending

    def _note_problem(self, error: OSError) -> None:
        self.problem = os.strerror(error.errno or 0)
        self._is_final = error.errno == errno.EFBIG  # the limit of this process stays
        if self._failing_since is None:
            self._failing_since = self._clock()
            with contextlib.suppress(OSError):  # the log is on the same disk
                os.write(2, f"The journal cannot be written: {self.problem}.\n".encode())


def shortened(events: Iterable[Event]) -> list[Event]:
    """Return fewer events that give the same figures.

    Failures of one kind become one count without their paths, samples become one, and lines of
    the tools are left out. How long a gentle job was held back is in the sample.
    """
    result: dict[object, Event] = {}  # by what a later event of the same kind replaces
    has_hold = False
    for number, event in enumerate(events):
        key: object = number
        match event:
            case ToolSaid():
                continue
            case Throttled():
                has_hold = True
                continue
            case Unthrottled() if has_hold:
                continue
            case EntryFailed() | FailuresCounted():
                key = event.operation, event.error
                before = result.pop(key, None)
                failed = event.number if isinstance(event, FailuresCounted) else 1
                failed += before.number if isinstance(before, FailuresCounted) else 0
                event = FailuresCounted(event.at_s, event.operation, event.error, failed)
            case Sampled():
                key = Sampled
                before = result.pop(key, None)
                event = _merged(before, event) if isinstance(before, Sampled) else event
        result[key] = event
    return list(result.values())


def _merged(earlier: Sampled, later: Sampled) -> Sampled:
    """Return one sample for two; a sample has only the calls that changed since the one before."""
    return replace(
        later,
        calls={**earlier.calls, **later.calls},
        removed=later.removed if later.removed is not None else earlier.removed,
        usage=later.usage or earlier.usage,
        space=later.space or earlier.space,
        held_s=max(earlier.held_s, later.held_s),
    )
