"""The targets of a preview stay open until it is left, so nothing else gets their numbers."""

import os
from pathlib import Path

from tests.ui.recorded import Host
from tests.ui.test_screens import SMALL, settle
from tui_fs.screens.base import Settings
from tui_fs.screens.preview import PreviewScreen


def open_paths() -> list[str]:
    """Return what the descriptors of this process lead to."""
    paths = []
    for name in os.listdir("/proc/self/fd"):
        try:
            paths.append(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:  # the descriptor that has listed the directory
            continue
    return paths


async def test_targets_are_open_while_the_preview_is_shown(tmp_path: Path) -> None:
    targets = [tmp_path / name for name in ("a", "b")]
    for target in targets:
        target.mkdir()
    preview = PreviewScreen(tuple(map(str, targets)), Settings())
    async with Host(preview).run_test(size=SMALL) as pilot:
        await settle(pilot)
        assert set(map(str, targets)) <= set(open_paths())
        await pilot.press("escape")
        await settle(pilot)
        assert not set(map(str, targets)) & set(open_paths())
