"""Processes that use a directory: as current or root directory, open, or watched by inotify."""

import contextlib
import errno
import os
import re
from collections.abc import Iterator

from msgspec import Struct

from tui_fs.linux.mounts import Mount, MountTable, mount_of, read_mounts
from tui_fs.linux.processes import access_and_mount, name_and_user
from tui_fs.model.paths import PathStr

PROC = "/proc"

_INOTIFY = re.compile(rb"^inotify wd:\w+ ino:(\w+) sdev:(\w+)", re.MULTILINE)  # proc(5)
_MINOR_BITS = 20  # of the kernel's own dev_t


class OpenUser(Struct, frozen=True):
    """A process with a name of any characters; `how` states its use of the directory."""

    pid: int
    name: str
    how: str


class OpenUsers(Struct, frozen=True):
    """The processes that use a directory.

    Attributes:
        unseen: number of processes that this user has no permission to inspect.
    """

    users: tuple[OpenUser, ...]
    unseen: int


def find_open_users(path: PathStr, identity: tuple[int, int]) -> OpenUsers:
    """Return the processes that have a directory as cwd or root, open, or watched.

    Descriptors on other file systems are skipped: stat(2) on one that does not answer would block
    the caller forever.

    Args:
        path: canonical.
        identity: device and inode of the directory.
    """
    mounts = read_mounts()
    mount = mount_of(path, mounts)
    users: list[OpenUser] = []
    unseen = 0
    for pid in sorted(int(name) for name in os.listdir(PROC) if name.isdigit()):
        if pid == os.getpid():
            continue
        try:
            uses = set(_uses_of(pid, os.path.basename(path), identity, mounts, mount))
            name = name_and_user(f"{PROC}/{pid}")[0] if uses else ""
        except (FileNotFoundError, ProcessLookupError):
            continue  # the process has ended
        except PermissionError:
            unseen += 1
            continue
        users += [OpenUser(pid, name, use) for use in sorted(uses)]
    return OpenUsers(tuple(users), unseen)


def _uses_of(
    pid: int, name: str, identity: tuple[int, int], mounts: MountTable, mount: Mount | None
) -> Iterator[str]:
    process = f"{PROC}/{pid}"
    is_in_our_namespace = _text_of(f"{process}/ns/mnt") == _text_of(f"{PROC}/self/ns/mnt")
    for link, use in (
        ("cwd", "has this directory as its current directory"),
        ("root", "has this directory as its root"),
    ):
        text = _text_of(f"{process}/{link}")
        link_mount = mount_of(text, mounts) if text is not None and is_in_our_namespace else None
        if _is_another(link_mount, mount):
            continue
        if _leads_to(f"{process}/{link}", name, identity):
            yield use
    for number in os.listdir(f"{process}/fd"):
        link = f"{process}/fd/{number}"
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            if _text_of(link) == "anon_inode:inotify":
                if mount and _watches(f"{process}/fdinfo/{number}", identity[1], mount.device):
                    yield "watches this directory (inotify)"
                continue
            access = access_and_mount(f"{process}/fdinfo/{number}")
            if access is not None and _is_another(mounts.by_id.get(access[1]), mount):
                continue
            if _leads_to(link, name, identity):
                yield "has this directory open"


def _is_another(mount: Mount | None, target_mount: Mount | None) -> bool:
    return mount is not None and target_mount is not None and mount.device != target_mount.device


def _text_of(link: str) -> str | None:
    """Return the target of a link; None if it exceeds the kernel's limit of 4,095 bytes."""
    try:
        return os.readlink(link)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return None


def _leads_to(link: str, name: str, identity: tuple[int, int]) -> bool:
    text = _text_of(link)
    if text is not None and os.path.basename(text) != name:
        return False
    status = os.stat(link)
    return (status.st_dev, status.st_ino) == identity


def _watches(fdinfo: str, inode: int, device: str) -> bool:
    major, minor = (int(part) for part in device.split(":"))
    with open(fdinfo, "rb") as file:
        watched = _INOTIFY.findall(file.read())
    watch = inode, major << _MINOR_BITS | minor
    return any((int(ino, 16), int(dev, 16)) == watch for ino, dev in watched)
