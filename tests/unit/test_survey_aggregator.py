"""The aggregator adds up the records of directories."""

from typing import Any

import pytest

from tui_fs.model.paths import PathStr
from tui_fs.model.survey import LargeDirectory, Ranking, Totals
from tui_fs.survey import aggregator as collector_module
from tui_fs.survey.aggregator import BIG_FILES_KEPT, ROWS_NAMED, Aggregator
from tui_fs.survey.records import (
    NO_PARENT,
    Batch,
    BigFile,
    Cells,
    DirectoryFlag,
    DirRecord,
    Link,
    Matched,
)


def batch(
    *pieces: DirRecord,
    links: tuple[Link, ...] = (),
    big_files: tuple[BigFile, ...] = (),
    matched: tuple[Matched, ...] = (),
    vanished: int = 0,
) -> Batch:
    """Make what a walker sends."""
    return Batch(list(pieces), list(links), list(big_files), list(matched), Cells(), vanished)


def collected(*pieces: DirRecord, filtered: bool = False, **rest: Any) -> Aggregator:
    """Add up one batch."""
    collector = Aggregator(filtered, matches_by_directory=filtered)
    collector.take(batch(*pieces, **rest))
    return collector


def root(**counts: int) -> DirRecord:
    """Make the first piece of a root."""
    return DirRecord(0, NO_PARENT, b"/t", **counts)


def test_pieces_of_a_directory_add_up() -> None:
    whole = collected(
        root(
            files=2,
            symlinks=1,
            apparent_bytes=10,
            allocated_bytes=512,
            own_bytes=4096,
            own_allocated_bytes=8192,
            oldest_s=50,
            newest_s=60,
            name_bytes=9,
            record_bytes=100,
            longest_name=5,
            pending=2,
        ),
        DirRecord(
            0,
            NO_PARENT,
            b"",
            other=3,
            apparent_bytes=7,
            oldest_s=40,
            newest_s=55,
            name_bytes=3,
            longest_name=1,
            record_bytes=10,
            pending=-1,
        ),
        DirRecord(0, NO_PARENT, b"", pending=-1),
    )
    assert whole.totals == Totals(2, 1, 1, 3, 4113, 8704)
    assert len(whole.table) == 1
    assert whole.table.ranked(Ranking.ENTRIES, 5) == (
        LargeDirectory(PathStr("/t"), 6, 4096, 6, 8704, 40, 60),
    )
    assert (whole.max_entries, whole.non_empty, whole.parents, whole.max_depth) == (6, 1, 0, 1)
    assert whole.max_path_bytes == len("/t/") + 5
    assert whole.non_directory_path_bytes == 12 + 6 * len("/t/")
    assert whole.table.subtree(0).is_complete


def test_a_directory_is_complete_when_all_that_was_announced_has_come() -> None:
    collector = Aggregator(filtered=False)
    pieces = [
        root(subdirectories=2, pending=2),
        DirRecord(1, 0, b"a", subdirectories=1, pending=1),
        DirRecord(3, 0, b"b"),
        DirRecord(2, 1, b"c"),
    ]
    seen = []
    for piece in pieces:
        collector.take(batch(piece))
        table = collector.table
        seen.append([table.subtree(row).is_complete for row in range(len(table))])
    assert seen == [
        [False],
        [False, False],
        [False, False, True],
        [True, True, True, True],
    ]


def test_a_vanished_directory_is_no_directory() -> None:
    collector = collected(
        root(subdirectories=2, pending=2),
        DirRecord(1, 0, b"a", flags=DirectoryFlag.VANISHED),
        DirRecord(
            2, 0, b"b", flags=DirectoryFlag.UNREADABLE, own_bytes=10, own_allocated_bytes=512
        ),
        vanished=3,
    )
    assert collector.totals == Totals(directories=2, apparent_bytes=10, allocated_bytes=512)
    assert (collector.vanished, collector.unreadable) == (4, 1)
    assert collector.table.subtree(0).is_complete


def test_a_directory_elsewhere_was_never_waited_for() -> None:
    collector = collected(
        root(subdirectories=1), DirRecord(1, 0, b"m", flags=DirectoryFlag.ELSEWHERE)
    )
    assert collector.totals.directories == 2
    assert collector.reads == 2
    assert list(collector.table.pending) == [0, 0]


def link(directory: int, inode: int = 1, names: int = 2, **rest: Any) -> Link:
    """Make a name of an inode of 1,000 bytes in 1,024."""
    fields = {"device": 7, "kind": 0, "is_matched": False, **rest}
    return Link(
        directory, fields["device"], inode, names, 1000, 1024, fields["kind"], fields["is_matched"]
    )


