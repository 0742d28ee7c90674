"""Detect conditions that block a deletion or make it incomplete."""

import itertools
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tui_fs.linux.external_uses import ExternalUses, FoundUse, UseKind
from tui_fs.linux.mounts import MountTable, mounts_below
from tui_fs.model.finding import Finding, FindingKind, Severity
from tui_fs.model.paths import PathStr, displayable, is_within
from tui_fs.model.units import counted
from tui_fs.survey.findings.base import (
    PATHS_NAMED,
    Evidence,
    FindingType,
    flag_type,
    flagged,
    locate,
    locked,
)
from tui_fs.survey.records import DirectoryFlag


def mount_findings(mounts: Iterable[PathStr]) -> list[Finding]:
    """Return a finding for each mount point in the tree."""
    return [
        Finding(
            FindingKind("mount-inside"),
            Severity.CRITICAL,
            mount,
            {},
            "Another file system or a bind mount is mounted here; it was not counted.",
            "Unmount it before you delete any directory above it.",
            blocks=f"{displayable(mount)} is a mount point inside the target: unmount it first",
        )
        for mount in mounts
    ]


MOUNT_INSIDE = FindingType(
    FindingKind("mount-inside"),
    "mounted here",
    lambda evidence: mount_findings(evidence.mounts),
    is_counted=False,
)


class UsesFound(Struct, frozen=True):
    """External uses, and the number of processes that this user may not inspect."""

    uses: tuple[FoundUse, ...] = ()
    unchecked_processes: int = 0


def find_external_uses(paths: Sequence[str], mounts: MountTable) -> UsesFound:
    """Return the uses of directories by mounts, overlays, loop devices and swap files.

    Mount points inside the directories are left out: they are findings of their own.

    Raises:
        OSError: one of the directories cannot be opened.
        BadInput: the mount table of another process cannot be parsed.
    """
    everything = ExternalUses.read(mounts)
    uses = itertools.chain.from_iterable(_uses_of(path, mounts, everything) for path in paths)
    first = tuple(itertools.islice(uses, PATHS_NAMED))
    return UsesFound(first, everything.unseen_processes)


def _uses_of(path: str, mounts: MountTable, everything: ExternalUses) -> Iterator[FoundUse]:
    located = locate(path, mounts)
    if located is None:
        return
    canonical = located.canonical
    mounted = {below.mount_point for below in mounts_below(canonical, mounts)}
    for use in everything.of(canonical, located.mount):
        if use.kind is UseKind.MOUNTED_ON and use.place in mounted:
            continue
        # The surveyed path may contain a symbolic link.
        below = use.place[len(canonical.rstrip("/")) :] if is_within(use.place, canonical) else ""
        place = PathStr(path.rstrip("/") + below or "/")
        yield replace(use, place=place)


def use_findings(uses: Iterable[FoundUse]) -> list[Finding]:
    """Return a finding for each external use."""
    return [
        Finding(
            FindingKind("used-elsewhere"),
            Severity.CRITICAL,
            use.place,
            {},
            use.sentence,
            use.advice,
            blocks=f"{use.sentence.rstrip('.')}: stop this use before deleting",
        )
        for use in uses
    ]


USED_ELSEWHERE = FindingType(
    FindingKind("used-elsewhere"),
    "used elsewhere",
    lambda evidence: () if evidence.system is None else use_findings(evidence.system.uses),
)


def _subvolumes_remain(number: int) -> str:
    if number == 1:
        return "a btrfs subvolume inside the target remains"
    return f"{number:,} btrfs subvolumes inside the target remain"


SUBVOLUME_INSIDE = flag_type(
    "subvolume-inside",
    "btrfs subvolume",
    DirectoryFlag.SUBVOLUME,
    Severity.WARNING,
    "A btrfs subvolume: tui-fs does not enter it and did not count it.",
    "To delete it: btrfs subvolume delete PATH",
    remains=_subvolumes_remain,
    is_counted=False,
)
IMMUTABLE = flag_type(
    "immutable",
    "immutable",
    DirectoryFlag.IMMUTABLE,
    Severity.WARNING,
    "The directory is immutable: entries cannot be added or removed.",
    "To allow deletion, run as root: chattr -i PATH",
    remains=locked("immutable"),
    lock="immutable",
)
APPEND_ONLY = flag_type(
    "append-only",
    "append-only",
    DirectoryFlag.APPEND_ONLY,
    Severity.WARNING,
    "The directory is append-only: entries cannot be removed.",
    "To allow deletion, run as root: chattr -a PATH",
    remains=locked("append-only"),
    lock="append-only",
)
LOCKED_FILES = flag_type(
    "locked-files",
    "files locked",
    DirectoryFlag.LOCKED_FILES,
    Severity.WARNING,
    "Files in this directory are immutable or append-only: they cannot be deleted.",
    "As root, list them with lsattr -a PATH (flags i and a), and remove the attributes with "
    "chattr -i -a FILE.",
    remains=lambda number: (
        f"immutable or append-only files in {counted(number, 'directory', 'directories')} remain"
    ),
)
UNREADABLE = flag_type(
    "unreadable",
    "unreadable",
    DirectoryFlag.UNREADABLE,
    Severity.WARNING,
    "This directory could not be read, or not completely; unread entries are not counted.",
    "Rescan it as its owner or as root.",
)
STICKY = flag_type(
    "sticky",
    "sticky",
    DirectoryFlag.STICKY,
    Severity.INFO,
    "Sticky directory owned by another user: you can delete only your own entries.",
    "Delete the other entries as root.",
    names_all=False,
    remains=lambda number: (
        "entries of other users in "
        f"{counted(number, 'sticky directory', 'sticky directories')} remain"
    ),
)
WRITABLE_BY_OTHERS = flag_type(
    "writable-by-others",
    "others may write",
    DirectoryFlag.SHARED,
    Severity.INFO,
    "Users other than you and root can write here, also during the deletion.",
    "Use a race-safe strategy: the preview lists it as safe against races.",
    names_all=False,
)


def _detect_unwritable(evidence: Evidence) -> list[Finding]:
    table = evidence.counted.table
    is_foreign = bool(len(table) and table.flags[0] & DirectoryFlag.UNWRITABLE)
    return flagged(
        evidence.counted,
        DirectoryFlag.UNWRITABLE,
        FindingKind("unwritable"),
        Severity.INFO if is_foreign else Severity.WARNING,
        "You have no write permission in this directory: you cannot delete its entries.",
        "Delete it as its owner or as root.",
        names_all=not is_foreign,
        remains=locked("not writable by you"),
        lock="not writable by you",
    )


UNWRITABLE = FindingType(
    FindingKind("unwritable"), "not writable by you", _detect_unwritable, unit="dirs"
)
