"""Experiments made by hand, and a place to do them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tui_fs.lab.experiment import (
    Experiment,
    Pipeline,
    Scale,
    Setting,
    Trial,
)
from tui_fs.lab.preparing import prepare
from tui_fs.lab.results import (
    LabEvent,
    Results,
    RunBegan,
    StepRan,
    fold,
)
from tui_fs.lab.runner import ExperimentRunner
from tui_fs.lab.tree_generators import Directory, Tree

RM: tuple[Pipeline, ...] = ((("rm", "-r", "{tree}"),),)


class Stopped(Exception):
    """The test ends the run."""


class Files(Tree, frozen=True):
    """Three empty files."""

    entries = 4
    words = "three files"

    def directories(self) -> Iterator[Directory]:
        """Yield the tree itself."""
        yield Directory(0, "", [(f"file {number}", 0) for number in range(3)])


def experiment_of(*trials: Trial) -> Experiment:
    """Return an experiment that does these trials."""

    def same(_scale: Scale, _setting: Setting) -> tuple[Trial, ...]:
        return trials

    return Experiment("a-test", "A test", "Does it work?", same, tools=())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory to work in, and keep records in another one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "place").mkdir(mode=0o700)
    (tmp_path / "kept").mkdir()
    return tmp_path / "place"


def done(
    place: Path,
    *trials: Trial,
    goes_on: Callable[[], None] = lambda: None,
    events: list[LabEvent] | None = None,
) -> list[LabEvent]:
    """Run the trials; return the events."""
    events = [] if events is None else events
    prepared = prepare(experiment_of(*trials), Scale.SMALL, str(place))
    began = RunBegan("a-test", "small", 0.0, prepared.machine, str(place), prepared.plans)
    events.append(began)
    ExperimentRunner(prepared, str(place.parent / "kept"), events.append, goes_on).run()
    return events


def results_of(events: list[LabEvent]) -> Results:
    """Fold the events into results."""
    return fold(events)


def ran(events: list[LabEvent]) -> list[str]:
    """Return the keys of the steps that were timed, in their order."""
    return [event.key for event in events if isinstance(event, StepRan)]
