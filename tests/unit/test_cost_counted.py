"""Calls learnt from counted deletions of tiny trees."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.survey_trees import surveyed
from tui_fs.cost.calls import predicted_calls
from tui_fs.cost.counted import CalibrationTree, CountedRun, calibration_shapes, fit, fits
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Options, StrategyName
from tui_fs.model.survey import Survey, Totals

OTHER = Survey(
    PathStr("/t"),
    Totals(files=5_000, directories=401),
    max_depth=9,
    max_entries_in_directory=300,
    non_empty_directories=350,
    parent_directories=60,
    non_directory_parents=310,
    directory_reads=830,
    non_directory_path_bytes=5_000 * 60,
    non_directory_name_bytes=5_000 * 12,
    top_directories=30,
    top_non_directories=70,
    non_empty_levels=900,
    tall_directories=12,
    tall_full_directories=12,
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
    """Let the formulas stand for what is counted."""
    runs: list[CountedRun] = []
    for tree, survey in surveys:
        options = Options(keep_root=keep_root, batch_size=tree.batch_size)
        runs.append(CountedRun(survey, options, predicted_calls(survey, strategy, options)))
    return runs


def test_the_trees_are_tiny(surveys: list[tuple[CalibrationTree, Survey]]) -> None:
    # Given the trees for calibration / When surveyed / Then at most 300 entries each
    assert all(survey.totals.entries <= 301 for _, survey in surveys)
    assert len({tree.name for tree, _ in surveys}) == len(surveys)


@pytest.mark.parametrize("strategy", StrategyName)
@pytest.mark.parametrize("keep_root", [False, True])
def test_the_fit_finds_every_share(
    surveys: list[tuple[CalibrationTree, Survey]], strategy: StrategyName, keep_root: bool
) -> None:
    # Given what a formula says of the trees / When fitted
    model = fit(strategy, samples(surveys, strategy, keep_root=keep_root))
    # Then it says of another tree what the formula says, but for the heap and chance
    options = Options(keep_root=keep_root, batch_size=100)
    told, formula = model.predicted(OTHER, options), predicted_calls(OTHER, strategy, options)
    differing = {name for name in {*told, *formula} if abs(told.get(name, 0) - formula[name]) > 2}
    if strategy is StrategyName.PARALLEL:
        differing -= {"getdents64"}  # no tiny tree has so many names that it needs a further one
    assert differing <= {"brk", "mmap", "munmap", "mremap", "poll", "read", "write", "openat",
                         "close", "newfstatat"}  # fmt: skip
    assert sum(told.values()) == pytest.approx(sum(formula.values()), rel=0.03)


@pytest.mark.parametrize("strategy", StrategyName)
@pytest.mark.parametrize("keep_root", [False, True])
def test_what_removes_adds_up_to_the_entries(
    surveys: list[tuple[CalibrationTree, Survey]], strategy: StrategyName, keep_root: bool
) -> None:
    # Given a model / When it predicts any tree / Then each entry is removed once
    model = fit(strategy, samples(surveys, strategy, keep_root=keep_root))
    for survey in (OTHER, surveys[0][1], surveys[-1][1]):
        told = model.predicted(survey, Options(keep_root=keep_root))
        removing = sum(told.get(name, 0) for name in ("unlink", "unlinkat", "rmdir"))
        assert removing == survey.totals.entries - keep_root


def test_noise_does_not_become_a_share(surveys: list[tuple[CalibrationTree, Survey]]) -> None:
    # Given counts of which one wavers by two calls / When fitted
    runs = [
        replace(run, calls={**run.calls, "ioctl": 10 + number % 3})
        for number, run in enumerate(samples(surveys, StrategyName.FIND, keep_root=False))
    ]
    # Then a large tree has about as many of it
    told = fit(StrategyName.FIND, runs).predicted(OTHER, Options())
    assert told["ioctl"] == pytest.approx(11, abs=2)


def test_samples_of_both_sorts_are_refused(
    surveys: list[tuple[CalibrationTree, Survey]],
) -> None:
    # Given deletions with and without the root, or none at all / When fitted / Then refused
    both = [
        *samples(surveys, StrategyName.RM, keep_root=False),
        *samples(surveys, StrategyName.RM, keep_root=True),
    ]
    for wrong in (both, []):
        with pytest.raises(ValueError, match="one sort"):
            fit(StrategyName.RM, wrong)


def test_shares_of_what_trees_do_not_have_are_none() -> None:
    # Given shares that were kept / When looked at / Then those of unknown features do not fit
    assert fits(StrategyName.RM, {"read": {"start": 1.0}})
    assert not fits(StrategyName.RM, {"read": {"phase of the moon": 1.0}})
