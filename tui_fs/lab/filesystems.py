"""The file systems that the trees of an experiment lie on: made for a run, and gone after it.

All of them lie in the scratch directory of the run. They are mounted where only the process of
the run and its children see them, so that even a killed run leaves no mount and no loop device.
"""

import contextlib
import errno
import functools
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType

from tui_fs.job.scratch import Scratch, remove_left_over
from tui_fs.lab.disk_check import Needed, Needs, needed_on, refuse_without_room
from tui_fs.lab.experiment import Place, Trial
from tui_fs.linux.filesystem import file_system_of
from tui_fs.linux.mount_namespaces import mount_tmpfs, own_mounts, unmount
from tui_fs.linux.permissions import Capability, missing_capabilities, user_namespace
from tui_fs.linux.tools import find_tool
from tui_fs.model.errors import Missing, TuiFsError
from tui_fs.model.paths import displayable, harmless

LOOP_CONTROL = "/dev/loop-control"
SHARED_MEMORY = "/dev/shm"
_SYSTEM_DIRECTORIES = "/usr/local/sbin:/usr/sbin:/sbin"
"""Not on every user's PATH; mkfs lies there."""
_PACKAGES = {
    "mkfs.ext4": "e2fsprogs",
    "mkfs.xfs": "xfsprogs",
    "mkfs.btrfs": "btrfs-progs",
    "mount": "mount",
}
_SPARE_INODES = 1024
_BYTES_PER_INODE = 16_384  # inode_ratio in mke2fs.conf
_SPARE_BYTES = 64 << 20
"""For what lies beside the tree: the empty directory, and what the steps leave."""
_BUSY_LIMIT_S = 5.0
_BUSY_STEP_S = 0.05
_LONGEST_COMPLAINT = 200
_READ = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_isolated: Callable[[], None] = functools.cache(own_mounts)
"""Forked children share the table of mounts, and know it."""


class Places:
    """The places of a run, made when they are first asked for; a context that takes them down.

    A process that mounts gets a table of mounts of its own (`own_mounts`), for the rest of its
    life: what it mounts later is seen by nobody else either.

    Args:
        scratch: holds them; it is removed after they are closed, by whoever made it.
        trials: what they have to hold; no other places can be asked for.
    """

    def __init__(self, scratch: Scratch, trials: Iterable[Trial]) -> None:
        self._scratch = scratch
        self._needed = needed_on(trials)
        self._made: dict[Place, tuple[int, str]] = {}
        self._undo = contextlib.ExitStack()
        if self._needed.keys() - {Place.HERE} and not _why_not_mount():
            # Before a directory is opened: one in the old table has no path in the new one.
            with contextlib.suppress(OSError):  # which is told when something is to be mounted
                _isolated()

    def __enter__(self) -> "Places":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def directory(self, place: Place) -> int:
        """Return an open directory on a place, this user's alone; it is closed with the places.

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

    def kind(self, place: Place) -> str:
        """Return the type of a place's file system: ``ext4``."""
        return file_system_of(self._scratch.path).kind if place is Place.HERE else place.value

    def close(self) -> None:
        """Take down what is mounted and remove the images; may be called again.

        What is in use is waited for for some seconds, and then taken down when it is free.

        Raises:
            OSError: something could not be cleared away; all else was.
        """
        self._made.clear()
        self._undo.close()

    def _of(self, place: Place) -> tuple[int, str]:
        if place not in self._made:
            self._made[place] = self._make(place)
        return self._made[place]

    def _make(self, place: Place) -> tuple[int, str]:
        needed = self._needed[place]
        why = why_not_place(place)
        if why:
            raise Missing(f"No {place.value} can be made here: {why}.")
        if place is Place.TMPFS and _why_not_mount():
            return self._make_in_shared_memory(needed)
        if place is not Place.HERE:
            try:
                _isolated()
            except OSError as error:
                raise Missing(f"Mounting is not permitted here: {error.strerror}.") from error
        path = self._made_point(place)
        if place is Place.TMPFS:
            self._undo.callback(_take_down, path)
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
        """Make the directory of a place, by its path: mounts are seen by paths opened since."""
        above = os.open(self._scratch.path, _READ)
        try:
            if not os.path.samestat(os.fstat(above), os.fstat(self._scratch.descriptor)):
                shown = displayable(self._scratch.path)
                raise TuiFsError(f"Something else stands at {shown} by now.")
            os.mkdir(place.value, 0o700, dir_fd=above)
        finally:
            os.close(above)
        path = os.path.join(self._scratch.path, place.value)
        if place is not Place.HERE:  # which goes with the scratch directory
            self._undo.callback(_without(FileNotFoundError, os.rmdir), path)
        return path

    def _mount_image(self, place: Place, path: str, needed: Needed) -> None:
        image = f"{path}.image"
        self._undo.callback(_without(FileNotFoundError, os.unlink), image)
        created = os.open(image, _NEW, 0o600)
        try:
            os.truncate(created, needed.image_bytes)
        finally:
            os.close(created)
        name = f"mkfs.{place.value}"
        _run(place, _found(name), *_options(place, needed), image)
        self._undo.callback(_take_down, path)
        # Without -n mount would write to a table of the whole machine.
        _run(place, _found("mount"), "-n", "-t", place.value, "-o", "loop", image, path)

    def _make_in_shared_memory(self, needed: Needed) -> tuple[int, str]:
        """Make a directory on the tmpfs that every user may write to."""
        device = os.stat(SHARED_MEMORY).st_dev
        remove_left_over(device)
        refuse_without_room(Needs(needed.contents_bytes, needed.entries, 0), SHARED_MEMORY)
        scratch = Scratch(SHARED_MEMORY, device)
        self._undo.callback(scratch.remove)
        return scratch.descriptor, scratch.path


