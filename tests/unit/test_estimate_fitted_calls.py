"""Calls learnt from counted deletions of tiny trees."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.survey_trees import surveyed
from tui_fs.estimate.fitted_calls import (
    CalibrationTree,
    CountedRun,
    calibration_shapes,
    fit,
    fits,
    predicted_with,
)
from tui_fs.model.calls import OTHER_CALLS
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Options, StrategyName
from tui_fs.model.survey import Survey, Totals
from tui_fs.strategies.prediction import CallCounts, Work
from tui_fs.strategies.registry import STRATEGIES

OTHER = Survey(
    PathStr("/t"),
    Totals(files=5_000, directories=401),
    max_depth=9,
    max_entries_in_directory=300,
    non_empty_directories=350,
    parent_directories=60,
    directory_reads=830,
    non_directory_path_bytes=5_000 * 60,
    non_directory_name_bytes=5_000 * 12,
    top_directories=30,
    top_non_directories=70,
    non_empty_levels=900,
)


def built(tree: CalibrationTree, root: Path) -> Survey:
    """Make a tree and survey it."""
    root.mkdir()
    for directory in tree.directories:
        (root / directory).mkdir()
    for file in tree.files:
        (root / file).touch()
    return surveyed(root)


@pytest.fixture(scope="module")
def surveys(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[CalibrationTree, Survey]]:
    """Give the surveys of all trees for calibration."""
    top = tmp_path_factory.mktemp("trees")
    return [(tree, built(tree, top / tree.name)) for tree in calibration_shapes()]


def samples(
    surveys: list[tuple[CalibrationTree, Survey]], strategy: StrategyName, *, keep_root: bool
) -> list[CountedRun]:
    """Let the measured tables stand for what is counted."""
    runs: list[CountedRun] = []
    for tree, survey in surveys:
        work = Work(survey, Options(keep_root=keep_root, batch_size=tree.batch_size))
        found = STRATEGIES[strategy].predicted_calls(work)
        runs.append(CountedRun(work, {**found.calls, "mmap": found.other or 0}))
    return runs


def fitted(
    surveys: list[tuple[CalibrationTree, Survey]],
    strategy: StrategyName,
    survey: Survey,
    options: Options,
) -> CallCounts:
    """Return what a fitted table predicts of a tree."""
    runs = samples(surveys, strategy, keep_root=options.keep_root)
    table = fit(STRATEGIES[strategy], runs)
    assert fits(STRATEGIES[strategy], table) or options.keep_root
    return predicted_with(table, STRATEGIES[strategy], Work(survey, options))


def test_the_trees_are_tiny(surveys: list[tuple[CalibrationTree, Survey]]) -> None:
    assert all(survey.totals.entries <= 301 for _, survey in surveys)
    assert len({tree.name for tree, _ in surveys}) == len(surveys)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("keep_root", [False, True])
def test_the_fit_finds_every_share(
    surveys: list[tuple[CalibrationTree, Survey]], strategy: StrategyName, keep_root: bool
) -> None:
    options = Options(keep_root=keep_root, batch_size=100)
    told = fitted(surveys, strategy, OTHER, options)
    measured = STRATEGIES[strategy].predicted_calls(Work(OTHER, options))
    assert told.other == pytest.approx(measured.other, rel=0.1)
    for name in {*told.calls, *measured.calls}:
        near = 3 + 0.03 * measured.calls[name]
        assert abs(told.calls.get(name, 0) - measured.calls[name]) <= near, name


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("keep_root", [False, True])
def test_what_removes_adds_up_to_the_entries(
    surveys: list[tuple[CalibrationTree, Survey]], strategy: StrategyName, keep_root: bool
) -> None:
    for survey in (OTHER, surveys[0][1], surveys[-1][1]):
        told = fitted(surveys, strategy, survey, Options(keep_root=keep_root)).calls
        removing = sum(told.get(name, 0) for name in ("unlink", "unlinkat", "rmdir"))
        assert removing == survey.totals.entries - keep_root


def test_noise_does_not_become_a_share(surveys: list[tuple[CalibrationTree, Survey]]) -> None:
    runs = [
        replace(run, calls={**run.calls, "statx": 10 + number % 3})
        for number, run in enumerate(samples(surveys, StrategyName("find"), keep_root=False))
    ]
    find = STRATEGIES[StrategyName("find")]
    told = predicted_with(fit(find, runs), find, Work(OTHER))
    assert told.calls["statx"] == pytest.approx(11, abs=2)


def test_samples_of_both_sorts_are_refused(
    surveys: list[tuple[CalibrationTree, Survey]],
) -> None:
    both = [
        *samples(surveys, StrategyName("rm"), keep_root=False),
        *samples(surveys, StrategyName("rm"), keep_root=True),
    ]
    for wrong in (both, []):
        with pytest.raises(ValueError, match="one sort"):
            fit(STRATEGIES[StrategyName("rm")], wrong)


def test_shares_of_what_trees_do_not_have_are_none() -> None:
    rm = STRATEGIES[StrategyName("rm")]
    assert fits(rm, {OTHER_CALLS: {"start": 1.0}})
    assert not fits(rm, {"openat": {"phase of the moon": 1.0}})
