"""Screens in the states that matter, at every size besides 80×24: nothing cut, nothing lost."""

import os
from collections.abc import Callable

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.ui.recorded import (
    FAILING,
    PAUSED,
    RUNNING,
    Host,
    maildrop_survey,
    record,
    screen_text,
    settle,
)
from tests.ui.test_browser_pictures import a_quiet_moment, findings, marked, ranking
from tests.ui.test_screens import (
    REPORTS,
    SMALL,
    Act,
    a_quiet_machine,
    alive,
    counted,
    keys,
    preview,
    shows,
    then,
)
from tui_fs.screens.base import BaseScreen, Settings
from tui_fs.screens.jobs import JobsScreen
from tui_fs.screens.report import ReportScreen
from tui_fs.screens.run import RunScreen

__all__ = ["a_quiet_machine", "a_quiet_moment", "alive"]

SIZES = ((40, 15), (60, 20), (120, 40), (200, 50))


def report_of(outcome: str) -> tuple[BaseScreen, Act]:
    return ReportScreen(record(REPORTS[outcome]), Settings()), shows(outcome.upper())


def all_jobs() -> tuple[BaseScreen, Act]:
    for number, events in enumerate(REPORTS.values()):
        folder = record(events, job_id=f"7f3a0{number}")
        os.utime(folder.plan, (number, number))
    return JobsScreen(Settings()), shows("7f3a04")


STATES: dict[str, Callable[[], tuple[BaseScreen, Act]]] = {
    "preview": lambda: (preview(), counted(maildrop_survey())),
    "preview options": lambda: (preview(), then(counted(maildrop_survey()), keys("o"))),
    "preview confirmation": lambda: (preview(), then(counted(maildrop_survey()), keys("enter"))),
    "report done": lambda: report_of("done"),
    "report partial": lambda: report_of("partial"),
    "report died": lambda: report_of("died"),
    "jobs": all_jobs,
    "no jobs": lambda: (JobsScreen(Settings()), shows("no jobs yet")),
    "findings": lambda: (findings(), keys("j")),
    "ranking": lambda: (ranking(), keys("j")),
    "marks": lambda: (marked(), keys("j")),
}
RUNS = {
    "running": (RUNNING, shows("649,632")),
    "paused": (PAUSED, shows("PAUSED")),
    "with failures": (FAILING, shows("failed 2")),
    "errors": (FAILING, then(shows("failed 2"), keys("x"))),
    "asks before it cancels": (RUNNING, then(shows("649,632"), keys("c"))),
}


async def at_all_sizes(screen: BaseScreen, act: Act) -> str:
    """Return what a screen shows at each size, one below the other."""
    app, pictures = Host(screen), ""
    async with app.run_test(size=SMALL, notifications=True) as pilot:
        await settle(pilot)
        await act(pilot)
        for columns, lines in SIZES:
            await pilot.resize_terminal(columns, lines)
            before = None
            while (shown := screen_text(app)) != before:
                before = shown
                await settle(pilot)
            pictures += f"━━ {columns}×{lines}\n{shown}\n"
    return pictures


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
async def test_screen(state: str, picture: SnapshotAssertion) -> None:
    assert await at_all_sizes(*STATES[state]()) == picture


@pytest.mark.slow
@pytest.mark.usefixtures("alive")
@pytest.mark.parametrize("state", RUNS)
async def test_run(state: str, picture: SnapshotAssertion) -> None:
    events, act = RUNS[state]
    assert await at_all_sizes(RunScreen(record(events), Settings()), act) == picture
