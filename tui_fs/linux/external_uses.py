"""Find other uses of a directory tree: mounts, overlays, loop devices and swap files.

A place is identified by the device of its file system and its path in that file system. Bind mounts
and other mount namespaces show the same place under other paths.
"""

import bisect
import errno
import fcntl
import functools
import os
import re
import stat
import struct
from collections.abc import Callable, Collection, Iterator, Sequence

from msgspec import Struct

from tui_fs.linux.mount_namespaces import OtherNamespace, other_namespaces
from tui_fs.linux.mounts import Mount, MountTable, by_names, mount_of, mount_with_id, unescaped
from tui_fs.linux.pins import pin_of
from tui_fs.linux.resolve_path import canonical, lies_in
from tui_fs.model.compat import StrEnum
from tui_fs.model.paths import PathStr, displayable, is_within, shell_quoted, upwards

_LOOP_GET_STATUS64 = 0x4C05  # linux/loop.h
_LOOP_INFO64_BYTES = 232
_BLOCKS = "/sys/block"
_SWAPS = "/proc/swaps"


def loop_files() -> dict[str, PathStr]:
    """Return the file behind each attached loop device, as the kernel names it."""
    files: dict[str, PathStr] = {}
    try:
        names = os.listdir(_BLOCKS)
    except FileNotFoundError:
        return files  # without sysfs
    for name in names:
        try:
            with open(f"{_BLOCKS}/{name}/loop/backing_file", "rb") as file:
                files[f"/dev/{name}"] = PathStr(os.fsdecode(file.read().removesuffix(b"\n")))
        except (FileNotFoundError, NotADirectoryError):
            continue  # not a loop device, or it was detached
        except OSError as error:
            if error.errno != errno.ENODEV:  # it was detached between open(2) and read(2)
                raise
    return files


