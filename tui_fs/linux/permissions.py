"""Who can write in a directory or replace it, and what the effective user may do."""

import grp
import os
import pwd
import stat
from functools import lru_cache

from tui_fs.linux.acl import named_writers

ROOT = 0
_STICKY = stat.S_ISVTX


def others_may_write(status: os.stat_result, uid: int, location: str | int) -> bool:
    """Return whether a user other than `uid` and root may write in a directory or to a file.

    Args:
        location: where the status comes from; its access control list is read if it matters.
    """
    if status.st_uid not in (ROOT, uid) or status.st_mode & stat.S_IWOTH:
        return True
    # The group bits are the mask of the list (acl(5)): without write access there, no entry has it.
    if not status.st_mode & stat.S_IWGRP:
        return False
    if not is_private_group(status.st_gid, uid):
        return True
    named = named_writers(location)
    if named is None:
        return True
    return not (
        set(named.uids) <= {ROOT, uid} and all(is_private_group(gid, uid) for gid in named.gids)
    )


def others_may_replace(
    parent: os.stat_result, child: os.stat_result, uid: int, parent_location: str | int
) -> bool:
    """Return whether they can rename an entry away and put something else in its place.

    In a sticky directory (``/tmp``) only the owner of the entry or of the directory can.
    """
    if parent.st_uid not in (ROOT, uid):
        return True
    if parent.st_mode & _STICKY and child.st_uid in (ROOT, uid):
        return False
    return others_may_write(parent, uid, parent_location)


def protects_new_entries(status: os.stat_result, uid: int, location: str | int) -> bool:
    """Return whether only root can exchange what `uid` makes in a directory.

    The owner of a sticky directory can.
    """
    if status.st_uid not in (ROOT, uid):
        return False
    return bool(status.st_mode & _STICKY) or not others_may_write(status, uid, location)


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
        if others_may_replace(parent, child, uid, os.path.dirname(current)):
            return current
        parent = child
    return None


@lru_cache(maxsize=4096)
def is_private_group(gid: int, uid: int) -> bool:
    """Return whether only `uid` and root are in the group; False if that is unknown.

    Group 0 is never private: containers run arbitrary users with it.
    """
    if gid == ROOT:
        return False
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
    return group.gr_name in users.values()


def may(path: str, mode: int, dir_fd: int | None = None) -> bool:
    """Return whether the effective user has this access (os.R_OK and so on).

    glibc 2.33 and later returns the answer of a seccomp filter to faccessat2 unless it is ENOSYS.
    access(2) answers the same question where the effective user is the real one; it takes no
    directory, so it reaches one by /proc.

    Args:
        dir_fd: an open directory to which `path` is relative.
    """
    if os.access(path, mode, dir_fd=dir_fd, effective_ids=True):
        return True
    if os.getuid() != os.geteuid() or os.getgid() != os.getegid():
        return False
    return os.access(path if dir_fd is None else f"/proc/self/fd/{dir_fd}/{path}", mode)
