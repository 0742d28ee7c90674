"""Reading directories with positions, compared with what the interpreter lists."""

import errno
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trees import flat
from tui_fs.linux.directories import DT_DIR, DT_LNK, DT_REG, Dirent, DirentReader, parsed

NAMES = st.binary(min_size=1, max_size=255).filter(lambda name: b"\0" not in name)


def all_of(directory: Path) -> list[Dirent]:
    """Read a directory to its end."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    dirents: list[Dirent] = []
    reader = DirentReader()
    while (batch := reader.read(descriptor)) is not None:
        dirents += batch
    os.close(descriptor)
    return dirents


def test_names_kinds_and_inodes_are_those_of_scandir(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("directory")
    os.close(os.open(os.fsencode(tmp_path) + b"/\xff\n", os.O_CREAT))
    entries = {dirent.name: (dirent.kind, dirent.inode) for dirent in all_of(tmp_path)}
    assert {name: kind for name, (kind, _) in entries.items()} == {
        b"directory": DT_DIR,
        b"file": DT_REG,
        b"link": DT_LNK,
        b"\xff\n": DT_REG,
    }
    assert {name: inode for name, (_, inode) in entries.items()} == {
        entry.name: entry.inode() for entry in os.scandir(os.fsencode(tmp_path))
    }


def test_more_names_than_a_buffer_holds_are_each_read_once(tmp_path: Path) -> None:
    flat(tmp_path / "many", 3_000)
    (tmp_path / "none").mkdir()
    names = [entry.name for entry in all_of(tmp_path / "many")]
    assert len(names) == 3_000
    assert set(names) == set(os.listdir(os.fsencode(tmp_path / "many")))
    assert all_of(tmp_path / "none") == []


def test_reading_goes_on_from_a_position(filesystem: Path) -> None:
    flat(filesystem / "many", 500)
    names = all_of(filesystem / "many")
    descriptor = os.open(filesystem / "many", os.O_RDONLY | os.O_DIRECTORY)
    os.lseek(descriptor, names[199].next_position, os.SEEK_SET)
    assert DirentReader().read(descriptor) == names[200:]
    os.close(descriptor)


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)
    with pytest.raises(OSError) as error:
        DirentReader().read(descriptor)
    assert error.value.errno == errno.ENOTDIR
    os.close(descriptor)


@given(st.lists(st.tuples(NAMES, st.integers(0, 14), st.integers(1, 2**64 - 1))))
def test_every_record_is_parsed(names: list[tuple[bytes, int, int]]) -> None:
    buffer = b""
    for name, kind, inode in names:
        length = (19 + len(name) + 1 + 7) & ~7
        buffer += struct.pack("=QqHB", inode, 7, length, kind) + name.ljust(length - 19, b"\0")
    expected = [Dirent(n, k, i, 7) for n, k, i in names if n not in (b".", b"..")]
    assert parsed(buffer + b"rest of an earlier one", len(buffer)) == expected
