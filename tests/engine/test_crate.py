"""The crate's own tests, run where cargo is there."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.needs import working_cargo

CRATE = Path(__file__).parents[2] / "engine"
OLDEST = (1, 77)
LIMIT_S = 1_200.0
"""Building the tests takes a minute on two cores, and they are run while others are."""


def cargo() -> str:
    """Return the path of a cargo that can build the engine."""
    path = working_cargo()
    if path is None:
        pytest.skip("cargo is not installed; enable it with: apt-get install cargo, or rustup")
    output = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"(\d+)\.(\d+)", output)
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        pytest.skip(f"{output.strip()} is older than {OLDEST}; enable it with: rustup update")
    return path


def test_the_crate_keeps_its_own_tests() -> None:
    command = [cargo(), "test", "--locked", "--quiet"]
    ended = subprocess.run(
        command, cwd=CRATE, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert ended.returncode == 0, f"{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
