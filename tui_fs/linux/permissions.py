"""Check permissions of users and of this process: modes, ACLs, groups, capabilities."""

import errno
import grp
import os
import pwd
import stat
import struct
from enum import IntEnum
from functools import lru_cache

from msgspec import Struct

ROOT = 0
_STICKY = stat.S_ISVTX


def others_may_write(status: os.stat_result, uid: int, location: str | int) -> bool:
    """Return whether a user other than `uid` and root may write in a directory or to a file.

    Args:
        location: path or descriptor of the status; its ACL is read if it matters.
    """
    if status.st_uid not in (ROOT, uid) or status.st_mode & stat.S_IWOTH:
        return True
    # The group bits are the mask of the ACL (acl(5)): without the write bit, no entry grants it.
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
    """Return whether a user other than `uid` and root can replace an entry of a directory.

    In a sticky directory (``/tmp``) only the owner of the entry or of the directory can.
    """
    if parent.st_uid not in (ROOT, uid):
        return True
    if parent.st_mode & _STICKY and child.st_uid in (ROOT, uid):
        return False
    return others_may_write(parent, uid, parent_location)


def protects_new_entries(status: os.stat_result, uid: int, location: str | int) -> bool:
    """Return whether only root can replace new entries of `uid` in a directory.

    The owner of a sticky directory can also replace them.
    """
    if status.st_uid not in (ROOT, uid):
        return False
    return bool(status.st_mode & _STICKY) or not others_may_write(status, uid, location)


def replaceable_part(path: str, uid: int) -> str | None:
    """Return the topmost component of `path` that others can replace, as a path.

    Args:
        path: canonical and absolute, without symbolic links.

    Raises:
        OSError: stat of a component fails.
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
    """Return whether the only members of a group are `uid` and root; False if unknown.

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
    if any(account.pw_gid == gid and account.pw_uid not in users for account in pwd.getpwall()):
        return False
    # A directory service need not list all accounts, so the name must match as well.
    return group.gr_name in users.values()


def may(path: str, mode: int, dir_fd: int | None = None) -> bool:
    """Return whether the effective user has this access (os.R_OK and so on).

    If a seccomp filter rejects faccessat2, glibc 2.33 and later returns its errno, unless that
    is ENOSYS. access(2) returns the same result if the effective user is the real one. It takes
    no directory descriptor, so the path goes through /proc.

    Args:
        dir_fd: an open directory to which `path` is relative.
    """
    if os.access(path, mode, dir_fd=dir_fd, effective_ids=True):
        return True
    if os.getuid() != os.geteuid() or os.getgid() != os.getegid():
        return False
    return os.access(path if dir_fd is None else f"/proc/self/fd/{dir_fd}/{path}", mode)


XATTR = "system.posix_acl_access"

_VERSION = 2  # POSIX_ACL_XATTR_VERSION of linux/posix_acl_xattr.h
_HEADER = struct.Struct("<I")
_ENTRY = struct.Struct("<HHI")
"""struct posix_acl_xattr_entry: tag, permissions, user or group ID."""
_NAMED_USER, _NAMED_GROUP, _MASK = 0x02, 0x08, 0x10
_WRITE = 0x02
_WITHOUT_ACL = (errno.ENODATA, errno.EOPNOTSUPP)


class NamedWriters(Struct, frozen=True):
    """The users and groups to which an access control list grants write access by name."""

    uids: tuple[int, ...] = ()
    gids: tuple[int, ...] = ()


def named_writers(location: str | int) -> NamedWriters | None:
    """Return the users and groups with write access by name, None if unknown.

    Args:
        location: a path, or a descriptor opened without O_PATH. A symbolic link at the end of a
            path is not followed.
    """
    try:
        if isinstance(location, int):
            value = os.getxattr(location, XATTR)
        else:
            value = os.getxattr(location, XATTR, follow_symlinks=False)
    except OSError as error:
        return NamedWriters() if error.errno in _WITHOUT_ACL else None
    return parse(value)


def parse(value: bytes) -> NamedWriters | None:
    """Parse the value of the ACL attribute; None if it is malformed."""
    body = value[_HEADER.size :]
    if len(value) < _HEADER.size or len(body) % _ENTRY.size:
        return None
    if _HEADER.unpack_from(value)[0] != _VERSION:
        return None
    entries = list(_ENTRY.iter_unpack(body))
    mask = next((permissions for tag, permissions, _ in entries if tag == _MASK), _WRITE)

    def writers(wanted: int) -> tuple[int, ...]:
        return tuple(
            identifier
            for tag, permissions, identifier in entries
            if tag == wanted and permissions & mask & _WRITE
        )

    return NamedWriters(writers(_NAMED_USER), writers(_NAMED_GROUP))


STATUS = "/proc/self/status"
UID_MAP = "/proc/self/uid_map"

_ALL_IDS = (0, 0, (1 << 32) - 1)
"""The only line of uid_map in the initial user namespace."""


class Capability(IntEnum):
    """Capability numbers (linux/capability.h)."""

    DAC_OVERRIDE = 1
    DAC_READ_SEARCH = 2
    FOWNER = 3
    KILL = 5
    SETPCAP = 8
    SYS_PTRACE = 19
    SYS_ADMIN = 21
    SYS_NICE = 23
    SYS_RESOURCE = 24
    LEASE = 28
    PERFMON = 38
    BPF = 39
    CHECKPOINT_RESTORE = 40


def missing_capabilities(*wanted: Capability, status: str = STATUS) -> tuple[Capability, ...]:
    """Return the wanted capabilities that are not in the effective set of this process.

    A capability held in a user namespace does not apply to objects outside of it.
    """
    with open(status, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            name, _, value = line.partition(":")
            if name == "CapEff":
                effective = int(value, 16)
                return tuple(capability for capability in wanted if not effective >> capability & 1)
    return wanted


def user_namespace(uid_map: str = UID_MAP) -> str | None:
    """Return the user ID mapping of the user namespace of this process, None for the initial one.

    Each line of the mapping has the form ``INSIDE OUTSIDE NUMBER``; commas join the lines.
    """
    try:
        with open(uid_map, encoding="ascii") as lines:
            ranges = [tuple(int(word) for word in line.split()) for line in lines]
    except FileNotFoundError:
        return None  # a kernel without user namespaces
    if ranges == [_ALL_IDS]:
        return None
    return ", ".join(" ".join(map(str, mapping)) for mapping in ranges) or "empty"
