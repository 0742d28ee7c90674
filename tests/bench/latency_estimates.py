"""Compare predicted with measured times on a file system that answers late.

Run as root ``python -m tests.bench.latency_estimates`` alone on the machine. The file system is
`tests/fuse/latency_fs.c` over a tmpfs. For each delay, shape and strategy the program prints the
predicted range, the measured time and whether the range holds it.
"""

import argparse
import json
import os
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench.scratch_mount import mounted
from tests.fuse.latency import served_late
from tests.trees import chain, flat, many_directories

_PROGRAM = os.path.join(sysconfig.get_path("scripts"), "tui-fs")
_SIZE_BYTES, _INODES = 2 << 30, 200_000
_CACHED_S = 1.1  # the kernel remembers attributes and names for a second
_STRATEGIES = ("rm", "parallel")
_SHAPES: dict[str, Callable[[Path], None]] = {
    "40 x 60": lambda root: many_directories(root, 40, 60),
    "300 x 20": lambda root: many_directories(root, 300, 20),
    "flat 1500": lambda root: flat(root, 1_500),
    "chain 300": lambda root: chain(root, 300),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--delay-ms", type=float, action="append")
    asked = parser.parse_args()
    held = cases = 0
    with (
        tempfile.TemporaryDirectory(prefix="tui-fs-bench-") as place,
        mounted(place, "tmpfs", _SIZE_BYTES, _INODES) as backing,
    ):
        for delay_ms in asked.delay_ms or (1.0, 5.0):
            os.environ["XDG_STATE_HOME"] = f"{place}/state-{delay_ms}"  # another server
            with served_late(backing, Path(place) / "late", delay_ms) as shown:
                for name, build in _SHAPES.items():
                    for strategy in _STRATEGIES:
                        build(backing / "tree")
                        is_held, line = _compare(shown / "tree", strategy)
                        print(f"{delay_ms} ms  {name:10} {strategy:9}{line}", flush=True)
                        held, cases = held + is_held, cases + 1
    print(f"{held} of {cases} ranges hold the measured time")


def _compare(tree: Path, strategy: str) -> tuple[bool, str]:
    time.sleep(_CACHED_S)
    (estimates,) = _json("estimate", "--json", str(tree))
    estimate = next(each for each in estimates["strategies"] if each["strategy"] == strategy)
    low, expected, high = (estimate[key] for key in ("seconds_low", "seconds", "seconds_high"))
    time.sleep(_CACHED_S)
    *_, report = _json("delete", "--yes", "--json", "--strategy", strategy, str(tree))
    took = report["strategy_wall_s"]
    is_held = low <= took <= high
    figures = f"{low:7.2f} {expected:7.2f} {high:7.2f} s, took {took:7.2f} s"
    return is_held, f"{figures}  {'held' if is_held else 'NOT held'}"


def _json(*words: str) -> list[dict[str, Any]]:
    """Return the JSON objects that the program prints: one, or one in each line."""
    output = subprocess.run([_PROGRAM, *words], capture_output=True, check=True).stdout
    try:
        return [json.loads(output)]
    except ValueError:
        return [json.loads(line) for line in output.splitlines()]


if __name__ == "__main__":
    main()
