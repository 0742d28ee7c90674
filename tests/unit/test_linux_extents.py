"""The number of extents of real files."""

import os
from pathlib import Path

import pytest

from tests.conftest import open_descriptors
from tui_fs.linux.extents import extents_of

BLOCK_BYTES = 4096


def with_holes(path: Path, pieces: int) -> None:
    """Write every other block, so that no two pieces can be one extent."""
    with path.open("wb") as file:
        for number in range(pieces):
            file.seek(2 * number * BLOCK_BYTES)
            file.write(b"x" * BLOCK_BYTES)
        os.fsync(file.fileno())


@pytest.mark.parametrize("pieces", [0, 1, 2, 500])
def test_each_piece_between_holes_is_an_extent(ext4: Path, pieces: int) -> None:
    path = ext4 / "file"
    with_holes(path, pieces)
    assert extents_of(str(path)) == pieces


def test_a_file_system_without_extent_reports(tmpfs: Path) -> None:
    with_holes(tmpfs / "file", 3)
    assert extents_of(str(tmpfs / "file")) is None


def test_a_path_longer_than_the_kernel_takes_is_reported(ext4: Path) -> None:
    descriptor = os.open(ext4, os.O_RDONLY | os.O_DIRECTORY)
    name = "n" * 250
    for _ in range(18):
        os.mkdir(name, dir_fd=descriptor)
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    file = os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor)
    os.write(file, b"x" * BLOCK_BYTES)
    os.fsync(file)
    os.close(file)
    os.close(descriptor)
    assert extents_of(f"{ext4}{f'/{name}' * 18}/file") == 1


def test_no_link_is_followed_and_nothing_waits(ext4: Path) -> None:
    (ext4 / "d").mkdir()
    with_holes(ext4 / "d" / "file", 1)
    (ext4 / "link").symlink_to("d/file")
    (ext4 / "way").symlink_to("d")
    os.mkfifo(ext4 / "fifo")
    before = open_descriptors()
    for name in ("link", "way/file", "fifo", "missing", "missing/file", "d/file/below"):
        assert extents_of(str(ext4 / name)) is None
    assert extents_of(str(ext4 / "d" / "file")) == 1
    assert open_descriptors() == before
