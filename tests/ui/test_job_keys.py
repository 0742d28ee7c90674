"""The key line and the help of a job offer what does something in its state."""

from collections.abc import Sequence

import pytest

from tests.ui.recorded import (
    FAILING,
    REFUSED,
    RUNNING,
    STARTED,
    Host,
    ended,
    record,
    screen_text,
    settle,
    until,
    wait_for,
)
from tests.ui.test_screens import SMALL, a_quiet_machine
from tui_fs.model.events import CancelRequested, Event
from tui_fs.model.outcome import Outcome
from tui_fs.screens.base import BaseScreen, Settings
from tui_fs.screens.report import ReportScreen
from tui_fs.screens.run import RunScreen
from tui_fs.widgets.footer import Footer

__all__ = ["a_quiet_machine"]


def offered(screen: BaseScreen) -> set[str]:
    """Return the keys in the footer, and those of the help."""
    footer = {key for key, _ in screen.query_one(Footer).keys}
    return footer | {key for action in screen.actions() for key in action.keys}


async def test_the_help_of_a_report_lists_what_the_report_has() -> None:
    done = ended(Outcome.DONE, "The directory is gone.", 1_204_113, 0)
    screen = ReportScreen(record(done), Settings())
    app = Host(screen)
    async with app.run_test(size=SMALL) as pilot:
        await wait_for(pilot, "DONE")
        await settle(pilot)
        assert offered(screen) & {"p", "x", "enter"} == {"enter"}
        await pilot.press("x", "p")
        assert app.screen is screen


@pytest.mark.parametrize(
    ("events", "keys"),
    [
        (ended(Outcome.PARTIAL, "2 entries are left.", 1_204_111, 2), {"x", "enter"}),
        (RUNNING, {"p", "enter"}),
        (REFUSED, set()),
    ],
    ids=["partial", "died", "refused"],
)
async def test_a_report_offers_the_keys_that_do_something(
    events: Sequence[Event], keys: set[str]
) -> None:
    app = Host(ReportScreen(record(events), Settings()))
    async with app.run_test(size=SMALL) as pilot:
        await until(pilot, lambda: "reading" not in screen_text(app))
        await settle(pilot)
        assert isinstance(app.screen, ReportScreen)
        assert offered(app.screen) & {"p", "x", "enter"} == keys


@pytest.mark.parametrize(
    ("events", "text", "keys"),
    [
        ([STARTED], "deleting", {"p", "c", "z"}),
        (RUNNING, "649,632", {"p", "c", "z", "enter"}),
        (FAILING, "failed 2", {"p", "c", "z", "enter", "x"}),
        ([*FAILING, CancelRequested(9.0, "")], "cancelling", {"enter", "x"}),
    ],
    ids=["starting", "running", "failing", "cancelling"],
)
async def test_a_running_job_offers_the_keys_that_do_something(
    events: Sequence[Event], text: str, keys: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_fs.job.view.has_supervisor", lambda _: True)
    app = Host(RunScreen(record(events), Settings()))
    async with app.run_test(size=SMALL) as pilot:
        await wait_for(pilot, text)
        await settle(pilot)
        shown = {key for key, _ in app.screen.query_one(Footer).keys}
        assert shown & {"p", "c", "z", "enter", "x"} == keys
