"""Names that a directory lists but stat cannot find, and names that only come and go."""

import os
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path

import pytest

from tui_fs.survey.findings import listed_only


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    """Yield an open directory with one file."""
    (tmp_path / "file").touch()
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


@pytest.mark.parametrize(
    ("answers", "expected"),
    (
        (repeat("Input/output error"), {"file": "Input/output error"}),
        (chain(["No such file"] * 2, repeat("")), {}),
        (chain(["No such file"] * 4, repeat("")), {}),
        (repeat(""), {}),
    ),
)
def test_a_name_is_reported_if_it_can_never_be_examined(
    directory: int,
    monkeypatch: pytest.MonkeyPatch,
    answers: Iterator[str],
    expected: dict[str, str],
) -> None:
    monkeypatch.setattr(listed_only, "_reason", lambda *_: next(answers))
    assert listed_only._reasons(directory) == expected


def test_a_name_that_is_created_again_is_another_one(
    directory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace(_: float) -> None:
        (tmp_path / "other").touch()
        (tmp_path / "other").replace(tmp_path / "file")

    monkeypatch.setattr(listed_only, "_reason", lambda *_: "No such file")
    monkeypatch.setattr("time.sleep", replace)
    assert listed_only._reasons(directory) == {}
