"""All jobs at a glance."""

from dataclasses import dataclass

from tui_fs.job.journal import last_event
from tui_fs.job.store import JobFolder, all_jobs, origin_of, read_plan
from tui_fs.job.view import JobView
from tui_fs.linux.host import current_host
from tui_fs.model.codec import decode
from tui_fs.model.errors import BadInput, JobFailed
from tui_fs.model.events import JobFinished, JobRefused
from tui_fs.model.host import Host, Locality, locality_of
from tui_fs.model.outcome import JobState
from tui_fs.model.paths import PathStr
from tui_fs.model.plan import Expected
from tui_fs.model.strategy import StrategyName
from tui_fs.model.target import Target


@dataclass(frozen=True, slots=True)
class JobSummary:
    """One line of the list.

    Attributes:
        created_at: seconds since the epoch.
        deleted_entries: None where nothing counted them.
        host: the one that made the job.
        is_other_host: whether that is not this host.
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


@dataclass(frozen=True, slots=True)
class _PlanHead:
    """The fields of a plan that a list shows; to decode all of 2,000 plans takes a second."""

    created_at: float
    targets: tuple[Target, ...]
    strategy: StrategyName
    expected: Expected


class JobList:
    """Lists all jobs again and again, and reads only what is new in their journals."""

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
            case JobFinished(outcome=outcome, failed=int(failed), deleted_entries=deleted):
                return _summary_of(folder, JobState(outcome.value), deleted, failed)
            case JobRefused():
                return _summary_of(folder, JobState.REFUSED, None, 0)
        view = views.get(folder.path) or JobView(folder)
        view.poll()
        if not view.is_over:
            view.poll_live()  # the journal of an old job can be minutes behind
        if not view.is_over:
            self._views[folder.path] = view
        removed = view.snapshot.removed
        deleted = removed.entries if removed else None
        return _summary_of(folder, view.state, deleted, view.snapshot.failed)


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
    )
