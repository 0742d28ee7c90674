"""Determine whether systemd-logind kills the processes of a user at logout."""

import os
import re
import stat
from collections.abc import Iterator

from tui_fs.linux.host import current_caller

_DIRECTORIES = ("usr/lib/systemd", "usr/local/lib/systemd", "run/systemd", "etc/systemd")
"""In ascending precedence: files in a later directory replace those of the same name."""

_MAX_FILE_BYTES = 1 << 20
_KEYS = frozenset({"KillUserProcesses", "KillOnlyUsers", "KillExcludeUsers"})
_TRUE = frozenset({"1", "yes", "y", "true", "t", "on"})  # parse_boolean() of systemd
_FALSE = frozenset({"0", "no", "n", "false", "f", "off"})
_SESSION_SCOPE = re.compile(r"session-.+\.scope")


def kills_at_logout(user: str, root: str = "/") -> str | None:
    """Return the file by which logind kills the processes of `user` at logout, else None.

    `user` is the login user, not the user that sudo switched to. Without any setting the result
    is None, the default of the common distributions. The order is that of logind
    (manager_shall_kill): excluded users never, then KillOnlyUsers alone if it is not empty, then
    KillUserProcesses.
    """
    kills_from: str | None = None
    only: dict[str, str] = {}
    excluded: set[str] | None = None
    for file in _files(root):
        for key, value in _settings(file):
            if key == "KillUserProcesses" and value.lower() in _TRUE:
                kills_from = file
            elif key == "KillUserProcesses" and value.lower() in _FALSE:
                kills_from = None
            elif key == "KillOnlyUsers":
                only = {**only, **dict.fromkeys(_words(value), file)} if value else {}
            elif key == "KillExcludeUsers":
                excluded = {*(excluded or ()), *_words(value)} if value else set()
    if user in ({"root"} if excluded is None else excluded):
        return None
    return only.get(user) if only else kills_from


def in_session_scope(cgroup: str = "/proc/self/cgroup") -> bool:
    """Return whether this process is in the scope of a login session, which logind may kill."""
    try:
        with open(cgroup, "rb") as file:
            lines = file.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return False  # no cgroups, so no scope
    return any(
        _SESSION_SCOPE.fullmatch(name)
        for line in lines
        for name in line.split(":", 2)[-1].split("/")
    )


def _files(root: str) -> Iterator[str]:
    """Yield the main file with the highest precedence, then the drop-ins by name."""
    directories = [os.path.join(root, directory) for directory in _DIRECTORIES]
    mains = [os.path.join(directory, "logind.conf") for directory in directories]
    yield from [main for main in mains if _is_read(main)][-1:]
    drop_ins: dict[str, str] = {}
    for directory in directories:
        folder = os.path.join(directory, "logind.conf.d")
        try:
            names = os.listdir(folder)
        except OSError:
            continue  # no such directory
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(".conf") and not name.startswith(".") and _is_read(path):
                drop_ins[name] = path
    for name in sorted(drop_ins, key=os.fsencode):
        yield drop_ins[name]


def _is_read(path: str) -> bool:
    """Return whether systemd reads the file; a link to /dev/null counts as an empty file."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISCHR(mode)


def _settings(path: str) -> Iterator[tuple[str, str]]:
    """Yield the assignments of `_KEYS` in the section [Login]."""
    section = b""
    for line in _lines(path):
        if line.startswith(b"["):
            section = line
            continue
        key, equals, value = line.partition(b"=")
        if section != b"[Login]" or not equals:
            continue
        try:
            name, text = key.decode().rstrip(), value.decode().lstrip()
        except UnicodeDecodeError:
            continue  # systemd ignores such an assignment as well
        if name in _KEYS:
            yield name, text


def _lines(path: str) -> Iterator[bytes]:
    """Yield stripped lines without comments, with continuation lines joined (systemd.syntax(7))."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            is_regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            content = file.read(_MAX_FILE_BYTES) if is_regular else b""
    except OSError:
        return  # not readable for us, so its settings are unknown
    begun = b""
    for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if line.lstrip().startswith((b"#", b";")):
            continue
        whole = begun + line
        if (len(whole) - len(whole.rstrip(b"\\"))) % 2:
            begun = whole[:-1] + b" "
            continue
        begun = b""
        yield whole.strip()
    yield begun.strip()


def _words(value: str) -> list[str]:
    return [word.strip("\"'") for word in value.split()]


def ends_at_logout() -> str | None:
    """Return why logging out would end a job, and how to prevent it; None if the job continues."""
    if not in_session_scope():
        return None
    caller = current_caller()
    file = kills_at_logout(caller.login_user or caller.user)
    if file is None:
        return None
    option = "" if caller.uid == 0 else " --user"
    return (
        f"Logging out would end the job, because {file} makes logind kill the processes of a "
        f"session that ends. To prevent that, start tui-fs with systemd-run{option} --scope "
        "tui-fs."
    )
