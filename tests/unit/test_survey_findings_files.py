"""What a tree shows about its files at the end: links, waste, holes, names, groups."""

import pytest

from tests.unit.test_survey_aggregator import collected, link, root
from tests.unit.test_survey_findings import GIB, MIB, found, kinds, one
from tui_fs.model.finding import Severity
from tui_fs.model.paths import PathStr
from tui_fs.model.survey import NamedGroup, Totals
from tui_fs.survey.aggregator import Aggregator
from tui_fs.survey.findings.base import PATHS_NAMED
from tui_fs.survey.records import BigFile, DirectoryFlag, DirRecord, Link


@pytest.mark.parametrize(
    ("names", "others", "is_told"),
    [(1000, 2000, True), (1000, 2001, False), (999, 0, False)],
)
def test_hard_links_are_told_if_they_are_many(names: int, others: int, is_told: bool) -> None:
    links = tuple(link(0, inode=number // 2) for number in range(names))
    counted = collected(root(files=names + others), links=links)
    assert kinds(counted) == ([("hard-links", "info")] if is_told else [])
    if is_told:
        assert one(counted).numbers["names"] == names
        assert one(counted).numbers["inodes"] == names // 2
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
    finding = one(counted)
    assert (finding.kind, finding.severity) == ("hard-links", severity)
    assert finding.numbers["linked_outside_bytes"] == outside_bytes
    assert finding.numbers["linked_outside_inodes"] == 1
    assert ("does not free these bytes" in finding.meaning) == bool(outside_bytes)


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
        finding = one(counted)
        assert (finding.path, finding.numbers["waste_bytes"]) == ("/t/a", allocated - apparent)
        assert finding.numbers["allocated_bytes"] == allocated


@pytest.mark.parametrize(
    ("apparent", "allocated", "is_told"),
    [
        (64 * MIB, 32 * MIB - 1, True),
        (64 * MIB, 32 * MIB, False),
        (64 * MIB - 1, 0, False),
        (GIB, 0, True),
    ],
)
def test_sparse_files(apparent: int, allocated: int, is_told: bool) -> None:
    counted = collected(root(files=1), big_files=(BigFile(0, b"x", apparent, allocated, 0),))
    assert kinds(counted) == ([("sparse", "info")] if is_told else [])
    if is_told:
        assert one(counted).path == "/t/x"


def test_the_largest_sparse_files_are_named() -> None:
    files = [BigFile(0, b"%d" % n, GIB + n, 0, 0) for n in range(PATHS_NAMED + 5)]
    counted = collected(root(files=len(files)), big_files=tuple(files))
    told = [finding.path for finding in found(counted)]
    assert told == [f"/t/{n}" for n in range(PATHS_NAMED + 4, 4, -1)]


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
    finding = one(counted)
    assert (finding.kind, finding.severity, finding.path) == ("weird-names", severity, "/t/1")
    # And only of names that have escapes on the screen it is said that they have
    assert ("with escapes" in finding.advice) is (flag != DirectoryFlag.DASH_NAMES)
    assert finding.numbers == {word: 2}
    assert kinds(counted, is_finished=False) == []


def test_a_group_is_named_by_its_largest_directory() -> None:
    paths = (PathStr("/t/b/\x1b"), PathStr("/t/a/\x1b"))
    group = NamedGroup(PathStr("\x1b"), 2, Totals(files=5, directories=2), paths)
    finding = one(Aggregator(False), groups=[group])
    assert (finding.kind, finding.severity) == ("group", Severity.INFO)
    assert finding.path == paths[0]
    assert finding.numbers == {"directories": 2, "entries": 7, "allocated_bytes": 0}
    assert "\x1b" not in finding.meaning
