"""The file systems for the trees of an experiment: made for a run, and removed after it.

All of them are in the scratch directory of the run. Only the process of the run and its children
see the mounts, so that even a killed run leaves no mount and no loop device.
"""

import contextlib
import errno
import functools
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from tui_fs.job.scratch import Scratch, remove_left_over
from tui_fs.lab.experiment import Place, Trial
from tui_fs.linux.descriptors import closing
from tui_fs.linux.filesystem import file_system_of
from tui_fs.linux.memory import memory_room
from tui_fs.linux.mount_namespaces import mount_tmpfs, own_mounts, unmount
from tui_fs.linux.permissions import Capability, missing_capabilities, user_namespace
from tui_fs.linux.tools import find_tool
from tui_fs.model.errors import Missing, Refused, TuiFsError
from tui_fs.model.paths import displayable, harmless
from tui_fs.model.units import bytes_iec, counted

_IMAGES = (Place.EXT4, Place.XFS, Place.BTRFS)
_ENTRY_BYTES = 4096 + 512 + 264
"""The most an entry takes: a directory's block, an inode (512 bytes on xfs, 256 on ext4), and a
name of 255 bytes in the directory above (ext4_dir_entry_2). Two copies of the 750 to 1,230 bytes
that btrfs needs are less."""
_MEMORY_PER_ENTRY_BYTES = 752 + 192 + 256 + 264
"""The most an entry of a tmpfs takes: an inode, a dentry, a directory's offsets (the slabs
shmem_inode_cache, dentry and maple_node of Linux 6.18), and a name of 255 bytes."""
_IMAGE_BYTES = 512 << 20
"""For journals and the like: mkfs.xfs takes no less than 300 MiB, and mkfs.ext4 makes a journal of
64 MiB for up to 16 GiB and of a 128th beyond."""
_IMAGE_SLACK = 1.5
"""Keeps an image from getting nearly full, when its file system would allocate differently."""
_SPARE_ENTRIES = 64
"""For images, mount points, the empty directory, and files that the steps leave."""
_MIN_FREE_SHARE = 0.02
"""Share of a file system that always stays free, as with the trees of a calibration."""


class Needed(Struct, frozen=True):
    """The most that is needed on one place.

    Attributes:
        contents_bytes: of files, including those that steps make.
        entries: names.
    """

    contents_bytes: int
    entries: int

    @property
    def disk_bytes(self) -> int:
        """The most it occupies on a disk file system."""
        return self.contents_bytes + self.entries * _ENTRY_BYTES

    @property
    def memory_bytes(self) -> int:
        """The most it occupies on a tmpfs."""
        return self.contents_bytes + self.entries * _MEMORY_PER_ENTRY_BYTES

    @property
    def image_bytes(self) -> int:
        """The size of a file system for it, and the most that its image can occupy.

        An image begins as a hole, but blocks of deleted files stay allocated in it, and the next
        tree may occupy other blocks.
        """
        return int(self.disk_bytes * _IMAGE_SLACK) + _IMAGE_BYTES


class Needs(Struct, frozen=True):
    """What an experiment needs at most at one time; `disk_inodes` counts entries."""

    disk_bytes: int
    disk_inodes: int
    memory_bytes: int

    @property
    def words(self) -> str:
        """Disk and memory in one line, to follow the word `needs`."""
        disk = f"up to {bytes_iec(self.disk_bytes)} of disk"
        inodes = counted(self.disk_inodes, "inode", "inodes")
        return f"{disk} ({inodes}) and {bytes_iec(self.memory_bytes)} of memory"


def needed_on(trials: Iterable[Trial]) -> dict[Place, Needed]:
    """Return the needs of each place, which holds the tree of one trial at a time."""
    places: dict[Place, Needed] = {}
    for trial in trials:
        tree, most = _needed(trial), places.get(trial.place, Needed(0, 0))
        places[trial.place] = Needed(
            max(tree.contents_bytes, most.contents_bytes), max(tree.entries, most.entries)
        )
    return places


