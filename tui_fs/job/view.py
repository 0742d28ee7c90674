"""A viewer's state of a job: its folded journal, and whether its processes still run."""

import os
import time
from collections.abc import Callable

from msgspec import Struct, field
from msgspec.structs import replace

from tui_fs.job.control import sample
from tui_fs.job.journal import JournalReader, last_event, read_crash, read_reserve
from tui_fs.job.lock import has_starter, has_supervisor
from tui_fs.job.report import Report, report_of
from tui_fs.job.store import JobFolder, all_jobs, origin_of, read_plan
from tui_fs.job.tool_output import PATHS_KEPT
from tui_fs.linux.host import current_host
from tui_fs.linux.timeouts import call_within
from tui_fs.model.codec import decode
from tui_fs.model.errors import BadInput, JobFailed
from tui_fs.model.events import (
    EntryFailed,
    Event,
    FailuresCounted,
    JobFinished,
    JobRefused,
    Sampled,
    Throttled,
)
from tui_fs.model.host import Host, Locality, locality_of
from tui_fs.model.outcome import JobState
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.plan import Expected, Plan
from tui_fs.model.snapshot import Snapshot, fold
from tui_fs.model.strategy import Filters, StrategyName
from tui_fs.model.target import Target, in_words

_MISSING_TIMEOUT_S = 0.25
"""How long a view waits for the file system with a target of a job that died."""
_RETRY_SAMPLE_S = 5.0
"""A supervisor that did not answer is busy; asking again would cost each poll a timeout."""


