"""Pathologies of a tree, by what the walkers have told: no further pass, no further call."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tui_fs.model.paths import PATH_MAX_BYTES, PathStr, displayable, shell_quoted
from tui_fs.model.survey import Finding, NamedGroup, Ranking, Severity
from tui_fs.model.units import bytes_iec, count, counted
from tui_fs.survey.collector import Collector
from tui_fs.survey.records import DirectoryFlag

PATHS_NAMED = 20
"""Findings of one kind that name a place each."""

FLAT_ENTRIES = 100_000
SUBDIRECTORIES = 50_000
"""ext4 without dir_nlink stops at 64,998; every rmdir looks for its name in such a directory."""

DEEP_LEVELS = 900
"""Python's shutil.rmtree gives up about here; tools that work by path stop at PATH_MAX."""

LONG_PATH_BYTES = 3_900
LONG_NAME_BYTES = 250
EMPTIED_FROM_BYTES = 1 << 20
EMPTIED_SHARE = 8
"""Names fill a half to three quarters of an ext4 directory that has only grown."""

LINKED_NAMES = 1_000
LINKED_OUTSIDE_BYTES = 64 << 20
WASTE_BYTES = 64 << 20
WASTE_WARNING_BYTES = 1 << 30
SPARSE_FROM_BYTES = 64 << 20

_NOT_READ = DirectoryFlag.UNREADABLE | DirectoryFlag.ELSEWHERE
_ORDER = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}


@dataclass(frozen=True, slots=True)
class Tree:
    """What was surveyed, so far.

    Attributes:
        root: the directory, or the one above all of them.
        mounts: what is mounted inside.
        is_finished: everything is counted; some signs can be told only then.
    """

    counted: Collector
    root: PathStr
    mounts: Sequence[PathStr]
    is_finished: bool


def tree_findings(tree: Tree, groups: Sequence[NamedGroup] = ()) -> list[Finding]:
    """Return what the tree itself shows, in no order."""
    found = [*_barriers(tree), *_flat(tree), *_shared(tree), *_deep(tree)]
    if tree.is_finished:
        found += [*_emptied(tree), *_many_subdirectories(tree), *_links(tree), *_waste(tree)]
        found += [*_sparse(tree), *_owners(tree), *_names(tree), *map(_group, groups)]
    return found


def mount_findings(mounts: Iterable[PathStr]) -> list[Finding]:
    """Return a finding for each mount point in the tree."""
    return [
        Finding(
            "mount-inside",
            Severity.CRITICAL,
            mount,
            {},
            "Another file system or a bind mount is attached here; it was not counted.",
            "Unmount it before anything above it is deleted.",
        )
        for mount in mounts
    ]


