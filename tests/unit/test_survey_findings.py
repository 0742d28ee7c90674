"""Findings about directories and files."""

import re
from typing import Any

import pytest

from tests.unit.test_survey_aggregator import collected, link, root
from tui_fs.model.finding import Finding, FindingKind, Severity
from tui_fs.model.paths import PathStr
from tui_fs.model.survey import NamedGroup, Totals
from tui_fs.survey.aggregator import Aggregator
from tui_fs.survey.findings.base import PATHS_NAMED, Evidence
from tui_fs.survey.findings.registry import FINDING_TYPES, by_severity, detect_findings
from tui_fs.survey.records import BigFile, DirectoryFlag, DirRecord, Link

MIB, GIB = 1 << 20, 1 << 30


def findings_of(counted: Aggregator, is_finished: bool = True, **rest: Any) -> list[Finding]:
    """Return the findings of a tree."""
    return list(detect_findings(Evidence(counted, PathStr("/t"), is_finished=is_finished, **rest)))


def kinds(counted: Aggregator, is_finished: bool = True) -> list[tuple[str, str]]:
    """Return kinds and severities."""
    return [(finding.kind, finding.severity.value) for finding in findings_of(counted, is_finished)]


def only_finding(counted: Aggregator, **rest: Any) -> Finding:
    """Return the only finding of a tree."""
    (finding,) = findings_of(counted, **rest)
    return finding


def test_an_ordinary_tree_shows_nothing() -> None:
    assert findings_of(collected(root(files=3, own_bytes=4096, allocated_bytes=9000))) == []


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
    findings = findings_of(counted)
    assert {(finding.kind, finding.severity) for finding in findings} == {(kind, severity)}
    paths = [f"/t/{n}" for n in range(1, (PATHS_NAMED if names_all else 1) + 1)]
    assert [finding.path for finding in findings] == paths
    assert all(finding.numbers == {"directories": number} for finding in findings)
    assert len(findings_of(counted, is_finished=False)) == (len(findings) if is_early else 0)


def test_in_a_tree_of_another_user_unwritable_directories_are_one_information() -> None:
    counted = collected(
        root(subdirectories=1, pending=1, flags=DirectoryFlag.UNWRITABLE),
        DirRecord(1, 0, b"a", flags=DirectoryFlag.UNWRITABLE),
    )
    finding = only_finding(counted)
    assert (finding.kind, finding.severity, finding.path) == ("unwritable", Severity.INFO, "/t")
    assert finding.numbers == {"directories": 2}


