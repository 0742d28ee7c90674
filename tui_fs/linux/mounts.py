"""The mount table of this process, from /proc/self/mountinfo (see proc(5))."""

import os
import re
import select
from dataclasses import dataclass

from tui_fs.model.errors import BadInput
from tui_fs.model.paths import PathStr, displayable, is_within

MOUNTINFO = "/proc/self/mountinfo"

_SHOWN = 80  # bytes of a line that cannot be understood

PSEUDO_TYPES = frozenset(
    [
        "autofs",
        "binfmt_misc",
        "bpf",
        "cgroup",
        "cgroup2",
        "configfs",
        "debugfs",
        "devpts",
        "devtmpfs",
        "efivarfs",
        "functionfs",
        "fuse.lxcfs",
        "fuse.portal",
        "fusectl",
        "hugetlbfs",
        "mqueue",
        "nfsd",
        "nsfs",
        "proc",
        "pstore",
        "resctrl",
        "rpc_pipefs",
        "securityfs",
        "selinuxfs",
        "smackfs",
        "sysfs",
        "tracefs",
        "xenfs",
    ]
)
"""File systems whose entries are the kernel's own objects, not stored files."""

_ANSWERED_BY_OTHERS = (
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "coda",
    "fuse",
    "gfs2",
    "glusterfs",
    "gpfs",
    "lustre",
    "nfs",
    "ocfs2",
    "orangefs",
    "smb",
)
"""How the types begin whose entries another machine or program tells."""

_FOREIGN_PERMISSIONS = (*_ANSWERED_BY_OTHERS, "prl_fs", "vboxsf", "virtiofs", "vmhgfs")
"""How the types begin on which others may write whatever owner and mode this machine sees: users
of another machine, or the program behind a FUSE mount."""
_CHECKED_FUSE = {"default_permissions", "user_id=0"}
"""FUSE mounts of root on which the kernel itself checks owners and modes (mount.fuse3(8))."""

_LINE = re.compile(
    rb"(\d{1,18}) (\d{1,18}) (\d+:\d+) ([^ ]+) (/(?:[^ \\]|\\[0-3][0-7]{2})*) ([^ ]+)(?: [^ ]+)*?"
    rb" - ([^ ]+) ([^ ]*) (.*)"
)
"""IDs, device, root, mount point, options, any tags, type, source (may be empty), options."""

_OCTAL = re.compile(rb"\\([0-3][0-7]{2})")


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of the mount table.

    Attributes:
        device: "major:minor", as mountinfo writes it.
        root: the directory of the file system that is mounted (not "/" for bind mounts).
    """

    mount_id: int
    parent_id: int
    device: str
    root: PathStr
    mount_point: PathStr
    options: frozenset[str]
    filesystem: str
    source: PathStr

    @property
    def is_read_only(self) -> bool:
        """Whether nothing can be deleted through this mount."""
        return "ro" in self.options

    @property
    def is_pseudo(self) -> bool:
        """Whether its entries are kernel objects."""
        return self.filesystem in PSEUDO_TYPES

    @property
    def may_not_answer(self) -> bool:
        """Whether a look at it may never return: who tells its entries may have gone."""
        return self.filesystem.startswith(_ANSWERED_BY_OTHERS)

    @property
    def has_foreign_permissions(self) -> bool:
        """Whether owners and modes on it do not tell who may write."""
        if self.filesystem.startswith("fuse") and self.options >= _CHECKED_FUSE:
            return False
        return self.filesystem.startswith(_FOREIGN_PERMISSIONS)


def read_mounts(mountinfo: str = MOUNTINFO) -> tuple[Mount, ...]:
    """Return the mount table in the kernel's order (later lines cover earlier ones).

    Raises:
        BadInput: a line cannot be understood; a mount must not be missed.
    """
    with open(mountinfo, "rb") as file:
        return tuple(_parse(line) for line in file.read().split(b"\n") if line)


class MountWatch:
    """Becomes readable when this process's table of mounts changes (proc_pid_mountinfo(5))."""

    def __init__(self) -> None:
        self._table = os.open(MOUNTINFO, os.O_RDONLY | os.O_CLOEXEC)
        self._poll = select.epoll()
        self._poll.register(self._table, select.EPOLLPRI | select.EPOLLERR)

    def fileno(self) -> int:
        """Return the descriptor that becomes readable."""
        return self._poll.fileno()

    def seen(self) -> None:
        """Wait for the next change."""
        self._poll.poll(0)


def mount_of(path: str, mounts: tuple[Mount, ...]) -> Mount | None:
    """Return the mount that holds the absolute `path`, None if the table lacks it."""
    best: Mount | None = None
    for mount in mounts:
        if is_within(path, mount.mount_point) and (
            best is None or len(mount.mount_point) >= len(best.mount_point)
        ):
            best = mount
    return best


def foreign_mount_on_way(path: str, mounts: tuple[Mount, ...]) -> Mount | None:
    """Return the first mount on the way to `path`, its end included, with foreign permissions."""
    # A later line of the table covers an earlier one at the same mount point.
    on_way = {mount.mount_point: mount for mount in mounts if is_within(path, mount.mount_point)}
    return next(
        (mount for _, mount in sorted(on_way.items()) if mount.has_foreign_permissions), None
    )


def silent_places(path: str, mounts: tuple[Mount, ...]) -> tuple[PathStr, ...]:
    """Return the mount points that may not answer.

    Without those of the file system of `path`, and of the root, without which nothing works.
    """
    own = mount_of(path, mounts)
    return tuple(
        mount.mount_point
        for mount in mounts
        if mount.may_not_answer
        and mount.mount_point != "/"
        and (own is None or mount.device != own.device)
        and mount_of(mount.mount_point, mounts) is mount  # and no other one covers it
    )


def mounts_below(path: str, mounts: tuple[Mount, ...]) -> tuple[Mount, ...]:
    """Return the mounts strictly below the absolute `path`, bind mounts included."""
    return tuple(
        mount
        for mount in mounts
        if mount.mount_point != path and is_within(mount.mount_point, path)
    )


def _parse(line: bytes) -> Mount:
    match = _LINE.fullmatch(line)
    if match is None:
        raise BadInput(
            f"The mount table has a line that cannot be understood: {displayable(line[:_SHOWN])}.",
            "Without it nobody knows what is mounted below a directory.",
        )
    mount_id, parent_id, device, root, mount_point, options, filesystem, source, others = (
        match.groups()
    )
    return Mount(
        mount_id=int(mount_id),
        parent_id=int(parent_id),
        device=device.decode("ascii"),
        root=_unescape(root),
        mount_point=_unescape(mount_point),
        options=frozenset(
            option.decode("utf-8", "replace")
            for option in (*options.split(b","), *others.split(b","))
        ),
        filesystem=filesystem.decode("utf-8", "replace"),
        source=_unescape(source),
    )


def _unescape(field: bytes) -> PathStr:
    return PathStr(os.fsdecode(_OCTAL.sub(lambda match: bytes([int(match[1], 8)]), field)))
