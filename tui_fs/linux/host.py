"""Identify this machine, the current boot, and the calling user."""

import functools
import os
import pwd
import time
from collections.abc import Mapping

from tui_fs.linux.kernel_files import content_of
from tui_fs.model.caller import CallerIdentity
from tui_fs.model.host import Host

BOOT_ID = "/proc/sys/kernel/random/boot_id"


def boot_id(path: str = BOOT_ID) -> str:
    """Return the id of this boot; empty if /proc is not mounted."""
    return content_of(path).decode("ascii").strip()


def boottime_s() -> float:
    """Return CLOCK_BOOTTIME: seconds since boot, including suspend, unaffected by clock changes."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


MACHINE_ID = "/etc/machine-id"


@functools.cache
def current_host() -> Host:
    """Return the host of this process."""
    machine_id = content_of(MACHINE_ID)  # containers often have none; name and boot id remain
    text = machine_id.decode("ascii").strip() if machine_id.isascii() else ""
    return Host(os.uname().nodename, text, boot_id())


LOGINUID = "/proc/self/loginuid"
MAX_CHARACTERS = 256
"""Values of environment variables are truncated to this; names and addresses are shorter."""

_LOGINUID_UNSET = 0xFFFF_FFFF  # (uid_t) -1, see pam_loginuid(8)
_STDIN, _STDERR = 0, 2


def current_caller(
    environ: Mapping[str, str] = os.environ,
    loginuid_path: str = LOGINUID,
    descriptors: tuple[int, ...] = (_STDIN, _STDERR),
) -> CallerIdentity:
    """Return the user of this process, with the terminal of the first descriptor that has one."""
    uid = os.getuid()
    return CallerIdentity(
        uid=uid,
        user=account_name(uid),
        login_user=_login_user(loginuid_path),
        sudo_user=_cut(environ.get("SUDO_USER") or environ.get("DOAS_USER") or ""),
        ssh_connection=_cut(environ.get("SSH_CONNECTION", "")),
        terminal=_terminal(descriptors),
    )


def account_name(uid: int) -> str:
    """Return the name of an account, else its number."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _login_user(path: str) -> str:
    text = content_of(path, 32).strip()  # empty on a kernel without auditing
    if not text.isdigit() or int(text) >= _LOGINUID_UNSET:
        return ""
    return account_name(int(text))


def _terminal(descriptors: tuple[int, ...]) -> str:
    for descriptor in descriptors:
        try:
            return _cut(os.ttyname(descriptor))
        except OSError:
            continue  # closed, not a terminal, or one of another mount namespace
    return ""


def _cut(value: str) -> str:
    return value[:MAX_CHARACTERS]
