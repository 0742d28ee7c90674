"""A job that ends behind another screen shows its report when that screen is closed."""

import pytest
from textual.pilot import Pilot

from tests.ui.recorded import RUNNING, Host, ended, record
from tests.ui.test_screens import SMALL, a_quiet_machine, settle, shows
from tui_fs.job.journal import JournalWriter
from tui_fs.model.outcome import Outcome
from tui_fs.screens.base import HelpScreen, Settings
from tui_fs.screens.report import ReportScreen
from tui_fs.screens.run import RunScreen

__all__ = ["a_quiet_machine"]


async def test_the_report_waits_until_the_help_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tui_fs.job.view.has_supervisor", lambda _: True)
    folder = record(RUNNING)
    app = Host(RunScreen(folder, Settings(0.05)))
    async with app.run_test(size=SMALL) as pilot:
        await shows("649,632")(pilot)
        await pilot.press("question_mark")
        await until(pilot, HelpScreen)
        events = ended(Outcome.DONE, "Nothing of it is left.", 1_204_113, 0)
        writer = JournalWriter(folder.journal)
        for event in events[len(RUNNING) :]:
            writer.write(event)
        monkeypatch.setattr("tui_fs.job.view.has_supervisor", lambda _: False)
        for _ in range(10):
            await pilot.pause(0.05)
        assert isinstance(app.screen, HelpScreen)
        await pilot.press("escape")
        await until(pilot, ReportScreen)
        await settle(pilot)


async def until(pilot: Pilot[None], kind: type[object]) -> None:
    """Wait until a screen of this kind is on top."""
    for _ in range(100):
        if isinstance(pilot.app.screen, kind):
            return
        await pilot.pause(0.05)
    raise AssertionError(f"no {kind.__name__}, but {pilot.app.screen}")
