"""All jobs at a glance."""

from collections.abc import Mapping
from dataclasses import dataclass

from tui_fs.job.store import JobFolder, all_jobs
from tui_fs.job.view import JobView
from tui_fs.model.errors import BadInput
from tui_fs.model.outcome import JobState
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import StrategyName


@dataclass(frozen=True, slots=True)
class JobSummary:
    """One line of the list.

    Attributes:
        created_at: seconds since the epoch.
        deleted_entries: None where nothing counted them.
    """

    job_id: str
    targets: tuple[PathStr, ...]
    strategy: StrategyName
    state: JobState
    created_at: float
    deleted_entries: int | None
    expected_entries: int
    failed: int


def summaries(
    known: Mapping[str, JobSummary] | None = None,
) -> tuple[list[JobSummary], list[str]]:
    """Return all readable jobs, the newest first, and a sentence for each that is damaged.

    Args:
        known: jobs by name that have ended and need not be read again.
    """
    found: list[JobSummary] = []
    damaged: list[str] = []
    for folder in all_jobs():
        if known is not None and folder.job_id in known:
            found.append(known[folder.job_id])
            continue
        try:
            found.append(_summary(folder))
        except BadInput as why:
            damaged.append(str(why))
    return found, damaged


def _summary(folder: JobFolder) -> JobSummary:
    view = JobView(folder)
    view.poll()
    plan, removed = view.plan, view.snapshot.removed
    return JobSummary(
        job_id=folder.job_id,
        targets=plan.paths,
        strategy=plan.strategy,
        state=view.state,
        created_at=plan.created_at,
        deleted_entries=removed.entries if removed else None,
        expected_entries=plan.expected.totals.entries,
        failed=view.snapshot.failed,
    )
