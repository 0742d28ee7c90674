"""File systems for the trees of one module of tests."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needs import needs_root
from tests.pathologies.grounds import Grounds


@pytest.fixture(scope="module")
def grounds(mount_root: Path) -> Iterator[Grounds]:
    """Yield file systems that are mounted when they are asked for."""
    needs_root("mounting file systems")
    mounted = Grounds(Path(tempfile.mkdtemp(dir=mount_root)))
    yield mounted
    mounted.take_down()
