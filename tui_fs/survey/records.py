"""What the engine and the walker report to the collector: plain tuples.

Directories have numbers. A directory's first piece comes before those of everything in it. The
engine writes the same records (engine/src/survey/records.rs).
"""

from typing import Any, NamedTuple

NO_PARENT = -1


class DirectoryFlag:
    """What is special about a directory or about names in it: bits of an int.

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
    """Part of what was read of one directory; the pieces of one directory add up.

    Attributes:
        parent: number of the directory above, `NO_PARENT` for a root.
        name: last component; the whole path of a root.
        subdirectories: names of directories in it, entered or not.
        apparent_bytes, allocated_bytes: of everything in it but directories and inodes with
            several names.
        own_bytes, own_allocated_bytes: of the directory itself; 0 in further pieces.
        oldest_s, newest_s: modification times of what is in it but directories (epoch seconds).
        name_bytes: names of everything in it but directories, added up.
        record_bytes: of all names as getdents64 gives them.
        longest_name: in bytes.
        pending: pieces that are now to come besides: one for each subdirectory, one for the rest
            of this directory; negative where such a rest has been told.
        flags: of `DirectoryFlag`.
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
    """A name of an inode that has several; the collector counts the inode once.

    Attributes:
        directory: number of the directory that holds the name.
        kind: 0 file, 1 symbolic link, 2 other.
        is_matched: the filters select it.
    """

    directory: int
    device: int
    inode: int
    names: int
    apparent_bytes: int
    allocated_bytes: int
    kind: int
    is_matched: bool


class BigFile(NamedTuple):
    """A large file.

    Attributes:
        directory: number of the directory that holds it.
        identity: device and inode in one number; 0 if it has no other name.
    """

    directory: int
    name: bytes
    apparent_bytes: int
    allocated_bytes: int
    modified_s: int
    identity: int = 0


class Batch(NamedTuple):
    """What was counted since the last batch.

    Attributes:
        matched: what the filters select: files, symlinks, other, apparent and allocated bytes,
            inodes with several names left out.
        vanished: names other than those of directories that were gone when examined.
    """

    pieces: list[tuple[Any, ...]]
    links: list[tuple[Any, ...]]
    big_files: list[tuple[Any, ...]]
    matched: tuple[int, int, int, int, int]
    vanished: int
