"""What a race teaches the cost model, and what it does not."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.trees import many_directories
from tests.unit.lab_results import plan, results_of
from tests.unit.test_estimate_recommendation import estimate
from tui_fs.estimate.calibration import LearnedFactor
from tui_fs.estimate.time import typical
from tui_fs.job.calibration.store import FACTOR_BELIEVED, keep, load_calibration
from tui_fs.lab.feedback import predictions, refine_estimates
from tui_fs.lab.results import Results
from tui_fs.linux.filesystem import file_system_of
from tui_fs.model.estimate import Estimate
from tui_fs.model.eta import MIN_CONCLUSIVE_S
from tui_fs.model.strategy import StrategyName
from tui_fs.strategies.registry import STRATEGIES

MEASURED_AT = 1.7e9


@pytest.fixture
def directory(tmp_path: Path) -> str:
    """Return a directory on a file system that was measured."""
    filesystem = file_system_of(str(tmp_path))
    release = os.uname().release
    keep(filesystem, replace(typical(filesystem.kind), measured_at=MEASURED_AT, kernel=release))
    return str(tmp_path)


def raced(**seconds: tuple[float, ...]) -> Results:
    """Return a race with these strategies' times; one time represents three runs."""
    plans = [plan(strategy, entries=1_000) for strategy in STRATEGIES]
    runs = {key: times * 3 if len(times) == 1 else times for key, times in seconds.items()}
    return results_of(plans, runs)


def expected(**seconds: float) -> dict[str, Estimate]:
    """Return what was predicted by the prices measured here."""
    return {
        key: replace(estimate(StrategyName(key), value), measured_at=MEASURED_AT)
        for key, value in seconds.items()
    }


def experience(directory: str) -> dict[str, LearnedFactor]:
    """Return what is known from jobs and races."""
    return load_calibration(file_system_of(directory)).calibration.experience


def factors(directory: str) -> dict[str, float]:
    """Return by which factor each strategy was off, as is known now."""
    return {name: learned.factor for name, learned in experience(directory).items()}


def test_a_tree_is_predicted_as_a_job_on_it_would_be(directory: str) -> None:
    small_tree, large_tree = Path(directory, "small"), Path(directory, "large")
    many_directories(small_tree, 2, 50)
    many_directories(large_tree, 20, 50)
    small, large = (predictions(str(tree)) for tree in (small_tree, large_tree))
    assert {"rm", "find", "xargs", "rmtree"} <= set(large) <= set(STRATEGIES)
    for name, prediction in large.items():
        assert prediction.strategy == name and prediction.measured_at == MEASURED_AT
        assert prediction.seconds > small[name].seconds
    # And nothing was deleted
    assert sum(len(files) for _, _, files in os.walk(large_tree)) == 1_000


def test_a_race_refines_the_estimates(directory: str) -> None:
    notes = refine_estimates(directory, expected(rm=2.0), raced(rm=(3.5, 4.0, 4.5)))
    assert factors(directory) == {"rm": pytest.approx(2.0)}
    assert experience(directory)["rm"].jobs == 1
    (note,) = notes
    assert "rm took 4.00 s and not 2.00 s" in note
    # And a later race is one more experience
    refine_estimates(directory, expected(rm=2.0), raced(rm=(2.0,)))
    assert experience(directory)["rm"].jobs == 2


def test_each_strategy_is_learnt_by_itself(directory: str) -> None:
    predicted = expected(rm=2.0, find=2.0, rsync=2.0)
    refine_estimates(directory, predicted, raced(rm=(3.0,), find=(1.0,)))
    assert factors(directory) == {"rm": pytest.approx(1.5), "find": pytest.approx(0.5)}


def test_too_short_a_race_teaches_nothing(directory: str) -> None:
    short_s = MIN_CONCLUSIVE_S * 0.99
    notes = refine_estimates(
        directory, expected(rm=0.4, find=0.4), raced(rm=(short_s,), find=(short_s,))
    )
    assert experience(directory) == {}
    (note,) = notes
    assert note.startswith("Estimates are not refined from rm, find: under 0.5 s")


def test_what_is_far_off_teaches_nothing(directory: str) -> None:
    notes = refine_estimates(directory, expected(rm=1.0), raced(rm=(FACTOR_BELIEVED * 1.01,)))
    assert experience(directory) == {}
    assert notes == (
        "Estimates are not refined from rm: the time deviates too much to be a calibration error.",
    )


def test_other_prices_are_not_refined(directory: str) -> None:
    predicted = {"rm": replace(expected(rm=2.0)["rm"], measured_at=MEASURED_AT - 60)}
    notes = refine_estimates(directory, predicted, raced(rm=(4.0,)))
    assert experience(directory) == {}
    assert notes == ("Estimates are not refined from rm: the prediction used other unit costs.",)


def test_without_a_measurement_nothing_is_learnt(tmp_path: Path, state_home: Path) -> None:
    many_directories(tmp_path / "tree", 2, 5)
    predicted = predictions(str(tmp_path / "tree"))
    assert {prediction.measured_at for prediction in predicted.values()} == {0.0}
    (note,) = refine_estimates(str(tmp_path), predicted, raced(rm=(4.0,), find=(4.0,)))
    assert "never measured; tui-fs estimate" in note
    assert not (state_home / "tui-fs" / "calibrations").exists()


def test_what_cannot_be_kept_is_said(directory: str, state_home: Path) -> None:
    (state_home / "tui-fs" / "calibrations").chmod(0o777)
    (note,) = refine_estimates(directory, expected(rm=2.0), raced(rm=(4.0,)))
    assert note.startswith("Estimates are not refined from rm: ") and "private" in note


@pytest.mark.parametrize("times", ((8.0, 8.0), (6.0, 8.0, 10.0)))
def test_too_few_runs_or_too_different_ones_teach_nothing(
    directory: str, times: tuple[float, ...]
) -> None:
    results = raced(rm=times)
    (note,) = refine_estimates(directory, expected(rm=4.0), results)
    assert "too few" in note or "differ too much" in note
    assert experience(directory) == {}
