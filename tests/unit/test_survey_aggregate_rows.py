"""The counts that only predictions need, compared with a naive walk."""

import os
import random
from pathlib import Path

import pytest

from tests.unit.survey_trees import surveyed

TALL = 4


def naive(root: Path) -> dict[str, int]:
    """Count by looking at every path."""
    directories = [Path(path) for path, _, _ in os.walk(root)]
    full = {path for path in directories if any(path.iterdir())}
    files = [Path(path, name) for path, _, names in os.walk(root) for name in names]
    top = list(root.iterdir())
    return {
        "non_directory_name_bytes": sum(len(os.fsencode(path.name)) for path in files),
        "top_directories": sum(path.is_dir() for path in top),
        "top_non_directories": sum(not path.is_dir() for path in top),
        "non_empty_levels": sum(len(path.relative_to(root).parts) for path in full),
    }


@pytest.mark.parametrize("seed", range(6))
def test_the_counts_are_those_of_a_naive_walk(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    root = tmp_path / "root"
    root.mkdir()
    directories = [root]
    for number in range(150):
        path = dice.choice(directories[-6:]) / f"{'é' * dice.randrange(9)}{number}"
        if dice.random() < 0.4:
            path.mkdir()
            directories.append(path)
        else:
            path.touch()
    survey = surveyed(root)
    slow = naive(root)
    assert {name: getattr(survey, name) for name in slow} == slow
    other = tmp_path / "other"
    (other / "a").mkdir(parents=True)
    (other / "f").touch()
    both = surveyed(root, other)
    assert both.top_directories == slow["top_directories"] + 1
    assert both.top_non_directories == slow["top_non_directories"] + 1
