"""Determine whether systemd-logind kills the processes of a user at logout."""

import os
import re
import shlex
import subprocess

from tui_fs.linux.host import current_caller
from tui_fs.linux.kernel_files import content_of
from tui_fs.linux.tools import find_executable

_ASK = (
    *("get-property", "org.freedesktop.login1", "/org/freedesktop/login1"),
    *("org.freedesktop.login1.Manager", "KillUserProcesses", "KillOnlyUsers", "KillExcludeUsers"),
)
_TIMEOUT_S = 2.0
_SESSION_SCOPE = re.compile(r"session-.+\.scope")


def kills_at_logout(user: str, busctl: str) -> bool:
    """Return whether logind kills the processes of `user` at logout; False if it does not answer.

    The order is that of logind (manager_shall_kill): excluded users never, then KillOnlyUsers
    alone if it is not empty, then KillUserProcesses.

    Args:
        user: the login user, not the user that sudo switched to.
        busctl: absolute path of that program.
    """
    try:
        answer = subprocess.run(
            [busctl, *_ASK],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=True,
        )
        # A line for each property: "b true", "as 2 "root" "alice""
        kill, only, excluded = (shlex.split(line) for line in answer.stdout.splitlines())
    except (OSError, ValueError, subprocess.SubprocessError):
        return False
    if user in excluded[2:]:
        return False
    return user in only[2:] if only[2:] else kill[1:] == ["true"]


def in_session_scope(cgroup: str = "/proc/self/cgroup") -> bool:
    """Return whether this process is in the scope of a login session, which logind may kill."""
    lines = content_of(cgroup).decode("utf-8", "replace").split("\n")
    return any(
        _SESSION_SCOPE.fullmatch(name)
        for line in lines
        for name in line.split(":", 2)[-1].split("/")
    )


def ends_at_logout() -> str | None:
    """Return why logging out would end a job, and how to prevent it; None if the job continues."""
    if not in_session_scope():
        return None
    caller = current_caller()
    busctl = find_executable("busctl", os.environ.get("PATH", os.defpath).split(os.pathsep)).path
    if busctl is None or not kills_at_logout(caller.login_user or caller.user, busctl):
        return None
    option = "" if caller.uid == 0 else " --user"
    return (
        "Logging out would end the job, because logind kills the processes of a session that ends "
        "(KillUserProcesses in logind.conf). To prevent that, start tui-fs with "
        f"systemd-run{option} --scope tui-fs."
    )
