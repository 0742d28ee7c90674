"""Inode flags, as chattr sets them."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needs import needs_root, needs_tool
from tests.unit.walkers import walked
from tui_fs.linux.statx import APPEND_ONLY, IMMUTABLE, inode_flags, spread_subdirectories
from tui_fs.survey.records import DirectoryFlag


def flags_of(path: Path) -> int | None:
    """Ask about a directory."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return inode_flags(descriptor)
    finally:
        os.close(descriptor)


@pytest.fixture
def flagged(ext4: Path) -> Iterator[Path]:
    """Give a directory with an immutable and an append-only one in it."""
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


def test_where_there_are_no_flags_none_is_told() -> None:
    assert flags_of(Path("/proc/self")) is None


@pytest.mark.root
def test_subdirectories_are_spread_on_ext4_and_nothing_else_changes(ext4: Path) -> None:
    needs_root("mounting ext4")
    lsattr = needs_tool("lsattr", package="e2fsprogs")

    def letters() -> str:
        command = [str(lsattr), "-d", str(ext4)]
        told = subprocess.run(command, capture_output=True, text=True, check=True)
        return told.stdout.split()[0]

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
