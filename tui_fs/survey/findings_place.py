"""Pathologies that lie around a tree: its file system, who is at work in it, how it is stored.

None of this costs a call for every file: one statvfs, one look through /proc, and a look at the
few largest files and directories.
"""

import os
import time
from collections.abc import Collection, Sequence
from dataclasses import replace

from tui_fs.linux.extents import extents_of
from tui_fs.linux.filesystem import FileSystem, file_system_of
from tui_fs.linux.open_files import HeldFile, Holder, Occupation, look_who_holds
from tui_fs.linux.process_files import ancestry
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.survey import Finding, Ranking, Severity
from tui_fs.model.units import bytes_iec, count, counted
from tui_fs.survey.collector import Collector
from tui_fs.survey.records import DirectoryFlag

_INODES_WARNING_PERCENT, _INODES_CRITICAL_PERCENT = 10, 2
_SPACE_WARNING_PERCENT, _SPACE_CRITICAL_PERCENT = 5, 1
_DELETED_WARNING_BYTES = 100 << 20
_FILES_LOOKED_AT = 20
_EXTENTS, _EXTENTS_WARNING = 1_000, 10_000
_SMALL_EXTENT_BYTES = 1 << 20
_WATCHED = 20
_WATCHED_FROM_ENTRIES = 1_000
_NAMED = 5


def place_findings(
    counted_: Collector, paths: Sequence[str], occupation: Occupation, began_at_s: float
) -> list[Finding]:
    """Return what lies around the trees, in no order.

    Args:
        paths: the surveyed directories.
        began_at_s: when counting began, in seconds since the epoch.
    """
    filesystem = file_system_of(paths[0])
    root = PathStr(paths[0])
    room: list[Finding] = []
    if not filesystem.is_read_only:  # an image that is never written to is full by nature
        room = [*_inodes(filesystem, counted_, root), *_space(filesystem, root)]
    return [
        *room,
        *_in_use(occupation, root),
        *_deleted_but_open(occupation, root),
        *_fragmented(counted_),
        *_refilled(counted_, began_at_s),
    ]


def who_holds(paths: Sequence[str], device: int, families: Collection[int]) -> Occupation:
    """Return who is at work in the trees, and the deleted files of their file system.

    Args:
        device: of the file system.
        families: processes that are left out, with all that descend from them.
    """
    found = look_who_holds(paths, device)

    def is_other(holder: Holder) -> bool:
        return ancestry("/proc", holder.pid).isdisjoint(families)

    others = (replace(file, holders=tuple(filter(is_other, file.holders))) for file in found.held)
    return replace(
        found,
        living=tuple(one for one in found.living if is_other(one.holder)),
        held=tuple(file for file in others if file.holders),
    )


class _OwnSessions:
    """What the person has started: the sessions of this process and of all it descends from.

    In a container that was entered from outside, a session that began there has the number 0,
    which says nothing: then it counts whether two processes share an ancestor besides the first
    process of all.
    """

    def __init__(self) -> None:
        self._ancestors = ancestry("/proc", os.getpid()) - {1}
        self._sessions = frozenset(filter(None, map(_session, self._ancestors)))

    def __contains__(self, pid: int) -> bool:
        session = _session(pid)
        if session:
            return session in self._sessions
        return not self._ancestors.isdisjoint(ancestry("/proc", pid))


