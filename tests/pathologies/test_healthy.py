"""Healthy trees cause no warning: this repository, and /usr."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.matrix.ordinary_user import give_away
from tests.needs import lacks, needs_root, needs_tool
from tests.pathologies.looking import OF_THE_MACHINE, survey_with, warnings
from tui_fs.model.finding import Finding


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a clone of this repository, with its history."""
    git = needs_tool("git", package="git")
    repository = Path(__file__).parents[2]
    if not (repository / ".git").exists():
        lacks("this is no checkout; enable it with: git clone")
    place = tmp_path / "place"
    place.mkdir()
    # Without --no-local the history would be hard links into the repository's.
    clone = [git, "-c", "safe.directory=*", "clone", "-q", "--no-local", str(repository)]
    subprocess.run([*clone, str(place / "checkout")], check=True)
    return place / "checkout"


@pytest.mark.parametrize("is_ordinary", [False, True])
def test_a_checkout_is_healthy(checkout: Path, cli: Cli, is_ordinary: bool) -> None:
    if is_ordinary:
        needs_root("becoming another user")
        give_away(checkout)
        cli = cli.as_ordinary_user(checkout.parent)
    assert _of_the_tree(survey_with(cli, checkout).findings) == []


@pytest.mark.parametrize("is_ordinary", [False, True])
def test_usr_is_healthy(cli: Cli, tmp_path: Path, is_ordinary: bool) -> None:
    deserved = set()
    if is_ordinary:
        needs_root("becoming another user")
        cli = cli.as_ordinary_user(tmp_path)
        # Some of it may be unreadable to this user: the survey reports that and nothing else.
        closed = ["find", "/usr", "-xdev", "-type", "d", "!", "-perm", "-005", "-print", "-quit"]
        if subprocess.run(closed, capture_output=True, check=True).stdout:
            deserved = {"unreadable"}
    findings = survey_with(cli, Path("/usr")).findings
    assert {finding.kind for finding in _of_the_tree(findings)} <= deserved


def _of_the_tree(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in warnings(findings) if finding.kind not in OF_THE_MACHINE]
