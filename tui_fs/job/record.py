"""A supervisor's hold on its journal, also while the disk below that is full or ill."""

import contextlib
import os
import time
from collections.abc import Callable

from tui_fs.job.journal import JournalWriter
from tui_fs.model.events import Event, Sampled

PATIENCE_S = 30.0
"""A deletion that nobody can follow is ended after this long."""
LAST_PATIENCE_S = 30.0
_MOST_KEPT = 20_000


class Record:
    """Writes events in their order; those that cannot be written now are kept and written later.

    A full disk is what the job may be about to cure.
    """

    def __init__(self, writer: JournalWriter, clock: Callable[[], float] = time.monotonic) -> None:
        self._writer = writer
        self._clock = clock
        self._kept: list[Event] = []
        self._failing_since: float | None = None
        self.problem = ""

    @property
    def is_behind(self) -> bool:
        """Whether there are events that could not be written yet."""
        return bool(self._kept)

    @property
    def is_lost(self) -> bool:
        """Whether nothing could be written for so long that the job must end."""
        since = self._failing_since
        return since is not None and self._clock() - since > PATIENCE_S

    def write(self, event: Event) -> None:
        """Append one event, now or later."""
        self._kept.append(event)
        if len(self._kept) > _MOST_KEPT:
            self._kept = [one for one in self._kept if not isinstance(one, Sampled)]
        self._flush()

    def sync(self) -> None:
        """Wait until all that was written is on the disk."""
        try:
            self._writer.sync()
        except OSError as error:
            self._note_problem(error)

    def finish(self, sleep: Callable[[float], None] = time.sleep) -> bool:
        """Write what is kept, trying for `LAST_PATIENCE_S`; return whether all is written."""
        deadline = self._clock() + LAST_PATIENCE_S
        while not self._flush() and self._clock() < deadline:
            sleep(1.0)
        self.sync()
        return not self._kept

    def _flush(self) -> bool:
        written = 0
        try:
            for event in self._kept:
                self._writer.write(event)
                written += 1
        except OSError as error:
            self._note_problem(error)
        else:
            self._failing_since = None
        del self._kept[:written]
        return not self._kept

    def _note_problem(self, error: OSError) -> None:
        self.problem = os.strerror(error.errno or 0)
        if self._failing_since is None:
            self._failing_since = self._clock()
            with contextlib.suppress(OSError):  # the log is on the same disk
                os.write(2, f"The journal cannot be written: {self.problem}.\n".encode())
