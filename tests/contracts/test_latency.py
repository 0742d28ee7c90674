"""Surveys and jobs where a server answers late."""

import os
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.contracts.calibrating import calibrated
from tests.fuse.latency import missed, only_for, served_late
from tests.needs import needs_engine
from tests.trees import flat, hostile_names, many_directories
from tui_fs.job.calibration.store import SERVED_FROM_ENTRIES, needs_measuring

DELAY_MS = 0.5
DIRECTORIES = 20


@pytest.fixture
def backing(tmpfs: Path) -> Path:
    """Return the directory that the server shows, with a tree in it."""
    directory = tmpfs / "backing"
    directory.mkdir()
    many_directories(directory / "tree", DIRECTORIES, 15)
    flat(directory / "tree" / "flat", 700)
    hostile_names(directory / "tree" / "names")
    return directory


def test_many_walkers_count_as_one(cli: Cli, backing: Path) -> None:
    needs_engine()
    with served_late(backing, backing.parent / "mount", DELAY_MS) as mounted:
        late = cli.run("survey", "--json", mounted / "tree").expect(0).object()
        once = cli.run("survey", "--json", backing / "tree").expect(0).object()
    assert late["entries"] == once["entries"] > 700 + DIRECTORIES * 16
    for key in ("files", "directories", "symlinks", "other", "apparent_bytes", "max_depth"):
        assert late[key] == once[key], key


def test_a_server_is_measured_before_more_is_deleted(cli: Cli, backing: Path) -> None:
    needs_engine()
    with served_late(backing, backing.parent / "mount", 5.0) as mounted:
        target = str(mounted / "tree")
        assert needs_measuring(target, SERVED_FROM_ENTRIES)
        assert not needs_measuring(target, SERVED_FROM_ENTRIES - 1)
        prices = calibrated(target).prices
        numbers = cli.run("estimate", "--json", target).expect(0).object()
    # Nothing is left; a removal waits once or more, and threads wait at the same time
    assert os.listdir(backing) == ["tree"]
    rm, parallel = prices["rm"], prices["parallel"]
    assert rm.name_s > 0.005
    assert parallel.beside_s is not None and parallel.beside_s < rm.name_s / 4
    assert numbers["recommended"] == "parallel"


@pytest.mark.parametrize("strategy", ("rsync", "parallel"), indirect=True)
def test_a_strategy_deletes(cli: Cli, backing: Path, strategy: str) -> None:
    with served_late(backing, backing.parent / "mount", DELAY_MS) as mounted:
        finished = cli.delete(mounted / "tree", strategy).expect(0)
        assert finished.stream()[-1]["outcome"] == "done"
    assert os.listdir(backing) == []


@pytest.mark.parametrize("options", [("--keep-root",), ("--name", "file-*")], ids=" ".join)
def test_entries_that_the_engine_misses_are_no_success(
    cli: Cli, backing: Path, options: tuple[str, ...]
) -> None:
    # No rmdir detects entries that are left in a directory that is kept
    needs_engine()
    faults = (*missed("tree", "flat"), *only_for("tui-fs-engine delete"))
    with served_late(backing, backing.parent / "mount", 0.0, *faults) as mounted:
        report = cli.delete(mounted / "tree", "parallel", *options).expect(1).report()
    assert report["outcome"] == "partial"
    assert len(os.listdir(backing / "tree" / "flat")) == 700
    assert report["surviving_entries"] == (701 if options == ("--keep-root",) else 700)
