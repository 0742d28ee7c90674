"""Estimate how many names a directory has without reading a huge one to its end.

A directory of up to `ENOUGH_NAMES` names is read to its end. For a larger one the file system
provides other evidence:

- tmpfs adds 20 bytes for each name to st_size, btrfs twice the length of each name.
- ext4 returns the hash of a name as its position (d_off). Hashes are spread evenly, so the position
  reached is the share of the names that was read.
- xfs returns the offset in the directory's data, which may have holes. The sampler reads windows
  spread over all of it.
- On other file systems reading continues until the time is up. The number of unread names is then
  unknown.
"""

import enum
import os
import random
import stat
from collections.abc import Callable

from msgspec import Struct

from tui_fs.linux.directories import DT_DIR, DT_UNKNOWN, Dirent, DirentReader

ENOUGH_NAMES = 4_096
MAX_NAMES = 200_000
"""Names read of one directory; each takes about 200 bytes of memory."""

_WINDOWS = 48
_WINDOW_BYTES = 8_192
"""Part of a directory's data; its names always fit into one buffer of getdents64."""
_XFS_UNIT_BYTES = 8
"""Positions in an xfs directory count units of its data (xfs_dir2_dataptr_to_byte)."""
_TMPFS_BYTES_PER_ENTRY = 20
"""st_size of a directory grows by BOGO_DIRENT_SIZE for each name, . and .. among them."""
_NAME_LENGTH_ERROR = 0.1
"""The unread names may have another mean length than those read."""
_HASH_SPACES = (1 << 31, 1 << 63)
"""d_off on ext4 is the hash of the name: 31 bits for 32-bit programs, else 63."""


class Family(enum.Enum):
    """File systems by what st_size, st_nlink and d_off of a directory mean."""

    EXT = ("ext2", "ext3", "ext4")
    XFS = ("xfs",)
    TMPFS = ("tmpfs",)
    BTRFS = ("btrfs",)
    OTHER = ()

    @classmethod
    def of(cls, filesystem: str) -> "Family":
        """Return the family of a file system by its name in the mount table."""
        return next((family for family in cls if filesystem in family.value), cls.OTHER)

    def subdirectories(self, status: os.stat_result) -> int | None:
        """Return the number of subdirectories by the link count, None where it has no meaning."""
        if self in (Family.EXT, Family.XFS, Family.TMPFS) and status.st_nlink >= 2:
            return status.st_nlink - 2
        return None  # ext4 sets st_nlink to 1 above 64,998 subdirectories

    def guess_names(self, size_bytes: int) -> float:
        """Return a rough number of names of a directory with this st_size."""
        match self:
            case Family.TMPFS:
                return max(0.0, size_bytes / _TMPFS_BYTES_PER_ENTRY - 2)
            case Family.BTRFS:
                return size_bytes / 24  # two records for each name, of a dozen bytes
            case Family.EXT:
                return size_bytes / 40
            case Family.XFS:
                return size_bytes / (20 if size_bytes < 512 else 32)
            case Family.OTHER:
                return 10.0


class DirectorySample(Struct):
    """The names read of one directory, and the estimates made from them.

    Attributes:
        names: those read; a sample from all of the directory if it was not read to its end.
        entries: number of names in the directory.
        variance: of `entries`.
        unknown: the part of `entries` that is a guess without evidence.
        directories: number of entries that are directories.
        directories_variance: of `directories`.
    """

    names: list[Dirent]
    entries: float
    variance: float = 0.0
    unknown: float = 0.0
    is_complete: bool = False
    directories: float = 0.0
    directories_variance: float = 0.0


