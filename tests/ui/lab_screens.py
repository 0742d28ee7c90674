"""Helpers for the tests of the lab's screens: a quiet lab, hand-made runs, and views."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.ui.recorded import Host, at_all_sizes, screen_text, settle, wait_for
from tests.ui.recorded_lab import (
    BEGAN_AT,
    DONE,
    EXPERIMENT,
    OWN,
    RUNNING,
    PlayedRun,
    starter,
    store,
)
from tests.ui.recorded_tree import SilentSurvey
from tests.ui.test_screens import SMALL
from tui_fs.lab.experiment import Experiment, Scale
from tui_fs.lab.filesystems import Needs
from tui_fs.lab.results import LabEvent, RunBegan, RunEnded
from tui_fs.lab.runs import StoredRun
from tui_fs.screens.base import BaseScreen


@pytest.fixture(autouse=True)
def a_quiet_lab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two experiments, no runs, and nothing of this machine or this moment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("tui_fs.screens.survey_client.SurveyProcess", SilentSurvey)
    monkeypatch.setattr("tui_fs.screens.lab.experiments.time.time", lambda: BEGAN_AT + 3 * 86_400)
    monkeypatch.setattr("tui_fs.screens.lab.experiments.experiments", lambda: (EXPERIMENT, OWN))
    monkeypatch.setattr(
        "tui_fs.screens.lab.experiments.experiment",
        {experiment.name: experiment for experiment in (EXPERIMENT, OWN)}.__getitem__,
    )
    keep(monkeypatch, {})


def keep(monkeypatch: pytest.MonkeyPatch, runs: dict[str, tuple[LabEvent, ...]]) -> list[str]:
    """Keep runs, the newest first; return their folders."""
    stored: list[StoredRun] = []
    for name, events in runs.items():
        began, ended = events[0], events[-1]
        assert isinstance(began, RunBegan)
        ending = ended.ending if isinstance(ended, RunEnded) else None
        at = BEGAN_AT - 3_600 * len(stored)
        folder = store(events, name)
        stored.append(StoredRun(name, folder, began.experiment, Scale(began.scale), at, ending))
    monkeypatch.setattr("tui_fs.screens.lab.experiments.stored_runs", lambda: stored)
    return [run.folder for run in stored]


class _Prepared:
    """Stand-in for the plan of a run."""

    def __init__(self, experiment: Experiment, scale: Scale) -> None:
        self.experiment, self.scale = experiment, scale
        self.plans = [step for step in _steps() if step]
        self.needs = Needs(3 << 20, 1_004, 1 << 20)
        self.directory = "/home/me/.cache/tui-fs/lab"


def _steps() -> tuple[object, ...]:
    began = RUNNING[0]
    assert isinstance(began, RunBegan)
    return began.steps


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str]]:
    """The recorded requests: experiment, scale, target."""
    asked: list[tuple[str, str, str]] = []

    def prepare(experiment: Experiment, scale: Scale, _: None, target: str) -> _Prepared:
        asked.append((experiment.name, scale.value, target))
        return _Prepared(experiment, scale)

    monkeypatch.setattr("tui_fs.screens.lab.experiments.prepare", prepare)
    return asked


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> PlayedRun:
    """A run that pauses in its middle."""
    run = PlayedRun(store(DONE, "played"), RUNNING, DONE[len(RUNNING) :])
    monkeypatch.setattr("tui_fs.screens.lab.run.LabRun", starter(run))
    monkeypatch.setattr("tui_fs.screens.lab.run.clock", lambda _: "0:08")
    return run


async def look(screen: BaseScreen, *keys: str, first: str = "", at_sizes: bool = False) -> str:
    """Return what is to be seen after some keys, at 80×24 or at all sizes."""
    (shown,) = await looks(screen, keys, first=first, at_sizes=at_sizes)
    return shown


async def looks(
    screen: BaseScreen, *steps: Sequence[str], first: str = "", at_sizes: bool = False
) -> list[str]:
    """Return what is to be seen after each sequence of keys, one after the other."""
    app = Host(screen)
    shown: list[str] = []
    async with app.run_test(size=SMALL, notifications=True) as pilot:
        await settle(pilot)
        if first:
            await wait_for(pilot, first)
        for keys in steps:
            for key in keys:
                await pilot.press(key)
                await settle(pilot)
            shown.append(await at_all_sizes(pilot) if at_sizes else screen_text(app))
    return shown
