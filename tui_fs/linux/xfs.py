"""Where xfs keeps its inodes, from its ioctls (ioctl_xfs_fsgeometry(2), ioctl_xfs_inumbers(2)).

It makes inodes by chunks of 64, and gives a chunk back when none of its inodes is in use.
"""

import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

INODES_PER_CHUNK = 64

_XFS_IOC_FSGEOMETRY_V1 = 0x80705864
_GEOMETRY = struct.Struct("=I4xII8xI84x")
"""struct xfs_fsop_geom_v1: size of a block, blocks of a group, groups, size of an inode."""

_XFS_IOC_AG_GEOMETRY = 0xC080583D
_GROUP = struct.Struct("=I8xI112x")
"""struct xfs_ag_geometry: its number, and how many inodes were made in it."""

_XFS_IOC_INUMBERS = 0x80405880
_REQUEST = struct.Struct("=QIIII5Q")
"""struct xfs_bulk_ireq: first inode, flags, room for so many, how many there are, group."""
_CHUNK = struct.Struct("=QQB7x")
"""struct xfs_inumbers: first inode, a bit for each that is in use, how many these are."""
_CHUNKS_AT_ONCE = 1_024

_INDEX_STATISTICS = "ibt2"
"""The line of a file system's stats that tells of the tree of chunks (the kernel's xfs_stats.c):
lookups, compares, records that came and went, roots that did, ..., blocks that did, moves."""
_INDEX_STATISTICS_NUMBER = 15
_STATISTICS_BITS = 32


class Chunk(NamedTuple):
    """Inodes that come and go together.

    Attributes:
        in_use: a bit for each of the 64 that is, the lowest for the first.
    """

    first: int
    in_use: int


class IndexChange(NamedTuple):
    """By how much the indices of chunks have grown since the file system was mounted.

    All allocation groups together, or since its statistics were cleared.

    Attributes:
        records: of chunks; negative where more went than came.
        blocks: that hold them, and the way to them.
    """

    records: int
    blocks: int


class Geometry(NamedTuple):
    """How a file system was made.

    Attributes:
        group_blocks: blocks of an allocation group; the last one may have fewer.
        groups: allocation groups.
    """

    block_bytes: int
    group_blocks: int
    groups: int
    inode_bytes: int

    @property
    def gives_chunks_back(self) -> bool:
        """Whether chunks come back: not where a block holds more than one."""
        return self.block_bytes <= INODES_PER_CHUNK * self.inode_bytes

    def group_of(self, inode: int) -> int:
        """Return in which allocation group an inode lies: its number's highest bits."""
        inodes_per_block = self.block_bytes // self.inode_bytes
        low_bits = (self.group_blocks - 1).bit_length() + (inodes_per_block - 1).bit_length()
        return inode >> low_bits


def geometry(descriptor: int) -> Geometry:
    """Return how the xfs of an open file was made.

    Raises:
        OSError: it is not on xfs.
    """
    answer = fcntl.ioctl(descriptor, _XFS_IOC_FSGEOMETRY_V1, bytes(_GEOMETRY.size))
    return Geometry._make(_GEOMETRY.unpack(answer))


def inodes_made(descriptor: int, group: int) -> int:
    """Return how many inodes all chunks of an allocation group have together, in use or not.

    Raises:
        OSError: it is not on xfs, or older than Linux 5.2.
    """
    answer = fcntl.ioctl(descriptor, _XFS_IOC_AG_GEOMETRY, _GROUP.pack(group, 0))
    return int(_GROUP.unpack(answer)[1])


def chunks(descriptor: int, first: int) -> list[Chunk]:
    """Return the chunk in which an inode lies, or the next one, and those that come after it.

    At most so many as fit into one answer; none where there are no more.

    Raises:
        OSError: it is not on xfs, or older than Linux 5.5, or not asked by root.
    """
    room = bytearray(_REQUEST.size + _CHUNKS_AT_ONCE * _CHUNK.size)
    _REQUEST.pack_into(room, 0, first, 0, _CHUNKS_AT_ONCE, 0, 0, 0, 0, 0, 0, 0)
    fcntl.ioctl(descriptor, _XFS_IOC_INUMBERS, room)
    number = _REQUEST.unpack_from(room)[3]
    return list(_read(room, number))


def index_change(device: int, system: str = "/sys") -> IndexChange:
    """Return how the index of chunks has changed on a mounted device.

    A block that is split, or joined to another, has a record of it in the block above, which counts
    among those that come and go, unless a new root comes with it.

    Args:
        device: its number (`os.stat_result.st_dev`).
        system: where sysfs is mounted.

    Raises:
        OSError: its statistics cannot be read.
    """
    number = f"{os.major(device)}:{os.minor(device)}"
    disk = os.path.basename(os.path.realpath(f"{system}/dev/block/{number}"))
    path = f"{system}/fs/xfs/{disk}/stats/stats"
    with open(path, encoding="ascii") as file:
        lines = [line.split() for line in file]
    for name, *numbers in filter(None, lines):
        if name == _INDEX_STATISTICS and len(numbers) == _INDEX_STATISTICS_NUMBER:
            _, _, came, went, new_roots, killed_roots, *_, taken, given_back, _ = map(int, numbers)
            blocks = _signed(taken - given_back)
            above = blocks - 2 * new_roots + killed_roots
            return IndexChange(_signed(came - went - above), blocks)
    raise OSError(errno.ENODATA, "no statistics of the index of inodes", path)


def _signed(number: int) -> int:
    """Return a difference of counters that begin anew at 2 to the 32nd."""
    half = 1 << _STATISTICS_BITS - 1
    return (number + half) % (2 * half) - half


def _read(room: bytearray, number: int) -> Iterator[Chunk]:
    for index in range(number):
        first, in_use, _ = _CHUNK.unpack_from(room, _REQUEST.size + index * _CHUNK.size)
        yield Chunk(first, in_use)
