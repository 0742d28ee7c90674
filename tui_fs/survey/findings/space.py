"""Detect low space and inodes, and space that a deletion does or does not free."""

from tui_fs.linux.extents import extents_of
from tui_fs.linux.filesystem import FileSystem, file_system_of
from tui_fs.linux.open_files import HeldFile
from tui_fs.model.finding import Finding, FindingKind, Severity
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.survey import Ranking
from tui_fs.model.units import bytes_iec, count, counted
from tui_fs.survey.findings.base import PATHS_NAMED, Evidence, FindingType

_INODES_WARNING_PERCENT, _INODES_CRITICAL_PERCENT = 10, 2
_SPACE_WARNING_PERCENT, _SPACE_CRITICAL_PERCENT = 5, 1
_DELETED_WARNING_BYTES, _DELETED_WARNING_PERCENT = 100 << 20, 10

LINKED_NAMES = 1_000
LINKED_OUTSIDE_BYTES = 64 << 20
WASTE_BYTES = 64 << 20
WASTE_WARNING_BYTES = 1 << 30
SPARSE_FROM_BYTES = 64 << 20

_FILES_EXAMINED = 20
_EXTENTS, _EXTENTS_WARNING = 1_000, 10_000
_SMALL_EXTENT_BYTES = 1 << 20


def _file_system(evidence: Evidence) -> FileSystem | None:
    """Return the file system; None if unknown, or read-only and therefore always full."""
    if evidence.system is None:
        return None
    filesystem = file_system_of(evidence.paths[0])
    return None if filesystem.is_read_only else filesystem


def _severity(left: int, total: int, critical_percent: int) -> Severity:
    is_critical = left * 100 < total * critical_percent
    return Severity.CRITICAL if is_critical else Severity.WARNING


def _detect_inodes_low(evidence: Evidence) -> list[Finding]:
    filesystem = _file_system(evidence)
    if filesystem is None:
        return []
    total, free = filesystem.total_inodes, filesystem.free_inodes
    if not total or free is None or free * 100 >= total * _INODES_WARNING_PERCENT:
        return []
    largest = evidence.counted.table.ranked(Ranking.INODES, 3)
    where = ", ".join(
        f"{displayable(group.path)} ({count(group.inodes)})" for group in largest if group.inodes
    )
    left = f"Only {count(free)}" if free else "None"
    return [
        Finding(
            FindingKind("inodes-low"),
            _severity(free, total, _INODES_CRITICAL_PERCENT),
            PathStr(evidence.paths[0]),
            {"free_inodes": free, "total_inodes": total},
            f"{left} of {count(total)} inodes of the file system are free. Without a "
            "free inode no file can be created, even if there is free space. Directories with "
            f"the most inodes: {where}.",
            (
                "To free inodes, delete directories with many entries; their sizes do not matter "
                "here."
            ),
        )
    ]


INODES_LOW = FindingType(
    FindingKind("inodes-low"), "inodes nearly gone", _detect_inodes_low, unit="free"
)


def _detect_space_low(evidence: Evidence) -> list[Finding]:
    filesystem = _file_system(evidence)
    if filesystem is None:
        return []
    total, available = filesystem.total_bytes, filesystem.available_bytes
    if not total or available is None or available * 100 >= total * _SPACE_WARNING_PERCENT:
        return []
    meaning = f"Only {bytes_iec(available)} of {bytes_iec(total)} are available."
    reserved = (filesystem.free_bytes or 0) - available
    if reserved > available:
        meaning += f" {bytes_iec(reserved)} more are reserved for root."
    advice = "Sort by allocated bytes to see what takes the most."
    deleted_bytes = _deleted_bytes(evidence)
    if deleted_bytes * 100 >= total * _DELETED_WARNING_PERCENT:
        meaning += (
            f" {bytes_iec(deleted_bytes)} are in deleted files that processes still hold open."
        )
        advice = "Restart those processes first; the finding 'deleted but open' names the largest."
    return [
        Finding(
            FindingKind("space-low"),
            _severity(available, total, _SPACE_CRITICAL_PERCENT),
            PathStr(evidence.paths[0]),
            {"available_bytes": available, "total_bytes": total, "reserved_bytes": reserved},
            meaning,
            advice,
        )
    ]


SPACE_LOW = FindingType(FindingKind("space-low"), "space nearly gone", _detect_space_low)


def _deleted_bytes(evidence: Evidence) -> int:
    """Return the allocated bytes of deleted files on the file system that processes hold open."""
    deleted = () if evidence.system is None else evidence.system.occupation.deleted
    return sum(file.allocated_bytes or 0 for file in deleted)


