"""The totals of the entries of one directory, and what their names reveal."""

import os
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trees import HOSTILE_NAMES
from tui_fs.survey.records import BigFile, DirectoryFlag, Link
from tui_fs.survey.tally import BIG_FILE_BYTES, LONG_NAME_BYTES, DirectoryTally

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


def tallied(*groups: list[Entry]) -> DirectoryTally:
    """Add entries in several goes."""
    tally = DirectoryTally(5, OWNER)
    for group in groups:
        tally.add([name for name, _ in group], [status for _, status in group], None)
    return tally


@given(st.lists(ENTRIES, min_size=1, max_size=3))
@settings(max_examples=200)
@pytest.mark.slow
def test_the_sums_are_those_of_a_loop(groups: list[list[Entry]]) -> None:
    tally = DirectoryTally(5, OWNER)
    sums = [
        directory
        for group in groups
        for directory in tally.add(
            [name for name, _ in group], [member for _, member in group], None
        )
    ]
    everything = [entry for group in groups for entry in group]
    directories = [(n, s) for n, s in everything if stat.S_ISDIR(s.st_mode)]
    others = [(n, s) for n, s in everything if not stat.S_ISDIR(s.st_mode)]
    files = [(n, s) for n, s in others if stat.S_ISREG(s.st_mode)]
    symlinks = [s for _, s in others if stat.S_ISLNK(s.st_mode)]
    single = [s for _, s in others if s.st_nlink <= 1]
    several = [(n, s) for n, s in others if s.st_nlink > 1]
    assert sums == directories
    assert tally.subdirectories == len(directories)
    assert (tally.files, tally.symlinks) == (len(files), len(symlinks))
    assert tally.other == len(others) - len(files) - len(symlinks)
    assert tally.apparent == sum(s.st_size for s in single)
    assert tally.allocated == sum(s.st_blocks * 512 for s in single)
    assert tally.name_bytes == sum(len(n) for n, _ in others)
    assert tally.longest == max(len(n) for n, _ in everything)
    assert tally.record_bytes == sum((19 + len(n) + 1 + 7) // 8 * 8 for n, _ in everything)
    assert tally.oldest == min((int(s.st_mtime) for _, s in others), default=0)
    assert tally.newest == max((int(s.st_mtime) for _, s in others), default=0)
    assert bool(tally.flags & DirectoryFlag.FOREIGN_OWNERS) == any(
        s.st_uid != OWNER for _, s in everything
    )
    assert [link.allocated_bytes for link in tally.links] == [s.st_blocks * 512 for _, s in several]
    assert [(file.name, file.device, file.inode) for file in tally.big_files] == [
        (n, *((s.st_dev, s.st_ino) if s.st_nlink > 1 else (0, 0)))
        for n, s in files
        if s.st_size >= BIG_FILE_BYTES
    ]


def test_names_of_one_inode_and_large_files_are_reported_one_by_one() -> None:
    large = status_of(size=BIG_FILE_BYTES, blocks=16, links=2, modified_s=9, inode=3)
    fifo = status_of(kind=stat.S_IFIFO, links=2, inode=4)
    tally = tallied([(b"a", large), (b"b", fifo)])
    assert tally.links == [
        Link(5, 7, 3, 2, BIG_FILE_BYTES, 8192, 0, False, 9),
        Link(5, 7, 4, 2, 0, 0, 2, False, 1000),
    ]
    assert tally.big_files == [BigFile(5, b"a", BIG_FILE_BYTES, 8192, 9, 7, 3)]
    assert (tally.apparent, tally.allocated, tally.files, tally.other) == (0, 0, 1, 1)


def test_only_files_are_large() -> None:
    tally = tallied(
        [
            (b"d", status_of(kind=stat.S_IFDIR, size=BIG_FILE_BYTES)),
            (b"c", status_of(kind=stat.S_IFCHR, size=BIG_FILE_BYTES)),
        ]
    )
    assert tally.big_files == []


def test_what_was_reported_is_forgotten_but_for_flags_and_matches() -> None:
    tally = tallied([(b"-x", status_of(size=5, blocks=8, links=2)), (b"y" * 30, status_of(size=7))])
    tally.take_record()
    tally.add([b"z"], [status_of(size=1, modified_s=5)], None)
    assert (tally.files, tally.apparent, tally.allocated, tally.links) == (1, 1, 0, [])
    assert (tally.oldest, tally.newest, tally.name_bytes) == (5, 5, 1)
    assert tally.flags == DirectoryFlag.DASH_NAMES
    assert tally.longest == 30


def test_matches_are_counted_by_kind_and_links_only_marked() -> None:
    entries = [
        (b"ax", status_of(size=10, blocks=1)),
        (b"b", status_of(size=100)),
        (b"cx", status_of(kind=stat.S_IFLNK, size=1000)),
        (b"dx", status_of(kind=stat.S_IFIFO)),
        (b"ex", status_of(size=10_000, links=2)),
        (b"f", status_of(links=2)),
        (b"gx", status_of(kind=stat.S_IFDIR)),
        (b"hx", status_of(size=100_000, links=0)),
    ]
    tally = DirectoryTally(5, OWNER)
    tally.add([n for n, _ in entries], [s for _, s in entries], lambda n, _: n.endswith(b"x"))
    assert tally.matched[:5] == [2, 1, 1, 101_010, 512]
    assert [(link.apparent_bytes, link.is_matched) for link in tally.links] == [
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
    assert tallied(entries).flags & NAME_FLAGS == flags


def test_hostile_names_have_every_flag() -> None:
    assert tallied([(name, status_of()) for name in HOSTILE_NAMES]).flags == NAME_FLAGS


@pytest.mark.parametrize("kind", [stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK])
def test_an_entry_of_another_user_is_flagged(kind: int) -> None:
    mine = (b"f", status_of())
    assert tallied([mine]).flags == 0
    flags = tallied([mine, (b"d", status_of(kind=kind, owner=0))]).flags
    assert flags == DirectoryFlag.FOREIGN_OWNERS
