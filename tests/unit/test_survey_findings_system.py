"""Surroundings of a tree: free space, processes at work, how files are stored."""

import os
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.unit.test_survey_aggregator import collected, link, root
from tui_fs.linux.filesystem import FileSystem
from tui_fs.linux.open_files import HeldFile, Holder, HoldKind, OpenFileScan, ResidentProcess
from tui_fs.model.finding import Finding
from tui_fs.model.paths import PathStr
from tui_fs.survey.aggregator import Aggregator
from tui_fs.survey.findings import space
from tui_fs.survey.findings.base import Evidence, SystemView
from tui_fs.survey.findings.registry import detect_findings
from tui_fs.survey.records import BigFile, DirRecord

MIB, GIB = 1 << 20, 1 << 30
ROOMY = FileSystem("ext4", "/dev/x", "/", False, 1000 * GIB, 500 * GIB, 500 * GIB, 1000, 500)
NOBODY = OpenFileScan()


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> dict[str, FileSystem]:
    """Return the file system that is found, to be exchanged."""
    rooms = {"": ROOMY}
    monkeypatch.setattr(space, "file_system_of", lambda _: rooms[""])
    monkeypatch.setattr(space, "extents_of", lambda _: None)
    return rooms


def around(
    counted: Aggregator | None = None, occupation: OpenFileScan = NOBODY, began_at_s: float = 0.0
) -> list[Finding]:
    """Return the findings about the surroundings of /t."""
    counted = Aggregator(False) if counted is None else counted
    system = SystemView(occupation, began_at_s)
    return list(detect_findings(Evidence(counted, PathStr("/t"), paths=["/t"], system=system)))


def graded(findings: list[Finding]) -> list[tuple[str, str]]:
    """Return kinds and severities."""
    return [(finding.kind, finding.severity.value) for finding in findings]


@pytest.mark.parametrize(
    ("total", "free", "severity"),
    [
        (1000, 100, []),
        (1000, 99, ["warning"]),
        (1000, 20, ["warning"]),
        (1000, 19, ["critical"]),
        (1000, 0, ["critical"]),
        (None, None, []),
        (0, 0, []),
    ],
)
def test_few_inodes(
    room: dict[str, FileSystem], total: int | None, free: int | None, severity: list[str]
) -> None:
    room[""] = replace(ROOMY, total_inodes=total, free_inodes=free)
    assert graded(around()) == [("inodes-low", level) for level in severity]


def test_few_inodes_names_the_directories_that_hold_most(room: dict[str, FileSystem]) -> None:
    room[""] = replace(ROOMY, free_inodes=1)
    links = tuple(link(0, names=50) for _ in range(50))
    counted = collected(
        root(files=50, subdirectories=3, pending=3),
        *(DirRecord(n, 0, name, files=10 * n) for n, name in ((1, b"a"), (2, b"b"), (3, b"\x1b"))),
        links=links,
    )
    (finding,) = around(counted)
    assert "/t/\\e (30), /t/b (20), /t/a (10)" in finding.meaning
    assert finding.numbers == {"free_inodes": 1, "total_inodes": 1000}


def test_few_inodes_names_no_directory_that_holds_none(room: dict[str, FileSystem]) -> None:
    room[""] = replace(ROOMY, free_inodes=1)
    records = (DirRecord(1, 0, b"a", files=10), DirRecord(2, 0, b"b"))
    (finding,) = around(collected(root(files=5, subdirectories=2, pending=2), *records))
    assert "(0)" not in finding.meaning
    assert "/t/a (10)" in finding.meaning


@pytest.mark.parametrize(
    ("available", "severity"),
    [(50, []), (49, ["warning"]), (10, ["warning"]), (9, ["critical"]), (None, [])],
)
def test_little_space(
    room: dict[str, FileSystem], available: int | None, severity: list[str]
) -> None:
    room[""] = replace(ROOMY, total_bytes=1000, free_bytes=55, available_bytes=available)
    assert graded(around()) == [("space-low", level) for level in severity]


def test_what_cannot_be_written_is_full_by_nature(room: dict[str, FileSystem]) -> None:
    full = replace(ROOMY, free_inodes=0, available_bytes=0, free_bytes=0)
    room[""] = full
    assert {finding.kind for finding in around()} == {"inodes-low", "space-low"}
    room[""] = replace(full, is_read_only=True)
    assert around() == []


def test_space_kept_for_root_is_reported_if_it_is_more(room: dict[str, FileSystem]) -> None:
    room[""] = replace(ROOMY, total_bytes=1000, free_bytes=100, available_bytes=9)
    (finding,) = around()
    assert finding.numbers["reserved_bytes"] == 91
    assert "91 B more are reserved for root" in finding.meaning


def holder(pid: int, writes: bool = False, is_own: bool = False) -> Holder:
    """Make a process that holds something."""
    return Holder(pid, "proc\x1b", 0, 3, HoldKind.DESCRIPTOR, writes, is_own)


def held(*holders: Holder, allocated: int | None = 4096, path: str = "/t/f") -> HeldFile:
    """Make a file that is held."""
    return HeldFile(PathStr(path), 7, 1, allocated, holders)


def living(pid: int, is_own: bool = False) -> ResidentProcess:
    """Return a process whose current directory is in the tree."""
    return ResidentProcess(PathStr("/t/d"), holder(pid, is_own=is_own))


