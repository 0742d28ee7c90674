"""A name that a directory lists and that cannot be examined is named, and never counted as gone."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.fuse.ghost_name import GHOST, ghost_tree
from tests.needs import needs_engine
from tui_fs.strategies.registry import STRATEGIES
from tui_fs.survey.runner import Backend, SurveyRunner

pytestmark = pytest.mark.root

ERRORS = ("ENOENT", "EACCES", "EIO")
FILES, DIRECTORIES = 4, 2


@pytest.fixture(params=ERRORS)
def error(request: pytest.FixtureRequest) -> str:
    """Return each errno of the lookup in turn."""
    return str(request.param)


@pytest.fixture
def tree(mount_root: Path, error: str) -> Iterator[Path]:
    """Yield a directory that lists such a name."""
    with ghost_tree(mount_root / "ghost", getattr(errno, error)) as mount:
        yield mount.tree


@pytest.mark.parametrize("backend", ("engine", "scandir"))
def test_survey_is_incomplete_and_names_it(tree: Path, error: str, backend: Backend) -> None:
    needs_engine()
    *_, survey = SurveyRunner([str(tree)], backend=backend).run()
    assert (survey.totals.files, survey.totals.directories) == (FILES, DIRECTORIES)
    assert survey.complete is False
    (named,) = [finding for finding in survey.findings if finding.kind == "listed-only"]
    assert named.path == str(tree / GHOST)
    assert os.strerror(getattr(errno, error)) in named.meaning


def test_commands_name_it(cli: Cli, tree: Path) -> None:
    finished = cli.run("survey", tree).expect(1)
    assert str(tree / GHOST) in finished.stdout.decode()
    assert "1 name is listed but cannot be examined" in finished.stderr
    estimate = cli.run("estimate", "--json", tree).expect(0).object()
    assert estimate["complete"] is False
    for strategy in estimate["strategies"]:
        assert any(str(tree / GHOST) in reason for reason in strategy["reasons"]), strategy


@pytest.mark.parametrize(
    "strategy, error",
    (
        *((name, "ENOENT") for name in STRATEGIES),
        *(("rm", error) for error in ERRORS[1:]),
        *(("parallel", error) for error in ERRORS[1:]),
    ),
    indirect=True,
)
def test_report_of_every_strategy_names_it(cli: Cli, tree: Path, strategy: str, error: str) -> None:
    finished = cli.delete(tree, strategy, "--accept-races").expect(1)
    report = finished.report()
    assert report["outcome"] == "partial"
    assert str(tree / GHOST) in report["explanation"]
    assert os.strerror(getattr(errno, error)) in report["explanation"]
    assert report["targets"][0]["gone"] is False


@pytest.mark.parametrize(
    "tool, error",
    (("find", "EACCES"), ("rmtree", "EIO"), ("parallel", "ENOENT")),
    indirect=["error"],
)
def test_an_emptied_directory_that_lists_it_is_not_called_empty(
    cli: Cli, tree: Path, tool: str
) -> None:
    report = cli.delete(tree, tool, "--keep-root").expect(1).report()
    assert report["outcome"] == "partial"
    assert str(tree / GHOST) in report["explanation"]
    assert "empty" not in report["explanation"]


def test_names_that_vanish_while_counting_are_not_called_so(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "file").touch()
    survey = SurveyRunner([str(target)], backend="scandir")
    survey.collector.vanished = 1
    *_, last = survey.run()
    assert last.complete is True
    assert not [finding for finding in last.findings if finding.kind == "listed-only"]
