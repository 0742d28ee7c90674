"""Who, besides one user and root, can write in a directory or put another in its place."""

import grp
import os
import pwd
import stat
from functools import lru_cache

ROOT = 0
_STICKY = stat.S_ISVTX


def others_may_write(status: os.stat_result, uid: int) -> bool:
    """Tell whether somebody other than `uid` and root can create and rename names in a directory.

    An access list shows in the group's bits of the mode, which are its mask (acl(5)).
    """
    if status.st_uid not in (ROOT, uid) or status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and not _is_private_group(status.st_gid, uid)


def others_may_replace(parent: os.stat_result, child: os.stat_result, uid: int) -> bool:
    """Tell whether they can rename a directory away and put something else in its place.

    In a sticky directory (``/tmp``) only the owner of the entry or of the directory can.
    """
    if parent.st_uid not in (ROOT, uid):
        return True
    if not others_may_write(parent, uid):
        return False
    return not (parent.st_mode & _STICKY and child.st_uid in (ROOT, uid))


def keeps_what_is_made(status: os.stat_result, uid: int) -> bool:
    """Tell whether nobody but root can exchange what `uid` makes in a directory.

    The owner of a sticky directory can.
    """
    if status.st_uid not in (ROOT, uid):
        return False
    return not others_may_write(status, uid) or bool(status.st_mode & _STICKY)


def replaceable_part(path: str, uid: int) -> str | None:
    """Return the highest directory on the way to `path`, or itself, that others can replace.

    Args:
        path: canonical and absolute: no symbolic link on the way.

    Raises:
        OSError: a part of the path cannot be looked at.
    """
    parent = os.lstat("/")
    current = ""
    for name in path.strip("/").split("/"):
        current = f"{current}/{name}"
        child = os.lstat(current)
        if others_may_replace(parent, child, uid):
            return current
        parent = child
    return None


@lru_cache(maxsize=4096)
def _is_private_group(gid: int, uid: int) -> bool:
    """Tell whether nobody but `uid` and root is in the group; in doubt somebody is."""
    try:
        group = grp.getgrgid(gid)
    except KeyError:
        return False
    users = {ROOT: "root"}
    try:
        users[uid] = pwd.getpwuid(uid).pw_name
    except KeyError:
        return False
    if not set(group.gr_mem) <= set(users.values()):
        return False
    if any(one.pw_gid == gid and one.pw_uid not in users for one in pwd.getpwall()):
        return False
    # Directories of accounts on the network need not list everybody: trust only the convention.
    return gid == ROOT or group.gr_name in users.values()