@pytest.mark.parametrize(
    ("occupation", "severity"),
    [
        (NOBODY, []),
        (OpenFileScan(living=(living(1, is_own=True),)), []),
        (OpenFileScan(held_files=(held(holder(1, writes=True, is_own=True)),)), []),
        (OpenFileScan(living=(living(1),)), ["info"]),
        (OpenFileScan(held_files=(held(holder(1)),)), ["info"]),
        (
            OpenFileScan(held_files=(held(holder(1), holder(2, writes=True, is_own=True)),)),
            ["info"],
        ),
        (OpenFileScan(held_files=(held(holder(1, writes=True)),)), ["warning"]),
        (
            OpenFileScan(living=(living(2),), held_files=(held(holder(1, writes=True)),)),
            ["warning"],
        ),
    ],
)
@pytest.mark.usefixtures("room")
def test_processes_at_work(occupation: OpenFileScan, severity: list[str]) -> None:
    assert graded(around(occupation=occupation)) == [("in-use", level) for level in severity]


@pytest.mark.usefixtures("room")
def test_processes_are_counted_once_and_named_harmlessly() -> None:
    occupation = OpenFileScan(
        living=tuple(living(pid) for pid in range(1, 8)),
        held_files=(held(holder(3)), held(holder(3, writes=True), path="/t/\x1b")),
        unseen_processes=4,
    )
    (finding,) = around(occupation=occupation)
    assert finding.path == "/t/\x1b"
    numbers = {"processes": 7, "open_files": 2, "written_files": 1, "unseen_processes": 4}
    assert finding.numbers == numbers
    assert finding.meaning.startswith("7 processes use this tree: proc\\e (1), ")
    assert finding.meaning.count("(") == 5
    assert "writes to /t/\\e" in finding.meaning
    assert "\x1b" not in finding.meaning


@pytest.mark.parametrize(
    ("allocated", "severity"),
    [
        ([], []),
        ([0], []),
        ([None], []),
        ([512], ["info"]),
        ([60 * MIB, 40 * MIB - 1], ["info"]),
        ([60 * MIB, 40 * MIB], ["warning"]),
    ],
)
@pytest.mark.usefixtures("room")
def test_deleted_files_that_are_held(allocated: list[int | None], severity: list[str]) -> None:
    deleted = tuple(held(holder(1), allocated=size) for size in allocated)
    findings = around(occupation=OpenFileScan(deleted=deleted))
    assert graded(findings) == [("deleted-but-open", level) for level in severity]
    assert all(
        "\x1b" not in finding.meaning and "proc\\e (1)" in finding.meaning for finding in findings
    )


@pytest.mark.parametrize(("held_mib", "is_named"), [(19, False), (20, True)])
def test_full_because_of_deleted_files_that_are_held(
    room: dict[str, FileSystem], held_mib: int, is_named: bool
) -> None:
    room[""] = replace(ROOMY, total_bytes=200 * MIB, free_bytes=0, available_bytes=0)
    deleted = (held(holder(1), allocated=held_mib * MIB),)
    space_low, held_open = around(occupation=OpenFileScan(deleted=deleted))
    assert ("20.0 MiB are in deleted files" in space_low.meaning) == is_named
    assert ("Restart those processes" in space_low.advice) == is_named
    assert (held_open.severity.value == "warning") == is_named


@pytest.mark.parametrize(
    ("extents", "allocated", "severity"),
    [
        (None, 0, []),
        (999, 1, []),
        (1000, 1000 * MIB - 1, ["info"]),
        (1000, 1000 * MIB, []),
        (9999, MIB, ["info"]),
        (10_000, MIB, ["warning"]),
    ],
)
@pytest.mark.usefixtures("room")
def test_fragmented_files(
    monkeypatch: pytest.MonkeyPatch,
    extents: int | None,
    allocated: int,
    severity: list[str],
) -> None:
    asked: list[str] = []

    def extents_of(path: str) -> int | None:
        asked.append(path)
        return extents

    monkeypatch.setattr(space, "extents_of", extents_of)
    counted = collected(root(files=1), big_files=(BigFile(0, b"x", allocated, allocated, 0),))
    assert graded(around(counted)) == [("fragmented", level) for level in severity]
    assert asked == ["/t/x"]


@pytest.mark.usefixtures("room")
def test_only_the_largest_files_are_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(space, "extents_of", lambda path: asked.append(path))
    files = tuple(BigFile(0, b"%d" % n, GIB + n, 0, 0) for n in range(25))
    around(collected(root(files=25), big_files=files))
    assert asked == [f"/t/{n}" for n in range(24, 4, -1)]


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize(
    ("names", "after_s", "is_reported"),
    [
        (1000, 10, True),
        (1000, -10, False),
        (999, 10, False),
        (1000, 1_000_000, False),  # in the future
        (1000, None, False),  # it is gone
    ],
)
def test_a_directory_changed_since_the_beginning_is_refilled(
    tmp_path: Path, names: int, after_s: int | None, is_reported: bool
) -> None:
    began_at_s = time.time() - 100
    if after_s is None:
        tmp_path.rmdir()
    else:
        os.utime(tmp_path, (began_at_s + after_s, began_at_s + after_s))
    counted = collected(root(files=names)._replace(name=os.fsencode(tmp_path)))
    expected = [("refilled", "warning")] if is_reported else []
    assert graded(around(counted, began_at_s=began_at_s)) == expected
