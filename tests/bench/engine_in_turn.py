"""Compare the engine with other deleters, in turns: its time as a ratio of the time of each.

Run as root ``python -m tests.bench.engine_in_turn --dir DIR`` alone on the machine, with room in
DIR for an image. Each deletes the same tree, written to the disk before, once a round, each round
in another order. The program prints for each the median time and the median ratio of the engine's
time to its time in the same round. ``--engine PATH`` (repeatable) adds further builds of the
engine, and ``--threads N`` adds the engine with that number of threads. Where other programs use
the processors, ``chrt --rr 1`` in front keeps them from these.
"""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from tests.bench.accuracy_trees import SHAPES
from tests.bench.scratch_mount import mounted
from tui_fs.lab.tree_generators import Realistic
from tui_fs.linux.filesystem import write_out
from tui_fs.linux.pins import take_pin
from tui_fs.strategies.parallel import pin_argument

_PIN = "PIN"
_ENGINE = ("tui-fs-engine", "delete", "--pin", _PIN, "--")
_FILESYSTEMS = ("ext4", "ext4+orphan_file", "xfs", "tmpfs", "btrfs")
"""With orphan_file, ext4 keeps no single list of what is removed and not yet freed."""
_IMAGE_BYTES = 8 << 30
_MEAN_BYTES = 48 << 10


def _home(root: Path, entries: int, seed: int) -> None:
    """Fill a directory like a home with its backups, as the lab does."""
    directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    Realistic(seed, entries, _MEAN_BYTES).build(directory, lambda _: None)
    os.close(directory)


_SHAPES = {**SHAPES, "home": _home}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dir", default=None, help="where the images are made")
    parser.add_argument("--filesystem", choices=_FILESYSTEMS, default="tmpfs")
    parser.add_argument("--shape", choices=list(_SHAPES), default="100 x 1000")
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1, help="of random shapes; 7 as in rivals")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--engine", action="append", default=[], help="another build of it")
    parser.add_argument("--threads", action="append", default=[], help="a number for the engine")
    asked = parser.parse_args()
    commands: dict[str, tuple[str, ...]] = {"engine": _ENGINE, "rm": ("rm", "-rf", "--")}
    if shutil.which("rmz"):
        commands["rmz"] = ("rmz", "-f")
    commands |= {path: (path, *_ENGINE[1:]) for path in asked.engine}
    commands |= {f"--threads {n}": (*_ENGINE[:-1], "--threads", n, "--") for n in asked.threads}
    times: dict[str, list[float]] = {name: [] for name in commands}
    with (
        tempfile.TemporaryDirectory(prefix="tui-fs-bench-", dir=asked.dir) as place,
        mounted(place, asked.filesystem, _IMAGE_BYTES, 2 * asked.entries) as ground,
    ):
        dice = random.Random(1)
        for number in range(asked.rounds + 1):
            for name in dice.sample(list(commands), len(commands)):
                tree = ground / "tree"
                tree.mkdir()
                _SHAPES[asked.shape](tree, asked.entries, asked.seed)
                taken_s = _deleting(commands[name], tree)
                if number:  # the first round warms the caches
                    times[name].append(taken_s)
    print(f"{asked.filesystem}, {asked.shape}, {asked.entries:,}, {asked.rounds} rounds")
    for name, taken in times.items():
        ratios = [ours / other_s for ours, other_s in zip(times["engine"], taken, strict=True)]
        quartiles = statistics.quantiles(ratios, n=4)
        print(
            f"  {name:12} {statistics.median(taken):.4f} s, engine / it {quartiles[1]:.3f} "
            f"({quartiles[0]:.3f} to {quartiles[2]:.3f})"
        )


def _deleting(command: tuple[str, ...], tree: Path) -> float:
    directory = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    write_out(directory)
    os.close(directory)
    pin = pin_argument(take_pin(str(tree)))
    words = [pin if word == _PIN else word for word in command]
    began_s = time.monotonic()
    subprocess.run([*words, tree], check=True, stdout=subprocess.DEVNULL)
    taken_s = time.monotonic() - began_s
    if tree.exists():
        raise SystemExit("something is left")
    return taken_s


if __name__ == "__main__":
    main()
