"""When a directory was made."""

import os
import time
from pathlib import Path

import pytest

from tui_fs.linux.birth import birth_s

COARSE_CLOCK_S = 0.1
"""The kernel stamps files with the time of its last tick."""


def test_a_directory_was_made_when_it_was_made(tmp_path: Path) -> None:
    # Given a directory made now, whose other times somebody sets back
    before_s = time.time()
    (tmp_path / "d").mkdir()
    os.utime(tmp_path / "d", (0, 0))
    descriptor = os.open(tmp_path / "d", os.O_PATH | os.O_DIRECTORY)
    # When asked / Then it was now
    try:
        born_s = birth_s(descriptor)
    finally:
        os.close(descriptor)
    assert born_s is not None
    assert before_s - COARSE_CLOCK_S <= born_s <= time.time()


def test_a_closed_descriptor_is_an_error(tmp_path: Path) -> None:
    # Given a descriptor that is closed / When asked / Then the error is raised, not hidden
    descriptor = os.open(tmp_path, os.O_RDONLY)
    os.close(descriptor)
    with pytest.raises(OSError):
        birth_s(descriptor)
