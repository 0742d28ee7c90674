"""Read the mount tables of other processes, and create private ones (mount_namespaces(7))."""

import contextlib
import ctypes
import errno
import os
from collections.abc import Callable, Collection, Sequence

from msgspec import Struct

from tui_fs.linux.libc import LIBC, checked, system_call
from tui_fs.linux.mounts import KnownMounts, MountTable, mount_of
from tui_fs.linux.processes import name_and_user
from tui_fs.model.paths import PathStr, is_within, upwards


class OtherNamespace(Struct, frozen=True):
    """A mount namespace as seen by one of its processes.

    Attributes:
        command: chosen by the process: show it through `displayable` only.
        root: our path of its root directory.
        mounts: the mounts that our own namespace lacks, and the mounts they are on.
    """

    pid: int
    command: str
    root: str
    mounts: MountTable


def other_namespaces(
    own_mounts: MountTable, proc: str = "/proc", *, ignored: Callable[[], Collection[int]] = tuple
) -> tuple[tuple[OtherNamespace, ...], int]:
    """Return the other mount namespaces, and the number of processes that cannot be inspected.

    A process sees only the mounts below its root directory, so each pair of a namespace and a root
    directory is read once.

    Args:
        ignored: returns the processes whose namespaces are left out.

    Raises:
        BadInput: a line of a mount table cannot be parsed.
    """
    own, known = {os.readlink(f"{proc}/self/ns/mnt")}, KnownMounts(own_mounts)
    for pid in ignored():
        with contextlib.suppress(OSError):  # it has ended
            own.add(os.readlink(f"{proc}/{pid}/ns/mnt"))
    namespaces: dict[tuple[str, str], OtherNamespace] = {}
    unseen = 0
    for pid in sorted(int(name) for name in os.listdir(proc) if name.isdigit()):
        folder = f"{proc}/{pid}"
        try:
            namespace = os.readlink(f"{folder}/ns/mnt")
            if namespace in own:
                continue
            key = namespace, _root_of(folder)
            if key not in namespaces:
                mounts = known.read_others(f"{folder}/mountinfo")
                command, _ = name_and_user(folder)
                namespaces[key] = OtherNamespace(pid, command, f"{folder}/root", mounts)
        except PermissionError:
            unseen += 1
        except OSError as error:
            # EINVAL: an exiting process has left its namespace but is still in /proc.
            if error.errno not in (errno.ENOENT, errno.ESRCH, errno.EINVAL):
                raise
    return tuple(namespaces.values()), unseen


def _root_of(folder: str) -> str:
    try:
        return os.readlink(f"{folder}/root")
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:  # longer than one page (fs/proc/base.c)
            raise
        return folder


_MAX_PREFIXES = 50
"""With more prefixes, comparing them takes longer than resolving the paths they exclude."""


class TreePlaces:
    """The places of some directories in their file systems.

    Args:
        directories: absolute paths in our own namespace.
        own_mounts: the mounts of our own namespace.
    """

    def __init__(self, directories: Sequence[str], own_mounts: MountTable) -> None:
        self.directories = frozenset(directories)
        self.own_mounts = own_mounts
        self._inner: dict[tuple[str, str], str] = {}
        inner_by_device: dict[str, list[str]] = {}
        for directory in directories:
            mount = mount_of(directory, own_mounts)
            inner = None if mount is None else mount.inner_path(directory)
            if mount is not None and inner is not None:
                self._inner[mount.device, inner] = directory
                inner_by_device.setdefault(mount.device, []).append(inner)
        self.common = {
            device: os.path.commonpath(inner) for device, inner in inner_by_device.items()
        }

    def ours(self, device: str, inner: str) -> PathStr | None:
        """Return our path of a place in a file system, None if it is outside the directories."""
        for place in upwards(inner):
            if (directory := self._inner.get((device, place))) is not None:
                return PathStr(_moved(inner, place, directory))
        return None


class MountView:
    """The paths of some directories in one mount namespace.

    Args:
        places: the directories.
        mounts: the mounts of the namespace; None for our own.
    """

    def __init__(self, places: TreePlaces, mounts: MountTable | None = None) -> None:
        self.is_own = mounts is None
        self.mounts = places.own_mounts if mounts is None else mounts
        self.by_id = self.mounts.by_id
        self._places = places
        self._own = places.directories if self.is_own else frozenset[str]()
        prefixes = {*self._own, *_seen(places, self.mounts)}
        self.prefixes = tuple(prefixes) if len(prefixes) <= _MAX_PREFIXES else ("/",)
        """Every path in one of the directories starts with one of these."""

    def ours(self, path: str) -> PathStr | None:
        """Translate a path of the namespace to ours, None if it is outside the directories."""
        if not path.startswith(self.prefixes):
            return None
        # Everything below our own path of a directory counts, including mounts.
        if self._own and any(place in self._own for place in upwards(path)):
            return PathStr(path)
        mount = mount_of(path, self.mounts)
        inner = None if mount is None else mount.inner_path(path)
        if mount is None or inner is None:
            return None
        return self._places.ours(mount.device, inner)


