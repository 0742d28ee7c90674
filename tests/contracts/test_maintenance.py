"""Refusals of ``recreate`` and ``aside``, with the sentence that says why."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.contracts.curing import full, put_aside, refused, spool
from tests.contracts.test_overlap import cancel, start_slowly
from tests.filesystems import mount_overlay, mount_tmpfs, unmount_below
from tests.namespaces import other_namespace
from tests.needs import needs_root, needs_tool
from tests.trees import flat

__all__ = ["full", "spool"]


@pytest.mark.parametrize("command", ["recreate", "aside"])
def test_without_a_terminal_it_needs_yes(cli: Cli, spool: Path, command: str) -> None:
    """Without a terminal for the confirmation, nothing is changed."""
    inode = spool.stat().st_ino

    assert "Add --yes" in refused(cli.run(command, spool), 2)

    assert spool.stat().st_ino == inode


@pytest.mark.parametrize("command", ["recreate", "aside"])
def test_a_mount_point_is_refused(cli: Cli, spool: Path, command: str) -> None:
    """A mount point is refused, as for deleting."""
    needs_root("mounting")
    mount_tmpfs(spool)
    try:
        assert "mount point" in refused(cli.run(command, spool, "--yes"))
    finally:
        unmount_below(spool)


def test_a_container_that_mounts_on_the_twin_keeps_it(cli: Cli, full: Path) -> None:
    """A mount on the twin in another namespace makes the undo be refused."""
    needs_root("a mount namespace")
    record = put_aside(cli, full, "--twin")
    with other_namespace('mount -t tmpfs none "$1"', full) as pid:
        sentence = refused(cli.run("aside", "--undo", record["id"], "--yes"))
        table = Path(f"/proc/{pid}/mountinfo").read_text()

    assert "has a file system mounted on" in sentence
    assert f" {full} " in table
    assert Path(record["aside"]).exists()


def test_a_begun_deletion_is_not_undone(cli: Cli, tmpfs: Path) -> None:
    """A job on what was set aside, running or ended, makes the undo be refused."""
    spool = tmpfs / "spool"
    flat(spool, 20_000)
    record = put_aside(cli, spool)
    job = start_slowly(cli, Path(record["aside"]))

    order = ("aside", "--undo", record["id"], "--yes")
    assert f"Job {job} is already working" in refused(cli.run(*order))
    cancel(cli, job)
    assert f"deletion has begun: job {job}" in refused(cli.run(*order))

    assert not spool.exists()


def test_a_directory_with_a_job_is_left_alone(cli: Cli, tmpfs: Path) -> None:
    """A directory with a job at work below it is not set aside."""
    tree = tmpfs / "tree"
    tree.mkdir()
    flat(tree / "inner", 20_000)
    job = start_slowly(cli, tree / "inner")

    finished = cli.run("aside", tree, "--yes")

    cancel(cli, job)
    assert f"Job {job} is already working" in refused(finished)
    assert os.listdir(tmpfs) == ["tree"]


@pytest.mark.parametrize("command", ["recreate", "aside"])
def test_a_lower_layer_of_an_overlay_is_named(cli: Cli, tmpfs: Path, command: str) -> None:
    """A directory of a lower layer, which the kernel does not rename (EXDEV), is refused."""
    spool = mount_overlay(tmpfs, lambda lower: (lower / "spool").mkdir()) / "spool"
    sentence = refused(cli.run(command, spool, "--yes"))
    assert f"{spool} is in a lower layer of an overlay, which cannot rename it" in sentence
    assert "tui-fs delete" in sentence
    assert os.listdir(spool.parent) == ["spool"]


@pytest.mark.parametrize("command", [("recreate",), ("aside", "--twin")])
def test_another_quota_project_is_named(cli: Cli, xfs: Path, command: tuple[str, ...]) -> None:
    """A directory whose project is not the one that its parent passes on (EXDEV) is refused."""
    chattr = needs_tool("chattr", package="e2fsprogs")
    spool = xfs / "spool"
    spool.mkdir()
    subprocess.run([chattr, "-p", "7", spool], check=True)
    subprocess.run([chattr, "+P", "-p", "42", xfs], check=True)
    sentence = refused(cli.run(*command, spool, "--yes"))
    assert "its quota project differs from that of its parent" in sentence
    assert "lsattr -pd" in sentence
    assert os.listdir(xfs) == ["spool"]
    subprocess.run([chattr, "+P", "-p", "42", spool], check=True)
    cli.run(*command, spool, "--yes").expect(0)