def needs_of(trials: Iterable[Trial]) -> Needs:
    """Return what trials need if they run one after the other.

    Images stay to the end, and count in full.
    """
    trials = tuple(trials)
    places = needed_on(trials)
    here = places.get(Place.HERE, Needed(0, 0))
    images = sum(places[place].image_bytes for place in _IMAGES if place in places)
    return Needs(
        disk_bytes=here.disk_bytes + images,
        disk_inodes=here.entries + _SPARE_ENTRIES,
        memory_bytes=max((_memory_bytes(trial) for trial in trials), default=0),
    )


def refuse_without_room(needs: Needs, directory: str) -> None:
    """Raise Refused if an experiment has no room below a directory.

    A fiftieth of the file system and of its inodes stays free.

    Args:
        directory: absolute.
    """
    filesystem, shown = file_system_of(directory), displayable(directory)
    advice = "Name a directory with more room (--dir), or choose the smaller scale."
    if filesystem.is_read_only:
        raise Refused(f"{shown} is on a read-only file system.", advice, rule="room")
    available, total = filesystem.available_bytes, filesystem.total_bytes
    if available is None:
        raise Refused(
            f"The file system of {shown} does not report its free space.", advice, rule="room"
        )
    left = _above_margin(available, total)
    if needs.disk_bytes > left:
        raise Refused(
            f"The run needs up to {bytes_iec(needs.disk_bytes)} of disk space, and only "
            f"{bytes_iec(left)} is available in {shown}.",
            advice,
            rule="room",
        )
    inodes = filesystem.free_inodes
    if inodes is not None and needs.disk_inodes > _above_margin(inodes, filesystem.total_inodes):
        raise Refused(
            f"The run creates {counted(needs.disk_inodes, 'inode', 'inodes')}, and the file "
            f"system of {shown} has too few left ({inodes:,}).",
            advice,
            rule="room",
        )
    memory = memory_room()
    if memory is not None and needs.memory_bytes > memory.bytes_left:
        raise Refused(
            f"This needs {bytes_iec(needs.memory_bytes)} of memory, and only "
            f"{bytes_iec(memory.bytes_left)} of {memory.limited_by} is free.",
            "Choose the smaller scale, or stop other programs first.",
            rule="room",
        )


def _needed(trial: Trial) -> Needed:
    contents, entries = (
        (0, 1) if trial.tree is None else (trial.tree.contents_bytes, trial.tree.entries)
    )
    return Needed(contents + trial.disk_bytes, entries)


def _memory_bytes(trial: Trial) -> int:
    in_memory = _needed(trial).memory_bytes if trial.place is Place.TMPFS else 0
    return in_memory + trial.memory_bytes


def _above_margin(free: int, total: int | None) -> int:
    return max(0, free - int((total or 0) * _MIN_FREE_SHARE))


LOOP_CONTROL = "/dev/loop-control"
SHARED_MEMORY = "/dev/shm"
_SYSTEM_DIRECTORIES = "/usr/local/sbin:/usr/sbin:/sbin"
"""Not on every user's PATH; mkfs is installed there."""
_PACKAGES = {
    "mkfs.ext4": "e2fsprogs",
    "mkfs.xfs": "xfsprogs",
    "mkfs.btrfs": "btrfs-progs",
    "mount": "mount",
}
_SPARE_INODES = 1024
_BYTES_PER_INODE = 16_384  # inode_ratio in mke2fs.conf
_SPARE_BYTES = 64 << 20
"""For the empty directory, and files that the steps leave."""
_BUSY_LIMIT_S = 5.0
_BUSY_STEP_S = 0.05
_MAX_MESSAGE = 200
_READ = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_isolated: Callable[[], None] = functools.cache(own_mounts)
"""Cached, because forked children share the mount namespace."""


