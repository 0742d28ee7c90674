"""Reads one directory for a glance; a huge one only in part, where its position tells the rest."""

import os
import random
import stat
from collections.abc import Callable
from dataclasses import dataclass, field

from tui_fs.linux.dirents import DT_DIR, DT_LNK, DT_REG, DT_UNKNOWN, Dirent, DirentReader

ENOUGH_NAMES = 4_096
"""A hash is spread evenly, so this many names tell an ext4 directory to about 1.6 per cent."""

WINDOWS = 48
_PLACES = 8
_XFS_UNIT_BYTES = 8
"""Positions in an xfs directory count units of its data (xfs_dir2_dataptr_to_byte)."""
_WINDOW_UNITS = 1_024
"""8 KiB of an xfs directory: their names always fit into one buffer."""
_TMPFS_BYTES_PER_ENTRY = 20
"""st_size of a directory grows by BOGO_DIRENT_SIZE for each name, . and .. among them."""
_HASH_SPACES = (1 << 31, 1 << 63)
"""ext4 gives the hash of a name as its position: 31 bits to 32-bit programs, else 63."""
_KNOWN_BADLY = 0.05
_HALF_KNOWN = 1.0

EXT, XFS, TMPFS, BTRFS, OTHER = "ext", "xfs", "tmpfs", "btrfs", "other"
FAMILIES = {
    "ext2": EXT,
    "ext3": EXT,
    "ext4": EXT,
    "xfs": XFS,
    "tmpfs": TMPFS,
    "btrfs": BTRFS,
}
COUNTS_LINKS = (EXT, XFS, TMPFS)
"""Families whose directories have two links and one more for each subdirectory."""


@dataclass(slots=True)
class Reading:
    """What was read of a directory.

    Attributes:
        entries: names in it, estimated if it was not read to its end.
        variance: of `entries`.
        open_entries: of them, those of which only a guess is known.
        directories, files, symlinks: expected of the entries.
        directories_variance: of `directories`, where nothing but the sample tells them.
        name_bytes: mean length of the names that are no directories.
        record_bytes: mean bytes a name takes in a buffer of getdents64.
        subdirectories: names that were met.
        others: names met that are no directories, not necessarily all that are there.
    """

    entries: float = 0.0
    variance: float = 0.0
    open_entries: float = 0.0
    directories: float = 0.0
    files: float = 0.0
    symlinks: float = 0.0
    directories_variance: float = 0.0
    name_bytes: float = 0.0
    record_bytes: float = 0.0
    is_read_to_end: bool = True
    subdirectories: list[Dirent] = field(default_factory=list)
    others: list[Dirent] = field(default_factory=list)


