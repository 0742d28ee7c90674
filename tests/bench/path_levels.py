"""Measure the cost of a level for deletion by path: chains of directories, deleted by xargs.

Run ``python -m tests.bench.path_levels --dir DIR`` alone on the machine, with DIR in memory.
Printed is, for each depth, the median time of five, and what is left of it for each level of each
path: what as many files in one directory take, and the processes that only long paths need, taken
off.
"""

import argparse
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.bench.accuracy_trees import chain, flat

_COMMAND = "find . ! -type d -print0 | xargs -0 -n 5000 rm -f --"
_FILES = 20
"""In each directory."""
_ROUNDS = 5
_PROCESS_S = 0.0009
_PROCESS_BYTES = 131_072
"""The bytes of paths that one rm takes, and about what one rm costs."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dir", default=None, help="where the trees are made")
    place = parser.parse_args().dir
    for levels in (300, 500, 1000, 1900):
        files = levels * _FILES
        walked = files * levels / 2
        processes = (2 * walked + len("f00000/") * files) / _PROCESS_BYTES
        seconds = _median_s(partial(chain, entries=files, seed=0, levels=levels), place)
        known_s = _median_s(partial(flat, entries=files, seed=0), place) + processes * _PROCESS_S
        each_ns = (seconds - known_s) / walked * 1e9
        print(f"{levels:5,} levels  {seconds:7.3f} s  {each_ns:4.0f} ns a level", flush=True)


def _median_s(build: Callable[[Path], None], place: str | None) -> float:
    times: list[float] = []
    for _ in range(_ROUNDS):
        with tempfile.TemporaryDirectory(dir=place) as root:
            tree = Path(root) / "tree"
            tree.mkdir()
            build(tree)
            began = time.perf_counter()
            subprocess.run(["sh", "-c", _COMMAND], cwd=tree, check=True)
            times.append(time.perf_counter() - began)
            subprocess.run(["rm", "-rf", "--", str(tree)], check=True)
    return statistics.median(times)


if __name__ == "__main__":
    main()
