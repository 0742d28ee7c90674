"""The records that the engine or the walker sends to the aggregator (docs/record-format.md)."""

from collections.abc import Sequence
from typing import NamedTuple

NO_PARENT = -1


class DirectoryFlag:
    """Properties of a directory or of names in it: bits of an int.

    Plain numbers: the operators of enum.IntFlag take half a microsecond each.
    """

    UNREADABLE = 1 << 0
    IMMUTABLE = 1 << 1
    APPEND_ONLY = 1 << 2
    ELSEWHERE = 1 << 3
    SHARED = 1 << 4
    UNWRITABLE = 1 << 5
    STICKY = 1 << 6
    CHANGED = 1 << 7
    CONTROL_NAMES = 1 << 8
    UNDECODABLE_NAMES = 1 << 9
    DASH_NAMES = 1 << 10
    SPACE_NAMES = 1 << 11
    LONG_NAMES = 1 << 12
    FOREIGN_OWNERS = 1 << 13
    SUBVOLUME = 1 << 14
    VANISHED = 1 << 15
    LOCKED_FILES = 1 << 16
    """It holds immutable or append-only files. Only the engine reports it, because only statx(2)
    returns the attributes along with everything else."""


DIRECTORY_FLAGS = tuple(1 << bit for bit in range(17))


class DirRecord(NamedTuple):
    """A part of one directory. The sums of its records are the counts of the directory.

    Attributes:
        number: of the directory, unique in a survey.
        parent: number of the parent; `NO_PARENT` for a root and in all records but the first.
        name: last component; the whole path of a root; empty in all records but the first.
        subdirectories: names of directories, entered or not.
        apparent_bytes, allocated_bytes: of entries that are not directories and have one name.
        own_bytes, own_allocated_bytes: of the directory itself, in the first record only.
        oldest_s, newest_s: modification times of entries that are not directories (epoch
            seconds); 0 for none.
        name_bytes: length of all names of entries that are not directories.
        record_bytes: length of the getdents64 records of all names.
        longest_name: in bytes, so far.
        pending: records still to come: one for each subdirectory and one for each part of this
            directory; negative when such a part is finished.
        flags: of `DirectoryFlag`, so far.
    """

    number: int
    parent: int
    name: bytes
    subdirectories: int = 0
    files: int = 0
    symlinks: int = 0
    other: int = 0
    apparent_bytes: int = 0
    allocated_bytes: int = 0
    own_bytes: int = 0
    own_allocated_bytes: int = 0
    oldest_s: int = 0
    newest_s: int = 0
    name_bytes: int = 0
    record_bytes: int = 0
    longest_name: int = 0
    pending: int = 0
    flags: int = 0


class Link(NamedTuple):
    """A name of an inode with several names. The aggregator counts the inode once.

    Attributes:
        directory: number of the directory with the name.
        names: of the inode (st_nlink).
        kind: 0 file, 1 symbolic link, 2 other.
        is_matched: the filters select it.
        modified_s: modification time (epoch seconds).
        suffix, owner: classes of its labels; 0 for none.
    """

    directory: int
    device: int
    inode: int
    names: int
    apparent_bytes: int
    allocated_bytes: int
    kind: int
    is_matched: bool
    modified_s: int = 0
    suffix: int = 0
    owner: int = 0


class BigFile(NamedTuple):
    """A large file.

    Attributes:
        directory: number of its directory.
        device, inode: 0 if it has no other name.
    """

    directory: int
    name: bytes
    apparent_bytes: int
    allocated_bytes: int
    modified_s: int
    device: int = 0
    inode: int = 0


class Matched(NamedTuple):
    """Entries directly in a directory that the filters select; its records add up.

    Inodes with several names are counted by their links; only their times are here.

    Attributes:
        directory: its number.
        oldest_s, newest_s: modification times (epoch seconds); 0 for none.
    """

    directory: int
    files: int
    symlinks: int
    other: int
    apparent_bytes: int
    allocated_bytes: int
    oldest_s: int
    newest_s: int


class Cells(NamedTuple):
    """The histograms of directories, in columns: arrays of the machine's byte order.

    A cell has a directory's number (64 bits), a class (16), a number of entries (32), and the
    allocated bytes of those with one name (64).
    """

    directories: bytes = b""
    classes: bytes = b""
    entries: bytes = b""
    allocated_bytes: bytes = b""


class Label(NamedTuple):
    """The meaning of a class beyond those of times and sizes.

    Attributes:
        suffix: what follows the last dot of a name; None for an owner.
        uid: the owner if there is no suffix.
    """

    class_: int
    suffix: str | None
    uid: int = 0


class Batch(NamedTuple):
    """The records since the last batch.

    Attributes:
        vanished: names that are not directories and vanished before their stat.
        labels: of classes that are new.
    """

    pieces: list[DirRecord]
    links: list[Link]
    big_files: list[BigFile]
    matched: list[Matched]
    cells: Cells
    vanished: int
    labels: Sequence[Label] = ()
