"""An ordinary user with a tree, for tests that root runs."""

from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.matrix.ordinary_user import give_away
from tests.needs import needs_root
from tests.trees import many_directories


@pytest.fixture
def ordinary(cli: Cli, tmp_path: Path, state_home: Path) -> tuple[Cli, Path]:
    """Return the program as an ordinary user runs it, and a tree of that user."""
    needs_root("becoming an ordinary user")
    place = tmp_path / "place"
    place.mkdir()
    many_directories(place / "target", 3, 2)
    give_away(place)
    give_away(state_home)
    return cli.as_ordinary_user(place, state_home), place / "target"