class DirectoryReading:
    """Reads directories of one file system.

    Args:
        family: one of EXT, XFS, TMPFS, BTRFS, OTHER.
        is_over: whether the time is up.
    """

    def __init__(self, family: str, dice: random.Random, is_over: Callable[[], bool]) -> None:
        self._family = family
        self._dice = dice
        self._is_over = is_over
        self._reader = DirentReader()

    def read(
        self, descriptor: int, status: os.stat_result, wants_all: Callable[[], bool]
    ) -> Reading:
        """Read an open directory.

        Args:
            status: of the directory, from before.
            wants_all: asked after every buffer when enough is read to know how many names there
                are, but not yet which directories.

        Raises:
            OSError: it cannot be read.
        """
        seen: list[Dirent] = []
        directories: list[Dirent] = []
        while True:
            batch = self._reader.read(descriptor)
            if batch is None:
                return _summed(seen, directories, len(seen), 0.0, is_read_to_end=True)
            batch = self._with_kinds(descriptor, batch)
            seen += batch
            directories += [one for one in batch if one.kind == DT_DIR]
            if self._is_over():
                break
            if len(seen) >= ENOUGH_NAMES and self._family != OTHER:
                may_hold_more = bool(directories) or subdirectories_of(self._family, status)
                if not may_hold_more or not wants_all():
                    break
        return self._extrapolated(descriptor, status, seen, directories)

    def _extrapolated(
        self,
        descriptor: int,
        status: os.stat_result,
        seen: list[Dirent],
        directories: list[Dirent],
    ) -> Reading:
        known, open_entries, sample = len(seen), 0.0, seen
        position = seen[-1].next_position if seen else 0
        if self._family == EXT and position > status.st_size:
            share = position / next(space for space in _HASH_SPACES if position < space)
            entries = known / share
            variance = entries * entries * (1 - share) / known
        elif self._family == TMPFS:
            entries = max(known, status.st_size / _TMPFS_BYTES_PER_ENTRY - 2)
            variance = 0.0
        elif self._family == BTRFS and seen:
            mean_bytes = sum(len(one.name) for one in seen) / known
            # Positions count the names made so far, and later names may be of another length.
            end = int(position * max(1.0, status.st_size / 2 / mean_bytes / known))
            met = self._anywhere(descriptor, position, end)
            directories += [one for one in met if one.kind == DT_DIR]
            sample = met or seen
            later_bytes = sum(len(one.name) for one in sample) / len(sample)
            entries = known + max(0.0, status.st_size / 2 - mean_bytes * known) / later_bytes
            variance = (_KNOWN_BADLY * (entries - known)) ** 2
        elif self._family in (XFS, EXT) and seen:
            unit_bytes = _XFS_UNIT_BYTES if self._family == XFS else 1
            end = max(position, status.st_size // unit_bytes)
            rest, variance, met = self._rest_by_windows(descriptor, position, end)
            entries = known + rest
            directories += [one for one in met if one.kind == DT_DIR]
            sample = met or seen
        else:
            # Whoever has waited this long may well wait as long again; nobody knows.
            entries, open_entries = 2.0 * known + 1, known + 1.0
            variance = (_HALF_KNOWN * open_entries) ** 2
        reading = _summed(sample, directories, entries, variance, is_read_to_end=False)
        reading.open_entries = open_entries
        told = subdirectories_of(self._family, status)
        if told is not None:
            _correct_directories(reading, told)
        elif entries:
            share = reading.directories / entries
            of_kind = share * (1 - share) * entries * max(0.0, entries - known) / max(1, known)
            reading.directories_variance = share * share * variance + of_kind
        return reading

    def _rest_by_windows(
        self, descriptor: int, position: int, end: int
    ) -> tuple[float, float, list[Dirent]]:
        """Estimate the names between two positions of a directory that is not evenly full.

        Returns:
            How many, the variance of that, and names from everywhere between.
        """
        stride = (end - position) / WINDOWS
        if stride < 1:
            return 0.0, 0.0, []
        window = min(_WINDOW_UNITS, int(stride) or 1)
        counts: list[int] = []
        met: list[Dirent] = []
        for number in self._dice.sample(range(WINDOWS), WINDOWS):
            if self._is_over() and len(counts) > 1:
                break
            start = position + int(stride * number + self._dice.random() * (stride - window))
            os.lseek(descriptor, start, os.SEEK_SET)
            batch = self._reader.read(descriptor) or []
            inside = [one for one in batch if start < one.next_position <= start + window]
            counts.append(len(inside))
            met += self._with_kinds(descriptor, inside)
        scale = (end - position) / window
        mean = sum(counts) / len(counts)
        spread = sum((count - mean) ** 2 for count in counts) / max(1, len(counts) - 1)
        return scale * mean, scale * scale * spread / len(counts), met

    def _anywhere(self, descriptor: int, position: int, end: int) -> list[Dirent]:
        """Return names from several places between two positions."""
        met: list[Dirent] = []
        for number in range(_PLACES):
            if self._is_over():
                break
            start = position + int((end - position) * (number + self._dice.random()) / _PLACES)
            os.lseek(descriptor, start, os.SEEK_SET)
            met += self._with_kinds(descriptor, self._reader.read(descriptor) or [])
        return met

    def _with_kinds(self, descriptor: int, batch: list[Dirent]) -> list[Dirent]:
        """Ask for the kinds that the file system has not told with the names."""
        if all(one.kind != DT_UNKNOWN for one in batch):
            return batch
        asked = []
        for one in batch:
            kind = one.kind
            if kind == DT_UNKNOWN and not self._is_over():
                try:
                    mode = os.stat(one.name, dir_fd=descriptor, follow_symlinks=False).st_mode
                except FileNotFoundError:
                    continue
                kind = stat.S_IFMT(mode) >> 12  # IFTODT of dirent.h
            asked.append(one._replace(kind=kind))
        return asked


def subdirectories_of(family: str, status: os.stat_result) -> int | None:
    """Return how many subdirectories the link count tells, None where it tells nothing."""
    if family in COUNTS_LINKS and status.st_nlink >= 2:
        return status.st_nlink - 2
    return None  # ext4 writes 1 when there are more than 64,998


def guessed_entries(family: str, size_bytes: int) -> float:
    """Return about how many names fit a directory of this size."""
    match family:
        case "tmpfs":
            return max(0.0, size_bytes / _TMPFS_BYTES_PER_ENTRY - 2)
        case "btrfs":
            return size_bytes / 24  # two records for each name, of a dozen bytes
        case "ext":
            return max(1.0, size_bytes / 40)
        case "xfs":
            return size_bytes / (20 if size_bytes < 512 else 32)
        case _:
            return 10.0


def _summed(
    sample: list[Dirent],
    directories: list[Dirent],
    entries: float,
    variance: float,
    is_read_to_end: bool,
) -> Reading:
    others = [one for one in sample if one.kind != DT_DIR]
    reading = Reading(entries, variance, is_read_to_end=is_read_to_end)
    reading.subdirectories, reading.others = directories, others
    if not sample:
        return reading
    scale = entries / len(sample)
    reading.directories = scale * (len(sample) - len(others))
    kinds = [one.kind for one in others]
    reading.files = scale * kinds.count(DT_REG)
    reading.symlinks = scale * kinds.count(DT_LNK)
    lengths = [len(one.name) for one in sample]
    # 19 bytes of header, the name, a NUL, rounded up to eight
    reading.record_bytes = sum((length + 27) & ~7 for length in lengths) / len(lengths)
    if others:
        reading.name_bytes = sum(len(one.name) for one in others) / len(others)
    return reading


def _correct_directories(reading: Reading, told: int) -> None:
    """Take the number of directories from the link count, and the rest as it was shared out."""
    others = reading.entries - reading.directories
    reading.entries = max(reading.entries, float(told))
    reading.directories = float(told)
    scale = (reading.entries - told) / others if others > 0 else 0.0
    reading.files *= scale
    reading.symlinks *= scale
