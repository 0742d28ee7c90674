"""The race: every strategy on a tree of one's own shape, and the verdicts on figures made up."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.trees import many_directories
from tests.unit import lab_results
from tui_fs.lab.experiment import Counting, Judged, Scale, Setting, TableView, Verdict
from tui_fs.lab.experiments.race_your_strategies import EXPERIMENT
from tui_fs.lab.results import (
    Measure,
    Results,
)
from tui_fs.model.calls import CallCount
from tui_fs.strategies.registry import STRATEGIES

ENTRIES = 10_101
RSYNC_IS_FASTER = "rsync deletes faster than rm, as is often claimed."
ONE_RM_IS_FASTER = "A single rm is faster than find and xargs, which start many rm processes."
FEWEST_IS_FASTEST = "The strategy with the fewest system calls is the fastest."
EACH_IS_REMOVED = "Every strategy makes one call for each entry it removes."
ALIKE = "The slowest strategy takes less than twice the time of the fastest."

Calls = dict[str, CallCount]


def results_of(
    seconds: Mapping[str, tuple[float, ...]], calls: Mapping[str, Calls] | None = None
) -> Results:
    """Return a run in which only these strategies have figures."""
    return lab_results.run_with(EXPERIMENT, seconds=seconds, calls=calls)


def verdict(claim: str, results: Results) -> Judged:
    """Return the verdict on a claim."""
    return lab_results.judgement_of(EXPERIMENT, claim, results)


def unlinked(entries: int, others: int = 0, errors: int = 0) -> Calls:
    """Return calls that remove this many entries, and other calls."""
    return {"unlinkat": CallCount(entries + errors, errors), "openat": CallCount(others)}


def setting(target: str = "") -> Setting:
    """Return a machine without detected tools."""
    return Setting({}, target)


@pytest.mark.parametrize("scale", list(Scale))
def test_every_strategy_has_a_tree_of_its_own(scale: Scale) -> None:
    trials = EXPERIMENT.trials(scale, setting())
    steps = [step for trial in trials for step in trial.steps]
    assert [step.key for step in steps] == list(STRATEGIES)
    assert {step.counting for step in steps} == {Counting.CALLS}
    (tree,) = {trial.tree for trial in trials}
    assert tree is not None
    assert tree.entries == {Scale.SMALL: ENTRIES, Scale.PUBLISHED: 505_001}[scale]
    # And each tool it begins with is one that was asked for
    named = {argv[0] for step in steps for pipeline in step.commands for argv in pipeline}
    assert named <= set(EXPERIMENT.tools)


def test_a_directory_of_ones_own_gives_the_shape(tmp_path: Path) -> None:
    many_directories(tmp_path / "own", 3, 5)
    (tmp_path / "own" / "with content").write_bytes(b"x" * 5_000)
    target = setting(str(tmp_path / "own"))
    small, published = (EXPERIMENT.trials(scale, target)[0].tree for scale in Scale)
    assert small is not None and published is not None
    there = sum(1 + len(files) for _, _, files in os.walk(tmp_path / "own"))
    assert small.entries == published.entries == there
    assert small.contents_bytes == 0
    assert published.contents_bytes >= 5_000


@pytest.mark.parametrize(
    ("rsync", "rm", "expected"),
    [
        ((1.0, 1.1), (2.0, 2.1), Verdict.HOLDS),
        ((2.0, 2.1), (1.0, 1.1), Verdict.DOES_NOT),
        ((1.0, 1.5), (1.4, 1.6), Verdict.UNTESTED),
        ((1.4, 1.6), (1.0, 1.5), Verdict.UNTESTED),
    ],
)
def test_a_difference_counts_only_beyond_the_noise(
    rsync: tuple[float, ...], rm: tuple[float, ...], expected: Verdict
) -> None:
    judgement = verdict(RSYNC_IS_FASTER, results_of({"rsync": rsync, "rm": rm}))
    assert judgement.verdict is expected
    assert ("noise" in judgement.reason) == (expected is Verdict.UNTESTED)


def test_many_processes_are_slower_than_one() -> None:
    slow = results_of({"xargs": (3.0, 3.1), "rm": (1.0, 1.1)})
    assert verdict(ONE_RM_IS_FASTER, slow).verdict is Verdict.HOLDS


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ({"rm": (1.0, 1.1), "find": (2.0, 2.1)}, Verdict.HOLDS),
        ({"rm": (2.0, 2.1), "find": (1.0, 1.1)}, Verdict.DOES_NOT),
        ({"rm": (1.0, 1.3), "find": (0.9, 1.2)}, Verdict.UNTESTED),
    ],
)
def test_fewest_calls_and_least_time(
    seconds: dict[str, tuple[float, ...]], expected: Verdict
) -> None:
    calls = {"rm": unlinked(ENTRIES, 10), "find": unlinked(ENTRIES, 500)}
    judgement = verdict(FEWEST_IS_FASTEST, results_of(seconds, calls))
    assert judgement.verdict is expected
    assert "rm makes the fewest calls, 10,111" in judgement.here


@pytest.mark.parametrize(
    ("of_rsync", "expected"),
    [
        (unlinked(ENTRIES, errors=7), Verdict.HOLDS),
        ({"unlink": CallCount(ENTRIES - 10), "rmdir": CallCount(10)}, Verdict.HOLDS),
        (unlinked(ENTRIES - 1, errors=1), Verdict.DOES_NOT),
    ],
)
def test_only_calls_that_succeed_remove(of_rsync: Calls, expected: Verdict) -> None:
    results = results_of({}, {"rm": unlinked(ENTRIES), "rsync": of_rsync})
    assert verdict(EACH_IS_REMOVED, results).verdict is expected


@pytest.mark.parametrize(("slowest", "expected"), [(1.9, Verdict.HOLDS), (2.0, Verdict.DOES_NOT)])
def test_how_far_they_lie_apart(slowest: float, expected: Verdict) -> None:
    results = results_of({"rm": (1.0,), "find": (1.5,), "rmtree": (slowest,)})
    judgement = verdict(ALIKE, results)
    assert judgement.verdict is expected and "rmtree" in judgement.here


def test_what_is_shown_is_ranked() -> None:
    results = results_of(
        {"rm": (2.0,), "find": (1.0,), "rmtree": (3.0,)},
        {"rm": unlinked(ENTRIES), "find": unlinked(ENTRIES, 9)},
    )
    table, *others = [view for view in EXPERIMENT.views(results) if isinstance(view, TableView)]
    assert table.keys[:3] == ("find", "rm", "rmtree")
    assert set(table.keys) == set(STRATEGIES)
    # And the bars of each measure have an order of their own
    bars = {view.measures[0]: view.keys for view in others if view.has_bars}
    assert table.measures[0] is Measure.SECONDS and table.has_bars
    assert bars[Measure.CALLS] == ("rm", "find")


def test_a_race_that_has_just_begun_can_be_shown() -> None:
    (table,) = [view for view in EXPERIMENT.views(results_of({})) if isinstance(view, TableView)]
    assert len(table.keys) == len(STRATEGIES)