def test_an_inode_is_counted_once_wherever_its_names_lie() -> None:
    collector = collected(root(files=1, subdirectories=1, pending=1), links=(link(0),))
    assert (collector.bytes_linked_outside, collector.linked_outside) == (1024, 1)
    collector.take(batch(DirRecord(1, 0, b"a", files=1), links=(link(1),)))
    assert collector.totals == Totals(2, 2, 0, 0, 1000, 1024)
    assert (collector.inodes, collector.repeats, collector.names_of_links) == (3, 1, 2)
    assert (collector.bytes_linked_outside, collector.linked_outside) == (0, 0)
    assert collector.table.subtree(0).totals == collector.totals
    assert [row.inodes for row in collector.table.ranked(Ranking.INODES, 2)] == [2, 0]


def test_the_same_number_on_another_device_is_another_inode() -> None:
    collector = collected(root(files=2), links=(link(0), link(0, device=8)))
    assert (collector.totals.allocated_bytes, collector.repeats) == (2048, 0)
    assert (collector.linked_outside, collector.bytes_linked_outside) == (2, 2048)


def test_names_outside_keep_their_bytes() -> None:
    collector = collected(root(files=2), links=(link(0, names=3), link(0, names=3)))
    assert collector.bytes_linked_outside == collector.totals.allocated_bytes == 1024


def test_each_matching_name_counts_and_its_bytes_once() -> None:
    names = (
        link(0, names=3),
        link(0, names=3, is_matched=True),
        link(0, names=3, is_matched=True),
        link(0, inode=2, kind=1, is_matched=True),
    )
    matched = (Matched(0, 5, 0, 0, 50, 512, 7, 9),)
    collector = collected(
        root(files=3, symlinks=1),
        links=names,
        matched=matched,
        filtered=True,
    )
    assert collector.matched == Totals(7, 0, 1, 0, 2050, 2560)
    assert collector.table.matches is not None
    subtree = collector.table.matches.subtree(0)
    assert (subtree.totals, subtree.repeats) == (collector.matched, 1)
    assert (subtree.oldest_s, subtree.newest_s) == (7, 9)
    assert Aggregator(filtered=False).matched is None
    plain = Aggregator(filtered=True)  # as for the command line: one total, no second table
    plain.take(batch(root(files=3, symlinks=1), links=names, matched=matched))
    assert (plain.matched, plain.table.matches) == (collector.matched, None)


def test_matches_of_a_directory_are_those_of_everything_below_it_without_directories() -> None:
    collector = collected(
        root(files=2, subdirectories=2, pending=2),
        DirRecord(1, 0, b"a", files=5, own_allocated_bytes=4096),
        DirRecord(2, 0, b"b", files=5, own_allocated_bytes=4096),
        matched=(Matched(1, 2, 1, 0, 30, 1024, 5, 6), Matched(1, 1, 0, 0, 1, 512, 3, 4)),
        filtered=True,
    )
    table = collector.table.matches
    assert table is not None
    assert [table.subtree(row).totals for row in range(3)] == [
        Totals(3, 0, 1, 0, 31, 1536),
        Totals(3, 0, 1, 0, 31, 1536),
        Totals(),
    ]
    assert (table.subtree(0).oldest_s, table.subtree(0).newest_s) == (3, 6)
    assert table.subtree(0).is_complete == collector.table.subtree(0).is_complete
    assert [large.path for large in table.ranked(Ranking.ENTRIES, 9)] == ["/t/a"]
    assert collector.table.subtree(0).totals.entries == 15


def test_the_largest_files_are_kept() -> None:
    sizes = range(BIG_FILES_KEPT + 10, 0, -1)
    files = tuple(BigFile(size % 2, b"%d" % size, size, 0, 0) for size in sizes)
    collector = collected(root(subdirectories=1, pending=1), DirRecord(1, 0, b"a"), big_files=files)
    kept = sorted(size for size, _, _, _ in collector.big_files)
    assert kept == list(range(11, BIG_FILES_KEPT + 11))
    here = collector.big_files_in(1)
    assert {file.apparent_bytes for file in here} == {size for size in kept if size % 2}
    assert collector.path_of_file(1, b"x\xff") == "/t/a/x\udcff"


