"""Predicted calls, processes and memory are what the real tools need, on real file systems."""

import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.contracts.deleting import Deleted, delete
from tests.filesystems import kind_of
from tests.needs import lacks, needs_kernel_counters, needs_tool
from tests.trees import chain, flat, many_directories
from tui_fs.estimate.estimator import (
    installed_versions,
    is_measured,
)
from tui_fs.linux.tools import find_engine
from tui_fs.model.calls import EXPLAINED_CALLS, REMOVING_CALLS
from tui_fs.model.strategy import Options, Pace, StrategyName
from tui_fs.strategies.prediction import RMDIR_CALLS, Work, apply
from tui_fs.strategies.registry import STRATEGIES

NEAR_SHARE, NEAR_CALLS = 0.03, 20
ABOUT = 2.0
"""Start-up, memory and closes are a magnitude."""


@pytest.fixture(scope="module", autouse=True)
def _tools() -> None:
    needs_kernel_counters()
    needs_tool("rsync", package="rsync")


def random_tree(root: Path, entries: int = 400, seed: int = 7) -> None:
    """Directories inside each other, files, links and pipes, the same for the same seed."""
    dice = random.Random(seed)
    directories = [root]
    root.mkdir(exist_ok=True)
    for number in range(entries):
        path = dice.choice(directories) / f"{'n' * dice.randint(1, 60)}{number}"
        match dice.randrange(10):
            case 0 | 1:
                path.mkdir()
                directories.append(path)
            case 2:
                path.symlink_to("nowhere")
            case 3:
                os.mkfifo(path)
            case _:
                path.write_bytes(b"x" * dice.choice((0, 1, 9000)))


def linked(root: Path, names: int) -> None:
    """Files of two names each."""
    flat(root, names)
    for file in sorted(root.iterdir()):
        os.link(file, root / f"second-{file.name}")


def long_names(root: Path, names: int) -> None:
    """Names of 200 bytes."""
    root.mkdir()
    for number in range(names):
        os.mknod(root / f"{number:0200}", 0o644)


SHAPES: dict[str, Callable[[Path], None]] = {
    "empty": Path.mkdir,
    "flat": partial(flat, files=700),
    "wide": partial(many_directories, directories=30, files_each=40),
    "empty directories": partial(many_directories, directories=200, files_each=0),
    "chain": partial(chain, depth=60),
    "long names": partial(long_names, names=1000),
    "links": partial(linked, names=200),
    "random": random_tree,
}
ON_EVERY_FILE_SYSTEM = ("random", "long names")
"""The others are deleted on tmpfs only: what is called hardly depends on the file system."""

WAYS = (
    (Options(), False),
    (Options(keep_root=True, batch_size=100, pace=Pace(gentle=True)), False),
    (Options(batch_size=50, processes=2), True),
    (Options(keep_root=True, batch_size=7), True),
)
"""Options, and whether the tools run in the target; each shape is deleted in one of these ways."""


def predicted(
    deleted: Deleted, strategy: StrategyName, options: Options, filesystem: str, *, is_inside: bool
) -> tuple[dict[str, int], int, int]:
    """Predict calls by name, all others and processes as a plan does."""
    emptying = Options(True, options.batch_size, options.processes) if is_inside else options
    work = Work(deleted.survey, emptying, filesystem, is_inside=is_inside)
    prediction, processes = (
        STRATEGIES[strategy].predicted_calls(work),
        STRATEGIES[strategy].processes(work),
    )
    calls, other = dict(prediction.calls), prediction.other or 0
    if is_inside and not options.keep_root:
        processes += 1
        rmdir = apply(RMDIR_CALLS, {"start": 1, "targets": 1})
        other += rmdir.other or 0
        for name, number in rmdir.calls.items():
            calls[name] = calls.get(name, 0) + number
    return calls, other, processes


