"""What a tree shows about itself: each sign at its limit and just below, by hand-made counts."""

import re
from typing import Any

import pytest

from tests.unit.test_survey_aggregator import collected, root
from tui_fs.model.finding import Finding, FindingKind, Severity
from tui_fs.model.paths import PathStr
from tui_fs.survey.aggregator import Aggregator
from tui_fs.survey.findings.base import PATHS_NAMED, Evidence
from tui_fs.survey.findings.registry import FINDING_TYPES, by_severity, detect_findings
from tui_fs.survey.records import DirectoryFlag, DirRecord

MIB, GIB = 1 << 20, 1 << 30


def found(counted: Aggregator, is_finished: bool = True, **rest: Any) -> list[Finding]:
    """Return the findings of a tree."""
    return list(detect_findings(Evidence(counted, PathStr("/t"), is_finished=is_finished, **rest)))


def kinds(counted: Aggregator, is_finished: bool = True) -> list[tuple[str, str]]:
    """Return kinds and severities."""
    return [(one.kind, one.severity.value) for one in found(counted, is_finished)]


def one(counted: Aggregator, **rest: Any) -> Finding:
    """Return the only finding of a tree."""
    (finding,) = found(counted, **rest)
    return finding


def test_an_ordinary_tree_shows_nothing() -> None:
    assert found(collected(root(files=3, own_bytes=4096, allocated_bytes=9000))) == []


FLAGS = [
    (DirectoryFlag.SUBVOLUME, "subvolume-inside", Severity.WARNING, True, True),
    (DirectoryFlag.IMMUTABLE, "immutable", Severity.WARNING, True, True),
    (DirectoryFlag.APPEND_ONLY, "append-only", Severity.WARNING, True, True),
    (DirectoryFlag.UNREADABLE, "unreadable", Severity.WARNING, True, True),
    (DirectoryFlag.UNWRITABLE, "unwritable", Severity.WARNING, True, True),
    (DirectoryFlag.STICKY, "sticky", Severity.INFO, False, True),
    (DirectoryFlag.CHANGED, "refilled", Severity.WARNING, True, True),
    (DirectoryFlag.SHARED, "writable-by-others", Severity.INFO, False, True),
    (DirectoryFlag.FOREIGN_OWNERS, "foreign-owners", Severity.INFO, False, False),
]


@pytest.mark.parametrize(("flag", "kind", "severity", "names_all", "is_early"), FLAGS)
def test_a_flag_of_directories_is_a_finding(
    flag: int, kind: str, severity: Severity, names_all: bool, is_early: bool
) -> None:
    number = PATHS_NAMED + 5
    pieces = [DirRecord(n, 0, b"%d" % n, flags=flag) for n in range(1, number + 1)]
    counted = collected(root(subdirectories=number, pending=number), *pieces)
    told = found(counted)
    assert {(one.kind, one.severity) for one in told} == {(kind, severity)}
    paths = [f"/t/{n}" for n in range(1, (PATHS_NAMED if names_all else 1) + 1)]
    assert [one.path for one in told] == paths
    assert all(one.numbers == {"directories": number} for one in told)
    assert len(found(counted, is_finished=False)) == (len(told) if is_early else 0)


def test_in_a_tree_of_somebody_else_unwritable_directories_are_one_information() -> None:
    counted = collected(
        root(subdirectories=1, pending=1, flags=DirectoryFlag.UNWRITABLE),
        DirRecord(1, 0, b"a", flags=DirectoryFlag.UNWRITABLE),
    )
    finding = one(counted)
    assert (finding.kind, finding.severity, finding.path) == ("unwritable", Severity.INFO, "/t")
    assert finding.numbers == {"directories": 2}


def test_each_mount_is_a_critical_finding_from_the_beginning() -> None:
    told = found(Aggregator(False), is_finished=False, mounts=[PathStr("/t/a"), PathStr("/t/b")])
    assert [(one.kind, one.severity, one.path) for one in told] == [
        ("mount-inside", Severity.CRITICAL, "/t/a"),
        ("mount-inside", Severity.CRITICAL, "/t/b"),
    ]


@pytest.mark.parametrize(
    ("flag", "single", "several"),
    [
        (
            DirectoryFlag.APPEND_ONLY,
            "a directory is append-only: its direct entries remain",
            "2 directories are append-only: their direct entries remain",
        ),
        (
            DirectoryFlag.UNWRITABLE,
            "a directory is not writable for you: its direct entries remain",
            "2 directories are not writable for you: their direct entries remain",
        ),
        (
            DirectoryFlag.LOCKED_FILES,
            "immutable or append-only files in 1 directory remain",
            "immutable or append-only files in 2 directories remain",
        ),
        (
            DirectoryFlag.SUBVOLUME,
            "a btrfs subvolume inside remains",
            "2 btrfs subvolumes inside remain",
        ),
        (
            DirectoryFlag.STICKY,
            "entries of other users in 1 sticky directory remain",
            "entries of other users in 2 sticky directories remain",
        ),
    ],
)
def test_a_finding_says_what_a_deletion_leaves(flag: int, single: str, several: str) -> None:
    for number, remains in ((1, single), (2, several)):
        pieces = [DirRecord(n, 0, b"%d" % n, flags=flag) for n in range(1, number + 1)]
        findings = found(collected(root(subdirectories=number, pending=number), *pieces))
        assert {finding.remains for finding in findings} == {remains}


