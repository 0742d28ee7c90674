"""Detect names that readdir returns and stat rejects: a damaged or odd file system."""

import os
import time
from collections.abc import Iterator, Sequence

from tui_fs.linux.directories import open_directory
from tui_fs.model.finding import Finding, FindingKind, Severity
from tui_fs.model.paths import PathStr, displayable
from tui_fs.survey.findings.base import PATHS_NAMED, Evidence, FindingType
from tui_fs.survey.records import DirectoryFlag

_LIMIT_S = 1.0
"""Time to search all directories for the names that had vanished at their stat."""
_ROUNDS, _ROUND_S = 5, 0.002


def _detect(evidence: Evidence) -> list[Finding]:
    """Return a finding for each such name of a finished survey, at most `PATHS_NAMED`.

    A name that is no longer listed is not reported. If names vanished during the survey, this
    reads directories again for `_LIMIT_S`; it misses names in directories not reached by then.
    """
    counted = evidence.counted
    if not evidence.is_finished or not (counted.vanished or counted.unreadable):
        return []
    unreadable = counted.paths_with(DirectoryFlag.UNREADABLE, PATHS_NAMED) if evidence.paths else ()
    directories = dict.fromkeys(path for path in unreadable if os.access(path, os.X_OK))
    findings = [finding for path in directories for finding in _in_directory(path)]
    if counted.vanished:
        findings += [
            finding
            for path in _directories(evidence.paths, time.monotonic() + _LIMIT_S)
            if path not in directories
            for finding in _in_directory(path)
        ]
    return findings[:PATHS_NAMED]


LISTED_ONLY = FindingType(FindingKind("listed-only"), "stat fails", _detect)


def _directories(roots: Sequence[str], until_s: float) -> Iterator[PathStr]:
    """Yield the directories of trees, each on its root's file system, until `until_s`."""
    waiting = [PathStr(root) for root in roots]
    while waiting and time.monotonic() < until_s:
        path = waiting.pop()
        yield path
        try:
            device = os.lstat(path).st_dev
            with os.scandir(path) as entries:
                waiting += [
                    PathStr(entry.path)
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False)
                    and entry.stat(follow_symlinks=False).st_dev == device
                ]
        except OSError:
            continue  # the survey reports a directory that cannot be read


def _in_directory(path: str) -> list[Finding]:
    try:
        descriptor = open_directory(path)
    except OSError:
        return []  # the survey reports a directory that cannot be read
    try:
        reasons = _reasons(descriptor)
    except OSError:
        return []
    finally:
        os.close(descriptor)
    return [_finding(PathStr(os.path.join(path, name)), reason) for name, reason in reasons.items()]


def _finding(path: PathStr, reason: str) -> Finding:
    return Finding(
        FindingKind("listed-only"),
        Severity.WARNING,
        path,
        {},
        f"The directory lists this name, but the entry cannot be examined: {reason}. The entry "
        "is not counted, and a directory that lists it cannot be removed.",
        "Check the file system (fsck), or the server of a network or FUSE file system.",
        remains=f"{displayable(path)} is listed but cannot be examined",
    )


def _reasons(directory: int) -> dict[str, str]:
    """Return the names of an open directory that stat rejects, each with the reason.

    A name that another process removes and recreates can also fail a stat, but not in every round
    with the same inode number.
    """
    inodes = _listed(directory)
    reasons = {name: reason for name in inodes if (reason := _reason(directory, name))}
    for _ in range(_ROUNDS - 1):
        if not reasons:
            break
        time.sleep(_ROUND_S)
        again = _listed(directory)
        reasons = {
            name: reason
            for name in reasons
            if again.get(name) == inodes[name] and (reason := _reason(directory, name))
        }
    return reasons


def _listed(directory: int) -> dict[str, int]:
    with os.scandir(directory) as entries:
        return {entry.name: entry.inode() for entry in entries}


def _reason(directory: int, name: str) -> str:
    """Return why stat rejects a name; empty if it does not."""
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError as error:
        return os.strerror(error.errno or 0)
    return ""
