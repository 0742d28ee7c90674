"""Whether a detached job outlives the session of the person who started it."""

from tui_fs.linux.host import current_caller
from tui_fs.linux.logind import in_session_scope, kills_at_logout


def ends_at_logout() -> str | None:
    """Return why logging out would end a job, and what prevents that; None if it goes on."""
    if not in_session_scope():
        return None
    requester = current_caller()
    file = kills_at_logout(requester.login_user or requester.user)
    if file is None:
        return None
    own = "" if requester.uid == 0 else " --user"
    return (
        f"Logging out would end the job, because {file} has logind kill what a session leaves. "
        f"Start it as systemd-run{own} --scope tui-fs to prevent that."
    )
