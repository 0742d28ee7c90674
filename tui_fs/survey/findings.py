"""Pathologies that a survey notices in passing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tui_fs.model.paths import PathStr
from tui_fs.model.survey import Finding, LargeDirectory, Severity

FLAT_ENTRIES = 100_000
PATH_MAX_BYTES = 4_096
PATHS_NAMED = 20


@dataclass
class Evidence:
    """What was noticed while walking."""

    mounts: Sequence[PathStr] = ()
    locked_paths: list[PathStr] = field(default_factory=list)
    unreadable: int = 0
    unreadable_paths: list[PathStr] = field(default_factory=list)
    shared: int = 0
    shared_path: PathStr | None = None

    def unreadable_directory(self, path: PathStr) -> None:
        """Note a directory whose content stays unknown."""
        self.unreadable += 1
        if len(self.unreadable_paths) < PATHS_NAMED:
            self.unreadable_paths.append(path)

    def shared_directory(self, path: Callable[[], str]) -> None:
        """Note a directory in which somebody other than this user and root may write."""
        if self.shared_path is None:  # a path takes time in deep trees; one is enough
            self.shared_path = PathStr(path())
        self.shared += 1


def findings_of(
    evidence: Evidence, largest: Sequence[LargeDirectory], max_path_bytes: int, root: PathStr
) -> tuple[Finding, ...]:
    """Return the findings, the gravest first."""
    findings = [
        Finding(
            "mount-inside",
            Severity.CRITICAL,
            mount,
            {},
            "Another file system or a bind mount is attached here; it was not counted.",
            "Unmount it before anything above it is deleted.",
        )
        for mount in evidence.mounts
    ]
    findings += [
        Finding(
            "immutable",
            Severity.WARNING,
            path,
            {},
            "This directory is immutable or append-only: nothing in it can be deleted.",
            "chattr -i -a on it, as root, if it shall go.",
        )
        for path in evidence.locked_paths[:PATHS_NAMED]
    ]
    findings += [
        Finding(
            "unreadable",
            Severity.WARNING,
            path,
            {"directories": evidence.unreadable},
            "This directory could not be read; what is in it is not counted.",
            "Look at it as its owner or as root.",
        )
        for path in evidence.unreadable_paths
    ]
    findings += [
        Finding(
            "flat",
            Severity.WARNING,
            directory.path,
            {"entries": directory.entries, "index_bytes": directory.index_bytes},
            f"{directory.entries:,} names in one directory: listing it reads all of them.",
            "Shell patterns (rm *) fail here; every strategy of tui-fs copes with it.",
        )
        for directory in largest
        if directory.entries >= FLAT_ENTRIES
    ]
    if evidence.shared_path is not None:
        findings.append(
            Finding(
                "writable-by-others",
                Severity.INFO,
                evidence.shared_path,
                {"directories": evidence.shared},
                "Somebody other than you and root may write here, also while it is deleted.",
                "Delete it with a strategy that is safe against races: rm, find or rmtree.",
            )
        )
    if max_path_bytes >= PATH_MAX_BYTES:
        findings.append(
            Finding(
                "deep",
                Severity.WARNING,
                root,
                {"max_path_bytes": max_path_bytes},
                f"Paths of up to {max_path_bytes:,} bytes; tools that work by path stop at 4,096.",
                "Delete it with rm or find.",
            )
        )
    return tuple(findings)
