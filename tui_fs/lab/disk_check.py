"""What the trials of an experiment need of disk and memory, and whether it is there."""

from collections.abc import Iterable
from dataclasses import dataclass

from tui_fs.lab.experiment import Place, Trial
from tui_fs.linux.filesystem import file_system_of
from tui_fs.linux.memory import memory_room
from tui_fs.model.errors import Refused
from tui_fs.model.paths import displayable
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
"""So that an image never is nearly full: a file system allocates otherwise then."""
_BESIDE_ENTRIES = 64
"""Images, places to mount them, the empty directory, and what the steps leave."""
_LEAST_FREE_SHARE = 0.02
"""What is never filled, as with the trees that are made to measure times."""


@dataclass(frozen=True, slots=True)
class Needed:
    """What is needed on one place at most.

    Attributes:
        contents_bytes: of files, those that steps make included.
        entries: names.
    """

    contents_bytes: int
    entries: int

    @property
    def disk_bytes(self) -> int:
        """What it occupies at most on a file system on a disk."""
        return self.contents_bytes + self.entries * _ENTRY_BYTES

    @property
    def memory_bytes(self) -> int:
        """What it occupies on a tmpfs."""
        return self.contents_bytes + self.entries * _MEMORY_PER_ENTRY_BYTES

    @property
    def image_bytes(self) -> int:
        """How large a file system for it is, and its image can become.

        An image begins as a hole, but what is deleted in it stays allocated, and the next tree
        may lie elsewhere.
        """
        return int(self.disk_bytes * _IMAGE_SLACK) + _IMAGE_BYTES


@dataclass(frozen=True, slots=True)
class Needs:
    """What an experiment needs at most, at one time; `disk_inodes` counts entries."""

    disk_bytes: int
    disk_inodes: int
    memory_bytes: int

    @property
    def words(self) -> str:
        """Both in one line, to be read behind `needs`."""
        disk = f"up to {bytes_iec(self.disk_bytes)} of disk"
        inodes = counted(self.disk_inodes, "inode", "inodes")
        return f"{disk} ({inodes}) and {bytes_iec(self.memory_bytes)} of memory"


def needed_on(trials: Iterable[Trial]) -> dict[Place, Needed]:
    """Return what each place must hold: the tree of one trial at a time."""
    found: dict[Place, Needed] = {}
    for trial in trials:
        one, before = _needed(trial), found.get(trial.place, Needed(0, 0))
        found[trial.place] = Needed(
            max(one.contents_bytes, before.contents_bytes), max(one.entries, before.entries)
        )
    return found


def needs_of(trials: Iterable[Trial]) -> Needs:
    """Return what trials need that are done one after the other.

    Images stay to the end, and count in full.
    """
    trials = tuple(trials)
    places = needed_on(trials)
    here = places.get(Place.HERE, Needed(0, 0))
    images = sum(places[place].image_bytes for place in _IMAGES if place in places)
    return Needs(
        disk_bytes=here.disk_bytes + images,
        disk_inodes=here.entries + _BESIDE_ENTRIES,
        memory_bytes=max((_memory_bytes(trial) for trial in trials), default=0),
    )


def refuse_without_room(needs: Needs, directory: str) -> None:
    """Raise Refused if an experiment cannot be done below a directory.

    A fiftieth of the file system and of its inodes stays free.

    Args:
        directory: absolute.
    """
    filesystem, shown = file_system_of(directory), displayable(directory)
    advice = "Name a directory with more room (--dir), or choose the smaller scale."
    if filesystem.is_read_only:
        raise Refused(f"Nothing can be made in {shown}: it is read-only.", rule="room")
    available, total = filesystem.available_bytes, filesystem.total_bytes
    if available is None:
        raise Refused(f"The file system of {shown} does not tell its free space.", rule="room")
    left = _above_margin(available, total)
    if needs.disk_bytes > left:
        raise Refused(
            f"This needs up to {bytes_iec(needs.disk_bytes)} of disk, and "
            f"{bytes_iec(left)} can be used in {shown}.",
            advice,
            rule="room",
        )
    inodes = filesystem.free_inodes
    if inodes is not None and needs.disk_inodes > _above_margin(inodes, filesystem.total_inodes):
        raise Refused(
            f"This makes {counted(needs.disk_inodes, 'inode', 'inodes')}, and {shown} has too few "
            f"left ({inodes:,}).",
            advice,
            rule="room",
        )
    memory = memory_room()
    if memory is not None and needs.memory_bytes > memory.bytes_left:
        raise Refused(
            f"This needs {bytes_iec(needs.memory_bytes)} of memory, and "
            f"{bytes_iec(memory.bytes_left)} are left of {memory.limited_by}.",
            "Choose the smaller scale, or end other programs first.",
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
    return max(0, free - int((total or 0) * _LEAST_FREE_SHARE))
