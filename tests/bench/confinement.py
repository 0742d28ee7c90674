"""Measure what confinement costs: the time of a confined rm as a ratio of the time of a bare one.

Run as root ``python -m tests.bench.confinement --dir DIR`` alone on the machine, with room in DIR
for images. Each round deletes the same tree once in each way, in another order. The program prints
for each file system and shape the median ratio of the times in one round, and marks the way that
tui-fs chooses.
"""

import argparse
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench.scratch_mount import mounted
from tests.trees import chain, flat, many_directories
from tui_fs.linux.mounts import read_mounts
from tui_fs.model.strategy import Confine, Mechanism
from tui_fs.safety.confinement import ConfinedTarget, Enclosure, mechanisms_for

_FILESYSTEMS = ("ext4", "xfs", "tmpfs")
_IMAGE_BYTES = 4 << 30
_WAYS: dict[str, tuple[Mechanism, ...]] = {
    "bare": (),
    "namespace": (Mechanism.NAMESPACE,),
    "Landlock": (Mechanism.LANDLOCK,),
    "both": (Mechanism.NAMESPACE, Mechanism.LANDLOCK),
}


_SHAPES: dict[str, tuple[int, Callable[[Path], None]]] = {
    "60,000 files": (1, lambda root: flat(root, 60_000)),
    "20,000 directories": (3, lambda root: many_directories(root, 20_000, 2)),
    "chain of 2,000": (2_000, lambda root: chain(root, 2_000)),
}
"""The depth, and what builds the tree."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dir", default=None, help="where the images are made")
    parser.add_argument("--filesystem", choices=_FILESYSTEMS, action="append")
    parser.add_argument("--rounds", type=int, default=11)
    asked = parser.parse_args()
    print(f"{'':30}" + "".join(f"{way:>12}" for way in _WAYS))
    for filesystem in asked.filesystem or _FILESYSTEMS:
        with (
            tempfile.TemporaryDirectory(prefix="tui-fs-bench-", dir=asked.dir) as place,
            mounted(place, filesystem, _IMAGE_BYTES, 200_000) as ground,
        ):
            for shape, (levels, build) in _SHAPES.items():
                ratios = _ratios(ground / "tree", build, asked.rounds)
                chosen = mechanisms_for(Confine.AUTO, levels)
                cells = "".join(
                    f"{ratio:>11.2f}{'*' if _WAYS[way] == chosen else ' '}"
                    for way, ratio in ratios.items()
                )
                print(f"{filesystem:6}{shape:24}{cells}", flush=True)
    print("* what tui-fs chooses")


def _ratios(tree: Path, build: Callable[[Path], None], rounds: int) -> dict[str, float]:
    """Return for each way the median of its time over that of the bare way in the same round."""
    dice = random.Random(1)
    times: dict[str, list[float]] = {way: [] for way in _WAYS}
    for number in range(rounds + 1):
        for way in dice.sample(list(_WAYS), len(_WAYS)):
            build(tree)
            os.sync()
            seconds = _time_of_rm(tree, _WAYS[way])
            if number:  # the first round warms up
                times[way].append(seconds)
            shutil.rmtree(tree, ignore_errors=True)
    return {
        way: statistics.median(
            seconds / bare for seconds, bare in zip(times[way], times["bare"], strict=True)
        )
        for way in _WAYS
    }


def _time_of_rm(tree: Path, mechanisms: tuple[Mechanism, ...]) -> float:
    """Return the seconds of an rm that empties a tree, without entering the confinement."""
    descriptor = os.open(tree, os.O_PATH | os.O_DIRECTORY)
    ready, ready_end = os.pipe()
    go, go_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            if mechanisms:
                target = ConfinedTarget.of(descriptor, str(tree), read_mounts())
                Enclosure(mechanisms, (target,), is_inside=False).enter()
            os.write(ready_end, b"r")
            os.read(go, 1)
            os.execv("/bin/rm", ("rm", "-rf", "--one-file-system", "--", str(tree)))
        finally:
            os._exit(127)
    os.read(ready, 1)
    began = time.perf_counter()
    os.write(go_end, b"g")
    os.waitpid(pid, 0)
    seconds = time.perf_counter() - began
    for end in (ready, ready_end, go, go_end, descriptor):
        os.close(end)
    left = os.listdir(tree) if tree.exists() else []
    assert not left, f"{len(left)} entries are left"
    return seconds


if __name__ == "__main__":
    main()
