"""Tools that another user can replace are not run."""

import sys
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.needs import needs_root, needs_tool
from tests.trees import flat, manifest
from tui_fs.job.preparation import check_tools
from tui_fs.model.errors import Missing

MISSING, DONE = 4, 0


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a directory to delete."""
    needs_root("tools that another user can replace")
    flat(tmp_path / "tree", 5)
    return tmp_path / "tree"


@pytest.fixture
def exposed(tmp_path: Path) -> Path:
    """Return a directory that everybody may write in, with an rm that must not run."""
    directory = tmp_path / "exposed"
    directory.mkdir()
    tool = directory / "rm"
    tool.write_text(f"#!/bin/sh\necho 'rm (GNU coreutils) 9.1'; touch {tmp_path / 'has-run'}\n")
    tool.chmod(0o755)
    directory.chmod(0o777)
    return directory


def test_a_job_is_refused_if_every_build_of_its_tool_can_be_replaced(
    cli: Cli, tree: Path, exposed: Path
) -> None:
    before = manifest(tree)
    finished = cli.run(
        "delete", tree, "--strategy", "rm", "--yes", environment={"PATH": str(exposed)}
    )
    # It does not run, and the sentence names the file and the reason
    finished.expect(MISSING)
    assert f"{exposed}/rm is not used: a user other than you and root can" in finished.stderr
    assert not (exposed.parent / "has-run").exists()
    assert manifest(tree) == before


def test_the_search_goes_on_behind_a_tool_that_can_be_replaced(
    cli: Cli, tree: Path, exposed: Path
) -> None:
    path = f"{exposed}:{Path(needs_tool('rm', 'coreutils')).parent}"
    cli.run("delete", tree, "--strategy", "rm", "--yes", environment={"PATH": path}).expect(DONE)
    assert not tree.exists()
    assert not (exposed.parent / "has-run").exists()


def test_a_tool_that_can_be_replaced_since_the_plan_is_not_started(
    tree: Path, exposed: Path
) -> None:
    # A tool that only root could write to when it was planned
    tool = str(exposed / "rm")
    exposed.chmod(0o755)
    check_tools([tool, sys.executable])
    exposed.chmod(0o777)
    with pytest.raises(Missing, match="is not used"):
        check_tools([tool])
    # And neither if it is gone
    with pytest.raises(Missing, match="is missing or not executable"):
        check_tools([str(tree / "rm")])
