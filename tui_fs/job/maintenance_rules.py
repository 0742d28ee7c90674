"""The rules for maintenance besides those for deleting, and its line in the system's log."""

from tui_fs.job.aside_store import AsideRecord
from tui_fs.job.audit import send_to_syslog
from tui_fs.job.conflicts import check_conflicts
from tui_fs.job.store import all_jobs, load_plan
from tui_fs.job.view import JobView
from tui_fs.linux.caller import current_caller
from tui_fs.model.errors import BadInput, Refused
from tui_fs.model.outcome import JobState
from tui_fs.model.paths import PathStr, displayable, is_within
from tui_fs.model.target import Target

_MAX_PATH_CHARACTERS = 200
_MAX_VALUE_CHARACTERS = 100


def refuse_begun_deletion(record: AsideRecord, target: Target) -> None:
    """Raise Refused if a job has begun to delete what was put aside, or a part of it.

    Args:
        target: what was put aside, as it is there now.
    """
    check_conflicts([target])
    for job in all_jobs():
        try:
            paths = [target.path for target in load_plan(job).targets]
        except BadInput:
            continue  # it names nobody; while such a job runs, `check_conflicts` has refused
        if not any(is_within(path, record.aside) for path in paths):
            continue
        view = JobView(job)
        view.poll()
        if view.state is not JobState.REFUSED:
            state = f"is {view.state}"
            if view.state is JobState.ELSEWHERE:
                state = f"of host {displayable(view.origin.host.name)} has no end yet"
            raise Refused(
                f"Its deletion has begun: job {job.job_id} {state}.",
                "What is left of it can be moved by hand.",
                rule="deletion-begun",
            )


def tell_system_log(action: str, path: PathStr, aside: PathStr, result: str) -> bool:
    """Send one line to the system's log; return whether it was accepted.

    It reads as the lines of a job do, see `audit.audit_line`.
    """
    who = current_caller()
    pairs = (
        ("event", "maintenance", _MAX_VALUE_CHARACTERS),
        ("action", action, _MAX_VALUE_CHARACTERS),
        ("result", result, _MAX_VALUE_CHARACTERS),
        ("uid", str(who.uid), _MAX_VALUE_CHARACTERS),
        ("user", who.user, _MAX_VALUE_CHARACTERS),
        ("login", who.login_user, _MAX_VALUE_CHARACTERS),
        ("sudo", who.sudo_user, _MAX_VALUE_CHARACTERS),
        ("ssh", who.ssh_connection, _MAX_VALUE_CHARACTERS),
        ("aside", aside, _MAX_PATH_CHARACTERS),
        ("path", path, _MAX_PATH_CHARACTERS),
    )
    line = " ".join(f'{key}="{_value(text, limit)}"' for key, text, limit in pairs)
    return send_to_syslog(line) is None


def _value(text: str, max_characters: int) -> str:
    """Return a text without quotes and equals signs; its middle is cut out where it is long."""
    shown = displayable(text).replace('"', "\\x22").replace("=", "\\x3d")
    if len(shown) <= max_characters:
        return shown
    half = max_characters // 2
    return f"{shown[:half]}…{shown[-half:]}"
