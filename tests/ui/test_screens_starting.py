"""The moment between the confirmation and the job."""

import threading
import time
from collections.abc import Callable

import pytest
from textual.widgets import Button

from tests.ui.recorded import MAILDROP, STARTED, Host, record
from tests.ui.test_confirmation_stays import a_quiet_machine, alive, ask
from tests.ui.test_screens import SMALL, settle
from tui_fs.job.store import JobFolder
from tui_fs.model.plan import Plan
from tui_fs.model.strategy import StrategyName
from tui_fs.screens.frame import Settings
from tui_fs.screens.preview import PreviewScreen
from tui_fs.screens.run import RunScreen

__all__ = ["a_quiet_machine", "alive"]

pytestmark = pytest.mark.usefixtures("alive")


@pytest.mark.parametrize("has_begun", [False, True])
async def test_whoever_leaves_before_it_begins_deletes_nothing(
    monkeypatch: pytest.MonkeyPatch, has_begun: bool
) -> None:
    # Given a job that takes a while to start, and was told to begin before it was left or not
    entered, left = threading.Event(), threading.Event()

    def start(plan: Plan, is_wanted: Callable[[], bool]) -> JobFolder | None:
        del plan
        entered.set()
        while is_wanted():
            time.sleep(0.01)
        left.set()
        return record([STARTED]) if has_begun else None

    monkeypatch.setattr("tui_fs.screens.preview.check_plan", lambda _: None)
    monkeypatch.setattr("tui_fs.screens.preview.why_type_name", lambda *_: None)
    monkeypatch.setattr("tui_fs.screens.preview.start", start)
    monkeypatch.setattr("widgets.confirm_dialog.IGNORED_ENTER_S", 0)
    preview = PreviewScreen((MAILDROP,), Settings())
    async with Host(preview).run_test(size=SMALL) as pilot:
        await ask(pilot, preview, StrategyName.RM)
        pilot.app.screen.query_one("#confirm-yes", Button).focus()
        await pilot.press("enter")
        while not entered.is_set():
            await pilot.pause(0.01)
        # When the preview is left
        await pilot.press("escape")
        while not left.is_set():
            await pilot.pause(0.01)
        await settle(pilot)
        # Then it is not begun, and that is said; or it is shown, above what was there before
        assert preview not in pilot.app.screen_stack
        assert isinstance(pilot.app.screen, RunScreen) == has_begun
        said = [notice.message for notice in pilot.app._notifications]
        assert any("nothing was deleted" in one for one in said) != has_begun
