"""The moment between the confirmation and the job, and jobs that cannot be read."""

import errno
import os
import threading
import time
from collections.abc import Callable

import pytest
from textual.pilot import Pilot
from textual.widgets import Button

from tests.ui.recorded import MAILDROP, STARTED, Host, record
from tests.ui.test_confirmation_stays import a_quiet_machine, alive, ask
from tests.ui.test_screens import SMALL, wait_for
from tui_fs.job.store import JobFolder
from tui_fs.model.errors import JobFailed
from tui_fs.model.plan import Plan
from tui_fs.model.strategy import StrategyName
from tui_fs.screens.base import Settings
from tui_fs.screens.jobs import JobsScreen
from tui_fs.screens.preview import PreviewScreen
from tui_fs.screens.run import RunScreen

__all__ = ["a_quiet_machine", "alive"]

pytestmark = pytest.mark.usefixtures("alive")


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    """Wait for what a thread will bring about."""
    for _ in range(400):
        if condition():
            return
        await pilot.pause(0.025)
    raise AssertionError("it never came about")


@pytest.mark.parametrize("has_begun", [False, True])
async def test_whoever_leaves_before_it_begins_deletes_nothing(
    monkeypatch: pytest.MonkeyPatch, has_begun: bool
) -> None:
    # A job that takes a while to start, and was told to begin before it was left or not
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
        await ask(pilot, preview, StrategyName("rm"))
        pilot.app.screen.query_one("#confirm-yes", Button).focus()
        await pilot.press("enter")
        await until(pilot, entered.is_set)
        await pilot.press("escape")
        await until(pilot, left.is_set)
        app = pilot.app
        await until(pilot, lambda: isinstance(app.screen, RunScreen) or len(app._notifications) > 0)
        # It is not begun, and that is said; or it is shown, above what was there before
        assert preview not in pilot.app.screen_stack
        assert isinstance(pilot.app.screen, RunScreen) == has_begun
        said = [notice.message for notice in pilot.app._notifications]
        assert any("nothing was deleted" in one for one in said) != has_begun


async def test_jobs_that_cannot_be_listed_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_: object) -> None:
        raise JobFailed("/state/jobs cannot be read: Input/output error.")

    monkeypatch.setattr("tui_fs.screens.jobs.JobList.read", read)
    async with Host(JobsScreen(Settings())).run_test(size=SMALL) as pilot:
        await wait_for(pilot, "/state/jobs cannot be read: Input/output error.")


async def test_a_journal_that_cannot_be_read_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def poll(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("tui_fs.screens.run.JobView.poll", poll)
    folder = record([STARTED])
    app = Host(RunScreen(folder, Settings()))
    async with app.run_test(size=SMALL, notifications=True) as pilot:
        await until(pilot, lambda: len(app._notifications) > 0)
        (notice,) = app._notifications
        assert f"{folder.job_id} cannot be read: Input/output error." in notice.message