class JobView:
    """Follows one job by its journal; never changes anything.

    It keeps the snapshot and at most `PATHS_KEPT` failed entries, however long the journal is.
    """

    def __init__(self, folder: JobFolder) -> None:
        self.folder = folder
        plan = read_plan(folder)
        self.plan: Plan = decode(Plan, plan)
        self.origin = origin_of(plan)
        self.locality = locality_of(self.origin.host, current_host())
        self.snapshot = Snapshot()
        self._reader = JournalReader(folder.journal)
        self._errors: list[EntryFailed] = []
        self._is_over = False
        self._no_sample_before_s = 0.0
        self._recorded: Snapshot | None = None

    def poll(self, handle: Callable[[Event], None] = lambda _: None) -> int:
        """Read the journal to its present end; return the number of new events.

        Args:
            handle: called with each new event.

        Raises:
            BadInput: the journal is damaged.
            JobFailed: the job has no end yet, and its file system has no locks.
        """
        number = self._read(handle)
        if not self._has_ended and not self._is_alive():
            # Read what the supervisor wrote between the last read and its end.
            number += self._read(handle)
            if not self._has_ended:
                number += self._take(read_reserve(self.folder.end), handle)
            self._is_over = True
        self._is_over = self._is_over or self._has_ended
        return number

    def poll_live(self, handle: Callable[[Event], None] = lambda _: None) -> int:
        """Poll, and ask a running supervisor for its current counts; see `poll`.

        The journal of an old job has a sample only every few minutes.
        """
        sampled: tuple[Event, ...] = ()
        now_s = time.monotonic()
        is_begun = self.snapshot.started is not None and self.locality is Locality.THIS_BOOT
        if is_begun and not self._is_over and now_s >= self._no_sample_before_s:
            try:
                sampled = sample(self.folder)
            except JobFailed:
                self._no_sample_before_s = now_s + _RETRY_SAMPLE_S
        number = self.poll(handle)
        # The poll above read everything that the supervisor had written before it answered.
        # A newer event in the journal may count the same failures as the answer.
        is_newest = all(event.at_s >= self.snapshot.at_s for event in sampled[-1:])
        if not sampled or not is_newest or self._has_ended:
            return number
        for event in sampled:
            if isinstance(event, Sampled):
                self.snapshot = fold(self.snapshot, event)
        # The journal will have these failures, and may never have this hold. The next poll
        # continues from a snapshot without both.
        self._recorded = self.snapshot
        for event in sampled:
            if isinstance(event, FailuresCounted):
                self.snapshot = fold(self.snapshot, event)
            elif isinstance(event, Throttled) and self.snapshot.throttled is None:
                self.snapshot = replace(self.snapshot, throttled=event)
        return number + 1

    @property
    def state(self) -> JobState:
        """The state of the job at the last `poll`."""
        state = self.snapshot.state
        if self._is_over and (state is None or state.is_live):
            is_here = self.locality is not Locality.OTHER_HOST
            return JobState.DIED if is_here else JobState.ELSEWHERE
        return state or JobState.RUNNING

    @property
    def is_over(self) -> bool:
        """Whether no more events will come, or this host cannot wait for them."""
        return self._is_over

    def report(self) -> Report:
        """Return the report made from the journal; report.json is a copy for other programs.

        Raises:
            JobFailed: the job belongs to another host and has no end yet.
        """
        self.refuse_elsewhere()
        crash = read_crash(self.folder.crash)
        if crash:
            crash += f"; see {displayable(self.folder.log)}"
        is_dead = self.state is JobState.DIED
        return report_of(
            self.snapshot,
            self.state,
            self._errors,
            crash,
            is_gone=is_dead and self._are_targets_gone(),
            is_unbegun=is_dead and self._is_unbegun(),
        )

    def _is_unbegun(self) -> bool:
        """Return whether the supervisor certainly ended before it could begin.

        An empty journal alone proves nothing: it may have been damaged, or lost in a restart of
        the machine. A supervisor binds its socket before it begins.
        """
        if self.snapshot.started is not None or self.locality is not Locality.THIS_BOOT:
            return False
        return not any(map(os.path.lexists, (self.folder.socket, self.folder.report)))

    def _are_targets_gone(self) -> bool:
        """Return whether no target's path exists any more; False if that is unknown."""
        try:
            return call_within(lambda: all(map(_is_missing, self.plan.paths)), _MISSING_TIMEOUT_S)
        except OSError:
            return False

    def refuse_elsewhere(self) -> None:
        """Raise JobFailed if the job belongs to another host and has no end yet."""
        if self.state is JobState.ELSEWHERE:
            raise elsewhere(self.folder.job_id, self.origin.host.name)

    @property
    def _has_ended(self) -> bool:
        return self.snapshot.finished is not None or self.snapshot.refused is not None

    def _read(self, handle: Callable[[Event], None]) -> int:
        number = 0
        if self._recorded is not None:
            self.snapshot, self._recorded = self._recorded, None
        while events := self._reader.poll():
            number += self._take(events, handle)
        return number

    def _take(self, events: list[Event], handle: Callable[[Event], None]) -> int:
        for event in events:
            self.snapshot = fold(self.snapshot, event)
            if isinstance(event, EntryFailed) and len(self._errors) < PATHS_KEPT:
                self._errors.append(event)
            handle(event)
        return len(events)

    def _is_alive(self) -> bool:
        """Return whether the job starts or runs; only a job of this boot can do that here."""
        if self.locality is not Locality.THIS_BOOT:
            return False
        # The starter first: it releases its byte after the supervisor has locked its own.
        return has_starter(self.folder.lock) or has_supervisor(self.folder.lock)


def _is_missing(path: str) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    return False


def elsewhere(job_id: str, host: str) -> JobFailed:
    """Return the error for a job that only the host that started it can handle."""
    return JobFailed(
        f"Job {job_id} runs on host {displayable(host) or '(unknown)'}, or died there.",
        "Use tui-fs on that host.",
    )