def _detect_deleted_but_open(evidence: Evidence) -> list[Finding]:
    open_bytes = _deleted_bytes(evidence)
    if evidence.system is None or not open_bytes:
        return []
    deleted = evidence.system.occupation.deleted
    total = file_system_of(evidence.paths[0]).total_bytes
    is_large_share = bool(total) and open_bytes * 100 >= (total or 0) * _DELETED_WARNING_PERCENT
    is_much = open_bytes >= _DELETED_WARNING_BYTES or is_large_share
    return [
        Finding(
            FindingKind("deleted-but-open"),
            Severity.WARNING if is_much else Severity.INFO,
            PathStr(evidence.paths[0]),
            {"files": len(deleted), "held_bytes": open_bytes},
            f"Processes still hold {counted(len(deleted), 'deleted file', 'deleted files')} of "
            f"this file system open: {bytes_iec(open_bytes)} not freed. The largest: "
            f"{_held_by(deleted[0])}.",
            (
                "Restart those processes (lsof +L1 lists them); deleting more does not free this "
                "space."
            ),
        )
    ]


def _held_by(file: HeldFile) -> str:
    holder = file.holders[0]
    size = bytes_iec(file.allocated_bytes or 0)
    return (
        f"{size} held open by {displayable(holder.command)} ({holder.pid}): "
        f"{displayable(file.path)}"
    )


DELETED_BUT_OPEN = FindingType(
    FindingKind("deleted-but-open"),
    "deleted but open",
    _detect_deleted_but_open,
    headline="held_bytes",
    number_labels={"held_bytes": "still held"},
)


def _detect_hard_links(evidence: Evidence) -> list[Finding]:
    collected, totals = evidence.counted, evidence.counted.totals
    names, outside = collected.names_of_links, collected.bytes_linked_outside
    if not evidence.is_finished or names < LINKED_NAMES or names * 3 < totals.non_directories:
        return []
    is_much = outside >= LINKED_OUTSIDE_BYTES and outside * 10 >= totals.allocated_bytes
    files = counted(names - collected.repeats, "file", "files")
    meaning = f"{count(names)} names are hard links to {files}."
    if outside:
        meaning += (
            f" Files with {bytes_iec(outside)} in total also have names outside the tree: "
            "deleting the tree does not free that space."
        )
    return [
        Finding(
            FindingKind("hard-links"),
            Severity.WARNING if is_much else Severity.INFO,
            evidence.root,
            {
                "names": names,
                "inodes": names - collected.repeats,
                "linked_outside_bytes": outside,
                "linked_outside_inodes": collected.linked_outside,
            },
            meaning,
            (
                "Backups by hard links (rsnapshot, cp -al) cause this. The preview shows the freed "
                "space as a range."
            ),
        )
    ]


HARD_LINKS = FindingType(
    FindingKind("hard-links"),
    "many hard links",
    _detect_hard_links,
    number_labels={
        "linked_outside_bytes": "with names outside",
        "linked_outside_inodes": "inodes with names outside",
    },
)


def _detect_small_file_waste(evidence: Evidence) -> list[Finding]:
    if not evidence.is_finished:
        return []
    table, totals = evidence.counted.table, evidence.counted.totals
    allocated = totals.allocated_bytes - sum(table.index_allocated)
    waste = allocated - (totals.apparent_bytes - sum(table.index_bytes))
    if waste < WASTE_BYTES or waste * 2 <= allocated:
        return []
    row = max(range(len(table)), key=lambda row: table.allocated[row] - table.apparent[row])
    return [
        Finding(
            FindingKind("small-file-waste"),
            Severity.WARNING if waste >= WASTE_WARNING_BYTES else Severity.INFO,
            table.path(row),
            {"waste_bytes": waste, "allocated_bytes": allocated, "files": totals.files},
            f"{bytes_iec(waste)} of {bytes_iec(allocated)} is slack in partly filled blocks of "
            "small files; this directory has the most.",
            "Deleting these files frees more than their apparent size; an archive of them would "
            "save space.",
        )
    ]


SMALL_FILE_WASTE = FindingType(
    FindingKind("small-file-waste"),
    "small-file waste",
    _detect_small_file_waste,
    number_labels={"waste_bytes": "wasted"},
)


