"""Read mount tables from /proc/PID/mountinfo (see proc(5))."""

import bisect
import functools
import os
import re
import select
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from tui_fs.model.errors import BadInput
from tui_fs.model.paths import PathStr, displayable, upwards

MOUNTINFO = "/proc/self/mountinfo"

_SHOWN = 80  # bytes shown of a line that cannot be parsed

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
"""Prefixes of types whose entries another machine or program serves."""


def is_served(kind: str) -> bool:
    """Return whether another machine or program serves the entries of this type of file system."""
    return kind.startswith(_ANSWERED_BY_OTHERS)


_FOREIGN_PERMISSIONS = (*_ANSWERED_BY_OTHERS, "prl_fs", "vboxsf", "virtiofs", "vmhgfs")
"""Prefixes of types on which others may write regardless of the owner and mode seen here: users of
another machine, or the program behind a FUSE mount."""
_CHECKED_FUSE = {"default_permissions", "user_id=0"}
"""Options of FUSE mounts by root on which the kernel checks owners and modes (mount.fuse3(8))."""
_ESCAPED = rb"[^ \\]*(?:\\[0-3][0-7]{2}[^ \\]*)*"

_LINE = re.compile(
    rb"(\d{1,18}) (\d{1,18}) (\d+:\d+) ([^ ]+) (/" + _ESCAPED + rb") ([^ ]+)(?: [^ ]+)*?"
    rb" - ([^ ]+) ([^ ]*) (.*)"
)
"""IDs, device, root, mount point, options, tags, type, source (may be empty), super options."""

_FAILED = frozenset(("emergency_ro", "shutdown"))
"""Options of ext4 after an error or a shutdown by an administrator (Linux 6.14)."""

_LAYERED = frozenset(("overlay", "fuse.fuse-overlayfs"))

_OCTAL = re.compile(rb"\\([0-3][0-7]{2})")

_ROOT_IS_DELETED = "//deleted"  # suffix from fs/dcache.c for an unlinked directory

_TOP = -1  # parent id of mounts whose parent is not in the table


class Mount(Struct, frozen=True):
    """One line of the mount table.

    Attributes:
        device: "major:minor", as mountinfo writes it.
        root: the mounted directory of the file system (not "/" for bind mounts).
        options: options of the mount and of its file system, with the kernel's octal escapes.
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
        """Whether ext4 refuses all changes after an error; other types do not report that."""
        return not self.options.isdisjoint(_FAILED)

    @property
    def is_pseudo(self) -> bool:
        """Whether its entries are kernel objects instead of stored files."""
        return self.filesystem in PSEUDO_TYPES

    @property
    def may_not_answer(self) -> bool:
        """Whether stat may block forever, because the server of its entries may be gone."""
        return is_served(self.filesystem)

    @property
    def has_foreign_permissions(self) -> bool:
        """Whether write access does not depend on the owners and modes seen here."""
        if self.is_idmapped:
            return True
        if self.filesystem.startswith("fuse") and self.options >= _CHECKED_FUSE:
            return False
        return self.filesystem.startswith(_FOREIGN_PERMISSIONS)

    @property
    def has_lower_layers(self) -> bool:
        """Whether entries can be in a read-only lower layer, so that deleting only hides them."""
        return self.filesystem in _LAYERED

    @property
    def is_idmapped(self) -> bool:
        """Whether it maps the owners of its file system (mount_setattr(2))."""
        return "idmapped" in self.options

    def is_served_by_other(self, uid: int) -> bool:
        """Whether a FUSE server of a user other than `uid` and root serves it."""
        if not self.filesystem.startswith("fuse"):
            return False
        return not self.options & {"user_id=0", f"user_id={uid}"}

    @property
    def has_root(self) -> bool:
        """Whether the mounted directory still has a name in its file system."""
        return not self.root.endswith(_ROOT_IS_DELETED)

    def inner_path(self, path: str) -> str | None:
        """Return the path in the file system, None if `path` is not below the mount point."""
        point, path = self.mount_point.rstrip("/"), path.rstrip("/")
        if path != point and not path.startswith(point + "/"):
            return None
        return self.root.removesuffix(_ROOT_IS_DELETED).rstrip("/") + path[len(point) :] or "/"


class MountTable:
    """The mounts that one process sees, in the kernel's order.

    A mount can hide others: one at ``/a`` hides an older one at ``/a/b``. Only the parent ids
    determine which mount a path leads to.

    Args:
        content: the whole table as the kernel wrote it, including mounts not in `mounts`.
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
        """Return the parent mount, None if it is not in the table."""
        # The first mount of a namespace is its own parent.
        return None if mount.parent_id == mount.mount_id else self.by_id.get(mount.parent_id)

    def at(self, mount_point: str) -> list[Mount]:
        """Return all mounts at a mount point, including hidden ones."""
        return self._at.get(mount_point, [])

    def visible_at(self, mount_point: str) -> Mount | None:
        """Return the visible mount at a mount point, None if there is none."""
        mount = mount_of(mount_point, self)
        return mount if mount is not None and mount.mount_point == mount_point else None

    def covering(self, mount: Mount | None, place: str) -> Mount | None:
        """Return the topmost mount at `place` for a path walk that arrives there on `mount`."""
        current = self._children.get((_TOP, place), mount)
        # Each mount can be covered by another one at its root.
        while current and (above := self._children.get((current.mount_id, place))):
            current = above
        return current

    @functools.cached_property
    def points(self) -> list[str]:
        """All mount points, sorted so that those below a directory directly follow it."""
        return sorted(self._at, key=by_names)

    @functools.cached_property
    def slow(self) -> tuple[Mount, ...]:
        """The visible mounts that may not answer, except the root, which everything depends on."""
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
        BadInput: a line cannot be parsed. Skipping it could miss a mount.
    """
    with open(mountinfo, "rb") as file:
        content = file.read()
    return _table(content)


@functools.lru_cache(maxsize=1)  # a job reads its table some ten times, and it hardly changes
def _table(content: bytes) -> MountTable:
    return MountTable((_parse(line) for line in content.split(b"\n") if line), content)


class KnownMounts:
    """The mounts of our own namespace, for comparison with those of other namespaces.

    A namespace starts as a copy of another, so most of its mounts need not be parsed.
    """

    def __init__(self, own: MountTable) -> None:
        self._places = frozenset(_places(_lines(own.content)).values())

    def read_others(self, mountinfo: str) -> MountTable:
        """Return the mounts of a namespace that our own lacks, and the mounts they are on.

        Raises:
            BadInput: a line cannot be parsed.
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
    """Return a mount by its id; parse it from the content if necessary."""
    if mount_id in mounts.by_id:
        return mounts.by_id[mount_id]
    line = re.search(rb"^%d .*$" % mount_id, mounts.content, re.MULTILINE)
    return None if line is None else _parse(line[0])


