"""The types of the registry of findings, and the evidence that detectors read."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct, field

from tui_fs.linux.descriptors import closing
from tui_fs.linux.directories import open_directory
from tui_fs.linux.external_uses import FoundUse
from tui_fs.linux.mounts import Mount, MountTable, mount_of
from tui_fs.linux.open_files import OpenFileScan
from tui_fs.linux.pins import pin_of
from tui_fs.model.finding import Finding, FindingKind, Severity
from tui_fs.model.paths import PathStr, shell_quoted
from tui_fs.model.survey import NamedGroup
from tui_fs.survey.aggregator import Aggregator
from tui_fs.survey.shared_extents import SharedSpace

PATHS_NAMED = 20
"""Maximum number of findings of one kind, each with its path."""


class Place(Struct, frozen=True):
    """A surveyed directory and its mount.

    Attributes:
        path: as it was surveyed; it may contain a symbolic link.
        canonical: without symbolic links.
    """

    path: PathStr
    canonical: str
    status: os.stat_result
    mount: Mount

    @property
    def is_mount_point(self) -> bool:
        """Whether the directory is the root of its mount."""
        return self.canonical == self.mount.mount_point


def locate(path: str, mounts: MountTable) -> Place | None:
    """Return a directory with its mount, None if the table lacks that.

    Raises:
        OSError: the directory cannot be opened.
    """
    with closing(open_directory(path)) as descriptor:
        canonical = os.readlink(f"/proc/self/fd/{descriptor}")
        mount = mounts.by_id.get(pin_of(descriptor).mount_id) or mount_of(path, mounts)
        status = os.fstat(descriptor)
    return None if mount is None else Place(PathStr(path), canonical, status, mount)


class SystemView(Struct, frozen=True):
    """The state of the running system that concerns the tree.

    Attributes:
        occupation: processes in the tree, and deleted files that processes hold open.
        began_at_s: start of the survey, in seconds since the epoch.
        uses: by mounts, overlays, loop devices and swap files elsewhere.
        overlays: surveyed directories on an overlay.
        shared_space: blocks shared with copies or snapshots; None without sharing.
        places: the surveyed directories.
    """

    occupation: OpenFileScan
    began_at_s: float
    uses: Sequence[FoundUse] = ()
    overlays: Sequence[PathStr] = ()
    shared_space: SharedSpace | None = None
    places: Sequence[Place] = ()


class Evidence(Struct, frozen=True):
    """The input of the detectors: the survey so far.

    Attributes:
        counted: the directories and their counts.
        root: the surveyed directory, or the one above all of them.
        paths: the surveyed directories; empty if they are not on this machine (an import).
        mounts: mount points in the tree.
        is_finished: the survey is complete. Some kinds can be detected only then.
        groups: directories of the same name; empty until the survey is finished.
        excluded_names: names that an export left out.
        system: None while counting, and for an import.
    """

    counted: Aggregator
    root: PathStr
    mounts: Sequence[PathStr] = ()
    is_finished: bool = True
    paths: Sequence[str] = ()
    groups: Sequence[NamedGroup] = ()
    excluded_names: int = 0
    system: SystemView | None = None


Detector = Callable[[Evidence], Iterable[Finding]]


class FindingType(Struct, frozen=True):
    """One kind of finding: its detector, and how to show it.

    Attributes:
        label: in a list; at most 20 characters.
        flag: text next to a name in the browser; None for the label, empty for no text.
        headline: name of the number that a list shows; empty for the first one.
        unit: text after the headline number, if it is not the number's label.
        number_labels: texts for numbers whose names do not explain themselves.
        variants: labels of findings that differ by the name of their first number.
        is_counted: the survey counts the entry at the path of the finding.
        is_group: it covers all directories of one name, which can be marked together.
        is_activity: others are at work in the tree, which is said before a deletion.
    """

    kind: FindingKind
    label: str
    detect: Detector
    flag: str | None = None
    headline: str = ""
    unit: str = ""
    number_labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    variants: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    is_counted: bool = True
    is_group: bool = False
    is_activity: bool = False

    def label_of(self, finding: Finding) -> str:
        """Return the label of one finding of this kind."""
        return self.variants.get(next(iter(finding.numbers), ""), self.label)


def flag_type(
    kind: str,
    label: str,
    flag: int,
    severity: Severity,
    meaning: str,
    advice: str,
    *,
    names_all: bool = True,
    when_finished: bool = False,
    remains: Callable[[int], str] | None = None,
    lock: str = "",
    is_counted: bool = True,
) -> FindingType:
    """Return the type of finding for directories with a flag.

    Args:
        flag: of `DirectoryFlag`.
        advice: with PATH as placeholder for the directory.
        names_all: each of the first directories has its own finding; otherwise one finding, at the
            first directory, covers all.
        when_finished: report it only after the survey is complete.
        remains: returns what a deletion leaves behind, for a number of directories.
    """
    finding_kind = FindingKind(kind)

    def detect(evidence: Evidence) -> Iterable[Finding]:
        if when_finished and not evidence.is_finished:
            return ()
        return flagged(
            evidence.counted,
            flag,
            finding_kind,
            severity,
            meaning,
            advice,
            names_all=names_all,
            remains=remains,
            lock=lock,
        )

    return FindingType(finding_kind, label, detect, unit="dirs", is_counted=is_counted)


def flagged(
    counted: Aggregator,
    flag: int,
    kind: FindingKind,
    severity: Severity,
    meaning: str,
    advice: str,
    *,
    names_all: bool = True,
    remains: Callable[[int], str] | None = None,
    lock: str = "",
) -> list[Finding]:
    """Return a finding for each of the first directories with a flag, or one for all of them."""
    number = counted.flag_counts[flag]
    return [
        Finding(
            kind,
            severity,
            path,
            {"directories": number},
            meaning,
            advice.replace("PATH", shell_quoted((path,))),
            remains="" if remains is None else remains(number),
            lock=lock,
            command=_command(advice, path),
        )
        for path in counted.paths_with(flag, PATHS_NAMED if names_all else 1)
    ]


def _command(advice: str, path: PathStr) -> tuple[tuple[str, ...], ...]:
    """Return the command line with which an advice ends, as in ``…: chattr -i PATH``."""
    *words, last = advice.rpartition(": ")[2].split()
    return ((*words, path),) if last == "PATH" and ": " in advice else ()


def locked(adjective: str) -> Callable[[int], str]:
    """Return what remains of directories whose direct entries cannot be deleted."""

    def remains(number: int) -> str:
        if number == 1:
            return f"a directory is {adjective}: its direct entries remain"
        return f"{number:,} directories are {adjective}: their direct entries remain"

    return remains
