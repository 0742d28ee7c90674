"""Delete ten million names of one directory and a chain of a million with the engine.

``python -m tests.bench.engine_bounds --dir DIR``: DIR on a tmpfs with room for that many inodes
(``mount -t tmpfs -o size=20g,nr_inodes=11m tmpfs DIR``). Prints seconds and peak memory; the exit
code is 0 if all was deleted and the memory stayed within its bound.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.engine.running import delete_command, peak_memory_kib
from tests.trees import chain, flat

_BOUND_KIB = 64 << 10


def main() -> int:
    """Measure both trees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--names", type=int, default=10_000_000)
    parser.add_argument("--levels", type=int, default=1_000_000)
    asked = parser.parse_args()
    target = asked.dir / "target"
    trees: tuple[tuple[str, Callable[[Path, int], None], int], ...] = (
        ("names in one directory", flat, asked.names),
        ("directories in each other", chain, asked.levels),
    )
    is_good = True
    for words, build, number in trees:
        build(target, number)
        began = time.monotonic()
        code, peak_kib = peak_memory_kib(delete_command("--", target))
        took_s = time.monotonic() - began
        is_good = is_good and code == 0 and not target.exists() and peak_kib <= _BOUND_KIB
        print(
            f"{number:>12,} {words}: {took_s:.1f} s, {peak_kib / 1024:.1f} MiB, ended with {code}"
        )
    print(f"left: {os.listdir(asked.dir)}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
