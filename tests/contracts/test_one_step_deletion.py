"""Survey and estimate name the command that deletes a target in one step."""

import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.fuse.latency import served_late
from tests.needs import needs_root, needs_tool


def _subvolume(action: str, path: Path) -> None:
    needs_root("btrfs subvolume")
    btrfs_tool = needs_tool("btrfs", package="btrfs-progs")
    subprocess.run([btrfs_tool, "-q", "subvolume", action, path], check=True)


@pytest.fixture
def subvolume(btrfs: Path) -> Iterator[Path]:
    """Yield a subvolume with a directory in it."""
    path = btrfs / "a volume"
    _subvolume("create", path)
    (path / "directory").mkdir()
    (path / "directory" / "file").touch()
    yield path
    if path.exists():
        _subvolume("delete", path)


def _advice(cli: Cli, path: Path) -> list[str]:
    surveyed = cli.run("survey", "--json", path).expect(0).object()
    findings = [f for f in surveyed["pathologies"] if f["kind"] == "one-step-deletion"]
    for finding in findings:
        assert (finding["path"], finding["severity"]) == (str(path), "info")
    return [finding["advice"] for finding in findings]


def test_the_command_in_the_survey_deletes_the_subvolume(cli: Cli, subvolume: Path) -> None:
    (advice,) = _advice(cli, subvolume)
    shown = advice.partition("tui-fs does not run this command: ")[2]
    assert shown == f"btrfs subvolume delete '{subvolume}'"
    text = cli.run("survey", subvolume).expect(0).stdout.decode()
    assert f"info: one-step-deletion: {subvolume}\n" in text
    estimated = cli.run("estimate", "--json", subvolume).expect(0).object()
    assert shown in estimated["refused"]
    for row in estimated["strategies"]:
        assert [reason for reason in row["reasons"] if reason.endswith(f": {shown}")]
    assert (subvolume / "directory" / "file").exists()
    subprocess.run(shlex.split(shown), check=True, capture_output=True)
    assert not subvolume.exists()


def test_a_directory_in_a_subvolume_and_a_mount_point_have_no_such_command(
    cli: Cli, subvolume: Path, btrfs_root: Path
) -> None:
    assert _advice(cli, subvolume / "directory") == []
    assert _advice(cli, btrfs_root) == []


def test_the_command_fails_as_announced_if_a_subvolume_is_inside(cli: Cli, subvolume: Path) -> None:
    inside = subvolume / "inside"
    _subvolume("create", inside)
    (advice,) = _advice(cli, subvolume)
    assert "it fails if the subvolume contains another one" in advice
    command = shlex.split(advice.partition("tui-fs does not run this command: ")[2])
    assert subprocess.run(command, check=False, capture_output=True).returncode != 0
    assert inside.exists()
    _subvolume("delete", inside)


def test_the_command_of_juicefs_is_named_and_hinders_nothing(cli: Cli, tmpfs: Path) -> None:
    # A FUSE mount with the type of JuiceFS
    (tmpfs / "backing" / "target" / "directory").mkdir(parents=True)
    with served_late(tmpfs / "backing", tmpfs / "mount", 0.0, "--type", "juicefs") as mounted:
        target = mounted / "target"
        shown = f"juicefs rmr {target}"
        (advice,) = _advice(cli, target)
        assert advice.endswith(f"tui-fs does not run this command: {shown}")
        estimated = cli.run("estimate", "--json", target).expect(0).object()
        text = cli.run("estimate", target).expect(0).stdout.decode()
        assert estimated["refused"] is None
        assert {row["feasible"] for row in estimated["strategies"]} == {True}
        assert len([line for line in text.splitlines() if line.endswith(f": {shown}")]) == 1
        cli.delete(target, "rm").expect(0)
        assert os.listdir(mounted) == []
