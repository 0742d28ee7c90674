"""Measure what an entry costs rm in small and in larger trees, the input of estimates.

Run ``python -m tests.bench.tree_sizes --dir DIR`` with DIR on the file system to measure, alone on
the machine. Trees of one directory are deleted by the bare command, all sizes in turns and in
another order each time. The program prints for each size the median time and the cost of an entry
relative to an empty tree. With ``--alone``
each size has its turns one after the other, as a calibration would.
"""

import argparse
import os
import random
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

SIZES = (0, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dir", default=None, help="where to build the trees")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--alone", action="store_true", help="one size after the other")
    chosen = parser.parse_args()
    turns = [size for size in SIZES for _ in range(chosen.rounds)]
    if not chosen.alone:
        random.Random(1).shuffle(turns)
    times: dict[int, list[float]] = {size: [] for size in SIZES}
    with tempfile.TemporaryDirectory(prefix="tui-fs-bench-", dir=chosen.dir) as place:
        for size in turns:
            times[size].append(_deleting(Path(place) / "tree", size))
    empty_s = statistics.median(times[0])
    for size, seconds in times.items():
        median_s = statistics.median(seconds)
        name_us = (median_s - empty_s) / size * 1e6 if size else 0.0
        print(f"{size:>7,} files {median_s * 1e3:8.2f} ms, {name_us:5.2f} microseconds a name")


def _deleting(tree: Path, size: int) -> float:
    tree.mkdir()
    tree_fd = os.open(tree, os.O_RDONLY)
    for number in range(size):
        os.close(os.open(f"file-{number:06}", os.O_CREAT | os.O_WRONLY, dir_fd=tree_fd))
    os.close(tree_fd)
    began = time.monotonic()
    subprocess.run(["/usr/bin/rm", "-rf", "--", tree], check=True)
    return time.monotonic() - began


if __name__ == "__main__":
    main()
