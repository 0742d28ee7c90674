"""What a survey found in a tree."""

import enum
from dataclasses import dataclass

from tui_fs.model.finding import Finding
from tui_fs.model.paths import PathStr


class EntryKind(enum.StrEnum):
    """What a name in a directory stands for."""

    DIRECTORY = "directory"
    FILE = "file"
    SYMLINK = "symlink"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts of a subtree, its own directory included (as ``find | wc -l`` counts).

    Bytes count every inode once. `apparent_bytes` is st_size, `allocated_bytes` is
    st_blocks of 512 bytes.
    """

    files: int = 0
    directories: int = 0
    symlinks: int = 0
    other: int = 0
    apparent_bytes: int = 0
    allocated_bytes: int = 0

    @property
    def entries(self) -> int:
        """All names, the top directory's own among them."""
        return self.files + self.directories + self.symlinks + self.other

    @property
    def non_directories(self) -> int:
        """Everything that unlink removes."""
        return self.files + self.symlinks + self.other


@dataclass(frozen=True, slots=True)
class Child:
    """One entry of a listed directory, with the totals below it.

    Attributes:
        inodes: how many inodes its names stand for: names of one file count once.
        oldest_s, newest_s: modification times of everything below it but directories (epoch
            seconds); None if there is nothing.
    """

    name: PathStr
    kind: EntryKind
    totals: Totals
    complete: bool
    link_target: PathStr | None = None
    inodes: int = 1
    oldest_s: int | None = None
    newest_s: int | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """What is in one directory of a surveyed tree.

    Attributes:
        totals: of the directory and everything below it.
        complete: everything below it has been counted.
        not_listed: entries other than directories that are not among the children.
        problem: why it cannot be listed, in a sentence; empty if it can.
    """

    path: PathStr
    totals: Totals = Totals()
    children: tuple[Child, ...] = ()
    not_listed: int = 0
    complete: bool = False
    problem: str = ""


class Ranking(enum.StrEnum):
    """What directories are ranked by."""

    ENTRIES = "entries"
    INODES = "inodes"
    ALLOCATED = "allocated"
    OLDEST = "oldest"
    NEWEST = "newest"


@dataclass(frozen=True, slots=True)
class LargeDirectory:
    """A directory by what is in it itself (not further down).

    Attributes:
        entries: names in it.
        index_bytes: size of the directory itself.
        inodes: as entries, names of one file counted once.
        allocated_bytes: of the entries and of the directory itself.
        oldest_s, newest_s: modification times of the entries that are no directories (epoch
            seconds); None if there are none.
    """

    path: PathStr
    entries: int
    index_bytes: int
    inodes: int = 0
    allocated_bytes: int = 0
    oldest_s: int | None = None
    newest_s: int | None = None


@dataclass(frozen=True, slots=True)
class NamedGroup:
    """All directories of one name, those inside another of them left out.

    Attributes:
        totals: of all of them and everything below.
        paths: of the largest of them.
    """

    name: PathStr
    directories: int
    totals: Totals
    paths: tuple[PathStr, ...]


@dataclass(frozen=True, slots=True)
class Root:
    """A directory that was surveyed: what stood at its path when it was opened."""

    path: PathStr
    device: int
    inode: int


@dataclass(frozen=True, slots=True)
class Survey:
    """The counts of one or several directories together, final or so far.

    Attributes:
        path: the directory, or the one above all of them where there are several.
        roots: the directories themselves, as far as they have been opened.
        filesystem: its type, as the mount table names it; empty if not known.
        matched: what the filters select; None without filters.
        matching_directories: directories below the roots whose names match the filter by name,
            which selects no directories; 0 until it is finished.
        freed_bytes_min: allocated bytes that certainly come back (hard links whose other
            names lie outside the tree, files held open, and `shared_bytes` are left out).
        shared_bytes: allocated bytes that may stay because reflink copies or snapshots own the
            same blocks.
        freed_bytes_max: the same with every inode of the tree.
        is_on_overlay: a target is on an overlay. What a lower layer has of it frees nothing, so
            the lower bounds are 0.
        freed_inodes_min: inodes that certainly come back; all `inodes` do if none has other names.
        max_depth: levels below the target; 0 for an empty directory.
        max_path_bytes: the longest absolute path.
        non_empty_directories, parent_directories: directories that hold anything, and those that
            hold directories.
        directory_reads: getdents64 calls that read every directory to its end once.
        non_directory_path_bytes: all absolute paths but those of directories, added up.
        non_directory_levels: how deep below their root all that are no directories lie, added up.
        non_directory_name_bytes: the last components of those paths, added up.
        top_directories, top_non_directories: entries directly in the roots.
        non_empty_levels: how deep the non-empty directories lie below their root, added up.
        unreadable: directories that could not be read; their content is not counted.
        writable_by_others: directories in which somebody other than this user and root may
            write.
        unchecked_processes: that this user may not inspect; whether one of them has a part of the
            tree mounted in its mount namespace is not known.
        vanished: names that were gone at their stat.
        finished: the walk has come to its end.
        complete: it has, and every directory could be read.
        inodes: how many inodes the entries stand for: names of one file count once.
        groups: directories of the same name that hold the most; empty until it is finished.
    """

    path: PathStr
    totals: Totals = Totals()
    matched: Totals | None = None
    matching_directories: int = 0
    freed_bytes_min: int = 0
    freed_bytes_max: int = 0
    shared_bytes: int = 0
    is_on_overlay: bool = False
    max_depth: int = 0
    max_path_bytes: int = 0
    max_entries_in_directory: int = 0
    non_empty_directories: int = 0
    directory_reads: int = 0
    parent_directories: int = 0
    non_directory_path_bytes: int = 0
    non_directory_levels: int = 0
    non_directory_name_bytes: int = 0
    top_directories: int = 0
    top_non_directories: int = 0
    non_empty_levels: int = 0
    largest: tuple[LargeDirectory, ...] = ()
    findings: tuple[Finding, ...] = ()
    unreadable: int = 0
    writable_by_others: int = 0
    unchecked_processes: int = 0
    vanished: int = 0
    roots: tuple[Root, ...] = ()
    elapsed_s: float = 0.0
    finished: bool = False
    complete: bool = False
    backend: str = "scandir"
    filesystem: str = ""
    inodes: int = 0
    freed_inodes_min: int = 0
    groups: tuple[NamedGroup, ...] = ()