class Places:
    """The places of a run, each made on first use; leaving the context removes them.

    A process that mounts gets a mount namespace of its own (`own_mounts`) for the rest of its
    life: its later mounts are not visible to other processes either.

    Args:
        scratch: holds them; its creator removes it after they are closed.
        trials: what they must hold; no other places can be made.
    """

    def __init__(self, scratch: Scratch, trials: Iterable[Trial]) -> None:
        self._scratch = scratch
        self._needed = needed_on(trials)
        self._made: dict[Place, tuple[int, str]] = {}
        self._undo = contextlib.ExitStack()
        if self._needed.keys() - {Place.HERE} and not _mount_obstacle():
            # Before a directory is opened: one in the old namespace has no path in the new one.
            with contextlib.suppress(OSError):  # reported when something is to be mounted
                _isolated()

    def __enter__(self) -> "Places":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def directory(self, place: Place) -> int:
        """Return an open directory on a place, private to this user; `close` closes it.

        It may hold ``lost+found``.

        Raises:
            Missing: the place cannot be made here.
            Refused: there is no room.
            OSError, TuiFsError: making it failed.
        """
        return self._of(place)[0]

    def path(self, place: Place) -> str:
        """Return the absolute path of `directory`; raises as that."""
        return self._of(place)[1]

    def close(self) -> None:
        """Unmount everything and remove the images; may be called again.

        A mount in use is detached after some seconds; the kernel unmounts it when it is free.

        Raises:
            OSError: something could not be removed; everything else was.
        """
        self._made.clear()
        self._undo.close()

    def _of(self, place: Place) -> tuple[int, str]:
        if place not in self._made:
            self._made[place] = self._make(place)
        return self._made[place]

    def _make(self, place: Place) -> tuple[int, str]:
        needed = self._needed[place]
        obstacle = place_obstacle(place)
        if obstacle:
            raise Missing(f"No {place.value} file system can be created here: {obstacle}.")
        if place is Place.TMPFS and _mount_obstacle():
            return self._make_in_shared_memory(needed)
        if place is not Place.HERE:
            try:
                _isolated()
            except OSError as error:
                raise Missing(f"Mounting is not permitted here: {error.strerror}.") from error
        path = self._made_point(place)
        if place is Place.TMPFS:
            self._undo.callback(_unmount_or_detach, path)
            inodes = needed.entries + _SPARE_INODES
            mount_tmpfs(path, needed.contents_bytes + _SPARE_BYTES, inodes)
        elif place is not Place.HERE:
            self._mount_image(place, path, needed)
        opened = os.open(path, _READ)
        self._undo.callback(os.close, opened)
        is_mounted = os.fstat(opened).st_dev != os.fstat(self._scratch.descriptor).st_dev
        if is_mounted is (place is Place.HERE):
            raise TuiFsError(f"{displayable(path)} is not on the file system made for it.")
        return opened, path

    def _made_point(self, place: Place) -> str:
        """Make the directory of a place by its path: only paths opened since show the mounts."""
        with closing(os.open(self._scratch.path, _READ)) as above:
            if not os.path.samestat(os.fstat(above), os.fstat(self._scratch.descriptor)):
                shown = displayable(self._scratch.path)
                raise TuiFsError(
                    f"{shown} was replaced by another process. Check who writes there."
                )
            os.mkdir(place.value, 0o700, dir_fd=above)
        path = os.path.join(self._scratch.path, place.value)
        if place is not Place.HERE:  # that one is removed with the scratch directory
            self._undo.callback(_without(FileNotFoundError, os.rmdir), path)
        return path

    def _mount_image(self, place: Place, path: str, needed: Needed) -> None:
        image = f"{path}.image"
        self._undo.callback(_without(FileNotFoundError, os.unlink), image)
        with closing(os.open(image, _NEW, 0o600)) as created:
            os.truncate(created, needed.image_bytes)
        name = f"mkfs.{place.value}"
        _run(place, _tool_path(name), *_options(place, needed), image)
        self._undo.callback(_unmount_or_detach, path)
        # Without -n mount would write to a table of the whole machine.
        _run(place, _tool_path("mount"), "-n", "-t", place.value, "-o", "loop", image, path)

    def _make_in_shared_memory(self, needed: Needed) -> tuple[int, str]:
        """Make a directory on the tmpfs that every user may write to."""
        device = os.stat(SHARED_MEMORY).st_dev
        remove_left_over(device)
        refuse_without_room(Needs(needed.contents_bytes, needed.entries, 0), SHARED_MEMORY)
        scratch = Scratch(SHARED_MEMORY, device)
        self._undo.callback(scratch.remove)
        return scratch.descriptor, scratch.path


