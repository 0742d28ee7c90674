"""Exit codes of outcomes and errors."""

from typing import TYPE_CHECKING

from tui_fs.model.errors import BadInput, JobFailed, Missing, Refused, TuiFsError
from tui_fs.model.outcome import JobState

if TYPE_CHECKING:  # loading it takes longer than most commands
    from tui_fs.model.snapshot import Snapshot

DONE = 0
SOME_FAILED = 1
USAGE = 2
REFUSED = 3
MISSING = 4
DIED = 5
CANCELLED_BY_INT = 130
CANCELLED_BY_TERM = 143
OUTPUT_LOST = 141

_BY_STATE = {
    JobState.RUNNING: DONE,
    JobState.PAUSED: DONE,
    JobState.DONE: DONE,
    JobState.PARTIAL: SOME_FAILED,
    JobState.CANCELLED: CANCELLED_BY_INT,
    JobState.REFUSED: REFUSED,
    JobState.DIED: DIED,
    JobState.ELSEWHERE: DIED,
}


def exit_code_of(error: TuiFsError) -> int:
    """Return the exit code of an error that ends a command."""
    match error:
        case BadInput():
            return USAGE
        case Refused():
            return REFUSED
        case Missing():
            return MISSING
        case JobFailed():
            return DIED
    return SOME_FAILED


def exit_code_of_job(state: JobState, snapshot: "Snapshot") -> int:
    """Return the exit code of a job."""
    refused_by = snapshot.refused.rule if snapshot.refused else None
    if state is JobState.DONE and snapshot.record_problem:
        return SOME_FAILED
    if state is JobState.REFUSED and refused_by == "missing":
        return MISSING
    if state is JobState.REFUSED and refused_by == "jobfailed":
        return DIED
    return _BY_STATE[state]
