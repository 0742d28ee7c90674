"""What the screens show of a job that deletes several directories."""

from contextlib import nullcontext
from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot

from tests.ui.recorded import MAILDROP, RUNNING, STARTED, ended, maildrop_survey, record
from tests.ui.test_screens import (
    a_quiet_machine,
    alive,
    counted,
    keys,
    look,
    picture,
    post_forecast,
    shows,
    then,
)
from tui_fs.job.planning import forecast
from tui_fs.model.events import JobFinished
from tui_fs.model.outcome import Outcome
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Options
from tui_fs.model.target import Pin, Target
from tui_fs.screens.base import Settings
from tui_fs.screens.preview import PreviewScreen
from tui_fs.screens.report import ReportScreen
from tui_fs.screens.run import RunScreen

__all__ = ["a_quiet_machine", "alive", "picture"]

PATHS = tuple(PathStr(f"/srv/app-{number}/node\n_modules") for number in range(300))
STARTED_SEVERAL = replace(STARTED, targets=PATHS)


@pytest.fixture
def several(monkeypatch: pytest.MonkeyPatch) -> PreviewScreen:
    """Give the preview of three hundred directories."""
    targets = tuple(Target(path, Pin(1, number, 3)) for number, path in enumerate(PATHS))
    monkeypatch.setattr("tui_fs.screens.preview.check_targets", lambda *_, **__: targets)
    monkeypatch.setattr("tui_fs.screens.preview.keep_open", lambda _: nullcontext())
    monkeypatch.setattr("tui_fs.screens.preview.why_type_name", lambda *_: "they are many")
    return PreviewScreen(PATHS, Settings())


async def counted_together(pilot: Pilot[None]) -> None:
    """Post what the survey of all of them says."""
    survey = replace(maildrop_survey(), path=PathStr("/srv"), largest=())
    found = forecast(PATHS, survey, Options())
    post_forecast(pilot.app.screen, survey, found)


async def test_preview(several: PreviewScreen, picture: SnapshotAssertion) -> None:
    assert await look(several, counted_together, (100, 36)) == picture


async def test_confirmation(several: PreviewScreen, picture: SnapshotAssertion) -> None:
    assert await look(several, then(counted_together, keys("enter"))) == picture


async def test_the_word_is_no_name(several: PreviewScreen) -> None:
    shown = await look(several, then(counted_together, keys("enter", *"node", "enter")))
    assert "delete 300 directories in /srv" in shown
    assert "type delete to confirm" in shown


async def test_one_target_is_not_listed() -> None:
    screen = PreviewScreen((MAILDROP,), Settings())
    await look(screen, counted(maildrop_survey()))
    assert not screen.query("#targets")


@pytest.mark.usefixtures("alive")
async def test_run(picture: SnapshotAssertion) -> None:
    events = (STARTED_SEVERAL, *RUNNING[1:])
    assert await look(RunScreen(record(events), Settings()), shows("649,632")) == picture


async def test_report(picture: SnapshotAssertion) -> None:
    *events, finished = ended(Outcome.PARTIAL, "2 entries are left.", 1_204_111, 2)
    assert isinstance(finished, JobFinished)
    command = (("/usr/bin/rm", "-rf", "--one-file-system", "--", *PATHS),)
    begun = replace(STARTED_SEVERAL, command=command)
    end = replace(finished, left=PATHS[7:12])
    screen = ReportScreen(record((begun, *events[1:], end)), Settings())
    assert await look(screen, shows("PARTIAL"), (100, 44)) == picture
