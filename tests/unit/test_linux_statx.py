"""Birth time and mount id of open files."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.filesystems import mount_overlay
from tui_fs.linux.mounts import mount_of, read_mounts
from tui_fs.linux.statx import statx

COARSE_CLOCK_NS = 100_000_000
"""The kernel stamps files with the time of its last tick."""


@contextmanager
def opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_PATH | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def test_birth_time_is_the_moment_of_creation(tmp_path: Path) -> None:
    before_ns = time.time_ns()
    (tmp_path / "d").mkdir()
    os.utime(tmp_path / "d", (0, 0))
    with opened(tmp_path / "d") as descriptor:
        birth_ns = statx(descriptor).birth_ns
    assert birth_ns is not None
    assert before_ns - COARSE_CLOCK_NS <= birth_ns <= time.time_ns()


def test_mount_id_is_that_of_the_mount_table(tmp_path: Path) -> None:
    mount = mount_of(str(tmp_path), read_mounts())
    assert mount is not None
    with opened(tmp_path) as descriptor:
        assert statx(descriptor).mount_id == mount.mount_id


def test_overlay_has_no_birth_time_because_deleting_changes_it(tmpfs: Path) -> None:
    merged = mount_overlay(tmpfs, lambda lower: (lower / "target").mkdir())
    with opened(merged / "target") as descriptor:
        assert statx(descriptor).birth_ns is None


def test_closed_descriptor_is_an_error(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    os.close(descriptor)
    with pytest.raises(OSError):
        statx(descriptor)
