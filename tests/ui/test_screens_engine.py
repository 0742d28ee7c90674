"""The screens of a job of the engine, as a person sees them."""

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.ui.recorded import BY_THE_ENGINE, maildrop_survey, record
from tests.ui.test_screens import (
    a_quiet_machine,
    alive,
    counted,
    keys,
    look,
    picture,
    preview,
    shows,
    then,
)
from tui_fs.model.events import PaceChanged
from tui_fs.model.strategy import Pace
from tui_fs.screens.base import Settings
from tui_fs.screens.run import RunScreen

__all__ = ["a_quiet_machine", "alive", "picture"]


async def test_preview_of_parallel(picture: SnapshotAssertion) -> None:
    acts = then(counted(maildrop_survey()), keys("j", "j", "j", "j", "j"))
    assert await look(preview(), acts) == picture


@pytest.mark.usefixtures("alive")
async def test_run_by_the_engine(picture: SnapshotAssertion) -> None:
    screen = RunScreen(record(BY_THE_ENGINE), Settings())
    assert await look(screen, shows("649,632")) == picture


@pytest.mark.usefixtures("alive")
async def test_threads_are_asked_for_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr("tui_fs.screens.run.send", lambda _, command: sent.append(str(command)))
    for threads in (0, 2, 8):
        paced = PaceChanged(8.3, Pace(threads=threads))
        screen = RunScreen(record((*BY_THE_ENGINE, paced), job_id=f"7f3b0{threads}"), Settings())
        await look(screen, then(shows("649,632"), keys("t")))
    assert sent == ["threads 1", "threads 4", "threads auto"]
