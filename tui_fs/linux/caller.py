"""Who asks: the user, who logged in, who called sudo, and from where."""

import os
import pwd
from collections.abc import Mapping

from tui_fs.model.caller import CallerIdentity

LOGINUID = "/proc/self/loginuid"
MAX_CHARACTERS = 256
"""More of an environment variable than a name or two addresses need is cut off."""

_LOGINUID_UNSET = 0xFFFF_FFFF  # (uid_t) -1, see pam_loginuid(8)
_STDIN, _STDERR = 0, 2


def current_caller(
    environ: Mapping[str, str] = os.environ,
    loginuid_path: str = LOGINUID,
    descriptors: tuple[int, ...] = (_STDIN, _STDERR),
) -> CallerIdentity:
    """Return who runs this process; the terminal is that of the first descriptor that has one."""
    uid = os.getuid()
    return CallerIdentity(
        uid=uid,
        user=_name_of(uid),
        login_user=_login_user(loginuid_path),
        sudo_user=_cut(environ.get("SUDO_USER") or environ.get("DOAS_USER") or ""),
        ssh_connection=_cut(environ.get("SSH_CONNECTION", "")),
        terminal=_terminal(descriptors),
    )


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _login_user(path: str) -> str:
    try:
        with open(path, "rb") as file:
            text = file.read(32).strip()
    except OSError:
        return ""  # a kernel without auditing, or a container that hides it
    if not text.isdigit() or int(text) >= _LOGINUID_UNSET:
        return ""
    return _name_of(int(text))


def _terminal(descriptors: tuple[int, ...]) -> str:
    for descriptor in descriptors:
        try:
            return _cut(os.ttyname(descriptor))
        except OSError:
            continue  # closed, no terminal, or one of another mount namespace
    return ""


def _cut(value: str) -> str:
    return value[:MAX_CHARACTERS]