def _lines(content: bytes) -> dict[bytes, list[bytes]]:
    """Return the fields of each line by mount id: both ids, device, root, mount point, rest."""
    lines: dict[bytes, list[bytes]] = {}
    for line in filter(None, content.split(b"\n")):
        fields = line.split(b" ", 5)
        if len(fields) <= 5:
            _parse(line)  # raises BadInput
        lines[fields[0]] = fields
    return lines


def _places(lines: Mapping[bytes, list[bytes]]) -> dict[bytes, tuple[bytes, ...]]:
    """Return device, root and mount point of each mount and of its parent, by mount id."""
    unknown: list[bytes] = []
    return {
        mount_id: (*fields[2:5], *lines.get(fields[1], unknown)[2:5])
        for mount_id, fields in lines.items()
    }


class MountWatch:
    """Poll for changes of the mount table of this process (proc_pid_mountinfo(5))."""

    def __init__(self) -> None:
        self._table = os.open(MOUNTINFO, os.O_RDONLY | os.O_CLOEXEC)
        self._poll = select.epoll()
        self._poll.register(self._table, select.EPOLLPRI | select.EPOLLERR)

    def fileno(self) -> int:
        """Return the descriptor that becomes ready on a change."""
        return self._poll.fileno()

    def seen(self) -> None:
        """Acknowledge the change, so that the descriptor becomes ready on the next one."""
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
    """Return the first mount along `path`, its end included, with foreign permissions."""
    return next((m for m in _mounts_on_way(path, mounts) if m.has_foreign_permissions), None)


def mount_of_other_user_on_way(path: str, mounts: MountTable, uid: int) -> Mount | None:
    """Return the first mount along `path` that a program of another user than root serves."""
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

    Those on the file system of `path` are left out, and so is the root.
    """
    target_mount = mount_of(path, mounts)
    return tuple(
        mount.mount_point
        for mount in mounts.slow
        if target_mount is None or mount.device != target_mount.device
    )


def mounts_below(path: str, mounts: MountTable) -> tuple[Mount, ...]:
    """Return the visible mounts strictly below the absolute `path`, including bind mounts."""
    points = mounts.points
    start = bisect.bisect_right(points, by_names(path), key=by_names)
    below = path.rstrip("/") + "/"
    mounts_inside: list[Mount] = []
    for number in range(start, len(points)):
        if not points[number].startswith(below):
            break
        if (mount := mounts.visible_at(points[number])) is not None:
            mounts_inside.append(mount)
    return tuple(mounts_inside)


def by_names(path: str) -> list[str]:
    """Return the key that sorts a directory directly before all that is below it."""
    return [] if path == "/" else path.split("/")


def _parse(line: bytes) -> Mount:
    match = _LINE.fullmatch(line)
    if match is None:
        raise BadInput(
            f"The mount table has an invalid line: {displayable(line[:_SHOWN])}.",
            "Without that line, mounts below a directory cannot be detected.",
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


@functools.lru_cache(maxsize=256)  # most mounts of a table have equal options
def _options(options: bytes, others: bytes) -> frozenset[str]:
    return frozenset(map(os.fsdecode, (*options.split(b","), *others.split(b","))))


def _unescape(field: bytes) -> PathStr:
    if b"\\" in field:
        return unescaped(field)
    return PathStr(os.fsdecode(field))


def unescaped(field: bytes) -> PathStr:
    """Decode the octal escapes in a field of a kernel table."""
    return PathStr(os.fsdecode(_OCTAL.sub(lambda match: bytes([int(match[1], 8)]), field)))
