"""The result of a survey."""

from msgspec import Struct

from tui_fs.model.compat import StrEnum
from tui_fs.model.finding import Finding
from tui_fs.model.paths import PathStr


class EntryKind(StrEnum):
    """The kind of a directory entry."""

    DIRECTORY = "directory"
    FILE = "file"
    SYMLINK = "symlink"
    OTHER = "other"


class Totals(Struct, frozen=True):
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
        """All entries that unlink removes."""
        return self.files + self.symlinks + self.other


class Bin(Struct, frozen=True):
    """The entries of one class of a histogram.

    Attributes:
        least, below: the range of the class, in days or in bytes; `below` is None without an end.
        allocated_bytes: of every inode once.
    """

    least: int
    below: int | None
    entries: int
    allocated_bytes: int


class SuffixSum(Struct, frozen=True):
    """The entries whose names end in a dot and a suffix; see `Bin` for the bytes."""

    suffix: str
    entries: int
    allocated_bytes: int


class OwnerSum(Struct, frozen=True):
    """The entries of a user; see `Bin` for the bytes.

    Attributes:
        name: of the account; without one, and for an imported survey, the number.
    """

    uid: int
    name: str
    entries: int
    allocated_bytes: int


class Histograms(Struct, frozen=True):
    """The entries other than directories of a tree, by age, size, suffix and owner.

    Attributes:
        ages: by the days since the last change; empty if these are unknown.
        sizes: by the apparent size in bytes.
        suffixes: of 1 to 8 letters and digits, those with most bytes first.
        owners: those with most bytes first; empty if they are unknown.
    """

    ages: tuple[Bin, ...]
    sizes: tuple[Bin, ...]
    suffixes: tuple[SuffixSum, ...] = ()
    owners: tuple[OwnerSum, ...] = ()

    def older_than(self, days: int) -> tuple[int, int]:
        """Return entries and allocated bytes from an age on, at which a class begins."""
        older = [age for age in self.ages if age.least >= days]
        return sum(age.entries for age in older), sum(age.allocated_bytes for age in older)


class Details(Struct, frozen=True):
    """What a survey knows of a directory beyond its totals.

    Attributes:
        histograms: of everything below it, with filters of what matches; None if they were not
            counted.
        largest_files: apparent size and path of the largest files below it that have a record of
            their own.
    """

    histograms: Histograms | None
    largest_files: tuple[tuple[int, PathStr], ...]


class Sorting(StrEnum):
    """The criterion by which a directory's entries are sorted."""

    ALLOCATED = "allocated"
    ENTRIES = "entries"
    INODES = "inodes"
    OLDEST = "oldest"
    NEWEST = "newest"
    NAME = "name"


class Order(Struct, frozen=True):
    """The order of a directory's entries.

    Attributes:
        is_reversed: reverse the default direction of the criterion.
    """

    sorting: Sorting = Sorting.ALLOCATED
    is_reversed: bool = False


DEFAULT_ORDER = Order()


class Child(Struct, frozen=True):
    """One entry of a listed directory, with the totals below it.

    Attributes:
        inodes: number of distinct inodes of its names.
        oldest_s, newest_s: modification times of all entries below it but directories (epoch
            seconds); None without such entries.
        inside: its largest subdirectories, if it is large itself.
    """

    name: PathStr
    kind: EntryKind
    totals: Totals
    complete: bool
    link_target: PathStr | None = None
    inodes: int = 1
    oldest_s: int | None = None
    newest_s: int | None = None
    inside: "tuple[Child, ...]" = ()


class Listing(Struct, frozen=True):
    """The entries of one directory of a surveyed tree.

    Attributes:
        totals: of the directory and everything below it.
        complete: all entries below it have been counted.
        not_listed: entries other than directories that are not among the children.
        order: the children other than directories are the first ones in this order.
        examined: the number of entries from which these were chosen; None for all of them.
        problem: why the directory cannot be listed, as a sentence; empty without a problem.
    """

    path: PathStr
    totals: Totals = Totals()
    children: tuple[Child, ...] = ()
    not_listed: int = 0
    complete: bool = False
    problem: str = ""
    order: Order = DEFAULT_ORDER
    examined: int | None = None

    def is_sorted(self, order: Order) -> bool:
        """Return whether the first children in an order are the first of all entries."""
        return not self.not_listed or (self.order == order and self.examined is None)


