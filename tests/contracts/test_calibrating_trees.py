"""The small trees whose deletion is timed for a calibration."""

import itertools
import os
from collections import Counter
from pathlib import Path

import pytest

from tui_fs.estimate.calibration import Shape
from tui_fs.job.calibration.child import SmallTrees
from tui_fs.model.strategy import StrategyName


def test_each_timing_has_its_number_of_runs_and_processes(tmpfs: Path) -> None:
    scratch, moved = tmpfs / "scratch", tmpfs / "moved"
    scratch.mkdir(mode=0o700)
    descriptor = os.open(scratch, os.O_RDONLY)
    try:
        trees = SmallTrees(descriptor, lambda: True)
        # Something else takes its path: the trees are found by the descriptor alone
        scratch.rename(moved)
        (scratch / "tree").mkdir(parents=True)
        (scratch / "tree" / "precious").touch()
        samples = list(trees.samples())
    finally:
        os.close(descriptor)
    assert (scratch / "tree" / "precious").exists()
    times = Counter((sample.strategy, sample.shape) for sample in samples)
    assert times[StrategyName("rm"), Shape.FLAT] == times[StrategyName("find"), Shape.FOREST] == 3
    assert (
        times[StrategyName("parallel"), Shape.BESIDE] == times[StrategyName("rm"), Shape.LARGE] == 3
    )
    assert [path.name for path in moved.iterdir()] == ["empty"]
    # And each reports how many processes xargs started: others start none
    batches = {
        (sample.strategy, sample.shape): sample.batches for sample in samples if sample.batches
    }
    assert {strategy for strategy, _ in batches} == {StrategyName("xargs")}
    assert batches[StrategyName("xargs"), Shape.FLAT] == 1
    assert batches[StrategyName("xargs"), Shape.BATCHES] == 100


@pytest.mark.parametrize("trees_in_time", [1, 9, 10])
def test_no_tree_is_left_when_the_time_is_over(tmpfs: Path, trees_in_time: int) -> None:
    questions = itertools.count()
    descriptor = os.open(tmpfs, os.O_RDONLY)
    try:
        trees = SmallTrees(descriptor, lambda: next(questions) < trees_in_time)
        list(trees.samples())
    finally:
        os.close(descriptor)
    assert not trees.is_whole
    # The trees that are read from disk are made after these, under the same name
    assert [path.name for path in tmpfs.iterdir()] == ["empty"]