def test_each_mount_is_a_critical_finding_from_the_beginning() -> None:
    findings = findings_of(
        Aggregator(False), is_finished=False, mounts=[PathStr("/t/a"), PathStr("/t/b")]
    )
    assert [(finding.kind, finding.severity, finding.path) for finding in findings] == [
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
            "a directory is not writable by you: its direct entries remain",
            "2 directories are not writable by you: their direct entries remain",
        ),
        (
            DirectoryFlag.LOCKED_FILES,
            "immutable or append-only files in 1 directory remain",
            "immutable or append-only files in 2 directories remain",
        ),
        (
            DirectoryFlag.SUBVOLUME,
            "a btrfs subvolume inside the target remains",
            "2 btrfs subvolumes inside the target remain",
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
        findings = findings_of(collected(root(subdirectories=number, pending=number), *pieces))
        assert {finding.remains for finding in findings} == {remains}


def test_a_mount_blocks_a_deletion_and_is_shown_safely() -> None:
    (finding,) = findings_of(Aggregator(False), mounts=[PathStr("/t/\x1b")])
    assert finding.blocks == "/t/\\e is a mount point inside the target: unmount it first"


@pytest.mark.parametrize("kind", FINDING_TYPES)
def test_the_name_of_a_kind_is_made_for_json(kind: str) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", kind)


def flat(names: int) -> Aggregator:
    """Make a directory of this many names below the top."""
    return collected(
        root(subdirectories=1, pending=1), DirRecord(1, 0, b"a", files=names - 5, symlinks=5)
    )


def emptied(own_bytes: int, record_bytes: int) -> Aggregator:
    """Make a directory of this size with records of these bytes."""
    return collected(root(files=1, own_bytes=own_bytes, record_bytes=max(0, record_bytes - 48)))


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


def sparse(apparent: int, allocated: int) -> Aggregator:
    """Make a file of this size with these blocks."""
    return collected(root(files=1), big_files=(BigFile(0, b"x", apparent, allocated, 0),))


@pytest.mark.parametrize(
    ("counted", "kind", "is_early"),
    [
        (flat(99_999), [], True),
        (flat(100_000), [("flat", "warning")], True),
        (collected(root(subdirectories=49_999)), [], False),
        (collected(root(subdirectories=50_000)), [("many-subdirectories", "warning")], False),
        (emptied(MIB, MIB // 8 - 1), [("emptied", "warning")], False),
        (emptied(MIB, MIB // 8), [], False),
        (emptied(MIB - 1, 0), [], False),
        (emptied(8 * MIB, 48), [("emptied", "warning")], False),
        (levels(899), [], True),
        (levels(900), [("deep", "warning")], True),
        (sparse(64 * MIB, 32 * MIB - 1), [("sparse", "info")], False),
        (sparse(64 * MIB, 32 * MIB), [], False),
        (sparse(64 * MIB - 1, 0), [], False),
        (sparse(GIB, 0), [("sparse", "info")], False),
    ],
)
def test_a_finding_begins_at_its_threshold(
    counted: Aggregator, kind: list[tuple[str, str]], is_early: bool
) -> None:
    assert kinds(counted) == kind
    assert kinds(counted, is_finished=False) == (kind if is_early else [])


def test_a_flat_directory_and_a_sparse_file_are_named() -> None:
    finding = only_finding(flat(100_000))
    assert (finding.path, finding.numbers["entries"]) == ("/t/a", 100_000)
    assert only_finding(sparse(GIB, 0)).path == "/t/x"
    assert levels(900).max_depth == 900


def test_a_deep_tree_is_named_where_its_chain_of_directories_begins() -> None:
    chain = [DirRecord(n, n - 1, b"d", subdirectories=n < 999, pending=1) for n in range(2, 1000)]
    counted = collected(
        root(subdirectories=2, pending=2),
        DirRecord(1, 0, b"top", subdirectories=2, pending=2),
        DirRecord(1000, 0, b"flat", files=5, longest_name=200),
        DirRecord(1001, 1, b"beside", files=1),
        *chain,
    )
    finding = only_finding(counted)
    assert (finding.kind, finding.path) == ("deep", "/t/top/d")


def test_a_deep_tree_with_branches_everywhere_is_named_by_a_path_that_tools_can_take() -> None:
    name = b"d" * 190
    branches = [
        DirRecord(n, n - 1, name, subdirectories=2, pending=2, longest_name=190)
        for n in range(1, 40)
    ]
    finding = only_finding(collected(root(subdirectories=2, pending=2), *branches))
    assert finding.kind == "deep"
    assert 4096 - 200 < len(finding.path) < 4096


def test_what_could_not_be_read_is_not_called_emptied() -> None:
    counted = collected(
        root(subdirectories=1, pending=1),
        DirRecord(1, 0, b"a", own_bytes=8 * MIB, flags=DirectoryFlag.UNREADABLE),
    )
    assert kinds(counted) == [("unreadable", "warning")]


LONG = ("long-names", "info")


@pytest.mark.parametrize(
    ("path_bytes", "kind"),
    [(3899, []), (3900, [LONG]), (4095, [LONG]), (4096, [("deep", "warning")])],
)
def test_long_paths(path_bytes: int, kind: list[tuple[str, str]]) -> None:
    rest = path_bytes - len("/t") - 19 * 191 - 1
    counted = levels(20, rest, b"d" * 190)
    assert counted.max_path_bytes == path_bytes
    findings = [
        finding for finding in findings_of(counted) if rest < 250 or finding.kind != "long-names"
    ]
    assert [(finding.kind, finding.severity.value) for finding in findings] == (
        kind if rest < 250 else [name for name in kind if name != LONG]
    )


@pytest.mark.parametrize(("longest", "kind"), [(249, []), (250, [LONG]), (255, [LONG])])
def test_long_names(longest: int, kind: list[tuple[str, str]]) -> None:
    flags = DirectoryFlag.LONG_NAMES if longest >= 250 else 0
    counted = collected(
        root(subdirectories=1, pending=1),
        DirRecord(1, 0, b"a", files=1, longest_name=longest, flags=flags),
    )
    assert kinds(counted) == kind
    assert [finding.path for finding in findings_of(counted)] == ["/t/a"] * len(kind)


def test_findings_come_in_the_order_of_their_gravity() -> None:
    sorts = [Severity.INFO, Severity.CRITICAL, Severity.WARNING, Severity.INFO, Severity.CRITICAL]
    mixed = [
        Finding(FindingKind(str(n)), severity, PathStr("/"), {}, "", "")
        for n, severity in enumerate(sorts)
    ]
    assert [finding.kind for finding in by_severity(mixed)] == ["1", "4", "2", "0", "3"]


@pytest.mark.parametrize(
    ("names", "others", "is_told"),
    [(1000, 2000, True), (1000, 2001, False), (999, 0, False)],
)
def test_hard_links_are_reported_if_they_are_many(names: int, others: int, is_told: bool) -> None:
    links = tuple(link(0, inode=number // 2) for number in range(names))
    counted = collected(root(files=names + others), links=links)
    assert kinds(counted) == ([("hard-links", "info")] if is_told else [])
    if is_told:
        assert only_finding(counted).numbers["names"] == names
        assert only_finding(counted).numbers["inodes"] == names // 2
    assert kinds(counted, is_finished=False) == []


@pytest.mark.parametrize(
    ("outside_bytes", "rest_bytes", "severity"),
    [
        (64 * MIB, 9 * 64 * MIB, Severity.WARNING),
        (64 * MIB, 9 * 64 * MIB + 10, Severity.INFO),
        (64 * MIB - 1, 0, Severity.INFO),
        (0, 0, Severity.INFO),
    ],
)
def test_names_outside_are_grave_if_they_hold_much(
    outside_bytes: int, rest_bytes: int, severity: Severity
) -> None:
    pairs = tuple(link(0, inode=number // 2) for number in range(2000))
    pairs = tuple(each._replace(allocated_bytes=0) for each in pairs)
    outside = Link(0, 7, 9999, 2, outside_bytes, outside_bytes, 0, False)
    counted = collected(
        root(files=2001, apparent_bytes=rest_bytes, allocated_bytes=rest_bytes),
        links=(*pairs, outside),
    )
    finding = only_finding(counted)
    assert (finding.kind, finding.severity) == ("hard-links", severity)
    assert finding.numbers["linked_outside_bytes"] == outside_bytes
    assert finding.numbers["linked_outside_inodes"] == 1
    assert ("does not free that space" in finding.meaning) == bool(outside_bytes)


@pytest.mark.parametrize(
    ("apparent", "allocated", "severity"),
    [
        (10 * MIB, 74 * MIB, Severity.INFO),
        (10 * MIB, 74 * MIB - 1, None),
        (64 * MIB, 128 * MIB, None),
        (64 * MIB - 1, 128 * MIB, Severity.INFO),
        (10 * MIB, GIB + 10 * MIB - 1, Severity.INFO),
        (10 * MIB, GIB + 10 * MIB, Severity.WARNING),
    ],
)
def test_waste_of_small_files(apparent: int, allocated: int, severity: Severity | None) -> None:
    counted = collected(
        root(subdirectories=1, pending=1, own_bytes=4096, own_allocated_bytes=GIB * 9),
        DirRecord(1, 0, b"a", files=9, apparent_bytes=apparent, allocated_bytes=allocated),
    )
    assert kinds(counted) == ([("small-file-waste", severity.value)] if severity else [])
    if severity:
        finding = only_finding(counted)
        assert (finding.path, finding.numbers["waste_bytes"]) == ("/t/a", allocated - apparent)
        assert finding.numbers["allocated_bytes"] == allocated


def test_the_largest_sparse_files_are_named() -> None:
    files = [BigFile(0, b"%d" % n, GIB + n, 0, 0) for n in range(PATHS_NAMED + 5)]
    counted = collected(root(files=len(files)), big_files=tuple(files))
    findings = [finding.path for finding in findings_of(counted)]
    assert findings == [f"/t/{n}" for n in range(PATHS_NAMED + 4, 4, -1)]


@pytest.mark.parametrize(
    ("flag", "severity", "word"),
    [
        (DirectoryFlag.CONTROL_NAMES, Severity.WARNING, "directories_control"),
        (DirectoryFlag.UNDECODABLE_NAMES, Severity.INFO, "directories_not_utf8"),
        (DirectoryFlag.SPACE_NAMES, Severity.INFO, "directories_space"),
        (DirectoryFlag.DASH_NAMES, Severity.INFO, "directories_dash"),
    ],
)
def test_weird_names(flag: int, severity: Severity, word: str) -> None:
    pieces = [DirRecord(n, 0, b"%d" % n, files=1, flags=flag) for n in (1, 2)]
    counted = collected(root(subdirectories=2, pending=2), *pieces)
    finding = only_finding(counted)
    assert (finding.kind, finding.severity, finding.path) == ("weird-names", severity, "/t/1")
    # And only of names that have escapes on the screen it is said that they have
    assert ("with escapes" in finding.advice) is (flag != DirectoryFlag.DASH_NAMES)
    assert finding.numbers == {word: 2}
    assert finding.meaning.endswith(" in 2 directories; this is the first.")
    assert only_finding(collected(root(subdirectories=1), pieces[0])).meaning.endswith(" here.")
    assert kinds(counted, is_finished=False) == []


def test_each_kind_of_weird_names_has_its_own_label() -> None:
    flags = [
        DirectoryFlag.CONTROL_NAMES,
        DirectoryFlag.UNDECODABLE_NAMES,
        DirectoryFlag.SPACE_NAMES,
        DirectoryFlag.DASH_NAMES,
    ]
    counted = collected(
        root(subdirectories=1, pending=1), DirRecord(1, 0, b"a", files=4, flags=sum(flags))
    )
    findings = findings_of(counted)
    labels = {FINDING_TYPES[finding.kind].label_of(finding) for finding in findings}
    assert len(labels) == len(findings) == 4


def test_a_group_is_named_by_its_largest_directory() -> None:
    paths = (PathStr("/t/b/\x1b"), PathStr("/t/a/\x1b"))
    group = NamedGroup(PathStr("\x1b"), 2, Totals(files=5, directories=2), paths)
    finding = only_finding(Aggregator(False), groups=[group])
    assert (finding.kind, finding.severity) == ("group", Severity.INFO)
    assert finding.path == paths[0]
    assert finding.numbers == {"directories": 2, "entries": 7, "allocated_bytes": 0}
    assert "\x1b" not in finding.meaning


@pytest.mark.parametrize(
    ("flag", "command"),
    [
        (DirectoryFlag.IMMUTABLE, (("chattr", "-i", "/t/a b"),)),
        (DirectoryFlag.SUBVOLUME, (("btrfs", "subvolume", "delete", "/t/a b"),)),
        (DirectoryFlag.LOCKED_FILES, ()),  # its advice has two commands, with FILE
        (DirectoryFlag.SPACE_NAMES, ()),
    ],
)
def test_an_advice_that_is_one_command_has_it(
    flag: int, command: tuple[tuple[str, ...], ...]
) -> None:
    piece = DirRecord(1, 0, b"a b", files=1, flags=flag)
    counted = collected(root(subdirectories=1, pending=1), piece)
    assert {finding.command for finding in findings_of(counted)} == {command}