def test_a_mount_blocks_a_deletion_and_is_shown_safely() -> None:
    (finding,) = found(Aggregator(False), mounts=[PathStr("/t/\x1b")])
    assert finding.blocks == "/t/\\e is a mount point inside the target: unmount it first"


@pytest.mark.parametrize("kind", FINDING_TYPES)
def test_the_name_of_a_kind_is_made_for_json(kind: str) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", kind)


@pytest.mark.parametrize(("names", "kind"), [(99_999, []), (100_000, [("flat", "warning")])])
def test_a_flat_directory(names: int, kind: list[tuple[str, str]]) -> None:
    counted = collected(
        root(subdirectories=1, pending=1), DirRecord(1, 0, b"a", files=names - 5, symlinks=5)
    )
    assert kinds(counted) == kinds(counted, is_finished=False) == kind
    if kind:
        finding = one(counted)
        assert (finding.path, finding.numbers["entries"]) == ("/t/a", names)


@pytest.mark.parametrize(
    ("number", "kind"), [(49_999, []), (50_000, [("many-subdirectories", "warning")])]
)
def test_many_subdirectories(number: int, kind: list[tuple[str, str]]) -> None:
    counted = collected(root(subdirectories=number))
    assert kinds(counted) == kind
    assert kinds(counted, is_finished=False) == []


@pytest.mark.parametrize(
    ("own_bytes", "record_bytes", "is_told"),
    [(MIB, MIB // 8 - 1, True), (MIB, MIB // 8, False), (MIB - 1, 0, False), (8 * MIB, 48, True)],
)
def test_an_emptied_directory(own_bytes: int, record_bytes: int, is_told: bool) -> None:
    piece = root(files=1, own_bytes=own_bytes, record_bytes=max(0, record_bytes - 48))
    told = kinds(collected(piece))
    assert told == ([("emptied", "warning")] if is_told else [])


def test_what_could_not_be_read_is_not_called_emptied() -> None:
    counted = collected(
        root(subdirectories=1, pending=1),
        DirRecord(1, 0, b"a", own_bytes=8 * MIB, flags=DirectoryFlag.UNREADABLE),
    )
    assert kinds(counted) == [("unreadable", "warning")]


def levels(number: int, longest: int = 1, name: bytes = b"d") -> Aggregator:
    """Make a chain whose deepest entry is so far down."""
    chain = [
        DirRecord(
            n,
            n - 1,
            name,
            subdirectories=n < number - 1,
            files=n == number - 1,
            longest_name=longest if n == number - 1 else 1,
        )
        for n in range(1, number)
    ]
    return collected(
        root(subdirectories=number > 1, files=number == 1, longest_name=longest), *chain
    )


@pytest.mark.parametrize(("number", "kind"), [(899, []), (900, [("deep", "warning")])])
def test_a_deep_tree(number: int, kind: list[tuple[str, str]]) -> None:
    counted = levels(number)
    assert counted.max_depth == number
    assert kinds(counted) == kinds(counted, is_finished=False) == kind


LONG = ("long-names", "info")


@pytest.mark.parametrize(
    ("path_bytes", "kind"),
    [(3899, []), (3900, [LONG]), (4095, [LONG]), (4096, [("deep", "warning")])],
)
def test_long_paths(path_bytes: int, kind: list[tuple[str, str]]) -> None:
    rest = path_bytes - len("/t") - 19 * 191 - 1
    counted = levels(20, rest, b"d" * 190)
    assert counted.max_path_bytes == path_bytes
    told = [one for one in found(counted) if rest < 250 or one.kind != "long-names"]
    assert [(one.kind, one.severity.value) for one in told] == (
        kind if rest < 250 else [one for one in kind if one != LONG]
    )


@pytest.mark.parametrize(("longest", "kind"), [(249, []), (250, [LONG]), (255, [LONG])])
def test_long_names(longest: int, kind: list[tuple[str, str]]) -> None:
    flags = DirectoryFlag.LONG_NAMES if longest >= 250 else 0
    counted = collected(
        root(subdirectories=1, pending=1),
        DirRecord(1, 0, b"a", files=1, longest_name=longest, flags=flags),
    )
    assert kinds(counted) == kind
    assert [finding.path for finding in found(counted)] == ["/t/a"] * len(kind)


def test_findings_come_in_the_order_of_their_gravity() -> None:
    sorts = [Severity.INFO, Severity.CRITICAL, Severity.WARNING, Severity.INFO, Severity.CRITICAL]
    mixed = [
        Finding(FindingKind(str(n)), severity, PathStr("/"), {}, "", "")
        for n, severity in enumerate(sorts)
    ]
    assert [one.kind for one in by_severity(mixed)] == ["1", "4", "2", "0", "3"]
