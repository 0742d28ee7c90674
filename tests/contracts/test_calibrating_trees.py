"""The small trees whose deletion is timed for a calibration."""

import math
import os
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

from tests.needs import needs_root
from tui_fs.estimate.calibration import Shape
from tui_fs.job.calibration.child import SmallTrees
from tui_fs.model.strategy import StrategyName
from tui_fs.strategies.registry import STRATEGIES
from tui_fs.tracing.perf import allow_more_descriptors


def test_what_is_timed_is_found_by_the_descriptor_alone(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir(mode=0o700)
    descriptor = os.open(scratch, os.O_RDONLY)
    try:
        trees = SmallTrees(descriptor, lambda: True)
        scratch.rename(tmp_path / "moved")
        (scratch / "tree").mkdir(parents=True)
        (scratch / "tree" / "precious").touch()
        first = islice(trees.samples(), 3 * len(STRATEGIES))
        timed = {sample.strategy for sample in first}
    finally:
        os.close(descriptor)
    assert {StrategyName("rm"), StrategyName("find")} <= timed
    assert (scratch / "tree" / "precious").exists()


def test_what_is_timed_tells_how_often_and_how_many_processes(tmpfs: Path) -> None:
    needs_root("counting with the kernel's counters")
    allow_more_descriptors(2_000)
    scratch = tmpfs / "scratch"
    scratch.mkdir(mode=0o700)
    descriptor = os.open(scratch, os.O_RDONLY)
    levels: list[int] = []

    class Seen(SmallTrees):
        def _build(self, contents: Any) -> int:
            allocated = super()._build(contents)
            levels.append(max(len(Path(at).parts) for at, *_ in os.walk(scratch / "tree")))
            return allocated

    trees = Seen(descriptor, lambda: True)
    try:
        samples = list(trees.samples())
    finally:
        os.close(descriptor)
    times = Counter((one.strategy, one.shape) for one in samples)
    assert times[StrategyName("rm"), Shape.FLAT] == times[StrategyName("find"), Shape.FOREST] == 3
    assert (
        times[StrategyName("parallel"), Shape.BESIDE] == times[StrategyName("rm"), Shape.LARGE] == 3
    )
    assert times[StrategyName("xargs"), Shape.COUNTED] == 1
    assert [path.name for path in scratch.iterdir()] == ["empty"]
    # And each tells how many processes xargs has started: others start none
    batches = {(one.strategy, one.shape): one.batches for one in samples if one.batches}
    assert {strategy for strategy, _ in batches} == {StrategyName("xargs")}
    assert batches[StrategyName("xargs"), Shape.FLAT] == 1
    assert batches[StrategyName("xargs"), Shape.BATCHES] == 100
    assert batches[StrategyName("xargs"), Shape.COUNTED] == 200
    # And the deep one was as deep as it says, and needed so many
    deep = next(one for one in samples if one.shape is Shape.DEEP)
    assert (deep.directories, deep.levels) == (250, 250)
    assert deep.batches == math.ceil(deep.names / 200)
    assert max(levels) == len((scratch / "tree").parts) + 250
