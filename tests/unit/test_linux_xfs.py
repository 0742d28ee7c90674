"""What the books of an xfs tell of its index of inodes, against made-up ones."""

from pathlib import Path

import pytest

from tui_fs.linux.xfs import IndexChange, index_change

DEVICE = 8 << 8 | 17
OTHER_LINES = "extent_alloc 1 2 3 4\n\nfibt2 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n"


def keep_books(system: Path, line: str) -> None:
    """Let there be a partition whose xfs has this among its statistics."""
    disk = system / "devices/pci/block/sdb/sdb1"
    disk.mkdir(parents=True)
    (system / "dev/block").mkdir(parents=True)
    (system / "dev/block/8:17").symlink_to(disk)
    (system / "fs/xfs/sdb1/stats").mkdir(parents=True)
    (system / "fs/xfs/sdb1/stats/stats").write_text(OTHER_LINES + line)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # 300 records into a leaf that is full once: two leaves, which a new root joins
        ("ibt2 9 9 300 0 1 0 9 9 9 9 1 0 2 0 9", IndexChange(300, 2)),
        # and out again: one leaf joins the other, which costs a record above it, and is the root
        ("ibt2 9 9 300 301 1 1 9 9 9 9 1 1 2 2 9", IndexChange(0, 0)),
        # a third leaf is a record in the root that is there
        ("ibt2 9 9 501 0 1 0 9 9 9 9 2 0 3 0 9", IndexChange(500, 3)),
        # from a file system that had its chunks when it was mounted
        ("ibt2 9 9 0 401 0 0 9 9 9 9 0 1 0 1 9", IndexChange(-400, -1)),
        # counters that began anew
        ("ibt2 9 9 5 4294967000 0 0 9 9 9 9 0 0 0 0 9", IndexChange(301, 0)),
    ],
)
def test_what_came_and_went(tmp_path: Path, line: str, expected: IndexChange) -> None:
    # Given what the kernel counted / When asked / Then the records of chunks, and the blocks
    keep_books(tmp_path, line)
    assert index_change(DEVICE, str(tmp_path)) == expected


@pytest.mark.parametrize("line", ["", "ibt2 1 2 3\n"])
def test_books_of_another_kernel_tell_nothing(tmp_path: Path, line: str) -> None:
    # Given statistics that are others / When asked / Then it says which
    keep_books(tmp_path, line)
    with pytest.raises(OSError, match=r"no statistics of the index.*sdb1/stats/stats"):
        index_change(DEVICE, str(tmp_path))


def test_what_is_not_on_xfs_has_none(tmp_path: Path) -> None:
    # Given a device without xfs / When asked / Then there is no such file
    with pytest.raises(FileNotFoundError):
        index_change(DEVICE, str(tmp_path))
