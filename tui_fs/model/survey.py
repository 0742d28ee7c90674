"""What a survey found in a tree."""

import enum
from dataclasses import dataclass, field

from tui_fs.model.paths import PathStr


class EntryKind(enum.StrEnum):
    """What a name in a directory stands for."""

    DIRECTORY = "directory"
    FILE = "file"
    SYMLINK = "symlink"
    OTHER = "other"


class Severity(enum.StrEnum):
    """How much a finding matters."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a directory that a person should know before deleting it."""

    kind: str
    severity: Severity
    path: PathStr
    numbers: dict[str, int]
    meaning: str
    advice: str


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
    """One entry of the surveyed directory itself, with the totals below it."""

    name: PathStr
    kind: EntryKind
    totals: Totals
    complete: bool
    link_target: PathStr | None = None


@dataclass(frozen=True, slots=True)
class LargeDirectory:
    """A directory with many names of its own (not counting those further down)."""

    path: PathStr
    entries: int
    index_bytes: int


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
        matched: what the filters select; None without filters.
        freed_bytes_min: allocated bytes that certainly come back (hard links whose other
            names lie outside the tree are left out).
        freed_bytes_max: the same with every inode of the tree.
        max_depth: levels below the target; 0 for an empty directory.
        max_path_bytes: the longest absolute path.
        non_empty_directories, parent_directories: directories that hold anything, and those
            that hold directories.
        directory_reads: getdents64 calls that read every directory to its end once.
        non_directory_path_bytes: all absolute paths but those of directories, added up.
        unreadable: directories that could not be read; their content is not counted.
        writable_by_others: directories in which somebody other than this user and root may
            write.
        vanished: names that were gone when looked at.
        finished: the walk has come to its end.
        complete: it has, and every directory could be read.
    """

    path: PathStr
    totals: Totals = Totals()
    matched: Totals | None = None
    freed_bytes_min: int = 0
    freed_bytes_max: int = 0
    max_depth: int = 0
    max_path_bytes: int = 0
    max_entries_in_directory: int = 0
    non_empty_directories: int = 0
    directory_reads: int = 0
    parent_directories: int = 0
    non_directory_path_bytes: int = 0
    largest: tuple[LargeDirectory, ...] = ()
    findings: tuple[Finding, ...] = ()
    unreadable: int = 0
    writable_by_others: int = 0
    vanished: int = 0
    roots: tuple[Root, ...] = ()
    elapsed_s: float = 0.0
    finished: bool = False
    complete: bool = False
    backend: str = "scandir"
    children: tuple[Child, ...] = field(default=())
    children_not_listed: int = 0