class Match(Struct, frozen=True):
    """An entry that a search has found.

    Attributes:
        allocated_bytes: of the entry itself, without those below a directory.
        modified_s: in seconds since the epoch; None if unknown.
    """

    path: PathStr
    kind: EntryKind
    allocated_bytes: int
    modified_s: int | None = None


class Ranking(StrEnum):
    """The value that directories are ranked by."""

    ENTRIES = "entries"
    INODES = "inodes"
    ALLOCATED = "allocated"
    OLDEST = "oldest"
    NEWEST = "newest"


class LargeDirectory(Struct, frozen=True):
    """A directory with the counts of its direct entries.

    Attributes:
        entries: names in it.
        index_bytes: size of the directory itself.
        inodes: number of distinct inodes of the entries.
        allocated_bytes: of the entries and of the directory itself.
        oldest_s, newest_s: modification times of the entries but directories (epoch seconds); None
            without such entries.
    """

    path: PathStr
    entries: int
    index_bytes: int
    inodes: int = 0
    allocated_bytes: int = 0
    oldest_s: int | None = None
    newest_s: int | None = None


class NamedGroup(Struct, frozen=True):
    """All directories of one name, without those inside another one of that name.

    Attributes:
        totals: of all these directories and everything below them.
        paths: of the largest ones.
    """

    name: PathStr
    directories: int
    totals: Totals
    paths: tuple[PathStr, ...]


class Root(Struct, frozen=True):
    """A surveyed directory, identified at the time it was opened."""

    path: PathStr
    device: int
    inode: int


class Survey(Struct, frozen=True):
    """The counts of one or several directories together, intermediate or final.

    Attributes:
        path: the directory, or the common ancestor of several.
        roots: the directories themselves that have been opened so far.
        filesystem: its type as in the mount table; empty if unknown.
        matched: totals of the entries that the filters select; None without filters.
        matching_directories: directories below the roots whose names match the name filter, which
            selects no directories; 0 until the survey is finished.
        freed_bytes_min: allocated bytes that a deletion certainly frees (without hard links that
            have names outside the tree, files held open, and `shared_bytes`).
        shared_bytes: allocated bytes that may stay because reflink copies or snapshots own the
            same blocks.
        freed_bytes_max: allocated bytes of all inodes of the tree.
        is_on_overlay: a target is on an overlay. Entries in a lower layer free nothing, so the
            lower bounds are 0.
        freed_inodes_min: inodes that a deletion certainly frees; equal to `inodes` if none has
            other names.
        max_depth: levels below the target; 0 for an empty directory.
        max_path_bytes: the longest absolute path.
        non_empty_directories, parent_directories: directories with entries, and those with
            subdirectories.
        directory_reads: getdents64 calls to read every directory to its end once.
        non_directory_path_bytes: sum of the lengths of all absolute paths but directories.
        non_directory_levels: sum of the depths below the root of all entries but directories.
        non_directory_name_bytes: sum of the lengths of the last components of those paths.
        top_directories, top_non_directories: entries directly in the roots.
        non_empty_levels: sum of the depths below the root of the non-empty directories.
        unreadable: directories that could not be read; their content is not counted.
        writable_by_others: directories in which a user other than this one and root may write.
        unchecked_processes: processes that this user may not inspect. One of them may have a part
            of the tree mounted in its mount namespace.
        vanished: names for which stat returned ENOENT.
        finished: the walk has reached its end.
        complete: the walk is finished, and every directory could be read.
        inodes: number of distinct inodes of the entries.
        groups: directories of the same name with the most entries; empty until the survey is
            finished.
        inodes_linked_outside: inodes of the entries that also have names outside the tree.
        link_target: the text of a symbolic link that was examined in place of a tree; else empty.
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
    inodes_linked_outside: int = 0
    link_target: str = ""