def differing(prediction: dict[str, int], counted: dict[str, int]) -> dict[str, tuple[int, int]]:
    """Return the calls that are further off than promised: what was predicted, and counted."""
    names = {*prediction, *(EXPLAINED_CALLS & counted.keys())}
    pairs = {name: (prediction.get(name, 0), counted.get(name, 0)) for name in names}
    return {
        name: (expected, actual)
        for name, (expected, actual) in pairs.items()
        if abs(expected - actual)
        > (0 if name in REMOVING_CALLS else max(NEAR_CALLS, NEAR_SHARE * actual))
    }


def test_calls_and_processes_are_as_predicted(filesystem: Path, strategy: str) -> None:
    name, kind = StrategyName(strategy), kind_of(filesystem)
    if not is_measured(STRATEGIES[name], installed_versions()):
        lacks("the tables of calls are for other versions of the tools")
    empty, target = filesystem / "empty", filesystem / "target"
    empty.mkdir()
    for number, shape in enumerate(SHAPES if kind == "tmpfs" else ON_EVERY_FILE_SYSTEM):
        options, is_inside = WAYS[number % len(WAYS)]
        SHAPES[shape](target)
        deleted = delete(target, name, options, empty, is_inside=is_inside)
        if options.keep_root:
            target.rmdir()
        prediction, other, processes = predicted(deleted, name, options, kind, is_inside=is_inside)
        assert of_the_tools(name, differing(prediction, deleted.calls)) == {}, (shape, options)
        rest = sum(n for call, n in deleted.calls.items() if call not in EXPLAINED_CALLS)
        assert other / ABOUT <= rest <= other * ABOUT, (shape, options)
        assert processes == deleted.processes, (shape, options)


def of_the_tools(
    strategy: StrategyName, calls: dict[str, tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    """Leave out how another build of the interpreter starts, and how threads interleave."""
    others = {
        StrategyName("rmtree"): {"newfstatat", "openat"},
        StrategyName("parallel"): {"openat"},
    }
    return {name: pair for name, pair in calls.items() if name not in others.get(strategy, ())}


def delete_and_sample(make: Callable[[Path], None], name: StrategyName, place: Path) -> Deleted:
    """Delete a tree whose tools were looked at; a busy machine may let them end before that."""
    for _ in range(9):
        make(place / "target")
        deleted = delete(place / "target", name, Options(), place / "empty")
        if deleted.peak_memory_bytes:
            break
    return deleted


@pytest.mark.parametrize(
    ("shape", "strategies"),
    [
        ("flat", tuple(STRATEGIES)),
        ("long names", ("find", "rsync", "rmtree", "parallel")),
        ("crowded", ("rm", "rsync", "parallel")),
        ("directories", ("rm", "find", "rmtree", "parallel")),
    ],
)
def test_memory_is_as_predicted(tmpfs: Path, shape: str, strategies: tuple[str, ...]) -> None:
    crowds: dict[str, Callable[[Path], None]] = {
        "flat": partial(flat, files=15_000),
        "long names": partial(long_names, names=8_000),
        "crowded": partial(flat, files=50_000),
        "directories": partial(many_directories, directories=6_000, files_each=1),
    }
    (tmpfs / "empty").mkdir()
    for strategy in map(StrategyName, strategies):
        if strategy == StrategyName("parallel") and find_engine() is None:
            continue
        deleted = delete_and_sample(crowds[shape], strategy, tmpfs)
        actual = deleted.peak_memory_bytes
        predicted_bytes = STRATEGIES[strategy].peak_memory_bytes(
            Work(deleted.survey, filesystem="tmpfs")
        )
        assert abs(predicted_bytes - actual) <= max(5_000_000, actual // 2), (
            strategy,
            predicted_bytes,
            actual,
        )


def test_a_small_tool_is_not_as_large_as_the_interpreter_that_forked_it(tmpfs: Path) -> None:
    (tmpfs / "empty").mkdir()
    tree = partial(many_directories, directories=100, files_each=100)
    deleted = delete_and_sample(tree, StrategyName("rm"), tmpfs)
    # The peak is that of rm, and not of the Python process that became it
    assert 1_000_000 < deleted.peak_memory_bytes < 5_000_000