class JobSummary(Struct, frozen=True):
    """One line of the list.

    Attributes:
        created_at: seconds since the epoch.
        deleted_entries: None where nothing counted them.
        host: the host that created the job.
        is_other_host: `host` is not this host.
        fraction: the deleted share of the entries; None if unknown or if the job has ended.
        left_s: low and high remaining seconds; None likewise.
        filters: the entries that it deletes in the targets.
    """

    job_id: str
    targets: tuple[PathStr, ...]
    strategy: StrategyName
    state: JobState
    created_at: float
    deleted_entries: int | None
    expected_entries: int
    failed: int
    host: Host
    is_other_host: bool
    fraction: float | None = None
    left_s: tuple[float, float] | None = None
    filters: Filters = field(default_factory=Filters)

    @property
    def place(self) -> str:
        """What it deletes, in words."""
        return in_words(self.targets, self.filters.share, is_filtered=self.filters.active)


class _OptionsHead(Struct, frozen=True):
    filters: Filters = field(default_factory=Filters)


class _PlanHead(Struct, frozen=True):
    """The fields of a plan that a list shows; decoding 2,000 whole plans takes a second."""

    created_at: float
    targets: tuple[Target, ...]
    strategy: StrategyName
    expected: Expected
    options: _OptionsHead


class JobList:
    """Lists all jobs repeatedly, and reads only the new events of their journals."""

    def __init__(self) -> None:
        self._ended: dict[str, JobSummary] = {}
        self._views: dict[str, JobView] = {}

    def read(self) -> tuple[list[JobSummary], list[str]]:
        """Return all readable jobs, the newest first, and a sentence for each that is not.

        Raises:
            JobFailed: the jobs directory cannot be read.
        """
        summaries: list[JobSummary] = []
        problems: list[str] = []
        ended, views = self._ended, self._views
        self._ended, self._views = {}, {}  # removed jobs are forgotten
        for folder in all_jobs():
            try:
                summary = ended.get(folder.path) or self._summary(folder, views)
            except (BadInput, JobFailed) as error:
                problems.append(f"job {folder.job_id}: {error}")
                continue
            summaries.append(summary)
            if not summary.state.is_live and summary.state is not JobState.ELSEWHERE:
                self._ended[folder.path] = summary
        return summaries, problems

    def _summary(self, folder: JobFolder, views: dict[str, JobView]) -> JobSummary:
        # The end is the last event. report.json is written before it and proves nothing.
        match last_event(folder.journal):
            case JobFinished(outcome=outcome, failed=int(failed)) as end:
                return _summary_of(folder, JobState(outcome.value), end.reported_entries, failed)
            case JobRefused():
                return _summary_of(folder, JobState.REFUSED, None, 0)
        view = views.get(folder.path) or JobView(folder)
        view.poll()
        if not view.is_over:
            view.poll_live()  # the journal of an old job can be minutes behind
        if not view.is_over:
            self._views[folder.path] = view
        removed, finished = view.snapshot.removed, view.snapshot.finished
        deleted = removed.entries if removed else None
        if finished is not None and finished.deleted_files is not None:
            deleted = finished.reported_entries
        summary = _summary_of(folder, view.state, deleted, view.snapshot.failed)
        if not summary.state.is_live:
            return summary
        return replace(summary, fraction=view.snapshot.fraction, left_s=view.snapshot.eta_s)


def summaries() -> tuple[list[JobSummary], list[str]]:
    """Return all readable jobs, the newest first, and a sentence for each that is not."""
    return JobList().read()


def _summary_of(
    folder: JobFolder, state: JobState, deleted_entries: int | None, failed: int
) -> JobSummary:
    plan = read_plan(folder)
    head, host = decode(_PlanHead, plan), origin_of(plan).host
    if not head.targets:
        raise BadInput(f"{folder.plan} names no target.")
    return JobSummary(
        job_id=folder.job_id,
        targets=tuple(target.path for target in head.targets),
        strategy=head.strategy,
        state=state,
        created_at=head.created_at,
        deleted_entries=deleted_entries,
        expected_entries=head.expected.totals.entries,
        failed=failed,
        host=host,
        is_other_host=locality_of(host, current_host()) is Locality.OTHER_HOST,
        filters=head.options.filters,
    )
