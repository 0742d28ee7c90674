"""What is held on a deep way down, compared with a naive walk that reads directories whole."""

import os
import random
import shutil
from pathlib import Path

import pytest

from tests.filesystems import kind_of
from tests.unit.survey_trees import surveyed
from tui_fs.survey import way_down
from tui_fs.survey.scandir import ScandirSurvey
from tui_fs.survey.way_down import look_down

LEVELS = 40


def deep_tree(root: Path, seed: int) -> Path:
    """Make a chain with files before and after the way down, and a few directories beside it."""
    dice = random.Random(seed)
    here = root
    here.mkdir()
    for level in range(LEVELS):
        for number in range(dice.randrange(12)):
            (here / f"before-{number}").touch()
        below = here / f"level-{level}"
        below.mkdir()
        for number in range(dice.randrange(12)):
            (here / f"after-{number}").touch()
        if dice.random() < 0.2:
            (here / "beside").mkdir()
        here = below
    return here


def held_by_a_naive_walk(
    directory: Path, held: int = 0, at_once: int = 100, sorted_above: int = 100
) -> int:
    """Return how many names are held at most, of directories read in parts, entered in order."""
    listed, most = os.listdir(directory), held
    for begin in range(0, len(listed), at_once):
        names = listed[begin : begin + at_once]
        if len(names) > sorted_above:
            names.sort(key=lambda name: (directory / name).lstat().st_ino)
        most = max(most, held + len(names))
        for number, name in enumerate(names):
            if (directory / name).is_dir():
                left = held + len(names) - 1 - number
                below = held_by_a_naive_walk(directory / name, left, at_once, sorted_above)
                most = max(most, below)
    return most


def names_on_ways(directory: Path) -> int:
    """Return how many names a directory and all above it have at most."""
    below = [path for path in directory.iterdir() if path.is_dir()]
    return len(os.listdir(directory)) + max(map(names_on_ways, below), default=0)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_held_is_what_is_listed_after_the_way_down(tmp_path: Path, seed: int) -> None:
    # Given a chain / When surveyed, alone or beside another tree / Then as the naive walk
    lowest = deep_tree(tmp_path / "root", seed)
    expected = held_by_a_naive_walk(tmp_path / "root")
    (tmp_path / "other").mkdir()
    assert surveyed(tmp_path / "root", looks_around=True).names_held == expected
    assert surveyed(tmp_path / "other", tmp_path / "root", looks_around=True).names_held == expected
    # And so many lie on it, and on each of its levels
    survey = surveyed(tmp_path / "root", looks_around=True)
    fullest, deepest = survey.ways
    assert sum(fullest) == names_on_ways(tmp_path / "root")
    on_it = [len(os.listdir(lowest.parents[level])) for level in range(LEVELS)][::-1]
    assert list(fullest)[: LEVELS - 1] == on_it[: LEVELS - 1]
    assert list(survey.most_by_level) == on_it
    assert list(deepest) == [*on_it, 0]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_sorted", [False, True])
@pytest.mark.parametrize("at_once", [8, 100])
def test_large_directories_are_read_in_parts_and_sorted_where_that_may_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, is_sorted: bool, at_once: int
) -> None:
    # Given a chain, directories of which count as large, on a file system where fts sorts, or not
    deep_tree(tmp_path / "root", seed)
    monkeypatch.setattr(way_down, "FTS_ENTRIES_AT_ONCE", at_once)
    monkeypatch.setattr(way_down, "FTS_SORTED_ABOVE", 6)
    not_sorted = frozenset[str]() if is_sorted else frozenset({kind_of(tmp_path)})
    monkeypatch.setattr(way_down, "NOT_SORTED", not_sorted)
    # When surveyed / Then as the naive walk that does the same
    sorted_above = 6 if is_sorted else 100
    expected = held_by_a_naive_walk(tmp_path / "root", 0, at_once, sorted_above)
    assert surveyed(tmp_path / "root", looks_around=True).names_held == expected


def test_where_nothing_is_deep_nobody_looks(tmp_path: Path) -> None:
    # Given many names, one level down / When surveyed / Then it is not known
    (tmp_path / "root" / "below").mkdir(parents=True)
    for number in range(30):
        (tmp_path / "root" / "below" / f"{number}").touch()
    survey = surveyed(tmp_path / "root", looks_around=True)
    assert survey.most_by_level == (1, 30)
    assert (survey.names_held, survey.ways) == (None, ())


def test_a_way_down_that_is_not_there_any_more_is_not_guessed(tmp_path: Path) -> None:
    # Given a chain that is cut after it was counted / When looked at / Then it is not known
    lowest = deep_tree(tmp_path / "root", 1)
    survey = ScandirSurvey([str(tmp_path / "root")])
    list(survey.run())
    assert look_down(survey.collector)[0] is not None
    shutil.rmtree(lowest.parents[3])
    assert look_down(survey.collector)[0] is None
    shutil.rmtree(tmp_path / "root")
    assert look_down(survey.collector)[0] is None
