"""The preview of a single file: what it shows, asks and starts."""

import os
import re
from pathlib import Path

import pytest

from tests.ui.recorded import Host, screen_text, settle, wait_for
from tests.ui.test_screens import SMALL
from tui_fs.model.plan import Plan
from tui_fs.screens.base import Settings
from tui_fs.screens.preview import PreviewScreen
from tui_fs.widgets.confirm_dialog import ConfirmDialog

MIB = 1 << 20


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Collect the plans that would be started."""
    plans: list[Plan] = []

    def start(plan: Plan, _: object) -> None:
        plans.append(plan)

    monkeypatch.setattr("tui_fs.screens.preview.start", start)
    monkeypatch.setattr(ConfirmDialog, "_is_too_early", lambda _: False)
    return plans


@pytest.mark.slow
async def test_file_is_described_confirmed_and_started(tmp_path: Path, started: list[Plan]) -> None:
    path = tmp_path / "big.log"
    path.write_bytes(b"x" * MIB)
    os.link(path, tmp_path / "other")
    preview = PreviewScreen((str(path),), Settings(), allows_file=True)
    async with Host(preview).run_test(size=SMALL) as pilot:
        await wait_for(pilot, "one file · allocated 1.0 MiB")
        await wait_for(pilot, "! The file has 1 other name")
        await wait_for(pilot, "rmtree")
        shown = screen_text(pilot.app)
        assert "parallel" not in shown
        assert "best\n\n $ cd " in re.sub(" +", " ", shown)
        await pilot.press("o")
        await wait_for(pilot, "not to a single file")
        await pilot.press("enter")
        await wait_for(pilot, "Delete permanently?")
        assert isinstance(pilot.app.screen, ConfirmDialog)
        asked = screen_text(pilot.app)
        assert "1.0 MiB allocated; frees 0 B" in asked
        await pilot.press("tab", "enter")
        await wait_for(pilot, "nothing was deleted")
        (plan,) = started
        assert plan.paths == (str(path),)
        assert plan.targets[0].pin.inode == path.stat().st_ino
        assert plan.targets[0].pin.is_file


async def test_symbolic_link_shows_where_it_points(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data")
    preview = PreviewScreen((str(tmp_path / "link"),), Settings(), allows_file=True)
    async with Host(preview).run_test(size=SMALL) as pilot:
        await wait_for(pilot, "! Only the link is deleted, not what it leads to: data")


async def test_file_is_refused_where_a_directory_was_chosen(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    preview = PreviewScreen((str(tmp_path / "file"),), Settings())
    async with Host(preview).run_test(size=SMALL) as pilot:
        await wait_for(pilot, "Refused")
        await settle(pilot)
        # However long the path, and where its line breaks
        assert "is not a directory" in " ".join(screen_text(pilot.app).split())
