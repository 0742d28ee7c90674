"""The treemap of a survey's page: which directories it has, and that nothing is lost."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.trees import flat, many_directories
from tui_fs.survey.report import page as report
from tui_fs.survey.report.page import Circumstances, page
from tui_fs.survey.runner import SurveyRunner

PARENT, NAME, BYTES, ENTRIES, OWN_BYTES, OWN_ENTRIES, DAYS, OWN_DAYS = range(8)
DAY_S = 86_400


def written(root: Path, moment_s: float | None = None) -> str:
    runner = SurveyRunner([str(root)])
    *_, survey = runner.run()
    return page(survey, runner.collector, Circumstances(moment_s), top=10)


def nodes_of(content: str) -> list[list[Any]]:
    found = re.search(r'id="tree">(.*?)</script>', content, re.S)
    assert found is not None
    nodes: list[list[Any]] = json.loads(found[1])
    return nodes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    many_directories(root / "many", 6, 10)
    flat(root / "flat", 300)
    (root / "large").mkdir()
    (root / "large" / "data").write_bytes(b"x" * 200_000)
    return root


def test_every_directory_holds_itself_and_what_is_below(root: Path) -> None:
    nodes = nodes_of(written(root))
    assert len(nodes) == 10
    for index, node in enumerate(nodes):
        children = [child for child in nodes if child[PARENT] == index]
        assert node[PARENT] < index
        assert node[BYTES] == node[OWN_BYTES] + sum(child[BYTES] for child in children)
        assert node[ENTRIES] == 1 + node[OWN_ENTRIES] + sum(child[ENTRIES] for child in children)


def test_the_largest_by_bytes_or_by_entries_are_drawn(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "DRAWN_DIRECTORIES", 3)
    nodes = nodes_of(written(root))
    assert [node[NAME] for node in nodes] == [str(root), "large", "flat"]


def test_a_page_is_small_however_many_directories_there_are(root: Path) -> None:
    many_directories(root / "more", 4_000, 1)
    content = written(root)
    assert len(nodes_of(content)) == report.DRAWN_DIRECTORIES
    assert len(content) < 400_000


def test_a_deep_chain_is_no_deep_structure(tmp_path: Path) -> None:
    deepest = tmp_path / "root"
    deepest.mkdir()
    for _ in range(1_200):  # more levels than Python's encoder can nest
        deepest = deepest / "d"
        deepest.mkdir()
        if len(str(deepest)) > 4_000:
            break
    nodes = nodes_of(written(tmp_path / "root"))
    subprocess.run(["rm", "-rf", tmp_path / "root"], check=True)  # pytest would recurse
    assert len(nodes) > 1_000


def test_days_since_the_last_change_below(root: Path) -> None:
    changed_s = (root / "large" / "data").stat().st_mtime
    days = {node[NAME]: node[DAYS] for node in nodes_of(written(root, changed_s + 40.5 * DAY_S))}
    assert days["large"] == 40
    (root / "empty").mkdir()
    days = {node[NAME]: node[DAYS] for node in nodes_of(written(root, changed_s - 9 * DAY_S))}
    assert days["empty"] == -1
    assert days["large"] == 0  # a change in the future is the newest
    own = {node[NAME]: node[OWN_DAYS] for node in nodes_of(written(root, changed_s))}
    assert (own["large"], own["many"]) == (0, -1)  # in many itself there are only directories


def test_a_name_cannot_end_the_data(tmp_path: Path) -> None:
    (tmp_path / "root" / "<!--<script>").mkdir(parents=True)
    content = written(tmp_path / "root")
    assert content.count("<script") == 2
    assert nodes_of(content)[1][NAME] == "<!--<script>"


def test_a_page_of_an_unfinished_survey_says_how_far_it_is(root: Path) -> None:
    runner = SurveyRunner([str(root)], has_histograms=True, interval_s=0.0)
    for survey in runner.run():
        content = page(survey, runner.collector, Circumstances(), top=10)
        words = f"it has only {survey.totals.entries:,} entr"
        assert (words in content) is not survey.finished
