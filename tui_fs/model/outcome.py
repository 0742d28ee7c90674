"""The state and the outcome of a job."""

import enum


class Outcome(enum.StrEnum):
    """How a job ended, in rising order of seriousness."""

    DONE = "done"
    PARTIAL = "partial"
    CANCELLED = "cancelled"
    REFUSED = "refused"
    DIED = "died"


class JobState(enum.StrEnum):
    """How a job stands now; the ended states are spelled as their outcomes."""

    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    PARTIAL = "partial"
    CANCELLED = "cancelled"
    REFUSED = "refused"
    DIED = "died"
    ELSEWHERE = "elsewhere"
    """Another host made it, and its journal has no end: only that host knows more."""

    @property
    def is_live(self) -> bool:
        """Whether a supervisor of this host is at work on it."""
        return self in (JobState.RUNNING, JobState.PAUSED)
