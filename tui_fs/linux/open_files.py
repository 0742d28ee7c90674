"""Find the processes that hold files of a tree open, and deleted open files, in one pass of /proc.

The scan misses files held by the kernel itself (loop devices, swap), in flight on a socket, held by
a process of a PID namespace above this one, or by a thread that does not share the descriptors of
its process.
"""

import errno
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct, field

from tui_fs.linux.mount_namespaces import MountView, TreePlaces
from tui_fs.linux.mounts import mount_of, read_mounts
from tui_fs.linux.processes import (
    access_and_mount,
    ancestry,
    name_and_user,
    path_of_link,
    state_of,
)
from tui_fs.model.compat import StrEnum
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import PathStr

LIMIT_S = 2.0
"""100,000 descriptors take about half a second."""

_DELETED = " (deleted)"
_BLOCK_BYTES = 512  # unit of st_blocks, independent of the file system (stat(2))
_MAPS_BYTES = 1 << 18  # read from maps between two checks of the clock


class HoldKind(StrEnum):
    """How a process holds a file."""

    DESCRIPTOR = "descriptor"
    MAPPED = "mapped"
    CWD = "cwd"
    ROOT = "root"
    EXECUTABLE = "executable"


class Holder(Struct, frozen=True):
    """A process that holds a file.

    Attributes:
        command: chosen by the process: show it through `displayable` only.
        uid: the effective user.
        writes: the descriptor or the mapping is writable.
        is_own: it is the scanning process or one of its ancestors.
    """

    pid: int
    command: str
    uid: int
    descriptor: int | None
    how: HoldKind
    writes: bool
    is_own: bool


class ResidentProcess(Struct, frozen=True):
    """A process with its working directory, root, program or a mapped file in a tree."""

    path: PathStr
    holder: Holder


class HeldFile(Struct, frozen=True):
    """A file with all its holders.

    Attributes:
        path: below the requested directory, even if the process opened it by another path; for
            other files as the kernel reports it. Empty if it is too long for the kernel.
        allocated_bytes: allocated size of the file; None without permission to stat it.
    """

    path: PathStr
    device: int
    inode: int
    allocated_bytes: int | None
    holders: tuple[Holder, ...]


class OpenFileScan(Struct, frozen=True):
    """The processes in the trees, and the open files of their file system.

    Attributes:
        living: processes with a directory, program or mapped file in the trees.
        held_files: open files and directories of the trees.
        deleted: unlinked open files of the whole file system, the largest first.
        unseen_processes: processes that this user may not inspect.
        unnamed: open files of the file system whose path is too long for the kernel to report, so
            they may or may not be in the trees.
        complete: the scan finished every process that it may inspect.
    """

    living: tuple[ResidentProcess, ...] = ()
    held_files: tuple[HeldFile, ...] = ()
    deleted: tuple[HeldFile, ...] = ()
    unseen_processes: int = 0
    unnamed: int = 0
    complete: bool = True


def scan_open_files(
    directories: Sequence[str],
    device: int,
    proc: str = "/proc",
    limit_s: float = LIMIT_S,
    own_pid: int | None = None,
    clock: Callable[[], float] = time.monotonic,
    *,
    by_descriptor_only: bool = False,
) -> OpenFileScan:
    """Return the holders of files below some directories, and the deleted files of a file system.

    The scan calls stat only on files below the directories and on deleted files of the file system,
    so a dead network mount elsewhere does not block it.

    Args:
        directories: absolute and canonical paths; they need not exist any more.
        device: st_dev of the file system.
        by_descriptor_only: leave out working directories, roots, programs and mapped files;
            reading the maps takes half of the time.
    """
    own_pid = own_pid or os.getpid()
    scan = _Scan(directories, device, proc, limit_s, own_pid, clock, by_descriptor_only)
    scan.run()
    return OpenFileScan(
        tuple(scan.living),
        tuple(file.whole() for file in scan.held_files.values()),
        tuple(
            sorted(
                (file.whole() for file in scan.deleted.values()),
                key=lambda file: -(file.allocated_bytes or 0),
            )
        ),
        scan.unseen_processes,
        scan.unnamed,
        scan.complete,
    )


class _Found(Struct):
    path: PathStr
    device: int
    inode: int
    allocated_bytes: int | None
    holders: list[Holder] = field(default_factory=list)

    def whole(self) -> HeldFile:
        return HeldFile(
            self.path, self.device, self.inode, self.allocated_bytes, tuple(self.holders)
        )


_Files = dict[tuple[int, int], _Found]