def _seen(places: TreePlaces, mounts: MountTable) -> set[str]:
    """Return the paths at which the namespace shows the directories, or an ancestor of them."""
    shown_at: set[str] = set()
    for mount in mounts:
        inner = places.common.get(mount.device)
        if inner is None:
            continue
        root = mount.inner_path(mount.mount_point) or "/"
        if is_within(inner, root):
            shown_at.add(_moved(inner, root, mount.mount_point))
        elif is_within(root, inner):
            shown_at.add(mount.mount_point)
    return shown_at


def _moved(path: str, old: str, new: str) -> str:
    """Replace the ancestor `old` of a path by `new`."""
    return (new.rstrip("/") + path[len(old.rstrip("/")) :]) or "/"


_CLONE_NEWNS = 0x00020000  # linux/sched.h
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_SLAVE = 0x2, 0x4, 0x4000, 0x80000  # linux/mount.h
_MNT_DETACH, _UMOUNT_NOFOLLOW = 0x2, 0x8


def own_mounts() -> None:
    """Move this process to its own mount namespace (mount_namespaces(7)).

    Later mounts are visible to this process and its children only, and the kernel unmounts them
    when the last of these processes has ended. Unmounts by other processes propagate to this
    namespace (MS_SLAVE), because their disks would otherwise stay in use. Call this before starting
    threads, which would keep the old namespace. Descriptors opened before keep referring to the old
    mounts, so they lead below later mounts: reopen them by path.

    Raises:
        OSError: not permitted (needs CAP_SYS_ADMIN).
    """
    checked(LIBC.unshare(_CLONE_NEWNS))
    checked(LIBC.mount(None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_SLAVE), None))


def mount_tmpfs(path: str, size_bytes: int, inodes: int) -> None:
    """Mount a new tmpfs with access for this user only.

    Raises:
        OSError: it cannot be mounted.
    """
    flags = ctypes.c_ulong(_MS_NOSUID | _MS_NODEV)
    options = f"size={size_bytes},nr_inodes={inodes},mode=0700".encode()
    checked(LIBC.mount(b"tui-fs", os.fsencode(path), b"tmpfs", flags, options))


def unmount(path: str, *, is_lazy: bool = False) -> None:
    """Unmount a mount point without following a symbolic link.

    Args:
        is_lazy: detach it immediately, and unmount it when it is no longer in use.

    Raises:
        OSError: EBUSY if it is in use, EINVAL if nothing is mounted there (umount(2)).
    """
    flags = _UMOUNT_NOFOLLOW | (_MNT_DETACH if is_lazy else 0)
    checked(LIBC.umount2(os.fsencode(path), flags))


_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_AT_FDCWD = -100
_AT_EMPTY_PATH, _AT_RECURSIVE = 0x1000, 0x8000
_OPEN_TREE_CLONE, _OPEN_TREE_CLOEXEC = 0x1, os.O_CLOEXEC
_MOVE_MOUNT_F_EMPTY_PATH = 0x4
_MOUNT_ATTR_RDONLY, _MS_PRIVATE = 0x1, 0x40000


class _MountAttributes(ctypes.Structure):
    """struct mount_attr of mount_setattr(2)."""

    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


def clone_directory(path: str) -> int:
    """Return a descriptor of a private, writable mount of one directory without its submounts.

    The mount is attached nowhere: no other process sees it, and ``..`` does not lead out of it.

    Args:
        path: in the mount namespace of this process.

    Raises:
        OSError: open_tree(2), mount_setattr(2); the kernel is older than 5.12.
    """
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC
    tree = system_call(_OPEN_TREE, ctypes.c_int(_AT_FDCWD), os.fsencode(path), ctypes.c_uint(flags))
    try:
        attributes = _MountAttributes(propagation=_MS_PRIVATE)
        _set_attributes(tree, b"", _AT_EMPTY_PATH, attributes)
    except OSError:
        os.close(tree)
        raise
    return tree


def attach_directory(tree: int, path: str) -> None:
    """Mount what `clone_directory` returned at a path of this process's mount namespace.

    Raises:
        OSError: move_mount(2).
    """
    flags = ctypes.c_uint(_MOVE_MOUNT_F_EMPTY_PATH)
    at_cwd = ctypes.c_int(_AT_FDCWD)
    system_call(_MOVE_MOUNT, ctypes.c_int(tree), b"", at_cwd, os.fsencode(path), flags)


def make_read_only() -> None:
    """Make every mount in this process's mount namespace read-only for the namespace.

    Raises:
        OSError: mount_setattr(2); the kernel is older than 5.12.
    """
    attributes = _MountAttributes(attr_set=_MOUNT_ATTR_RDONLY)
    _set_attributes(_AT_FDCWD, b"/", _AT_RECURSIVE, attributes)


def make_writable(mount_point: str) -> None:
    """Make one mount writable again, and hide from it what others mount in it later.

    Raises:
        OSError: mount_setattr(2); EINVAL if the path is not the root of a mount.
    """
    attributes = _MountAttributes(attr_clr=_MOUNT_ATTR_RDONLY, propagation=_MS_PRIVATE)
    _set_attributes(_AT_FDCWD, os.fsencode(mount_point), 0, attributes)


def _set_attributes(directory: int, path: bytes, flags: int, attributes: _MountAttributes) -> None:
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    pointer = ctypes.byref(attributes)
    system_call(_MOUNT_SETATTR, ctypes.c_int(directory), path, ctypes.c_uint(flags), pointer, size)
