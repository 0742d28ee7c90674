"""Explains why the freed space differs from the expected space.

Kinds of causes:
- facts, with exact amounts: deleted files that processes hold open, the reserve of ext4;
- predictions of the survey: hard links with names outside the tree;
- guesses, marked as guesses, for the rest of the difference, and never for more than that rest.

Delayed freeing is no cause here: `linux.filesystem.settle` has waited until two readings agreed.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from tui_fs.linux.filesystem import FileSystem, file_system_of
from tui_fs.linux.open_files import (
    LIMIT_S,
    HeldFile,
    Holder,
    HoldKind,
    OpenFileScan,
    scan_open_files,
)
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable, is_within, shell_quoted
from tui_fs.model.plan import Expected, Plan
from tui_fs.model.space import Discrepancy, DiscrepancyKind, Space
from tui_fs.model.units import bytes_iec, count, counted

TOLERANCE_BYTES = 1 << 20
"""A smaller difference is indistinguishable from metadata and from background writes."""
TOLERANCE_SHARE = 0.01
TOLERANCE_INODES = 100
MOST_HOLDERS = 10
"""A report names this many holders individually and sums up the rest."""

_MOST_PIDS = 5  # of processes that hold the same files
_EXT = frozenset(("ext2", "ext3", "ext4"))
_SHARING = frozenset(("btrfs", "zfs", "bcachefs"))
_MAY_SHARE = frozenset(("xfs",))
_INODES_AS_NEEDED = frozenset(("xfs", *_SHARING))
"""On these the number of free inodes follows from the free bytes, or does not exist."""
_COPIES = "Check for copies made with 'cp --reflink', or by a backup or container tool."
_SNAPSHOT_LISTS = {
    "btrfs": "'btrfs subvolume list -s MOUNTPOINT' lists the snapshots.",
    "zfs": "'zfs list -t snapshot' lists the snapshots.",
    "bcachefs": "'bcachefs subvolume list MOUNTPOINT' lists the snapshots.",
}


def explain_freed_space(
    *,
    before: Space | None,
    after: Space | None,
    expected: Expected,
    finished: bool,
    deleted_entries: int | None,
    file_system: FileSystem,
    targets: Sequence[str],
    held_before: OpenFileScan,
    held_after: OpenFileScan,
) -> tuple[Discrepancy, ...]:
    """Return the causes, the gravest first; none if the freed space is as expected.

    It is as expected if the difference is at most 1 % or 1 MiB, whichever is more. Held files of
    the targets and the reserve are reported even then, from 1 MiB on: they are facts, and 1 % of
    a large tree would hide them.

    Args:
        before, after: the space of the file system; None where it did not answer.
        expected: of all targets together.
        finished: everything expected is gone; otherwise the missing amount is unknown, and only
            facts are reported.
        deleted_entries: counted entries, None where nothing counted them.
        file_system: of the targets, read after the end.
        targets: absolute paths.
        held_before, held_after: scans of this file system, before the start and after the end.
    """
    known = {(file.device, file.inode) for file in held_before.deleted}
    new = [file for file in held_after.deleted if (file.device, file.inode) not in known]
    kept = [file for file in new if _is_of(file, targets)]
    kept_files = set(kept)
    others = [file for file in held_after.deleted if file not in kept_files]
    account = _Account.of(before, after, expected, finished)
    causes: list[Discrepancy] = []
    kept_bytes = _sum(kept)
    is_much = kept_bytes >= TOLERANCE_BYTES or len(kept) > TOLERANCE_INODES
    if is_much or any(file.allocated_bytes is None for file in kept):
        causes += _held(kept, "of this tree", DiscrepancyKind.HELD_OPEN)
    account.explain(kept_bytes)
    causes += _reserved(before, after, file_system)
    shared = account.explain(expected.shared_bytes)
    if shared >= TOLERANCE_BYTES:
        causes.append(_shared(shared, file_system.kind))
    left = account.explain(
        expected.freed_bytes_max - expected.freed_bytes_min - expected.shared_bytes
    )
    if left >= TOLERANCE_BYTES and expected.is_on_overlay:
        causes.append(_lower_layers(left))
    elif left >= TOLERANCE_BYTES:
        causes.append(_links_outside(left, file_system.mount_point))
    causes += _unexplained(account, file_system.kind, held_after)
    if account.was_missing:
        large = [file for file in others if (file.allocated_bytes or 0) >= TOLERANCE_BYTES]
        causes += _held(large, "of this file system", DiscrepancyKind.HELD_OPEN_ELSEWHERE)
    entries = deleted_entries
    if entries is None and finished and expected.complete:
        entries = expected.totals.entries
    if expected.is_on_overlay:
        return tuple(causes)  # how many of these inodes are in the upper layer is unknown
    return (*causes, *_inodes(before, after, entries, expected, len(kept), file_system.kind))


class _Account(Struct):
    """The bytes that are missing and not yet explained."""

    tolerance: int = 0
    missing: int = 0
    was_missing: bool = False

    @classmethod
    def of(
        cls,
        before: Space | None,
        after: Space | None,
        expected: Expected,
        finished: bool,
    ) -> "_Account":
        if before is None or after is None or not finished:
            return cls()
        got, most = after.unused_bytes - before.unused_bytes, expected.freed_bytes_max
        tolerance = max(TOLERANCE_BYTES, int(most * TOLERANCE_SHARE))
        # If little was expected, a difference shows only that others use the file system.
        missing = most - got if min(most, most - got) > tolerance else 0
        return cls(tolerance, missing, missing > 0)

    def explain(self, most: int) -> int:
        """Subtract up to `most` bytes from the missing ones; return how many were subtracted."""
        explained = min(self.missing, max(0, most))
        self.missing -= explained
        return explained


def _is_of(file: HeldFile, targets: Sequence[str]) -> bool:
    """Return whether a file deleted during the job was in a target.

    A file has no path if that is too long for the kernel to report. Few trees are that deep, so
    the file most likely belongs to this one.
    """
    return not file.path or any(is_within(file.path, target) for target in targets)


def _sum(files: Iterable[HeldFile]) -> int:
    return sum(file.allocated_bytes or 0 for file in files)


def _held(files: Sequence[HeldFile], whose: str, kind: DiscrepancyKind) -> list[Discrepancy]:
    """Return a cause for each group of processes with the same files: no byte counts twice."""
    groups: dict[tuple[int, ...], list[HeldFile]] = {}
    for file in files:
        pids = tuple(sorted({holder.pid for holder in file.holders}))
        groups.setdefault(pids, []).append(file)
    ordered = sorted(groups.items(), key=lambda group: -_sum(group[1]))
    causes = [_held_by(pids, group, whose, kind) for pids, group in ordered[:MOST_HOLDERS]]
    rest = [file for _, group in ordered[MOST_HOLDERS:] for file in group]
    if rest:
        number = len(ordered) - MOST_HOLDERS
        sentence = (
            "Held open by "
            f"{counted(number, 'other process or group', 'other processes or groups')}: "
            f"{counted(len(rest), 'deleted file', 'deleted files')} {whose}, "
            f"{bytes_iec(_sum(rest))} in total."
        )
        advice = "lsof +L1 lists deleted files that are open, with the processes that hold them."
        causes.append(Discrepancy(kind, sentence, advice, _sum(rest), len(rest)))
    return causes


def _held_by(
    pids: tuple[int, ...], files: list[HeldFile], whose: str, kind: DiscrepancyKind
) -> Discrepancy:
    largest = max(files, key=lambda file: file.allocated_bytes or 0)
    first = min(largest.holders, key=lambda holder: holder.pid)
    command = displayable(first.command)
    name = f"{command} (process {first.pid})"
    if len(pids) > 1:
        listed = ", ".join(map(str, pids[1 : _MOST_PIDS + 1]))
        more = (
            f" and {count(len(pids) - 1 - _MOST_PIDS)} more" if len(pids) > _MOST_PIDS + 1 else ""
        )
        name += f", together with {'process' if len(pids) == 2 else 'processes'} {listed}{more},"
    is_known = any(file.allocated_bytes is not None for file in files)
    size = _sum(files) if is_known else None
    amount = "an unknown amount of space" if size is None else bytes_iec(size)
    path = displayable(largest.path) if largest.path else "at an unknown location (path too long)"
    verb = "holds" if len(pids) == 1 else "hold"
    held_files = f"{count(len(files))} deleted files {whose} open, the largest {path}"
    closed = "it is" if len(files) == 1 else "they are"
    if len(files) == 1:
        held_files = f"a deleted file {whose} open, {path}"
    sentence = f"{name} {verb} {held_files}: {amount} is freed only when {closed} closed."
    advice = _release_advice(command, first, largest)
    return Discrepancy(kind, sentence, advice, size, len(files), first.pid, command)


def _release_advice(command: str, first: Holder, file: HeldFile) -> str:
    if any(holder.is_own for holder in file.holders):
        return (
            "This is tui-fs itself or the process that started it: the space is freed when that "
            "process ends or, if it is a shell, changes to another directory."
        )
    if all(holder.how in (HoldKind.CWD, HoldKind.ROOT) for holder in file.holders):
        return f"Restart {command}, or let it change to another directory."
    restart = (
        f"Restart {command} ('systemctl status {first.pid}' names its service), or make it "
        "reopen its files."
    )
    is_mapped = any(holder.how is not HoldKind.DESCRIPTOR for holder in file.holders)
    if first.descriptor is None or is_mapped:
        return restart  # truncating a mapped file kills its readers (SIGBUS)
    return (
        f"{restart} If no process needs the content, root can empty the file while it stays "
        f"open: ': > /proc/{first.pid}/fd/{first.descriptor}'."
    )


def _reserved(
    before: Space | None, after: Space | None, filesystem: FileSystem
) -> list[Discrepancy]:
    """Report the freed space that only root may use (s_r_blocks_count)."""
    if before is None or after is None:
        return []
    swallowed = after.reserved_bytes - before.reserved_bytes
    if filesystem.kind not in _EXT or swallowed < TOLERANCE_BYTES:
        return []
    # The reserve is still filling up while other users have no space available.
    reserve, available = after.reserved_bytes, after.free_bytes
    at_least = "" if available else "at least "
    percent = f" ({100 * reserve / filesystem.total_bytes:.1f} %)" if filesystem.total_bytes else ""
    sentence = (
        f"{bytes_iec(swallowed)} of the freed space went into the space reserved for root, "
        f"{at_least}{bytes_iec(reserve)}{percent} of this {filesystem.kind}: other users can use "
        f"{bytes_iec(available)} of the {bytes_iec(after.unused_bytes)} that is free."
    )
    advice = (
        f"'{shell_quoted(('tune2fs', '-m', '1', filesystem.source))}' reduces the reserve to 1 % "
        "of the file system, at once and without unmounting."
    )
    return [Discrepancy(DiscrepancyKind.RESERVED, sentence, advice, swallowed)]


def _shared(missing: int, kind: str) -> Discrepancy:
    return Discrepancy(
        DiscrepancyKind.SNAPSHOTS,
        f"{bytes_iec(missing)} less was freed than the files occupied, because they shared blocks: "
        "with each other, or with reflink copies or snapshots that still use them.",
        _SNAPSHOT_LISTS.get(kind, _COPIES),
        missing,
    )


def _lower_layers(missing: int) -> Discrepancy:
    return Discrepancy(
        DiscrepancyKind.OVERLAY,
        f"Up to {bytes_iec(missing)} is in a lower layer of this overlay: the deletion hides the "
        "files and frees nothing.",
        "To free that space, delete the files in the layer itself: for a container, in its image.",
        missing,
    )


def _links_outside(missing: int, mount_point: str) -> Discrepancy:
    sentence = (
        f"Up to {bytes_iec(missing)} belongs to files that have other names outside the tree "
        "(hard links): it is freed when the last of their names is deleted."
    )
    find = shell_quoted(("find", mount_point or "/", "-xdev", "-inum", "NUMBER"))
    advice = (
        "Before a deletion, 'find TREE -type f -links +1 -printf \"%i %p\\n\"' lists such files "
        f"with their inode numbers, and '{find}' (or -samefile FILE) finds all names of one file."
    )
    return Discrepancy(DiscrepancyKind.LINKS_OUTSIDE, sentence, advice, missing)


def _unexplained(account: _Account, kind: str, scan: OpenFileScan) -> list[Discrepancy]:
    """Return guesses for the bytes still missing; only the likeliest has their number."""
    missing = account.missing
    if missing <= account.tolerance:
        return []
    unseen = ""
    if scan.unseen_processes or not scan.complete:
        number = counted(scan.unseen_processes, "process", "processes")
        unseen = (
            f" {number} could not be inspected and may hold deleted files open; check with "
            "'lsof +L1' as root on the host."
            if scan.unseen_processes
            else " Not all processes could be inspected in time; 'lsof +L1' lists deleted files "
            "that are open."
        )
    amount = bytes_iec(missing)
    start = f"{amount} is unaccounted for; probably other processes wrote about as"
    wrote = f"{start} much to this file system while the job ran."
    perhaps_wrote = "Or other processes wrote about as much to this file system while the job ran."
    look_for_writers = (
        "Check whether the free space keeps falling. Deleted files that the kernel uses, such as "
        f"loop devices ('losetup -l') or swap ('swapon --show'), also occupy space.{unseen}"
    )
    if kind in _SHARING:
        shared = (
            f"Up to {amount} may be shared with snapshots or reflink copies on this {kind}: shared "
            "blocks are freed when their last owner is deleted."
        )
        return [
            Discrepancy(DiscrepancyKind.SNAPSHOTS, shared, _SNAPSHOT_LISTS[kind], missing),
            Discrepancy(DiscrepancyKind.OTHERS_WROTE, perhaps_wrote, look_for_writers),
        ]
    causes = [Discrepancy(DiscrepancyKind.OTHERS_WROTE, wrote, look_for_writers, missing)]
    if kind in _MAY_SHARE:
        copied = (
            f"Or blocks are shared with reflink copies, which {kind} supports: they are freed when "
            "their last owner is deleted."
        )
        causes.append(Discrepancy(DiscrepancyKind.SNAPSHOTS, copied, _COPIES))
    return causes


def _inodes(
    before: Space | None,
    after: Space | None,
    entries: int | None,
    expected: Expected,
    held_files: int,
    kind: str,
) -> list[Discrepancy]:
    if before is None or after is None or entries is None or kind in _INODES_AS_NEEDED:
        return []
    if before.free_inodes is None or after.free_inodes is None:
        return []
    missing = entries - (after.free_inodes - before.free_inodes) - held_files
    # Deleted entries account for at most `entries` missing inodes; others created the rest.
    if min(missing, entries) <= max(TOLERANCE_INODES, entries * TOLERANCE_SHARE):
        return []
    others = "other processes created files meanwhile"
    if expected.linked_names:
        others = f"several names of one file (hard links) share an inode, or {others}"
    sentence = f"{count(missing)} fewer inodes were freed than entries were deleted: {others}."
    advice = "'df -i' shows how many are free now."
    return [Discrepancy(DiscrepancyKind.INODES, sentence, advice, None, missing)]


class SpaceWatch:
    """Scans for open files on the targets' file systems before the start and after the end.

    Nothing is scanned for a deletion so small that no difference could be reported.

    Attributes:
        is_small: no difference could be reported.

    Args:
        places: for each device a directory on it that the job does not delete.
        watched: the places whose free space is watched, one on each file system.
    """

    def __init__(self, plan: Plan, places: Mapping[int, str], watched: Sequence[str]) -> None:
        self._plan = plan
        self._devices = tuple(places)
        self._watched = tuple(watched)
        expected = plan.expected
        self.is_small = (
            expected.complete
            and expected.freed_bytes_max < TOLERANCE_BYTES
            and expected.totals.entries <= TOLERANCE_INODES
        )
        self._before = self._scan()

    def causes(
        self,
        before: Space | None,
        after: Space | None,
        deleted_entries: int | None,
        *,
        is_finished: bool,
    ) -> tuple[Discrepancy, ...]:
        """Return why the freed space differs from the expected space.

        With several file systems only their expected sum is known, so only facts are reported of
        each.
        """
        is_single = len(self._watched) == 1
        held_after = self._scan()
        all_causes: dict[Discrepancy, None] = {}  # a scan covers all file systems: drop repeats
        for place in self._watched:
            try:
                filesystem = file_system_of(place)
            except (OSError, BadInput) as error:  # the job reports its end in any case
                sentence = f"The file system of {displayable(place)} could not be examined: {error}"
                all_causes[Discrepancy(DiscrepancyKind.NOT_LOOKED_AT, sentence, "")] = None
                continue
            causes = explain_freed_space(
                before=before if is_single else None,
                after=after if is_single else None,
                expected=self._plan.expected,
                finished=is_finished and is_single,
                deleted_entries=deleted_entries,
                file_system=filesystem,
                targets=self._plan.paths,
                held_before=self._before,
                held_after=held_after,
            )
            all_causes |= dict.fromkeys(causes)
        return tuple(all_causes)

    def _scan(self) -> OpenFileScan:
        """Return the holders of files on any of the devices; the scans share one time limit."""
        if self.is_small:
            return OpenFileScan()
        scans: list[OpenFileScan] = []
        for device in self._devices:
            try:
                limit_s = LIMIT_S / len(self._devices)
                scans.append(scan_open_files(self._plan.paths, device, limit_s=limit_s))
            except (OSError, MemoryError, BadInput):
                scans.append(OpenFileScan(complete=False))  # a failed scan does not stop a deletion
        return OpenFileScan(
            living=scans[0].living,
            held_files=scans[0].held_files,
            deleted=tuple(file for scan in scans for file in scan.deleted),
            unseen_processes=max(scan.unseen_processes for scan in scans),
            unnamed=max(scan.unnamed for scan in scans),
            complete=all(scan.complete for scan in scans),
        )