def place_obstacle(place: Place) -> str:
    """Return why a place cannot be made here, without a full stop; empty if it can.

    This does not try to make it, which may still fail.
    """
    obstacle = _mount_obstacle()
    if place is Place.HERE or (place is Place.TMPFS and not obstacle):
        return ""
    if place is Place.TMPFS:
        is_tmpfs = os.path.isdir(SHARED_MEMORY) and file_system_of(SHARED_MEMORY).kind == "tmpfs"
        is_usable = is_tmpfs and os.access(SHARED_MEMORY, os.W_OK | os.X_OK)
        return "" if is_usable else f"{obstacle}, and {SHARED_MEMORY} is not a writable tmpfs"
    if obstacle:
        return obstacle
    for name in (f"mkfs.{place.value}", "mount"):
        if not _tool_path(name):
            return f"{name} is not installed; it comes with the package {_PACKAGES[name]}"
    try:
        os.close(os.open(LOOP_CONTROL, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"there are no loop devices ({LOOP_CONTROL}: {error.strerror})"
    return "" if _kernel_has(place.value) else f"this kernel does not support {place.value}"


def _mount_obstacle(status: str = "/proc/self/status") -> str:
    if os.geteuid() != 0:
        return "mounting needs root"
    if missing_capabilities(Capability.SYS_ADMIN, status=status):
        return "root may not mount here (CAP_SYS_ADMIN is missing)"
    if user_namespace() is not None:
        return "root may not mount here (root only inside a user namespace)"
    return ""


def _kernel_has(
    kind: str, filesystems: str = "/proc/filesystems", modules: str | None = None
) -> bool:
    """Return whether a type of file system is in the kernel, or can be loaded (modules.dep(5))."""
    modules = modules or f"/lib/modules/{os.uname().release}/modules.dep"
    for path, ending in ((filesystems, f"\t{kind}"), (modules, f"/{kind}")):
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as lines:
            if any(line.partition(".ko")[0].rstrip().endswith(ending) for line in lines):
                return True
    return False


def _tool_path(name: str) -> str:
    """Return the absolute path of a tool, empty if there is none."""
    tool = find_tool(name)
    return tool.path if tool else shutil.which(name, path=_SYSTEM_DIRECTORIES) or ""


def _options(place: Place, needed: Needed) -> Sequence[str]:
    if place is not Place.EXT4:
        return "-q", "-f"
    # A kernel thread that fills the inode tables later would disturb the measurements.
    complete = "lazy_itable_init=0,lazy_journal_init=0"
    # Steps may copy the tree: at least as many as mke2fs would make.
    inodes = str(max(needed.entries + _SPARE_INODES, needed.image_bytes // _BYTES_PER_INODE))
    return "-q", "-F", "-b", "4096", "-N", inodes, "-E", complete


def _run(place: Place, tool: str, *arguments: str) -> None:
    """Run a tool to its end; TuiFsError with its message if it fails."""
    ended = subprocess.run(
        [tool, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={"LC_ALL": "C", "PATH": f"{os.defpath}:{_SYSTEM_DIRECTORIES}"},
        check=False,
    )
    if ended.returncode != 0:
        lines = ended.stderr.decode("utf-8", "replace").strip().splitlines()
        message = harmless(lines[0])[:_MAX_MESSAGE] if lines else "no error message"
        name = os.path.basename(tool)
        raise TuiFsError(f"No {place.value} file system could be created: {name} failed: {message}")


def _unmount_or_detach(path: str) -> None:
    """Unmount a path if something is mounted there, lazily if it stays in use."""
    deadline = time.monotonic() + _BUSY_LIMIT_S
    while True:
        is_late = time.monotonic() >= deadline
        try:
            unmount(path, is_lazy=is_late)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return  # it was not mounted
            if error.errno != errno.EBUSY or is_late:
                raise
            time.sleep(_BUSY_STEP_S)
        else:
            return


def _without(kind: type[OSError], undo: Callable[[str], None]) -> Callable[[str], None]:
    def undone(path: str) -> None:
        with contextlib.suppress(kind):
            undo(path)

    return undone
