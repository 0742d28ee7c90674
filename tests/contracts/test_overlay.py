"""Deleting on an overlay, as in every container: what lies in a lower layer is only hidden."""

import os
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.filesystems import mount_overlay
from tests.needs import needs_tools_of
from tests.trees import many_directories

STRATEGIES = ("rm", "find", "xargs", "rsync", "rmtree", "parallel")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_directory_of_a_lower_layer_is_done_when_all_is_gone(
    cli: Cli, tmpfs: Path, strategy: str
) -> None:
    needs_tools_of(strategy)
    merged = mount_overlay(tmpfs, lambda lower: many_directories(lower / "target", 3, 5))
    report = cli.delete(merged / "target", strategy).expect(0).report()
    assert os.listdir(merged) == []
    assert report["outcome"] == "done", report["explanation"]
    assert report["targets"][0]["gone"] is True


def test_moved_directory_of_a_lower_layer_is_not_done(cli: Cli, tmpfs: Path) -> None:
    merged = mount_overlay(tmpfs, lambda lower: many_directories(lower / "kept (deleted)", 2, 2))
    kept = merged / "kept (deleted)"
    report = cli.delete(kept, "rm", "--keep-root").expect(0).report()
    assert report["outcome"] == "done", report["explanation"]
    assert kept.is_dir()