class DirectorySampler:
    """Read open directories, huge ones in part. Not thread-safe.

    Args:
        is_over: returns whether the time is up.
    """

    def __init__(self, rng: random.Random, is_over: Callable[[], bool]) -> None:
        self._rng = rng
        self._is_over = is_over
        self._reader = DirentReader()

    def read(
        self,
        descriptor: int,
        status: os.stat_result,
        family: Family,
        wants_all: Callable[[], bool] = lambda: False,
    ) -> DirectorySample:
        """Read a directory from its beginning.

        Args:
            status: of the directory, from before this call.
            wants_all: returns whether to continue although the number of names can be estimated,
                in order to find more subdirectories; called after every buffer.

        Raises:
            OSError: it cannot be read.
        """
        names: list[Dirent] = []
        counted = family.subdirectories(status)
        has_directories = bool(counted)
        while (batch := self._reader.read(descriptor)) is not None:
            batch = self._with_kinds(descriptor, batch)
            names += batch
            has_directories = has_directories or any(name.kind == DT_DIR for name in batch)
            if self._is_over() or len(names) >= MAX_NAMES:
                break
            is_enough = len(names) >= ENOUGH_NAMES and family is not Family.OTHER
            if is_enough and not (has_directories and wants_all()):
                break
        else:
            sample = DirectorySample(names, float(len(names)), is_complete=True)
            sample.directories = float(sum(name.kind == DT_DIR for name in names))
            return sample
        sample = self._extrapolate(descriptor, status, family, names)
        if counted is not None:
            sample.directories = float(counted)
            sample.entries = max(sample.entries, sample.directories)
        elif sample.names:
            share = sum(name.kind == DT_DIR for name in sample.names) / len(sample.names)
            sample.directories = share * sample.entries
            of_kind = share * (1 - share) * sample.entries**2 / len(sample.names)
            sample.directories_variance = share * share * sample.variance + of_kind
        return sample

    def _extrapolate(
        self, descriptor: int, status: os.stat_result, family: Family, names: list[Dirent]
    ) -> DirectorySample:
        known, size_bytes = len(names), status.st_size
        position = names[-1].next_position if names else 0
        if family is Family.TMPFS:
            return DirectorySample(names, max(known, size_bytes / _TMPFS_BYTES_PER_ENTRY - 2))
        if family is Family.BTRFS and names:
            read_bytes = sum(len(name.name) for name in names)
            rest = max(0.0, size_bytes / 2 - read_bytes) / (read_bytes / known)
            return DirectorySample(names, known + rest, (_NAME_LENGTH_ERROR * rest) ** 2)
        if family is Family.EXT and position > size_bytes:
            share = position / next(space for space in _HASH_SPACES if position < space)
            entries = known / share
            return DirectorySample(names, entries, entries * entries * (1 - share) / known)
        if family in (Family.EXT, Family.XFS) and names:
            unit_bytes = _XFS_UNIT_BYTES if family is Family.XFS else 1
            end = max(position, size_bytes // unit_bytes)
            met, rest, variance = self._read_windows(
                descriptor, position, end, _WINDOW_BYTES // unit_bytes
            )
            return DirectorySample(met or names, known + rest, variance)
        # Without evidence, assume as many unread names as were read.
        unknown = known + 1.0
        return DirectorySample(names, known + unknown, unknown * unknown, unknown)

    def _read_windows(
        self, descriptor: int, position: int, end: int, window: int
    ) -> tuple[list[Dirent], float, float]:
        """Return a sample of names between two positions, their estimated number, its variance."""
        met: list[Dirent] = []
        stride = (end - position) / _WINDOWS
        if stride < 1:
            return met, 0.0, 0.0
        window = min(window, int(stride))
        counts: list[int] = []
        for number in self._rng.sample(range(_WINDOWS), _WINDOWS):
            if self._is_over() and len(counts) > 1:
                break
            start = position + int(stride * number + self._rng.random() * (stride - window))
            os.lseek(descriptor, start, os.SEEK_SET)
            batch = self._reader.read(descriptor) or []
            inside = [name for name in batch if start < name.next_position <= start + window]
            counts.append(len(inside))
            met += self._with_kinds(descriptor, inside)
        scale = (end - position) / window
        mean = sum(counts) / len(counts)
        spread = sum((count - mean) ** 2 for count in counts) / max(1, len(counts) - 1)
        return met, scale * mean, scale * scale * spread / len(counts)

    def _with_kinds(self, descriptor: int, batch: list[Dirent]) -> list[Dirent]:
        """Fill in the kinds that the file system leaves unknown in d_type, by stat."""
        if all(name.kind != DT_UNKNOWN for name in batch):
            return batch
        known = []
        for name in batch:
            kind = name.kind
            if kind == DT_UNKNOWN and not self._is_over():
                try:
                    mode = os.stat(name.name, dir_fd=descriptor, follow_symlinks=False).st_mode
                except FileNotFoundError:
                    continue
                kind = stat.S_IFMT(mode) >> 12  # IFTODT of dirent.h
            known.append(name._replace(kind=kind))
        return known
