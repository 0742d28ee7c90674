"""Whether anything has been deleted while one looked elsewhere."""

import os

from tui_fs.job.store import all_jobs
from tui_fs.model.errors import JobFailed


def jobs_seen() -> frozenset[tuple[str, bool]] | None:
    """Return all jobs and whether each has its report; None if they cannot be listed."""
    try:
        return frozenset((job.path, os.path.exists(job.report)) for job in all_jobs())
    except JobFailed:
        return None  # the list of jobs tells why