def _session(pid: int) -> int:
    """Return the session of a process, 0 if it has ended or if the session began outside."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


def _inodes(filesystem: FileSystem, counted_: Collector, root: PathStr) -> list[Finding]:
    total, free = filesystem.total_inodes, filesystem.free_inodes
    if not total or free is None or free * 100 >= total * _INODES_WARNING_PERCENT:
        return []
    holders = counted_.table.ranked(Ranking.INODES, 3)
    where = ", ".join(f"{displayable(one.path)} ({count(one.inodes)})" for one in holders)
    return [
        Finding(
            "inodes-low",
            _grade(free, total, _INODES_CRITICAL_PERCENT),
            root,
            {"free_inodes": free, "total_inodes": total},
            f"Only {count(free)} of {count(total)} inodes of the file system are free: without "
            f"one no file can be created, whatever space is left. Most are in {where}.",
            "Delete directories with many entries; their sizes do not matter here.",
        )
    ]


def _space(filesystem: FileSystem, root: PathStr) -> list[Finding]:
    total, available = filesystem.total_bytes, filesystem.available_bytes
    if not total or available is None or available * 100 >= total * _SPACE_WARNING_PERCENT:
        return []
    meaning = f"Only {bytes_iec(available)} of {bytes_iec(total)} can still be used."
    reserved = (filesystem.free_bytes or 0) - available
    if reserved > available:
        meaning += f" {bytes_iec(reserved)} more are kept for root."
    return [
        Finding(
            "space-low",
            _grade(available, total, _SPACE_CRITICAL_PERCENT),
            root,
            {"available_bytes": available, "total_bytes": total, "reserved_bytes": reserved},
            meaning,
            "Sort by allocated bytes to see what takes the most.",
        )
    ]


def _grade(left: int, total: int, critical_percent: int) -> Severity:
    is_critical = left * 100 < total * critical_percent
    return Severity.CRITICAL if is_critical else Severity.WARNING


def _in_use(occupation: Occupation, root: PathStr) -> list[Finding]:
    holders = {
        holder.pid: holder
        for holder in (
            *(resident.holder for resident in occupation.living),
            *(holder for file in occupation.held for holder in file.holders),
        )
        if not holder.is_own
    }
    if not holders:
        return []
    written = [
        (file, holder)
        for file in occupation.held
        for holder in file.holders
        if holder.writes and not holder.is_own
    ]
    own = _OwnSessions()
    is_grave = any(holder.pid not in own for _, holder in written)
    names = [f"{displayable(one.command)} ({one.pid})" for one in holders.values()]
    shown = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
    meaning = f"{counted(len(holders), 'process', 'processes')} at work in it: {shown}."
    if written:
        file, holder = written[0]
        meaning += f" {displayable(holder.command)} writes {displayable(file.path)}."
    return [
        Finding(
            "in-use",
            Severity.WARNING if is_grave else Severity.INFO,
            written[0][0].path if written and written[0][0].path else root,
            {
                "processes": len(holders),
                "open_files": len(occupation.held),
                "written_files": len(written),
                "unseen_processes": occupation.unseen_processes,
            },
            meaning,
            "The space of an open file comes back only when its last process closes it: stop "
            "those who write first.",
        )
    ]


def _deleted_but_open(occupation: Occupation, root: PathStr) -> list[Finding]:
    held = sum(file.allocated_bytes or 0 for file in occupation.deleted)
    if not held:
        return []
    largest = occupation.deleted[0]
    return [
        Finding(
            "deleted-but-open",
            Severity.WARNING if held >= _DELETED_WARNING_BYTES else Severity.INFO,
            root,
            {"files": len(occupation.deleted), "held_bytes": held},
            f"{counted(len(occupation.deleted), 'deleted file', 'deleted files')} of this file "
            f"system still take {bytes_iec(held)}, because processes hold them open; the "
            f"largest: {_who(largest)}.",
            "Restart those processes; no deletion brings this space back.",
        )
    ]


def _who(file: HeldFile) -> str:
    holder = file.holders[0]
    size = bytes_iec(file.allocated_bytes or 0)
    return f"{size} by {displayable(holder.command)} ({holder.pid}), {displayable(file.path)}"


def _fragmented(counted_: Collector) -> list[Finding]:
    found: list[Finding] = []
    for _, row, name, file in sorted(counted_.big_files, reverse=True)[:_FILES_LOOKED_AT]:
        path = counted_.path_of_file(row, name)
        extents = extents_of(path)
        if extents is None or extents < _EXTENTS:
            continue
        if file.allocated_bytes >= extents * _SMALL_EXTENT_BYTES:
            continue
        found.append(
            Finding(
                "fragmented",
                Severity.WARNING if extents >= _EXTENTS_WARNING else Severity.INFO,
                path,
                {"extents": extents, "allocated_bytes": file.allocated_bytes},
                f"A file in {count(extents)} pieces; giving each back takes time, and the one "
                "call that removes it cannot be interrupted.",
                "Truncate it in steps first, if others must not wait for the disk.",
            )
        )
    return found


def _refilled(counted_: Collector, began_at_s: float) -> list[Finding]:
    found: list[Finding] = []
    told = set(counted_.paths_with(DirectoryFlag.CHANGED))
    for directory in counted_.table.ranked(Ranking.ENTRIES, _WATCHED):
        if directory.entries < _WATCHED_FROM_ENTRIES:
            break
        if directory.path in told:
            continue
        try:
            changed_s = os.lstat(directory.path).st_mtime
        except OSError:
            continue  # gone, or too deep for a path: the walkers have compared it anyway
        if began_at_s <= changed_s <= time.time():
            found.append(
                Finding(
                    "refilled",
                    Severity.WARNING,
                    directory.path,
                    {"entries": directory.entries},
                    "Somebody creates or deletes names here while you look; the counts are of a "
                    "moment.",
                    "Stop whoever writes here first, or set the directory aside (tui-fs aside).",
                )
            )
    return found
