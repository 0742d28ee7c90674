"""Where a path leads: to a target only through links that the user and root alone can make."""

import errno
import os
import stat
from collections import deque
from collections.abc import Collection

from tui_fs.linux.accounts import ROOT, others_may_replace
from tui_fs.model.errors import Refused
from tui_fs.model.paths import PathStr, displayable, is_within

_MAX_LINKS = 40  # path_resolution(7)


def resolve(path: str) -> PathStr:
    """Return the canonical path of an existing directory.

    The way is walked by descriptors, and each link is judged as it is read: whoever can exchange
    a link decides what is at its end.

    Raises:
        OSError: a part of the way is not there or no directory.
        Refused: it leads through a link that somebody other than the user and root can change.
    """
    uid = os.geteuid()
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
    held = [os.open("/", flags)]
    names: list[str] = []
    waiting = deque(os.path.join(os.getcwd(), path).split("/"))
    links = 0
    try:
        while waiting:
            name = waiting.popleft()
            if name in ("", "."):
                continue
            if name == "..":
                if names:
                    names.pop()
                    os.close(held.pop())
                continue
            child = os.open(name, flags, dir_fd=held[-1])
            status = os.fstat(child)
            if not stat.S_ISLNK(status.st_mode):
                names.append(name)
                held.append(child)
                continue
            text = os.readlink("", dir_fd=child)
            os.close(child)
            links += 1
            shown = displayable("/" + "/".join([*names, name]))
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), shown)
            if status.st_uid not in (ROOT, uid) or others_may_replace(
                os.fstat(held[-1]), status, uid
            ):
                raise Refused(
                    f"{shown} is a symbolic link that somebody other than you and root can change.",
                    "Name the directory by the path it really has.",
                    rule="symlink",
                )
            if text.startswith("/"):
                names.clear()
                while len(held) > 1:
                    os.close(held.pop())
            waiting.extendleft(reversed(text.split("/")))
    finally:
        for descriptor in held:
            os.close(descriptor)
    return PathStr("/" + "/".join(names))


def canonical(path: str, silent: Collection[str]) -> PathStr:
    """Return the canonical path of what need not exist, as ``os.path.realpath`` does.

    Args:
        silent: directories that are not looked at, nor anything in them: such a path is taken as
            it is written.
    """
    if not silent:
        return PathStr(os.path.realpath(path))
    names: list[str] = []
    waiting = deque(os.path.join(os.getcwd(), path).split("/"))
    links = 0
    while waiting:
        name = waiting.popleft()
        if name in ("", "."):
            continue
        if name == "..":
            del names[-1:]
            continue
        names.append(name)
        here = "/" + "/".join(names)
        if lies_in(here, silent) or links > _MAX_LINKS:
            return PathStr(os.path.normpath("/".join([here, *waiting])))
        try:
            text = os.readlink(here)
        except OSError:
            continue  # no link, or nothing there
        links += 1
        if text.startswith("/"):
            names.clear()
        else:
            names.pop()
        waiting.extendleft(reversed(text.split("/")))
    return PathStr("/" + "/".join(names))


def lies_in(path: str, places: Collection[str]) -> bool:
    """Whether a path is one of some directories or in one of them, as they are written."""
    return any(is_within(path, place) for place in places)
