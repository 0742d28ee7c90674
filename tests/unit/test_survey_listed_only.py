"""Names that a directory lists but stat cannot find, and names that only come and go."""

import os
from collections.abc import Callable, Iterator
from errno import EIO, ENOENT
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_survey_aggregator import collected, root
from tui_fs.model.paths import PathStr
from tui_fs.survey.findings.base import Evidence
from tui_fs.survey.findings.registry import detect_findings


def stat_fails(
    monkeypatch: pytest.MonkeyPatch, errors: Iterator[int], act: Callable[[], object]
) -> None:
    """Let each stat of the file fail with the next error; 0: it succeeds."""
    real = os.stat

    def stat(path: Any, **options: Any) -> os.stat_result:
        if path == "file" and (error := next(errors)):
            act()
            raise OSError(error, "")
        return real(path, **options)

    monkeypatch.setattr(os, "stat", stat)


def reported(directory: Path) -> list[str]:
    """Return the paths of the findings of a survey in which a name has vanished."""
    counted = collected(root(), vanished=1)
    evidence = Evidence(counted, PathStr(str(directory)), paths=[str(directory)])
    kinds = {finding.path: finding.kind for finding in detect_findings(evidence)}
    return [path for path, kind in kinds.items() if kind == "listed-only"]


@pytest.mark.parametrize(
    ("errors", "is_reported"),
    [
        (repeat(EIO), True),
        (chain([ENOENT] * 2, repeat(0)), False),
        (chain([ENOENT] * 4, repeat(0)), False),
        (repeat(0), False),
    ],
    ids=["always", "twice", "four times", "never"],
)
def test_a_name_is_reported_if_it_can_never_be_examined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, errors: Iterator[int], is_reported: bool
) -> None:
    (tmp_path / "file").touch()
    stat_fails(monkeypatch, errors, lambda: None)
    assert reported(tmp_path) == [str(tmp_path / "file")] * is_reported


def test_a_name_that_is_created_again_is_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace() -> None:
        (tmp_path / "other").touch()
        (tmp_path / "other").replace(tmp_path / "file")

    (tmp_path / "file").touch()
    stat_fails(monkeypatch, repeat(ENOENT), replace)
    assert reported(tmp_path) == []
