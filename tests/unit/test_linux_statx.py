"""Birth times, mount ids and inode flags of open files."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.filesystems import mount_overlay
from tests.needs import needs_root, needs_tool
from tests.unit.walkers import walked
from tui_fs.linux.mounts import mount_of, read_mounts
from tui_fs.linux.statx import APPEND_ONLY, IMMUTABLE, inode_flags, spread_subdirectories, statx
from tui_fs.survey.records import DirectoryFlag

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


def flags_of(path: Path) -> int | None:
    """Ask about a directory."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return inode_flags(descriptor)
    finally:
        os.close(descriptor)


@pytest.fixture
def flagged(ext4: Path) -> Iterator[Path]:
    """Yield a directory with an immutable and an append-only one in it."""
    needs_root("chattr")
    chattr = needs_tool("chattr", package="e2fsprogs")
    for name, sign in (("plain", ""), ("immutable", "+i"), ("append", "+a"), ("both", "+ia")):
        (ext4 / name).mkdir()
        if sign:
            subprocess.run([chattr, sign, ext4 / name], check=True)
    yield ext4
    subprocess.run([chattr, "-R", "-ia", ext4], check=True)


def test_flags_are_those_that_chattr_has_set(flagged: Path) -> None:
    def of(name: str) -> int:
        flags = flags_of(flagged / name)
        assert flags is not None
        return flags & (IMMUTABLE | APPEND_ONLY)

    assert of("plain") == 0
    assert of("immutable") == IMMUTABLE
    assert of("append") == APPEND_ONLY
    assert of("both") == IMMUTABLE | APPEND_ONLY


def test_a_survey_notes_the_directories_that_have_them(flagged: Path) -> None:
    counted, _ = walked(flagged)
    immutable = {str(flagged / name) for name in ("immutable", "both")}
    append_only = {str(flagged / name) for name in ("append", "both")}
    assert set(counted.paths_with(DirectoryFlag.IMMUTABLE)) == immutable
    assert set(counted.paths_with(DirectoryFlag.APPEND_ONLY)) == append_only


def test_where_there_are_no_flags_none_is_reported() -> None:
    assert flags_of(Path("/proc/self")) is None


@pytest.mark.root
def test_subdirectories_are_spread_on_ext4_and_nothing_else_changes(ext4: Path) -> None:
    needs_root("mounting ext4")
    lsattr = needs_tool("lsattr", package="e2fsprogs")

    def letters() -> str:
        command = [str(lsattr), "-d", str(ext4)]
        output = subprocess.run(command, capture_output=True, text=True, check=True)
        return output.stdout.split()[0]

    before = letters()
    descriptor = os.open(ext4, os.O_RDONLY | os.O_DIRECTORY)
    spread_subdirectories(descriptor)
    os.close(descriptor)
    assert "T" not in before
    assert letters().replace("T", "-") == before and "T" in letters()


def test_elsewhere_there_is_nothing_to_spread(tmpfs: Path) -> None:
    before = flags_of(tmpfs)
    descriptor = os.open(tmpfs, os.O_RDONLY | os.O_DIRECTORY)
    spread_subdirectories(descriptor)
    os.close(descriptor)
    assert flags_of(tmpfs) == before