def test_a_large_file_is_kept_under_one_of_its_names() -> None:
    names = (
        BigFile(0, b"a", 9, 0, 0, 7, 5),
        BigFile(1, b"b", 9, 0, 0, 7, 5),
        BigFile(1, b"c", 9, 0, 0),
    )
    collector = collected(root(subdirectories=1, pending=1), DirRecord(1, 0, b"d"), big_files=names)
    kept = [collector.path_of_file(row, name) for _, row, name, _ in collector.big_files]
    assert sorted(kept) == ["/t/a", "/t/d/c"]


def test_only_the_first_directories_with_a_flag_are_named_but_all_counted() -> None:
    number = ROWS_NAMED + 5
    pieces = [
        DirRecord(n, 0, b"%d" % n, flags=DirectoryFlag.UNREADABLE) for n in range(1, number + 1)
    ]
    again = DirRecord(1, 0, b"", flags=DirectoryFlag.UNREADABLE | DirectoryFlag.CHANGED)
    collector = collected(root(subdirectories=number, pending=number), *pieces, again)
    assert collector.unreadable == number
    assert len(collector.paths_with(DirectoryFlag.UNREADABLE)) == ROWS_NAMED
    assert collector.paths_with(DirectoryFlag.UNREADABLE, 2) == ["/t/1", "/t/2"]
    assert collector.paths_with(DirectoryFlag.CHANGED) == ["/t/1"]
    assert collector.paths_with(DirectoryFlag.STICKY) == []


@pytest.mark.parametrize(
    ("by", "names"),
    [
        (Ranking.ENTRIES, ["many", "t", "old"]),
        (Ranking.ALLOCATED, ["large", "old", "many"]),
        (Ranking.OLDEST, ["old", "many", "large"]),
        (Ranking.NEWEST, ["large", "old", "many"]),
    ],
)
def test_directories_are_ranked_by_what_is_in_them(by: Ranking, names: list[str]) -> None:
    collector = collected(
        root(subdirectories=4, pending=4),
        DirRecord(1, 0, b"many", files=9, oldest_s=5, newest_s=6, allocated_bytes=1),
        DirRecord(2, 0, b"large", files=1, allocated_bytes=9000, oldest_s=7, newest_s=70),
        DirRecord(3, 0, b"old", files=2, oldest_s=1, newest_s=60, own_allocated_bytes=4096),
        DirRecord(4, 0, b"empty"),
    )
    ranked = collector.table.ranked(by, 3)
    assert [row.path.rpartition("/")[2] for row in ranked] == names


@pytest.mark.parametrize("by", Ranking)
def test_equal_directories_are_ranked_by_path_whatever_their_order(by: Ranking) -> None:
    same = {"files": 1, "allocated_bytes": 4096, "oldest_s": 5, "newest_s": 6}
    collector = collected(
        root(subdirectories=3, pending=3),
        *(DirRecord(row, 0, name, **same) for row, name in enumerate((b"b", b"c", b"a"), 1)),
    )
    ranked = [row.path for row in collector.table.ranked(by, 9) if row.path != "/t"]
    assert ranked == ["/t/a", "/t/b", "/t/c"]


def test_reads_are_those_of_the_whole_directory_in_any_number_of_records() -> None:
    one = collected(root(files=3, record_bytes=32_768 + 100))
    three = collected(
        root(files=1, record_bytes=32_000, pending=1),
        DirRecord(0, NO_PARENT, b"", files=1, record_bytes=700),
        DirRecord(0, NO_PARENT, b"", files=1, record_bytes=168, pending=-1),
    )
    assert (one.reads, three.reads) == (3, 3)


def test_directories_beyond_the_rows_are_counted_above(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector_module, "ROWS_LIMIT", 2)
    collector = collected(
        root(subdirectories=1, pending=1, own_bytes=1),
        DirRecord(1, 0, b"a", subdirectories=4, pending=4, files=1, record_bytes=500, own_bytes=1),
        *(DirRecord(number, 1, b"%d" % number, own_bytes=1) for number in (2, 3, 4)),
        DirRecord(5, 1, b"b", subdirectories=1, pending=1, own_bytes=1),
        DirRecord(6, 5, b"c", files=2, own_bytes=1),
        links=(link(6), link(1)),
    )
    assert len(collector.table) == 2
    assert collector.totals == Totals(3, 7, 0, 0, 1007, 1024)
    for row, directories in ((0, 7), (1, 6)):
        subtree = collector.table.subtree(row)
        assert subtree.totals == Totals(3, directories, 0, 0, 1000 + directories, 1024)
        assert subtree.is_complete
    assert collector.table.record_bytes[1] >= 500
