"""Deleting on an overlay, as in every container: entries of a lower layer are only hidden."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.filesystems import layer_directories, mount_overlay
from tests.needs import needs_root, needs_tool, needs_tools_of
from tests.trees import many_directories
from tui_fs.strategies.registry import STRATEGIES


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


MIB = 1 << 20


def _mount_fuse_overlayfs(place: Path, fill: Callable[[Path], None]) -> Path:
    needs_root("mounting fuse-overlayfs")
    program = needs_tool("fuse-overlayfs", package="fuse-overlayfs")
    merged, options = layer_directories(place, fill)
    merged.mkdir()
    subprocess.run([program, "-o", options, merged], check=True)
    return merged


def _fill(lower: Path) -> None:
    (lower / "target").mkdir()
    (lower / "target" / "large").write_bytes(b"x" * (3 * MIB))
    for number in range(400):
        (lower / "target" / f"empty-{number}").touch()


@pytest.mark.parametrize("mount", [mount_overlay, _mount_fuse_overlayfs])
def test_files_of_a_lower_layer_may_free_nothing(
    cli: Cli, tmpfs: Path, mount: Callable[[Path, Callable[[Path], None]], Path]
) -> None:
    target = mount(tmpfs, _fill) / "target"

    surveyed = cli.run("survey", "--json", target).expect(0).object()
    assert (surveyed["freed_bytes_min"], surveyed["freed_bytes_max"]) == (0, 3 * MIB)
    (finding,) = [
        pathology for pathology in surveyed["pathologies"] if pathology["kind"] == "lower-layer"
    ]
    assert "lower layer" in finding["meaning"]
    text = cli.run("survey", target).expect(0).stdout.decode()
    assert "0 B to 3.0 MiB (files in a lower layer free no space)" in text

    estimated = cli.run("estimate", "--json", target).expect(0).object()
    assert (estimated["freed_bytes_min"], estimated["freed_bytes_max"]) == (0, 3 * MIB)
    assert (estimated["freed_inodes_min"], estimated["freed_inodes_max"]) == (0, 402)
    text = cli.run("estimate", target).expect(0).stdout.decode()
    assert "frees 0 B to 3.0 MiB (files in a lower layer free no space)" in text
    quick = cli.run("estimate", "--quick", target).expect(0).stdout.decode()
    assert re.search(r"frees 0 B to [0-9.]+ MiB \(files in a lower layer free no space\)", quick), (
        quick
    )

    report = cli.delete(target, "rm").expect(0).report()
    expected = report["expected"]
    assert (expected["freed_bytes_min"], expected["freed_bytes_max"]) == (0, 3 * MIB)
    causes = [(cause["kind"], cause["bytes"], cause["inodes"]) for cause in report["space_causes"]]
    assert causes == [("overlay", 3 * MIB, None)], report["space_causes"]


def test_filtered_files_of_a_lower_layer_may_free_nothing(cli: Cli, tmpfs: Path) -> None:
    target = mount_overlay(tmpfs, _fill) / "target"
    report = cli.delete(target, "find", "--name", "large").expect(0).report()
    assert report["expected"]["freed_bytes_min"] == 0
    assert [cause["kind"] for cause in report["space_causes"]] == ["overlay"]


def test_target_with_one_on_an_overlay_may_free_nothing(cli: Cli, tmpfs: Path) -> None:
    other = tmpfs / "other"
    other.mkdir()
    (other / "large").write_bytes(b"x" * MIB)
    (tmpfs / "place").mkdir()
    target = mount_overlay(tmpfs / "place", _fill) / "target"
    estimated = cli.run("estimate", "--json", other, target).expect(0).object()
    assert (estimated["freed_bytes_min"], estimated["freed_bytes_max"]) == (0, 4 * MIB)