def overlay_findings(paths: Iterable[str]) -> list[Finding]:
    """Return a finding for each target that is on an overlay."""
    return [
        Finding(
            "lower-layer",
            Severity.INFO,
            PathStr(path),
            {},
            "This directory is on an overlay. Deleting a file of a lower layer only hides it, and "
            "frees nothing.",
            "To free that space, delete the files in the layer itself: for a container, in its "
            "image.",
        )
        for path in itertools.islice(paths, PATHS_NAMED)
    ]


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings, the gravest first."""
    return tuple(sorted(findings, key=lambda finding: _ORDER[finding.severity]))


def _barriers(tree: Tree) -> list[Finding]:
    """Return what keeps a deletion from getting on."""
    counted = tree.counted
    found = mount_findings(tree.mounts)
    found += _flagged(
        counted,
        DirectoryFlag.SUBVOLUME,
        "subvolume-inside",
        Severity.WARNING,
        "A btrfs subvolume; it is a file system of its own here and was not counted.",
        "To delete it: btrfs subvolume delete PATH",
    )
    found += _flagged(
        counted,
        DirectoryFlag.IMMUTABLE,
        "immutable",
        Severity.WARNING,
        "This directory is immutable: nothing in it can be deleted.",
        "To delete it, run as root: chattr -i PATH",
    )
    found += _flagged(
        counted,
        DirectoryFlag.APPEND_ONLY,
        "append-only",
        Severity.WARNING,
        "This directory is append-only: nothing in it can be deleted.",
        "To delete it, run as root: chattr -a PATH",
    )
    found += _flagged(
        counted,
        DirectoryFlag.LOCKED_FILES,
        "locked-files",
        Severity.WARNING,
        "Files in this directory are immutable or append-only: they cannot be deleted.",
        "As root, list them with lsattr -a PATH (flags i and a), and remove the attributes with "
        "chattr -i -a FILE.",
    )
    found += _flagged(
        counted,
        DirectoryFlag.UNREADABLE,
        "unreadable",
        Severity.WARNING,
        "This directory could not be read, or not to its end; what is in it is not counted.",
        "Look at it as its owner or as root.",
    )
    is_foreign = len(counted.table) > 0 and counted.table.flags[0] & DirectoryFlag.UNWRITABLE
    found += _flagged(
        counted,
        DirectoryFlag.UNWRITABLE,
        "unwritable",
        Severity.INFO if is_foreign else Severity.WARNING,
        "You may not write in this directory: you cannot delete what is in it.",
        "Delete it as its owner or as root.",
        names_all=not is_foreign,
    )
    found += _flagged(
        counted,
        DirectoryFlag.STICKY,
        "sticky",
        Severity.INFO,
        "A sticky directory of somebody else: only what is your own can be deleted in it.",
        "Delete the rest as root.",
        names_all=False,
    )
    found += _flagged(
        counted,
        DirectoryFlag.CHANGED,
        "refilled",
        Severity.WARNING,
        "Somebody creates or deletes names here while you look; the counts are of a moment.",
        "Stop whoever writes here first, or set the directory aside (tui-fs aside).",
    )
    return found


def _flagged(
    counted: Collector,
    flag: int,
    kind: str,
    severity: Severity,
    meaning: str,
    advice: str,
    *,
    names_all: bool = True,
) -> list[Finding]:
    """Return a finding for each of the first directories with a flag, or one for all.

    Args:
        advice: with PATH for the directory.
    """
    number = counted.flag_counts[flag]
    paths = counted.paths_with(flag, PATHS_NAMED if names_all else 1)
    return [
        Finding(
            kind,
            severity,
            path,
            {"directories": number},
            meaning,
            advice.replace("PATH", shell_quoted((path,))),
        )
        for path in paths
    ]


def _flat(tree: Tree) -> list[Finding]:
    if tree.counted.max_entries < FLAT_ENTRIES:
        return []
    return [
        Finding(
            "flat",
            Severity.WARNING,
            directory.path,
            {"entries": directory.entries, "index_bytes": directory.index_bytes},
            f"{directory.entries:,} names in one directory: listing it reads all of them.",
            "Shell patterns (rm *) fail here; every strategy of tui-fs copes with it.",
        )
        for directory in tree.counted.table.ranked(Ranking.ENTRIES, PATHS_NAMED)
        if directory.entries >= FLAT_ENTRIES
    ]


def _shared(tree: Tree) -> list[Finding]:
    return _flagged(
        tree.counted,
        DirectoryFlag.SHARED,
        "writable-by-others",
        Severity.INFO,
        "Somebody other than you and root may write here, also while it is deleted.",
        "Delete it with a strategy that is safe against races; the preview marks them.",
        names_all=False,
    )


def _deep(tree: Tree) -> list[Finding]:
    levels, path_bytes = tree.counted.max_depth, tree.counted.max_path_bytes
    numbers = {"max_depth": levels, "max_path_bytes": path_bytes}
    found: list[Finding] = []
    if path_bytes >= PATH_MAX_BYTES or levels >= DEEP_LEVELS:
        deep = counted(levels, "level", "levels")
        meaning = f"{deep} deep, with paths of up to {path_bytes:,} bytes."
        if path_bytes >= PATH_MAX_BYTES:
            meaning += " Tools that work by path stop at 4,096."
        found.append(
            Finding(
                "deep", Severity.WARNING, tree.root, numbers, meaning, "Delete it with rm or find."
            )
        )
    longest = tree.counted.longest_name
    if longest >= LONG_NAME_BYTES or LONG_PATH_BYTES <= path_bytes < PATH_MAX_BYTES:
        named = tree.counted.paths_with(DirectoryFlag.LONG_NAMES, 1)
        found.append(
            Finding(
                "long-names",
                Severity.INFO,
                named[0] if named else tree.root,
                {"longest_name_bytes": longest, "max_path_bytes": path_bytes},
                f"Names of up to {longest:,} bytes and paths of up to {path_bytes:,}: the limits "
                "are 255 and 4,096.",
                "Copying or moving it deeper may fail; deleting does not.",
            )
        )
    return found


def _emptied(tree: Tree) -> list[Finding]:
    table = tree.counted.table
    rows = [
        row
        for row, size in enumerate(table.index_bytes)
        if size >= EMPTIED_FROM_BYTES
        and table.record_bytes[row] * EMPTIED_SHARE < size
        and not table.flags[row] & _NOT_READ
    ]
    rows.sort(key=table.index_bytes.__getitem__, reverse=True)
    return [
        Finding(
            "emptied",
            Severity.WARNING,
            table.path(row),
            {"entries": table.entries(row), "index_bytes": table.index_bytes[row]},
            f"The directory itself takes {bytes_iec(table.index_bytes[row])} for "
            f"{counted(table.entries(row), 'name', 'names')}: it has been emptied and does not "
            "shrink, so listing it stays slow.",
            "tui-fs recreate makes it anew, with its owner and mode, once it is empty."
            if table.entries(row) == 0
            else "Empty it, then make it anew: tui-fs recreate keeps its owner and mode.",
        )
        for row in rows[:PATHS_NAMED]
    ]


def _many_subdirectories(tree: Tree) -> list[Finding]:
    table = tree.counted.table
    rows = [row for row, number in enumerate(table.subdirectories) if number >= SUBDIRECTORIES]
    return [
        Finding(
            "many-subdirectories",
            Severity.WARNING,
            table.path(row),
            {"subdirectories": table.subdirectories[row]},
            f"{table.subdirectories[row]:,} subdirectories in one directory.",
            "Some file systems and tools stop at 65,000; every strategy of tui-fs copes with it.",
        )
        for row in rows[:PATHS_NAMED]
    ]


def _links(tree: Tree) -> list[Finding]:
    collected, totals = tree.counted, tree.counted.totals
    names, outside = collected.names_of_links, collected.bytes_linked_outside
    if names < LINKED_NAMES or names * 3 < totals.non_directories:
        return []
    is_grave = outside >= LINKED_OUTSIDE_BYTES and outside * 10 >= totals.allocated_bytes
    files = counted(names - collected.repeats, "file", "files")
    meaning = f"{count(names)} names stand for {files}."
    if outside:
        meaning += (
            f" {bytes_iec(outside)} of them have further names outside and do not come back "
            "when this is deleted."
        )
    return [
        Finding(
            "hard-links",
            Severity.WARNING if is_grave else Severity.INFO,
            tree.root,
            {
                "names": names,
                "inodes": names - collected.repeats,
                "linked_outside_bytes": outside,
                "linked_outside_inodes": collected.linked_outside,
            },
            meaning,
            "Snapshots by hard links (rsnapshot, cp -al): what comes back is shown as a range.",
        )
    ]


def _waste(tree: Tree) -> list[Finding]:
    table, totals = tree.counted.table, tree.counted.totals
    allocated = totals.allocated_bytes - sum(table.index_allocated)
    waste = allocated - (totals.apparent_bytes - sum(table.index_bytes))
    if waste < WASTE_BYTES or waste * 2 <= allocated:
        return []
    row = max(range(len(table)), key=lambda row: table.allocated[row] - table.apparent[row])
    return [
        Finding(
            "small-file-waste",
            Severity.WARNING if waste >= WASTE_WARNING_BYTES else Severity.INFO,
            table.path(row),
            {"waste_bytes": waste, "allocated_bytes": allocated, "files": totals.files},
            f"{bytes_iec(waste)} of {bytes_iec(allocated)} are the unused rest of blocks of small "
            "files; most of it is here.",
            "Deleting them gives back more than their sizes say; an archive holds them in less.",
        )
    ]


def _sparse(tree: Tree) -> list[Finding]:
    files = [
        (row, file)
        for _, row, _, file in tree.counted.big_files
        if file.apparent_bytes >= SPARSE_FROM_BYTES
        and file.allocated_bytes * 2 < file.apparent_bytes
    ]
    files.sort(key=lambda item: item[1].apparent_bytes, reverse=True)
    return [
        Finding(
            "sparse",
            Severity.INFO,
            tree.counted.path_of_file(row, file.name),
            {"apparent_bytes": file.apparent_bytes, "allocated_bytes": file.allocated_bytes},
            f"A sparse file: {bytes_iec(file.apparent_bytes)} by its size, "
            f"{bytes_iec(file.allocated_bytes)} on the disk.",
            "Deleting it gives back what is on the disk; copying it may fill the rest.",
        )
        for row, file in files[:PATHS_NAMED]
    ]


def _owners(tree: Tree) -> list[Finding]:
    return _flagged(
        tree.counted,
        DirectoryFlag.FOREIGN_OWNERS,
        "foreign-owners",
        Severity.INFO,
        "It holds entries that do not belong to the owner of the directory.",
        "Make sure that nobody needs them; ls -n shows whose they are.",
        names_all=False,
    )


_NAME_FLAGS = (
    (DirectoryFlag.CONTROL_NAMES, Severity.WARNING, "control", "control or invisible characters"),
    (DirectoryFlag.UNDECODABLE_NAMES, Severity.INFO, "not_utf8", "bytes that are not UTF-8"),
    (DirectoryFlag.SPACE_NAMES, Severity.INFO, "space", "a space at their end or beginning"),
    (DirectoryFlag.DASH_NAMES, Severity.INFO, "dash", "a leading dash"),
)


def _names(tree: Tree) -> list[Finding]:
    """Return one finding for each sort of weird names, at the first directory that has them."""
    found: list[Finding] = []
    for flag, severity, word, meaning in _NAME_FLAGS:
        number = tree.counted.flag_counts[flag]
        found += [
            Finding(
                "weird-names",
                severity,
                path,
                {f"directories_{word}": number},
                f"Names with {meaning} in {counted(number, 'directory', 'directories')}; "
                "this is the first.",
                "They are shown with escapes here and deleted like all others; in a shell, quote "
                "them and put -- before them.",
            )
            for path in tree.counted.paths_with(flag, 1)
        ]
    return found


def _group(group: NamedGroup) -> Finding:
    totals = group.totals
    return Finding(
        "group",
        Severity.INFO,
        group.paths[0],
        {
            "directories": group.directories,
            "entries": totals.entries,
            "allocated_bytes": totals.allocated_bytes,
        },
        f"{counted(group.directories, 'directory', 'directories')} called "
        f"{displayable(group.name)}: {counted(totals.entries, 'entry', 'entries')}, "
        f"{bytes_iec(totals.allocated_bytes)} together. This is the largest of them.",
        "They can be chosen together (N in the browser) and deleted in one job.",
    )
