"""Writes the records of a job: the journal, audit lines, and at the end the report."""

import time
from collections.abc import Sequence

from msgspec.structs import replace

from tui_fs.job.audit import AuditedEnd, audit_line, send_to_syslog
from tui_fs.job.journal import BufferedJournal, EndReserve, JournalWriter
from tui_fs.job.report import report_of
from tui_fs.job.store import JobFolder, write_json
from tui_fs.linux.entry_causes import cause_of_failure, confinement_cause
from tui_fs.linux.limits import is_limit, measured
from tui_fs.linux.open_files import OpenFileScan, scan_open_files
from tui_fs.model.calls import CallGroup, group_of_operation
from tui_fs.model.errors import Refused, TuiFsError
from tui_fs.model.events import (
    Audited,
    EntryFailed,
    Event,
    JobFinished,
    JobRefused,
    RecordIncomplete,
)
from tui_fs.model.outcome import JobState, Outcome
from tui_fs.model.plan import Plan
from tui_fs.model.snapshot import Snapshot, fold

REPORT_PATIENCE_S = 10.0
"""How long writing the report is retried while a limit prevents it."""
_RETRY_INTERVAL_S = 0.25

MAX_HOLDER_SCANS, _HOLDER_SCAN_S = 20, 0.5
"""Scans of all processes per job for the holders of failed entries, and the time of each."""


class JobRecord:
    """The events of one job, journalled and folded.

    Attributes:
        snapshot: the state folded from all events so far.
    """

    def __init__(
        self, folder: JobFolder, plan: Plan, journal: BufferedJournal | None = None
    ) -> None:
        self.snapshot = Snapshot()
        self._report_path = folder.report
        self._plan = plan
        self._journal = journal or BufferedJournal(
            JournalWriter(folder.journal), EndReserve(folder.end)
        )
        self._began = time.monotonic()
        self._errors: list[EntryFailed] = []
        self._holder_scans = 0

    def now_s(self) -> float:
        """Return the age of the job, which is the time of its events."""
        return round(time.monotonic() - self._began, 4)

    @property
    def is_lost(self) -> bool:
        """Whether the journal could not be written for so long that the job must end."""
        return self._journal.is_lost

    @property
    def problem(self) -> str:
        """Why the journal cannot be written; empty if it never failed."""
        return self._journal.problem

    def note(self, event: Event) -> None:
        """Journal an event; a failed entry gets the visible cause of its failure first."""
        if isinstance(event, EntryFailed):
            failed = event
            cause = measured(
                lambda: cause_of_failure(failed.path, failed.error, self._find_holders)
            )
            is_removal = group_of_operation(failed.operation) is CallGroup.REMOVE
            if not cause and is_removal and self._plan.confined_by:
                cause = measured(lambda: confinement_cause(failed.path, failed.error))
            event = replace(failed, cause=cause or "")
            self._errors.append(event)
        self._journal.write(event)
        self.snapshot = fold(self.snapshot, event)

    def _find_holders(self, paths: Sequence[str], device: int) -> OpenFileScan | None:
        if self._holder_scans == MAX_HOLDER_SCANS:
            return None
        self._holder_scans += 1
        return scan_open_files(paths, device, limit_s=_HOLDER_SCAN_S)

    def begin(self, started: Event) -> None:
        """Journal the start, and wait until it is on the disk.

        Raises:
            OSError: the journal could not be created.
        """
        self.note(started)
        self._audit(None)
        self._journal.sync()
        if self._journal.is_behind:
            raise OSError(f"the journal could not be created: {self._journal.problem}")

    def refuse(self, error: TuiFsError) -> None:
        """Record that the job ends before it has deleted anything."""
        rule = error.rule if isinstance(error, Refused) else type(error).__name__.lower()
        self._audit(AuditedEnd(Outcome.REFUSED, 0, 0, None, self.now_s()))
        self._end(JobRefused(self.now_s(), rule, error.sentence, error.advice))

    def finish(self, finished: JobFinished) -> None:
        """Record the end of the job."""
        counts = [finished.deleted_files, finished.deleted_directories]
        known = [number for number in counts if number is not None]
        self._audit(
            AuditedEnd(
                finished.outcome,
                sum(known) if known else None,
                self.snapshot.failed,
                finished.surviving_entries,
                finished.strategy_wall_s,
            )
        )
        self._end(replace(finished, at_s=self.now_s()))  # later than the audit line

    def _audit(self, end: AuditedEnd | None) -> None:
        line = audit_line(self._plan, self._plan.requester, end)
        self.note(Audited(self.now_s(), line, send_to_syslog(line) or ""))

    def _end(self, event: JobFinished | JobRefused) -> None:
        """Write the report, then the last event: a viewer that reads the end finds the report."""
        is_written = True
        try:
            self._write_report(fold(self.snapshot, event))
        except OSError:
            is_written = False  # retried below, after the journal has been written
        self.note(event)
        if not self._journal.finish():
            incomplete = RecordIncomplete(event.at_s, self._journal.problem)
            self.snapshot = fold(self.snapshot, incomplete)
            is_written = False
        deadline = time.monotonic() + REPORT_PATIENCE_S
        while not is_written:
            try:
                self._write_report(self.snapshot)
                is_written = True
            except OSError as error:
                if not is_limit(error) or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_INTERVAL_S)

    def _write_report(self, ended: Snapshot) -> None:
        report = report_of(ended, ended.state or JobState.DIED, self._errors)
        write_json(self._report_path, report.to_json())
