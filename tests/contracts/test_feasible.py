"""The tools really fail where the preflight reports a hindrance, and nowhere else."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.contracts.deleting import prepared_steps
from tests.needs import needs_root, needs_tool
from tests.unit.survey_trees import surveyed
from tui_fs.estimate.estimator import installed_versions
from tui_fs.estimate.preflight import RunConditions, check_preflight
from tui_fs.linux.tools import find_engine
from tui_fs.model.strategy import Options, StrategyName
from tui_fs.strategies.prediction import Work
from tui_fs.strategies.registry import STRATEGIES

NAME_BYTES = 200
LEVELS_THAT_FAIL_PYTHON = 1_100


def deep(root: Path, path_bytes: int, name_bytes: int = NAME_BYTES) -> None:
    """Make directories inside each other, and a file whose path from the root on is so long."""
    root.mkdir()
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    while path_bytes > name_bytes + 1:
        os.mkdir("d" * name_bytes, dir_fd=at)
        below = os.open("d" * name_bytes, os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
        os.close(at)
        at, path_bytes = below, path_bytes - name_bytes - 1
    os.mknod("f" * path_bytes, dir_fd=at)
    os.close(at)


def agrees(target: Path, strategy: StrategyName, *, is_inside: bool) -> bool:
    """Ask whether it is feasible, try it, and fail unless that is so."""
    survey = surveyed(target)
    place = RunConditions(versions=installed_versions(), is_inside=is_inside)
    work = Work(survey, is_inside=is_inside)
    hindrances = check_preflight(STRATEGIES[strategy], work, 1, place).hindrances
    empty = target.parent / "empty"
    empty.mkdir(exist_ok=True)
    for prepared in prepared_steps(target, strategy, Options(), empty, is_inside=is_inside):
        directory = target if prepared.is_inside else target.parent
        source = None
        for argv in prepared.step:
            piped = argv is not prepared.step[-1]
            process = subprocess.Popen(
                argv,
                cwd=directory,
                stdin=source or subprocess.DEVNULL,
                stdout=subprocess.PIPE if piped else subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            source = process.stdout
        process.wait()
    assert target.exists() is bool(hindrances), (strategy, is_inside, hindrances)
    return not hindrances


@pytest.mark.parametrize("is_inside", [False, True])
def test_the_longest_path_is_as_predicted(tmpfs: Path, is_inside: bool, strategy: str) -> None:
    needs_tool("rsync", package="rsync")
    name, target = StrategyName(strategy), tmpfs / "target"
    longest = {
        StrategyName("rsync"): 4_095,
        StrategyName("xargs"): 4_095 - (len("./") if is_inside else len(f"{target}/")),
    }.get(name, 9_000)
    for more in (0, 1):
        deep(target, longest + more)
        assert agrees(target, name, is_inside=is_inside) is (more == 0 or longest == 9_000)


@pytest.mark.parametrize("levels", [1_024, 1_025])
def test_rsync_descends_this_many_levels(tmpfs: Path, levels: int) -> None:
    needs_tool("rsync", package="rsync")
    deep(tmpfs / "target", 2 * levels - 1, name_bytes=1)
    agrees(tmpfs / "target", StrategyName("rsync"), is_inside=False)


def test_rmtree_does_not_go_down_as_deep(tmpfs: Path) -> None:
    deep(tmpfs / "target", 2 * LEVELS_THAT_FAIL_PYTHON, name_bytes=1)
    assert not agrees(tmpfs / "target", StrategyName("rmtree"), is_inside=False)


def test_a_locked_target_is_reported_and_stays(ext4: Path) -> None:
    needs_root("chattr")
    chattr = needs_tool("chattr", package="e2fsprogs")
    target = ext4 / "target"
    target.mkdir()
    (target / "file").touch()
    subprocess.run([chattr, "+i", target], check=True)
    no_engine = find_engine() is None
    try:
        for strategy in set(STRATEGIES) - ({StrategyName("parallel")} if no_engine else set()):
            assert not agrees(target, strategy, is_inside=False)
        assert (target / "file").exists()
    finally:
        subprocess.run([chattr, "-i", target], check=True)
