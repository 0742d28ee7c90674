"""The totals of the entries of one directory, and what their names reveal."""

import os
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trees import HOSTILE_NAMES
from tui_fs.survey.records import Batch, BigFile, DirectoryFlag, DirRecord, Link
from tui_fs.survey.tally import (
    BIG_FILE_BYTES,
    LONG_NAME_BYTES,
    BatchBuilder,
    DirectoryTally,
    Predicate,
)

OWNER = 1000
NAME_FLAGS = (
    DirectoryFlag.CONTROL_NAMES
    | DirectoryFlag.UNDECODABLE_NAMES
    | DirectoryFlag.DASH_NAMES
    | DirectoryFlag.SPACE_NAMES
    | DirectoryFlag.LONG_NAMES
)


def status_of(
    kind: int = stat.S_IFREG,
    size: int = 0,
    blocks: int = 0,
    links: int = 1,
    owner: int = OWNER,
    modified_s: int = 1000,
    inode: int = 1,
) -> os.stat_result:
    """Make what lstat would say."""
    whole = (kind | 0o644, inode, 7, links, owner, 0, size, 0, modified_s, 0)
    return os.stat_result(whole, {"st_blocks": blocks})


Entry = tuple[bytes, os.stat_result]
ENTRIES = st.lists(
    st.tuples(
        st.binary(min_size=1, max_size=255).map(lambda name: name.replace(b"/", b"-")),
        st.builds(
            status_of,
            kind=st.sampled_from(
                [stat.S_IFREG, stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFCHR]
            ),
            size=st.sampled_from([0, 1, 4096, BIG_FILE_BYTES - 1, BIG_FILE_BYTES]),
            blocks=st.sampled_from([0, 8, 1 << 20]),
            links=st.sampled_from([0, 1, 1, 2, 3]),
            owner=st.sampled_from([OWNER, OWNER, OWNER, 0]),
            modified_s=st.integers(1, 1 << 40),
        ),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda entry: entry[0],
)


def tallied(entries: list[Entry], matches: Predicate | None = None) -> tuple[DirRecord, Batch]:
    """Return the record of a directory with these entries, and the batch with it."""
    records = BatchBuilder()
    tally = DirectoryTally(5, OWNER, records)
    for name, status in entries:
        tally.add(name, status, matches)
    tally.report()
    batch = records.take()
    (record,) = batch.pieces
    return DirRecord._make(record), batch


@given(ENTRIES)
@settings(max_examples=200)
@pytest.mark.slow
def test_the_sums_are_those_of_the_entries(entries: list[Entry]) -> None:
    record, batch = tallied(entries)
    others = [(n, s) for n, s in entries if not stat.S_ISDIR(s.st_mode)]
    files = [(n, s) for n, s in others if stat.S_ISREG(s.st_mode)]
    symlinks = [s for _, s in others if stat.S_ISLNK(s.st_mode)]
    single = [s for _, s in others if s.st_nlink <= 1]
    several = [s for _, s in others if s.st_nlink > 1]
    assert record.subdirectories == len(entries) - len(others)
    assert (record.files, record.symlinks) == (len(files), len(symlinks))
    assert record.other == len(others) - len(files) - len(symlinks)
    assert record.apparent_bytes == sum(s.st_size for s in single)
    assert record.allocated_bytes == sum(s.st_blocks * 512 for s in single)
    assert record.name_bytes == sum(len(n) for n, _ in others)
    assert record.longest_name == max(len(n) for n, _ in entries)
    assert record.record_bytes == sum((19 + len(n) + 1 + 7) // 8 * 8 for n, _ in entries)
    assert record.oldest_s == min((int(s.st_mtime) for _, s in others), default=0)
    assert record.newest_s == max((int(s.st_mtime) for _, s in others), default=0)
    assert bool(record.flags & DirectoryFlag.FOREIGN_OWNERS) == any(
        s.st_uid != OWNER for _, s in entries
    )
    assert [link.allocated_bytes for link in batch.links] == [s.st_blocks * 512 for s in several]
    assert [(file.name, file.device, file.inode) for file in batch.big_files] == [
        (n, *((s.st_dev, s.st_ino) if s.st_nlink > 1 else (0, 0)))
        for n, s in files
        if s.st_size >= BIG_FILE_BYTES
    ]


def test_names_of_one_inode_and_large_files_are_reported_one_by_one() -> None:
    large = status_of(size=BIG_FILE_BYTES, blocks=16, links=2, modified_s=9, inode=3)
    fifo = status_of(kind=stat.S_IFIFO, links=2, inode=4)
    record, batch = tallied([(b"a", large), (b"b", fifo)])
    assert batch.links == [
        Link(5, 7, 3, 2, BIG_FILE_BYTES, 8192, 0, False, 9),
        Link(5, 7, 4, 2, 0, 0, 2, False, 1000),
    ]
    assert batch.big_files == [BigFile(5, b"a", BIG_FILE_BYTES, 8192, 9, 7, 3)]
    assert (record.apparent_bytes, record.allocated_bytes) == (0, 0)
    assert (record.files, record.other) == (1, 1)


def test_only_files_are_large() -> None:
    _, batch = tallied(
        [
            (b"d", status_of(kind=stat.S_IFDIR, size=BIG_FILE_BYTES)),
            (b"c", status_of(kind=stat.S_IFCHR, size=BIG_FILE_BYTES)),
        ]
    )
    assert batch.big_files == []


def test_what_was_reported_is_forgotten_but_for_flags() -> None:
    records = BatchBuilder()
    tally = DirectoryTally(5, OWNER, records)
    tally.add(b"-x", status_of(size=5, blocks=8, links=2))
    tally.add(b"y" * 30, status_of(size=7))
    tally.report()
    records.take()
    tally.add(b"z", status_of(size=1, modified_s=5))
    tally.report()
    batch = records.take()
    (record,) = (DirRecord._make(piece) for piece in batch.pieces)
    assert (record.files, record.apparent_bytes, record.allocated_bytes) == (1, 1, 0)
    assert batch.links == []
    assert (record.oldest_s, record.newest_s, record.name_bytes) == (5, 5, 1)
    assert record.flags == DirectoryFlag.DASH_NAMES
    assert record.longest_name == 30


def test_matches_are_counted_by_kind_and_links_only_marked() -> None:
    entries = [
        (b"ax", status_of(size=10, blocks=1)),
        (b"b", status_of(size=100)),
        (b"cx", status_of(kind=stat.S_IFLNK, size=1000)),
        (b"dx", status_of(kind=stat.S_IFIFO)),
        (b"ex", status_of(size=10_000, links=2, modified_s=9)),
        (b"f", status_of(links=2)),
        (b"gx", status_of(kind=stat.S_IFDIR)),
        (b"hx", status_of(size=100_000, links=0)),
    ]
    _, batch = tallied(entries, lambda name, _: name.endswith(b"x"))
    assert batch.matched == [(5, 2, 1, 1, 101_010, 512, 9, 1000)]
    links = [Link._make(link) for link in batch.links]
    assert [(link.apparent_bytes, link.is_matched) for link in links] == [
        (10_000, True),
        (0, False),
    ]


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        (b"plain", 0),
        ("caf\u00e9".encode(), 0),
        ("\u65e5\u672c".encode(), 0),
        (b"in-side dash", 0),
        (b"-rf", DirectoryFlag.DASH_NAMES),
        (b" x", DirectoryFlag.SPACE_NAMES),
        (b"x ", DirectoryFlag.SPACE_NAMES),
        (b"new\nline", DirectoryFlag.CONTROL_NAMES),
        (b"\x7f", DirectoryFlag.CONTROL_NAMES),
        ("\u202egnp.exe".encode(), DirectoryFlag.CONTROL_NAMES),
        ("\u200b".encode(), DirectoryFlag.CONTROL_NAMES),
        ("\u0085".encode(), DirectoryFlag.CONTROL_NAMES),
        ("\u00a0".encode(), DirectoryFlag.CONTROL_NAMES),
        ("\ue000".encode(), DirectoryFlag.CONTROL_NAMES),
        ("\u0378\U0003d000".encode(), 0),  # unassigned in some versions of Unicode
        (b"caf\xe9", DirectoryFlag.UNDECODABLE_NAMES),
        (b"\xff\x01", DirectoryFlag.UNDECODABLE_NAMES | DirectoryFlag.CONTROL_NAMES),
        (
            b"- \xff",
            DirectoryFlag.DASH_NAMES | DirectoryFlag.UNDECODABLE_NAMES,
        ),
        (b"n" * (LONG_NAME_BYTES - 1), 0),
        (b"n" * LONG_NAME_BYTES, DirectoryFlag.LONG_NAMES),
    ],
)
@pytest.mark.parametrize("kind", [stat.S_IFREG, stat.S_IFDIR])
def test_a_name_is_flagged(name: bytes, flags: int, kind: int) -> None:
    entries = [(b"a", status_of()), (name, status_of(kind=kind)), (b"b", status_of())]
    assert tallied(entries)[0].flags & NAME_FLAGS == flags


def test_hostile_names_have_every_flag() -> None:
    record, _ = tallied([(name, status_of()) for name in HOSTILE_NAMES])
    assert record.flags == NAME_FLAGS


@pytest.mark.parametrize("kind", [stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK])
def test_an_entry_of_another_user_is_flagged(kind: int) -> None:
    mine = (b"f", status_of())
    assert tallied([mine])[0].flags == 0
    record, _ = tallied([mine, (b"d", status_of(kind=kind, owner=0))])
    assert record.flags == DirectoryFlag.FOREIGN_OWNERS