def loop_file_identity(device: str) -> tuple[int, int] | None:
    """Return device and inode of the file behind a loop device, None without permission."""
    try:
        descriptor = os.open(device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None  # no permission, or a container without the device node
    try:
        status = fcntl.ioctl(descriptor, _LOOP_GET_STATUS64, bytes(_LOOP_INFO64_BYTES))
    except OSError:
        return None  # it was detached
    finally:
        os.close(descriptor)
    device_number, inode = struct.unpack_from("=QQ", status)
    return device_number, inode


def swap_files() -> list[PathStr]:
    """Return the files and devices that the kernel swaps to."""
    try:
        with open(_SWAPS, "rb") as table:
            lines = table.read().split(b"\n")[1:-1]
    except FileNotFoundError:
        return []  # a kernel without swapping
    return [unescaped(line.split(None, 1)[0]) for line in lines]


_ROLES = {
    "lowerdir": "lower",
    "lowerdir+": "lower",
    "datadir+": "lower",
    "upperdir": "upper",
    "workdir": "work",
}
_STORAGES = (
    "/var/lib/docker/overlay2",
    "/var/lib/containers/storage/overlay",
    "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots",
)
"""Directories of container engines that mount overlays with short, relative names."""

_LAYER = re.compile(r"(?:[^:\\]|\\.)+", re.DOTALL)


class Layer(Struct, frozen=True):
    """A directory of an overlay, as the options name it.

    Attributes:
        role: lower, upper or work.
    """

    name: str
    role: str


def layers_of(mount: Mount) -> Iterator[Layer]:
    """Yield the directories that the options of an overlay name (filesystems/overlayfs.rst)."""
    for option in mount.options:
        key, _, value = option.partition("=")
        role = _ROLES.get(key)
        if role is None:
            continue
        text = unescaped(os.fsencode(value))
        # Only "lowerdir=" is a list, in which a backslash escapes a colon.
        for name in _LAYER.findall(text) if key == "lowerdir" else (text,):
            plain = re.sub(r"\\(.)", r"\1", name, flags=re.DOTALL)
            for form in dict.fromkeys((plain, name)):
                yield Layer(form, role)


def layer_paths(mount: Mount, is_directory: Callable[[str], bool]) -> Iterator[tuple[Layer, str]]:
    """Yield the directories of an overlay with their probable absolute paths.

    The kernel stores a relative name without the directory that it was relative to. Every candidate
    directory in which all relative names exist is used as the base.
    """
    layers = tuple(layers_of(mount))
    relative = [layer for layer in layers if not layer.name.startswith("/")]
    bases = {*upwards(mount.mount_point), *_STORAGES}
    for layer in layers:
        if layer.name.startswith("/"):
            yield layer, layer.name
            bases.update(upwards(layer.name))
    # A name with a backslash has two interpretations, and only one of them exists.
    names = {layer.name for layer in relative if "\\" not in layer.name}
    for base in sorted(bases) if names else ():
        if all(is_directory(os.path.join(base, name)) for name in names):
            yield from ((layer, os.path.join(base, layer.name)) for layer in relative)


class UseKind(StrEnum):
    """The kind of a use; also the name of the rule that refuses the deletion."""

    MOUNTED_ON = "mount-inside"
    MOUNTED_ELSEWHERE = "mount-source"
    OVERLAY_LAYER = "overlay-layer"
    LOOP_FILE = "loop-file"
    SWAP_FILE = "swap-file"


_FILES = (UseKind.LOOP_FILE, UseKind.SWAP_FILE)


class ExternalUse(Struct, frozen=True):
    """One use of one place.

    Attributes:
        inner: the place, as a path in its file system.
        user: the mount point of the user in its namespace, or the device.
        role: of a layer: lower, upper or work.
        namespace: the mount namespace of other processes; None for our own.
        mount_id: id of the mount that uses it; 0 for a device.
    """

    kind: UseKind
    inner: str
    user: str
    role: str = ""
    namespace: OtherNamespace | None = None
    mount_id: int = 0

    def sentence(self, path: str, place: str | None) -> str:
        """Return the use in one sentence.

        Args:
            path: our path of the directory to delete.
            place: our path of the used place; None if the directory is inside the used place.
        """
        shown, user = displayable(place or path), displayable(self.user)
        process = self._process
        match self.kind:
            case UseKind.MOUNTED_ON if process:
                return f"{process} has a file system mounted on {shown} in its mount namespace."
            case UseKind.MOUNTED_ON:
                return f"A file system is mounted on {shown} (mount point: {user})."
            case UseKind.MOUNTED_ELSEWHERE if process:
                return f"{process} has {shown} mounted at {user} in its mount namespace."
            case UseKind.MOUNTED_ELSEWHERE:
                return f"{displayable(path)} is also mounted at {user}."
            case UseKind.OVERLAY_LAYER:
                where = f"the {self.role} directory of the overlay that is mounted at {user}"
                if process:
                    where += f" in the mount namespace of {process}"
                return f"{shown} is {where}." if place else f"{shown} is in {where}."
            case UseKind.LOOP_FILE:
                return f"{shown} is the file behind the loop device {user}."
            case UseKind.SWAP_FILE:
                return f"{shown} is an active swap file."

    def advice(self, place: str, covered_by: str) -> str:
        """Return the command that ends the use.

        Args:
            covered_by: mount point of a mount that hides the one to unmount; empty without one.
        """
        if self.kind is UseKind.LOOP_FILE:
            detach = shell_quoted(("losetup", "--detach", self.user))
            return f"Unmount the file system on it, then detach it: {detach}"
        if self.kind is UseKind.SWAP_FILE:
            return f"Switch it off first: {shell_quoted(('swapoff', place))}"
        if self.namespace is not None:
            if self.user == "/":  # the root of a container
                return "Stop that process or its container first."
            enter = ("nsenter", "--target", str(self.namespace.pid), "--mount")
            unmount = shell_quoted((*enter, "umount", self.user))
            return f"Stop that process or its container first, or unmount it there: {unmount}"
        unmount = shell_quoted(("umount", self.user))
        if covered_by:
            cover = shell_quoted(("umount", covered_by))
            return f"Another mount hides it. Unmount both: {cover} && {unmount}"
        return f"Unmount it first: {unmount}"

    @property
    def _process(self) -> str:
        if self.namespace is None:
            return ""
        return f"process {self.namespace.pid} ({displayable(self.namespace.command)})"


class FoundUse(Struct, frozen=True):
    """A use of a directory or of a part of it, in words.

    Attributes:
        place: our path of the used place.
    """

    kind: UseKind
    place: PathStr
    sentence: str
    advice: str


class _View(Struct):
    """The mounts of a mount namespace; `namespace` is None for our own."""

    mounts: MountTable
    namespace: OtherNamespace | None = None


class ExternalUses:
    """The uses of places in file systems, read once for many directories.

    Args:
        mounts: the mounts of our own namespace.
        others: other mount namespaces.
        unseen_processes: processes whose namespaces this user may not read.
    """

    def __init__(
        self,
        mounts: MountTable,
        others: Sequence[OtherNamespace] = (),
        unseen_processes: int = 0,
    ) -> None:
        self._mounts = mounts
        self._views = [_View(mounts), *(_View(namespace.mounts, namespace) for namespace in others)]
        self.unseen_processes = unseen_processes
        self._by_device: dict[str, _Places] = {}

    @classmethod
    def read(
        cls, mounts: MountTable, own_tools: Callable[[], Collection[int]] = tuple
    ) -> "ExternalUses":
        """Return the uses by all running processes that this user may see.

        Args:
            own_tools: returns the processes whose private mount namespaces do not count.
        """
        return cls(mounts, *other_namespaces(mounts, ignored=own_tools))

    def of(self, path: str, mount: Mount) -> Iterator[FoundUse]:
        """Yield the uses of a directory and of places in it, those of our own namespace first.

        Args:
            path: our canonical path of the directory.
            mount: the mount that the path is on.
        """
        inner = mount.inner_path(path)
        if inner is None:
            return
        if mount.device not in self._by_device:
            self._by_device[mount.device] = _Places(self._all(mount.device))
        places = self._by_device[mount.device]
        is_mount_point = path == mount.mount_point
        uses = [*places.around(inner), *places.inside(inner)]
        uses.sort(key=lambda use: use.namespace is not None)
        for use in uses:
            if is_mount_point and use.inner == inner:
                continue  # the mount itself: all namespaces have it, and it is never deleted
            place = None
            if is_within(use.inner, inner):
                place = (path.rstrip("/") + use.inner[len(inner.rstrip("/")) :]) or "/"
                if use.kind in _FILES and not _is_file_of(use, place):
                    continue
            sentence = use.sentence(path, place)
            advice = use.advice(place or path, self._covered_by(use))
            sentence = sentence.replace("process", "Process", sentence.startswith("process"))
            yield FoundUse(use.kind, PathStr(place or path), sentence, advice)

    def _covered_by(self, use: ExternalUse) -> str:
        """Return the mount point that hides a mount of our own namespace, empty if none does."""
        mount = None if use.namespace else self._mounts.by_id.get(use.mount_id)
        visible = None if mount is None else mount_of(mount.mount_point, self._mounts)
        return "" if visible is None or visible is mount else visible.mount_point

    def _all(self, device: str) -> Iterator[ExternalUse]:
        overlays: set[str] = set()
        for view in self._views:
            for mount in view.mounts:
                yield from _mount_uses(view, mount, device)
                if mount.filesystem == "overlay" and mount.device not in overlays:
                    overlays.add(mount.device)
                    yield from self._layers(view, mount, device)
        yield from self._files(device)

    def _layers(self, view: _View, overlay: Mount, device: str) -> Iterator[ExternalUse]:
        # A container engine mounts the root of another namespace in our own namespace first.
        for source in (self._views[0], view)[: 1 if view.namespace is None else 2]:
            mounts = dict.fromkeys((*self._mounts.slow, *source.mounts.slow))
            slow = [mount.mount_point for mount in mounts if mount.device != device]
            root = "" if source.namespace is None else source.namespace.root

            def is_directory(path: str, root: str = root, slow: Sequence[str] = slow) -> bool:
                return not _is_slow(path, root, slow) and os.path.isdir(root + path)

            for layer, path in layer_paths(overlay, is_directory):
                if _is_slow(path, root, slow):
                    continue
                location = _place_in_file_system(root + path, source.mounts)
                if location is not None and location[0] == device:
                    yield ExternalUse(
                        UseKind.OVERLAY_LAYER,
                        location[1],
                        overlay.mount_point,
                        layer.role,
                        view.namespace,
                        overlay.mount_id,
                    )

    def _files(self, device: str) -> Iterator[ExternalUse]:
        for name, text in self._loops.items():
            # A process in another namespace may have attached it by a path of that namespace.
            for view in self._views:
                for inner in _possible_places(text, view.mounts, device):
                    yield ExternalUse(UseKind.LOOP_FILE, inner, name, "", view.namespace)
        for text in swap_files():
            for inner in _possible_places(text, self._mounts, device):
                yield ExternalUse(UseKind.SWAP_FILE, inner, text)

    @functools.cached_property
    def _loops(self) -> dict[str, PathStr]:
        return loop_files()


class _Places:
    """The uses on one file system, indexed by place."""

    def __init__(self, uses: Iterator[ExternalUse]) -> None:
        self._at: dict[str, list[ExternalUse]] = {}
        seen: set[tuple[str, str, str]] = set()
        for use in uses:
            # Namespaces are copies of others, so only the first one found is reported.
            device = use.user if use.kind is UseKind.LOOP_FILE else ""
            key = use.kind.value, use.inner, device
            if key not in seen:
                seen.add(key)
                self._at.setdefault(use.inner, []).append(use)
        self._sorted = sorted(self._at, key=by_names)

    def inside(self, inner: str) -> list[ExternalUse]:
        """Return the uses of a place and of all places below it."""
        start = bisect.bisect_left(self._sorted, by_names(inner), key=by_names)
        uses: list[ExternalUse] = []
        for number in range(start, len(self._sorted)):
            if not is_within(self._sorted[number], inner):
                break
            uses += self._at[self._sorted[number]]
        return uses

    def around(self, inner: str) -> list[ExternalUse]:
        """Return the uses of ancestors that include everything below them."""
        return [
            use
            for place in upwards(os.path.dirname(inner))
            for use in self._at.get(place, ())
            if use.kind is UseKind.OVERLAY_LAYER
        ]


def _mount_uses(view: _View, mount: Mount, device: str) -> Iterator[ExternalUse]:
    if mount.device == device and mount.root != "/" and mount.has_root:
        yield _mount_use(UseKind.MOUNTED_ELSEWHERE, mount.root, view, mount)
    parent = view.mounts.parent_of(mount)
    if parent is not None and parent.device == device and parent.has_root:
        inner = parent.inner_path(mount.mount_point)
        if inner is not None:
            yield _mount_use(UseKind.MOUNTED_ON, inner, view, mount)


def _mount_use(kind: UseKind, inner: str, view: _View, mount: Mount) -> ExternalUse:
    return ExternalUse(kind, inner, mount.mount_point, "", view.namespace, mount.mount_id)


def _place_in_file_system(path: str, mounts: MountTable) -> tuple[str, str] | None:
    """Return the device and the path in its file system of an existing path, else None."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        mount = mount_with_id(pin_of(descriptor).mount_id, mounts)
        text = os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None  # the path exceeds the limit of the kernel
    finally:
        os.close(descriptor)
    inner = None if mount is None else mount.inner_path(text)
    return None if mount is None or inner is None else (mount.device, inner)


def _possible_places(text: str, mounts: MountTable, device: str) -> Iterator[str]:
    """Yield the places on a file system that a path may lead to, hidden mounts included."""
    if not text.startswith("/"):
        return
    for above in upwards(text):
        for mount in mounts.at(above):
            inner = mount.inner_path(text)
            if mount.device == device and inner is not None:
                yield inner


def _is_file_of(use: ExternalUse, place: str) -> bool:
    """Return whether the file that a device uses is the one at a path."""
    try:
        status = os.lstat(place)
    except OSError:
        return False
    if not stat.S_ISREG(status.st_mode):
        return False
    identity = loop_file_identity(use.user) if use.kind is UseKind.LOOP_FILE else None
    if identity is None:  # only a path in our own namespace is comparable
        return use.namespace is None
    return identity == (status.st_dev, status.st_ino)


def _is_slow(path: str, root: str, slow: Sequence[str]) -> bool:
    """Return whether stat of a path may block forever."""
    if root:
        return lies_in(path, slow)
    return lies_in(canonical(path, slow) if slow else path, slow)
