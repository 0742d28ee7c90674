"""The command of the README for uv starts the program.

    python -m pytest -n 0 tests/release/readme_uv.py

Needs uv, which downloads and builds. The name of this module keeps it out of other test runs.
"""

from pathlib import Path

import pytest

from tests.needs import needs_tool
from tests.release.test_readme import copy_checkout, expect_file_systems, start_commands, started


@pytest.mark.slow
def test_the_command_for_uv_opens_the_list_of_file_systems(tmp_path: Path) -> None:
    needs_tool("uv", "pipx && pipx install uv")
    checkout = copy_checkout(tmp_path / "checkout")
    with started(start_commands()[2], tmp_path / "home", checkout) as terminal:
        expect_file_systems(terminal)