def why_not_place(place: Place) -> str:
    """Return why a place cannot be made here, without a full stop; empty if it can.

    Nothing is tried: making it may fail all the same.
    """
    why = _why_not_mount()
    if place is Place.HERE or (place is Place.TMPFS and not why):
        return ""
    if place is Place.TMPFS:
        is_tmpfs = os.path.isdir(SHARED_MEMORY) and file_system_of(SHARED_MEMORY).kind == "tmpfs"
        is_usable = is_tmpfs and os.access(SHARED_MEMORY, os.W_OK | os.X_OK)
        return "" if is_usable else f"{why}, and {SHARED_MEMORY} is no tmpfs to write to"
    if why:
        return why
    for name in (f"mkfs.{place.value}", "mount"):
        if not _found(name):
            return f"{name} is not installed; it comes with the package {_PACKAGES[name]}"
    try:
        os.close(os.open(LOOP_CONTROL, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"there are no loop devices ({LOOP_CONTROL}: {error.strerror})"
    return "" if _kernel_has(place.value) else f"this kernel has no {place.value}"


def _why_not_mount(status: str = "/proc/self/status") -> str:
    if os.geteuid() != 0:
        return "mounting needs root"
    if missing_capabilities(Capability.SYS_ADMIN, status=status):
        return "this root may not mount (it lacks CAP_SYS_ADMIN)"
    if user_namespace() is not None:
        return "this root may not mount (it is root only inside a user namespace)"
    return ""


def _kernel_has(
    kind: str, filesystems: str = "/proc/filesystems", modules: str | None = None
) -> bool:
    """Tell whether a type of file system is in the kernel, or can be loaded (modules.dep(5))."""
    modules = modules or f"/lib/modules/{os.uname().release}/modules.dep"
    for path, ending in ((filesystems, f"\t{kind}"), (modules, f"/{kind}")):
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as lines:
            if any(line.partition(".ko")[0].rstrip().endswith(ending) for line in lines):
                return True
    return False


def _found(name: str) -> str:
    """Return the absolute path of a tool, empty if there is none."""
    tool = find_tool(name)
    return tool.path if tool else shutil.which(name, path=_SYSTEM_DIRECTORIES) or ""


def _options(place: Place, needed: Needed) -> Sequence[str]:
    if place is not Place.EXT4:
        return "-q", "-f"
    # A kernel thread that fills the inode tables later would disturb what is measured.
    complete = "lazy_itable_init=0,lazy_journal_init=0"
    # Steps may copy the tree: at least as many as mke2fs would give.
    inodes = str(max(needed.entries + _SPARE_INODES, needed.image_bytes // _BYTES_PER_INODE))
    return "-q", "-F", "-b", "4096", "-N", inodes, "-E", complete


def _run(place: Place, tool: str, *arguments: str) -> None:
    """Run a tool to its end; TuiFsError with what it says if it fails."""
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
        said = harmless(lines[0])[:_LONGEST_COMPLAINT] if lines else "it does not say why"
        name = os.path.basename(tool)
        raise TuiFsError(f"No {place.value} could be made: {name} failed: {said}")


def _take_down(path: str) -> None:
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
