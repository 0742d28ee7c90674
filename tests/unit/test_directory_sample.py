"""Extrapolation from a part of one directory to all of it."""

import math
import os
import random
from pathlib import Path

import pytest

from tests.trees import flat
from tui_fs.linux.directories import DT_UNKNOWN, Dirent
from tui_fs.survey.directory_sample import (
    ENOUGH_NAMES,
    MAX_NAMES,
    DirectorySample,
    DirectorySampler,
    Family,
)

FILES, DIRECTORIES = 6_000, 6_000


def half_directories(directory: Path) -> None:
    """Make a large directory, half of it directories."""
    flat(directory, FILES)
    for number in range(DIRECTORIES):
        os.mkdir(directory / f"d{number}")


def read(directory: Path, family: Family, links: int | None = None) -> DirectorySample:
    """Read a part of a directory, as if it had another link count."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        status = os.fstat(descriptor)
        if links is not None:
            named = {name for name in dir(status) if name[:3] == "st_"}
            further = {name: getattr(status, name) for name in named - {*status.__match_args__}}
            status = os.stat_result((*status[:3], links, *status[4:]), further)
        return DirectorySampler(random.Random(1), lambda: False).read(descriptor, status, family)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("links", [None, 1])
def test_the_link_count_gives_the_directories_where_it_counts_them(
    ext4: Path, links: int | None
) -> None:
    # ext4 writes 1 for more than 64,998 subdirectories
    half_directories(ext4 / "t")
    sample = read(ext4 / "t", Family.EXT, links)
    assert not sample.is_complete
    spread = math.sqrt(sample.directories_variance)
    assert abs(sample.directories - DIRECTORIES) <= 3 * spread
    assert spread < 0.05 * DIRECTORIES
    assert (spread == 0) == (links is None)


def test_a_directory_of_an_unknown_file_system_is_read_to_its_end(tmp_path: Path) -> None:
    flat(tmp_path / "t", 3 * ENOUGH_NAMES)
    sample = read(tmp_path / "t", Family.OTHER)
    assert (sample.entries, sample.variance, sample.is_complete) == (3 * ENOUGH_NAMES, 0, True)


def test_the_rest_of_a_directory_of_an_unknown_file_system_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flat(tmp_path / "t", 3 * ENOUGH_NAMES)
    monkeypatch.setattr("tui_fs.survey.directory_sample.MAX_NAMES", MAX_NAMES // 100)
    sample = read(tmp_path / "t", Family.OTHER)
    assert len(sample.names) < 3 * ENOUGH_NAMES
    assert sample.unknown > len(sample.names)
    assert not sample.is_complete


def test_kinds_that_are_not_given_with_the_names_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / "t" / name).mkdir(parents=True)
    (tmp_path / "t/file").touch()
    sampler = DirectorySampler(random.Random(1), lambda: False)
    plain = sampler._reader.read

    def without_kinds(descriptor: int) -> list[Dirent] | None:
        batch = plain(descriptor)
        return batch and [name._replace(kind=DT_UNKNOWN) for name in batch]

    monkeypatch.setattr(sampler._reader, "read", without_kinds)
    descriptor = os.open(tmp_path / "t", os.O_RDONLY)
    sample = sampler.read(descriptor, os.fstat(descriptor), Family.OTHER)
    os.close(descriptor)
    assert (sample.entries, sample.directories) == (3, 2)
