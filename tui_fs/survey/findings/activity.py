"""Find activity in the tree during the survey: processes in it, and changing directories."""

import os
import time
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from tui_fs.linux.open_files import Holder, OpenFileScan, scan_open_files
from tui_fs.linux.processes import ancestry
from tui_fs.model.finding import Finding, FindingKind, Severity
from tui_fs.model.paths import PathStr, displayable
from tui_fs.model.survey import Ranking
from tui_fs.model.units import counted
from tui_fs.survey.findings.base import Evidence, FindingType, flagged
from tui_fs.survey.records import DirectoryFlag

_NAMED = 5
_DIRECTORIES_EXAMINED = 20
_EXAMINED_FROM_ENTRIES = 1_000


def find_holders(
    paths: Sequence[str],
    device: int,
    families: Collection[int],
    *,
    by_descriptor_only: bool = False,
) -> OpenFileScan:
    """Return the processes in the trees, and the deleted files of their file system.

    Args:
        device: st_dev of the file system.
        families: processes to leave out, with all their descendants. This process is always left
            out, because it opens the directories itself.
        by_descriptor_only: see `scan_open_files`.
    """
    everyone = scan_open_files(
        paths,
        device,
        clock=time.thread_time,  # the load of the machine must not hide a process
        by_descriptor_only=by_descriptor_only,
    )

    def is_other(holder: Holder) -> bool:
        is_own = holder.pid == os.getpid()
        return not is_own and ancestry("/proc", holder.pid).isdisjoint(families)

    files = (
        replace(file, holders=tuple(filter(is_other, file.holders))) for file in everyone.held_files
    )
    return replace(
        everyone,
        living=tuple(resident for resident in everyone.living if is_other(resident.holder)),
        held_files=tuple(file for file in files if file.holders),
    )


class _OwnSessions:
    """Processes started by the user: in the session of this process or of one of its ancestors.

    In a container that was entered from outside, a session that began outside has the id 0, which
    identifies nothing. A process then belongs to the user if it shares an ancestor with this
    process other than the first process.
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


def _detect_in_use(evidence: Evidence) -> list[Finding]:
    if evidence.system is None:
        return []
    occupation = evidence.system.occupation
    holders = {
        holder.pid: holder
        for holder in (
            *(resident.holder for resident in occupation.living),
            *(holder for file in occupation.held_files for holder in file.holders),
        )
        if not holder.is_own
    }
    if not holders:
        return []
    written = [
        (file, holder)
        for file in occupation.held_files
        for holder in file.holders
        if holder.writes and not holder.is_own
    ]
    own = _OwnSessions()
    is_foreign = any(holder.pid not in own for _, holder in written)
    names = [f"{displayable(holder.command)} ({holder.pid})" for holder in holders.values()]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    shown = ", ".join(names[:_NAMED]) + more
    verb = "process uses" if len(holders) == 1 else "processes use"
    meaning = f"{counted(len(holders), verb, verb)} this tree: {shown}."
    if written:
        file, holder = written[0]
        meaning += f" {displayable(holder.command)} writes to {displayable(file.path)}."
    root = PathStr(evidence.paths[0])
    return [
        Finding(
            FindingKind("in-use"),
            Severity.WARNING if is_foreign else Severity.INFO,
            written[0][0].path if written and written[0][0].path else root,
            {
                "processes": len(holders),
                "open_files": len(occupation.held_files),
                "written_files": len(written),
                "unseen_processes": occupation.unseen_processes,
            },
            meaning,
            "The space of an open file is freed only when the last process closes it: first "
            "stop the processes that write.",
        )
    ]


IN_USE = FindingType(FindingKind("in-use"), "in use", _detect_in_use, is_activity=True)

_CHANGING = (
    "Another process is changing this directory; counts are a snapshot.",
    "Stop the writer first, or set the directory aside (tui-fs aside).",
)


def _detect_refilled(evidence: Evidence) -> list[Finding]:
    kind, severity = FindingKind("refilled"), Severity.WARNING
    counted_ = evidence.counted
    findings = flagged(counted_, DirectoryFlag.CHANGED, kind, severity, *_CHANGING)
    if evidence.system is None:
        return findings
    changed = set(counted_.paths_with(DirectoryFlag.CHANGED))
    for directory in counted_.table.ranked(Ranking.ENTRIES, _DIRECTORIES_EXAMINED):
        if directory.entries < _EXAMINED_FROM_ENTRIES:
            break
        if directory.path in changed:
            continue
        try:
            changed_s = os.lstat(directory.path).st_mtime
        except OSError:
            continue  # removed, or too deep for a path; the walkers have compared it already
        if evidence.system.began_at_s <= changed_s <= time.time():
            numbers = {"entries": directory.entries}
            findings.append(Finding(kind, severity, directory.path, numbers, *_CHANGING))
    return findings


REFILLED = FindingType(
    FindingKind("refilled"), "being refilled", _detect_refilled, unit="", is_activity=True
)
