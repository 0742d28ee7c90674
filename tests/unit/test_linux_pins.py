"""The identity of a directory, taken without following symlinks."""

import errno
import os
import re
from pathlib import Path

import pytest

from tests.conftest import open_descriptors
from tui_fs.linux.pins import open_path_fd, pin_of, take_pin


def test_a_pin_is_device_inode_and_mount(tmp_path: Path) -> None:
    status = tmp_path.stat()
    pin = take_pin(str(tmp_path))
    assert (pin.device, pin.inode) == (status.st_dev, status.st_ino)
    table = Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
    assert re.search(rf"^{pin.mount_id} ", table, re.MULTILINE)


def test_a_directory_of_the_same_name_has_another_pin(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    before = take_pin(str(tmp_path / "d"))
    (tmp_path / "d").rename(tmp_path / "e")
    (tmp_path / "d").mkdir()
    assert take_pin(str(tmp_path / "d")) != before
    assert take_pin(str(tmp_path / "e")) == before


@pytest.mark.parametrize("kind", ["symlink", "file", "fifo", "nothing"])
def test_only_a_directory_itself_can_be_pinned(tmp_path: Path, kind: str) -> None:
    # Something else of that name
    path = tmp_path / "x"
    match kind:
        case "symlink":
            path.symlink_to(tmp_path)
        case "file":
            path.touch()
        case "fifo":
            os.mkfifo(path)
    with pytest.raises(OSError) as refusal:
        take_pin(str(path))
    assert refusal.value.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENOENT)


def test_an_open_directory_keeps_its_pin_when_renamed(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    descriptor = open_path_fd(str(tmp_path / "d"))
    try:
        before = pin_of(descriptor)
        (tmp_path / "d").rename(tmp_path / "e")
        assert pin_of(descriptor) == before == take_pin(str(tmp_path / "e"))
    finally:
        os.close(descriptor)


def test_taking_a_pin_leaves_no_descriptor(tmp_path: Path) -> None:
    before = open_descriptors()
    take_pin(str(tmp_path))
    assert open_descriptors() == before
