"""The state and the outcome of a job."""

from tui_fs.model.compat import StrEnum


class Outcome(StrEnum):
    """The end of a job, in ascending order of severity."""

    DONE = "done"
    PARTIAL = "partial"
    CANCELLED = "cancelled"
    REFUSED = "refused"
    DIED = "died"


class JobState(StrEnum):
    """The current state of a job; the final states equal their outcomes."""

    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    PARTIAL = "partial"
    CANCELLED = "cancelled"
    REFUSED = "refused"
    DIED = "died"
    ELSEWHERE = "elsewhere"
    """Another host started it, and its journal has no end; only that host knows its state."""

    @property
    def is_live(self) -> bool:
        """Whether a supervisor on this host is running it."""
        return self in (JobState.RUNNING, JobState.PAUSED)