def _detect_sparse(evidence: Evidence) -> list[Finding]:
    if not evidence.is_finished:
        return []
    files = [
        (row, file)
        for _, row, _, file in evidence.counted.big_files
        if file.apparent_bytes >= SPARSE_FROM_BYTES
        and file.allocated_bytes * 2 < file.apparent_bytes
    ]
    files.sort(key=lambda item: item[1].apparent_bytes, reverse=True)
    return [
        Finding(
            FindingKind("sparse"),
            Severity.INFO,
            evidence.counted.path_of_file(row, file.name),
            {"apparent_bytes": file.apparent_bytes, "allocated_bytes": file.allocated_bytes},
            f"A sparse file: its apparent size is {bytes_iec(file.apparent_bytes)}; "
            f"{bytes_iec(file.allocated_bytes)} is allocated on disk.",
            "Deleting it frees the allocated bytes; copying it may allocate its full size.",
        )
        for row, file in files[:PATHS_NAMED]
    ]


SPARSE = FindingType(
    FindingKind("sparse"), "sparse file", _detect_sparse, number_labels={"apparent_bytes": "size"}
)


def _detect_fragmented(evidence: Evidence) -> list[Finding]:
    if evidence.system is None:
        return []
    findings: list[Finding] = []
    counted_ = evidence.counted
    for _, row, name, file in sorted(counted_.big_files, reverse=True)[:_FILES_EXAMINED]:
        path = counted_.path_of_file(row, name)
        extents = extents_of(path)
        if extents is None or extents < _EXTENTS:
            continue
        if file.allocated_bytes >= extents * _SMALL_EXTENT_BYTES:
            continue
        findings.append(
            Finding(
                FindingKind("fragmented"),
                Severity.WARNING if extents >= _EXTENTS_WARNING else Severity.INFO,
                path,
                {"extents": extents, "allocated_bytes": file.allocated_bytes},
                f"A file in {count(extents)} extents. Freeing each extent takes time, and the "
                "system call that removes the file cannot be interrupted.",
                "If other programs need the disk meanwhile, truncate the file in steps first.",
            )
        )
    return findings


FRAGMENTED = FindingType(FindingKind("fragmented"), "fragmented file", _detect_fragmented)


def _detect_lower_layer(evidence: Evidence) -> list[Finding]:
    overlays = () if evidence.system is None else evidence.system.overlays
    return [
        Finding(
            FindingKind("lower-layer"),
            Severity.INFO,
            path,
            {},
            "This directory is on an overlay. Deleting a file of a lower layer only hides the "
            "file and frees nothing.",
            "To free that space, delete the files in the layer itself: for a container, in its "
            "image.",
        )
        for path in overlays[:PATHS_NAMED]
    ]


LOWER_LAYER = FindingType(FindingKind("lower-layer"), "on an overlay", _detect_lower_layer)


def _detect_shared_blocks(evidence: Evidence) -> list[Finding]:
    space = None if evidence.system is None else evidence.system.shared_space
    if space is None or not space.shared_bytes:
        return []
    examined = ""
    if not space.is_complete:
        allocated = bytes_iec(evidence.counted.totals.allocated_bytes)
        examined = (
            f" {counted(space.examined_files, 'file was', 'files were')} examined, with "
            f"{bytes_iec(space.examined_bytes)} of {allocated}; other files may share blocks, too."
        )
    return [
        Finding(
            FindingKind("shared-blocks"),
            Severity.INFO,
            evidence.root,
            {"shared_bytes": space.shared_bytes, "examined_bytes": space.examined_bytes},
            f"Reflink copies or snapshots share {bytes_iec(space.shared_bytes)} of these files. "
            f"That space is freed only when the last copy or snapshot is deleted.{examined}",
            "Search for copies made with cp --reflink; to list snapshots: btrfs subvolume list -s "
            "MOUNTPOINT.",
        )
    ]


SHARED_BLOCKS = FindingType(FindingKind("shared-blocks"), "shared blocks", _detect_shared_blocks)


_CEPH_TYPES = ("ceph", "fuse.ceph", "fuse.ceph-fuse")


def _detect_freed_later(evidence: Evidence) -> list[Finding]:
    places = () if evidence.system is None else evidence.system.places
    return [
        Finding(
            FindingKind("freed-later"),
            Severity.INFO,
            place.path,
            {},
            "This directory is on CephFS, which frees the space of deleted files later: the "
            "metadata server puts them into its purge queue.",
            "After a deletion, wait until the free space (df) no longer grows.",
            note="CephFS frees the space of deleted files later",
        )
        for place in places[:PATHS_NAMED]
        if place.mount.filesystem in _CEPH_TYPES
    ]


FREED_LATER = FindingType(FindingKind("freed-later"), "space freed later", _detect_freed_later)
