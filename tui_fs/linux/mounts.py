"""The mount table of this process, from /proc/self/mountinfo (see proc(5))."""

import bisect
import functools
import os
import re
import select
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tui_fs.model.errors import BadInput
from tui_fs.model.paths import PathStr, displayable, upwards

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
"""How the types begin whose entries another machine or program serves."""

_FOREIGN_PERMISSIONS = (*_ANSWERED_BY_OTHERS, "prl_fs", "vboxsf", "virtiofs", "vmhgfs")
"""How the types begin on which others may write whatever owner and mode this machine sees: users
of another machine, or the program behind a FUSE mount."""
_CHECKED_FUSE = {"default_permissions", "user_id=0"}
"""FUSE mounts of root on which the kernel itself checks owners and modes (mount.fuse3(8))."""
_ESCAPED = rb"[^ \\]*(?:\\[0-3][0-7]{2}[^ \\]*)*"

_LINE = re.compile(
    rb"(\d{1,18}) (\d{1,18}) (\d+:\d+) ([^ ]+) (/" + _ESCAPED + rb") ([^ ]+)(?: [^ ]+)*?"
    rb" - ([^ ]+) ([^ ]*) (.*)"
)
"""IDs, device, root, mount point, options, any tags, type, source (may be empty), options."""

_FAILED = frozenset(("emergency_ro", "shutdown"))
"""What ext4 adds to its options when an error or an administrator has stopped it (Linux 6.14)."""

_LAYERED = frozenset(("overlay", "fuse.fuse-overlayfs"))

_OCTAL = re.compile(rb"\\([0-3][0-7]{2})")

_ROOT_IS_DELETED = "//deleted"  # what fs/dcache.c appends to a directory without a name

_TOP = -1  # stands for the parent of every mount whose parent the table lacks