class _Process:
    """A process being scanned; its name is read on first use."""

    def __init__(self, pid: int, folder: str, view: MountView, is_own: bool) -> None:
        self.pid, self.folder, self.view, self.is_own = pid, folder, view, is_own
        self.program: PathStr | None = None
        self._name: tuple[str, int] | None = None

    def holder(self, kind: HoldKind, descriptor: int | None = None, writes: bool = False) -> Holder:
        if self._name is None:
            self._name = name_and_user(self.folder)
        return Holder(self.pid, *self._name, descriptor, kind, writes, self.is_own)

    def bare(self, path: str) -> PathStr:
        """Return the former path of a deleted file."""
        bare = path.removesuffix(_DELETED)
        return self.view.ours(bare) or PathStr(bare)

    def has_name(self, path: str, inode: int) -> bool:
        """Distinguish a file named "x (deleted)" from one that lost its link x, but not all."""
        if not path.endswith(_DELETED) or not self.view.is_own:
            return True
        try:
            return os.lstat(path).st_ino == inode
        except OSError:
            return False


class _Scan:
    def __init__(
        self,
        directories: Sequence[str],
        device: int,
        proc: str,
        limit_s: float,
        own_pid: int,
        clock: Callable[[], float],
        by_descriptor_only: bool,
    ) -> None:
        self._device, self._proc, self._by_descriptor_only = device, proc, by_descriptor_only
        self._limit_s, self._clock, self._deadline = limit_s, clock, clock() + limit_s
        self._own = ancestry(proc, own_pid)
        self._own_mounts = read_mounts(f"{proc}/{own_pid}/mountinfo")
        self._places = TreePlaces(directories, self._own_mounts)
        own_view = MountView(self._places)
        self._views = {os.readlink(f"{proc}/{own_pid}/ns/mnt"): own_view}
        # On btrfs each subvolume has its own st_dev, so add the device of the mount.
        self._devices = {f"{os.major(device)}:{os.minor(device)}"}
        self._devices |= {
            home.device for path in directories[:1] if (home := mount_of(path, self._own_mounts))
        }
        self.living: list[ResidentProcess] = []
        self.held_files: _Files = {}
        self.deleted: _Files = {}
        self.unseen_processes = self.unnamed = 0
        self.complete = True

    def run(self) -> None:
        for name in sorted(filter(str.isdigit, os.listdir(self._proc)), key=int):
            if self._clock() > self._deadline:
                self.complete = False
                return
            try:
                self._scan_process(int(name))
            except (PermissionError, BadInput):
                self.unseen_processes += 1
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended

    def _scan_process(self, pid: int) -> None:
        folder = f"{self._proc}/{pid}"
        state = state_of(folder)
        if state.is_kernel_thread or state.is_zombie:
            return
        process = _Process(pid, folder, self._view(folder), pid in self._own)
        if not self._by_descriptor_only:
            for kind, name in (
                (HoldKind.CWD, "cwd"),
                (HoldKind.ROOT, "root"),
                (HoldKind.EXECUTABLE, "exe"),
            ):
                self._scan_link(process, kind, name)
        # No single process may use all of the time.
        until = min(self._deadline, self._clock() + self._limit_s / 2)
        with os.scandir(f"{folder}/fd") as descriptors:
            for descriptor in descriptors:
                if self._clock() > until:
                    self.complete = False
                    break
                self._scan_descriptor(process, int(descriptor.name))
        if self._by_descriptor_only:
            return
        seen: set[bytes] = set()
        for line in self._lines_of_maps(process, until):
            area, rights, _, rest = line.split(None, 3)  # rest: device, inode, path
            if b" /" in rest and rest not in seen:
                seen.add(rest)
                self._scan_map(process, area, rights, rest)

    def _view(self, folder: str) -> MountView:
        namespace = os.readlink(f"{folder}/ns/mnt")
        if namespace not in self._views:
            try:
                mounts = read_mounts(f"{folder}/mountinfo")
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                # An exiting process has left its namespace but is still in /proc.
                raise ProcessLookupError(errno.ESRCH, "", folder) from error
            self._views[namespace] = MountView(self._places, mounts)
        return self._views[namespace]

    def _scan_link(self, process: _Process, kind: HoldKind, name: str) -> None:
        path = path_of_link(f"{process.folder}/{name}")
        if path is None or not self._is_wanted(process, path):
            return
        mount = mount_of(path, process.view.mounts)
        is_elsewhere = mount is not None and mount.device not in self._devices
        if is_elsewhere and process.view.ours(path) is None:
            return  # do not stat it: it may be on a dead network mount
        status = self._status(f"{process.folder}/{name}")
        if status is None:
            return
        holder = process.holder(kind)
        is_here = status.st_dev == self._device
        living = self._sort(process, path, status, holder, is_here)
        if living is not None:
            if kind is HoldKind.EXECUTABLE:
                process.program = living
            self.living.append(ResidentProcess(living, holder))

    def _scan_descriptor(self, process: _Process, descriptor: int) -> None:
        place = f"{process.folder}/fd/{descriptor}"
        path = path_of_link(place)
        if path is None or not self._is_wanted(process, path):
            return
        access = access_and_mount(f"{process.folder}/fdinfo/{descriptor}")
        if access is None:
            return
        writes, mount_id = access
        mount = process.view.by_id.get(mount_id)
        is_elsewhere = mount is not None and mount.device not in self._devices
        if is_elsewhere and process.view.ours(path) is None:
            return
        status = self._status(place)
        if status is None:
            return
        is_here = status.st_dev == self._device if mount is None else not is_elsewhere
        holder = process.holder(HoldKind.DESCRIPTOR, descriptor, writes)
        living = self._sort(process, path, status, holder, is_here)
        if living is not None:
            _add(self.held_files, living, status, holder)

    def _scan_map(self, process: _Process, area: bytes, rights: bytes, rest: bytes) -> None:
        device, number, raw = rest.split(None, 2)
        start, _, end = area.partition(b"-")
        place = f"{process.folder}/map_files/{int(start, 16):x}-{int(end, 16):x}"
        path = os.fsdecode(raw.replace(b"\\012", b"\n"))
        try:
            if b"\\012" in raw:  # maps escapes a newline as these four characters
                path = path_of_link(place) or path
            major, _, minor = device.partition(b":")
            is_here = f"{int(major, 16)}:{int(minor, 16)}" in self._devices
            if not is_here and process.view.ours(path) is None:
                return
            status = self._status(place)
        except PermissionError:  # CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE is needed
            status = None
        writes = rights[1:2] == b"w" and rights[3:4] == b"s"
        holder = process.holder(HoldKind.MAPPED, writes=writes)
        living: PathStr | None
        if status is not None:
            living = self._sort(process, path, status, holder, is_here)
        elif path.endswith(_DELETED) and not process.has_name(path, int(number)):
            living = None
            if is_here:
                _add_number(self.deleted, process.bare(path), (self._device, int(number)), holder)
        else:
            living = process.view.ours(path)
        if living is not None and living != process.program:
            self.living.append(ResidentProcess(living, holder))

    def _is_wanted(self, process: _Process, path: str) -> bool:
        return not path or path.endswith(_DELETED) or process.view.ours(path) is not None

    def _sort(
        self,
        process: _Process,
        path: str,
        status: os.stat_result,
        holder: Holder,
        is_here: bool,
    ) -> PathStr | None:
        """Store a deleted file, count an unnamed one; return the path of a file in the trees."""
        if status.st_nlink == 0:
            if is_here:
                _add(self.deleted, process.bare(path), status, holder)
            return None
        if not path:
            self.unnamed += is_here
            return None
        return process.view.ours(path) if process.has_name(path, status.st_ino) else None

    def _lines_of_maps(self, process: _Process, until: float) -> Iterator[bytes]:
        """Yield the lines that may be relevant; a database has a hundred thousand others."""
        prefixes = (os.fsencode(path.replace("\n", "\\012")) for path in process.view.prefixes)
        parts = [rb" \(deleted\)\n", *(b" " + re.escape(prefix) for prefix in prefixes)]
        pattern, cut = re.compile(b"|".join(parts)), b""
        with open(f"{process.folder}/maps", "rb") as maps:
            while chunk := maps.read(_MAPS_BYTES):
                if self._clock() > until:
                    self.complete = False
                    return
                lines, newline, rest = (cut + chunk).rpartition(b"\n")
                block, cut = lines + newline, rest
                for match in pattern.finditer(block):
                    start = block.rfind(b"\n", 0, match.start()) + 1
                    yield block[start : block.index(b"\n", match.start())]

    def _status(self, place: str) -> os.stat_result | None:
        """Stat the file behind a link of /proc; None if it is closed or stale."""
        try:
            return os.stat(place)
        except (FileNotFoundError, ProcessLookupError):
            return None  # closed meanwhile
        except PermissionError:
            raise
        except OSError:  # a stale file on a network mount, or a FUSE server that has exited
            self.complete = False
            return None


def _add(files: _Files, path: PathStr, status: os.stat_result, holder: Holder) -> None:
    file = _add_number(files, path, (status.st_dev, status.st_ino), holder)
    file.allocated_bytes = status.st_blocks * _BLOCK_BYTES


def _add_number(files: _Files, path: PathStr, number: tuple[int, int], holder: Holder) -> _Found:
    file = files.setdefault(number, _Found(path, *number, None))
    file.path = file.path or path
    file.holders.append(holder)
    return file