class Mount(NamedTuple):
    """One line of the mount table.

    Attributes:
        device: "major:minor", as mountinfo writes it.
        root: the directory of the file system that is mounted (not "/" for bind mounts).
        options: those of the mount and of its file system, with the kernel's octal escapes.
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
        return "ro" in self.options or self.has_failed

    @property
    def has_failed(self) -> bool:
        """Whether ext4 refuses all changes after an error; other file systems do not report it."""
        return not self.options.isdisjoint(_FAILED)

    @property
    def is_pseudo(self) -> bool:
        """Whether its entries are kernel objects."""
        return self.filesystem in PSEUDO_TYPES

    @property
    def may_not_answer(self) -> bool:
        """Whether a stat of it may never return: the server of its entries may be gone."""
        return self.filesystem.startswith(_ANSWERED_BY_OTHERS)

    @property
    def has_foreign_permissions(self) -> bool:
        """Whether owners and modes on it do not decide who may write."""
        if self.is_idmapped:
            return True
        if self.filesystem.startswith("fuse") and self.options >= _CHECKED_FUSE:
            return False
        return self.filesystem.startswith(_FOREIGN_PERMISSIONS)

    @property
    def has_lower_layers(self) -> bool:
        """Whether entries can be in a read-only layer below, where deleting only hides them."""
        return self.filesystem in _LAYERED

    @property
    def is_idmapped(self) -> bool:
        """Whether it shows other owners than its file system has (mount_setattr(2))."""
        return "idmapped" in self.options

    def is_served_by_other(self, uid: int) -> bool:
        """Whether a program of a user other than `uid` and root answers for all entries (FUSE)."""
        if not self.filesystem.startswith("fuse"):
            return False
        return not self.options & {"user_id=0", f"user_id={uid}"}

    @property
    def has_root(self) -> bool:
        """Whether the mounted directory still has a name in its file system."""
        return not self.root.endswith(_ROOT_IS_DELETED)

    def inner_path(self, path: str) -> str | None:
        """Return where a path is in the file system, None if it is not below the mount point."""
        point, path = self.mount_point.rstrip("/"), path.rstrip("/")
        if path != point and not path.startswith(point + "/"):
            return None
        return self.root.removesuffix(_ROOT_IS_DELETED).rstrip("/") + path[len(point) :] or "/"


class MountTable:
    """The mounts that one process sees, in the kernel's order.

    The paths of different mounts can be the same: a mount at ``/a`` hides an older one at
    ``/a/b``. Only the parents say which mount a path leads to.

    Args:
        content: what the kernel wrote, with the lines of other mounts, too, where only some matter.
    """

    def __init__(self, mounts: Iterable[Mount], content: bytes = b"") -> None:
        self._mounts = tuple(mounts)
        self.content = content
        self.by_id = {mount.mount_id: mount for mount in self._mounts}
        self._children: dict[tuple[int, str], Mount] = {}
        self._at: dict[str, list[Mount]] = {}
        for mount in self._mounts:
            parent = self.parent_of(mount)
            parent_id = _TOP if parent is None else parent.mount_id
            self._children[parent_id, mount.mount_point] = mount
            self._at.setdefault(mount.mount_point, []).append(mount)

    def __iter__(self) -> Iterator[Mount]:
        return iter(self._mounts)

    def __len__(self) -> int:
        return len(self._mounts)

    def parent_of(self, mount: Mount) -> Mount | None:
        """Return the mount that a mount is mounted on, None if the table lacks it."""
        # The first mount of a namespace is its own parent.
        return None if mount.parent_id == mount.mount_id else self.by_id.get(mount.parent_id)

    def at(self, mount_point: str) -> list[Mount]:
        """Return all mounts with a mount point, hidden ones included."""
        return self._at.get(mount_point, [])

    def visible_at(self, mount_point: str) -> Mount | None:
        """Return what is seen to be mounted at a path, None if nothing is."""
        mount = mount_of(mount_point, self)
        return mount if mount is not None and mount.mount_point == mount_point else None

    def covering(self, mount: Mount | None, place: str) -> Mount | None:
        """Return the mount that a walk is on, after it has come to a path on `mount`."""
        current = self._children.get((_TOP, place), mount)
        # Another mount can cover the root of each mount.
        while current and (above := self._children.get((current.mount_id, place))):
            current = above
        return current

    @functools.cached_property
    def points(self) -> list[str]:
        """All mount points, sorted so that what is in a directory follows it without a gap."""
        return sorted(self._at, key=_by_names)

    @functools.cached_property
    def slow(self) -> tuple[Mount, ...]:
        """The visible mounts that may not answer, besides the root, without which nothing works."""
        return tuple(
            mount
            for mount in self._mounts
            if mount.may_not_answer
            and mount.mount_point != "/"
            and self.visible_at(mount.mount_point) is mount
        )


def read_mounts(mountinfo: str = MOUNTINFO) -> MountTable:
    """Return the mount table.

    Raises:
        BadInput: a line cannot be understood; a mount must not be missed.
    """
    with open(mountinfo, "rb") as file:
        content = file.read()
    return MountTable((_parse(line) for line in content.split(b"\n") if line), content)


class KnownMounts:
    """The mounts of our own namespace, which those of another one are compared with.

    Namespaces begin as copies of others, so most of their mounts need not be parsed.
    """

    def __init__(self, own: MountTable) -> None:
        self._places = frozenset(_places(_lines(own.content)).values())

    def read_others(self, mountinfo: str) -> MountTable:
        """Return the mounts of another namespace that our own lacks, with those that they are on.

        Raises:
            BadInput: a line cannot be understood.
        """
        with open(mountinfo, "rb") as file:
            content = file.read()
        lines = _lines(content)
        wanted = {
            mount_id for mount_id, place in _places(lines).items() if place not in self._places
        }
        wanted |= {lines[mount_id][1] for mount_id in wanted}
        mounts = (_parse(b" ".join(lines[mount_id])) for mount_id in lines if mount_id in wanted)
        return MountTable(mounts, content)


def mount_with_id(mount_id: int, mounts: MountTable) -> Mount | None:
    """Return a mount, also one that was not parsed."""
    if mount_id in mounts.by_id:
        return mounts.by_id[mount_id]
    line = re.search(rb"^%d .*$" % mount_id, mounts.content, re.MULTILINE)
    return None if line is None else _parse(line[0])


def _lines(content: bytes) -> dict[bytes, list[bytes]]:
    """Return each line by its ID: both IDs, device, root, mount point, and the rest."""
    lines: dict[bytes, list[bytes]] = {}
    for line in filter(None, content.split(b"\n")):
        fields = line.split(b" ", 5)
        if len(fields) <= 5:
            _parse(line)  # which raises
        lines[fields[0]] = fields
    return lines


def _places(lines: Mapping[bytes, list[bytes]]) -> dict[bytes, tuple[bytes, ...]]:
    """Return by IDs what is mounted where, and the same of the mount that it is on."""
    unknown: list[bytes] = []
    return {
        mount_id: (*fields[2:5], *lines.get(fields[1], unknown)[2:5])
        for mount_id, fields in lines.items()
    }


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


def mount_of(path: str, mounts: MountTable) -> Mount | None:
    """Return the mount that the absolute `path` leads to, None if the table lacks it."""
    current: Mount | None = None
    for place in reversed(tuple(upwards(path))):
        if mounts.at(place):
            current = mounts.covering(current, place)
    return current


def has_lower_layers(path: str, mounts: MountTable) -> bool:
    """Return whether the absolute `path` is on an overlay."""
    mount = mount_of(path, mounts)
    return mount is not None and mount.has_lower_layers


def foreign_mount_on_way(path: str, mounts: MountTable) -> Mount | None:
    """Return the first mount on the way to `path`, its end included, with foreign permissions."""
    return next((m for m in _mounts_on_way(path, mounts) if m.has_foreign_permissions), None)


def mount_of_other_user_on_way(path: str, mounts: MountTable, uid: int) -> Mount | None:
    """Return the first mount on the way that a program of another user than root serves."""
    return next((m for m in _mounts_on_way(path, mounts) if m.is_served_by_other(uid)), None)


def _mounts_on_way(path: str, mounts: MountTable) -> Iterator[Mount]:
    current: Mount | None = None
    for place in reversed(tuple(upwards(path))):
        if mounts.at(place):
            current = mounts.covering(current, place)
            if current is not None:
                yield current


def unresponsive_mounts(path: str, mounts: MountTable) -> tuple[PathStr, ...]:
    """Return the mount points that may not answer.

    Without those of the file system of `path`, and of the root, without which nothing works.
    """
    own = mount_of(path, mounts)
    return tuple(
        mount.mount_point for mount in mounts.slow if own is None or mount.device != own.device
    )


def mounts_below(path: str, mounts: MountTable) -> tuple[Mount, ...]:
    """Return the mounts that are seen strictly below the absolute `path`, bind mounts included."""
    points = mounts.points
    start = bisect.bisect_right(points, _by_names(path), key=_by_names)
    below = path.rstrip("/") + "/"
    mounts_inside: list[Mount] = []
    for number in range(start, len(points)):
        if not points[number].startswith(below):
            break
        if (mount := mounts.visible_at(points[number])) is not None:
            mounts_inside.append(mount)
    return tuple(mounts_inside)


def _by_names(path: str) -> list[str]:
    return [] if path == "/" else path.split("/")


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
        int(mount_id),
        int(parent_id),
        device.decode("ascii"),
        _unescape(root),
        _unescape(mount_point),
        _options(options, others),
        filesystem.decode("utf-8", "replace"),
        _unescape(source),
    )


@functools.lru_cache(maxsize=256)  # most mounts of a table have the same
def _options(options: bytes, others: bytes) -> frozenset[str]:
    return frozenset(map(os.fsdecode, (*options.split(b","), *others.split(b","))))


def _unescape(field: bytes) -> PathStr:
    if b"\\" in field:
        return unescaped(field)
    return PathStr(os.fsdecode(field))


def unescaped(field: bytes) -> PathStr:
    """Return a field of a table of the kernel without its octal escapes."""
    return PathStr(os.fsdecode(_OCTAL.sub(lambda match: bytes([int(match[1], 8)]), field)))
