"""Measure the overhead of monitoring: a strategy under tui-fs against the bare command.

Run ``python -m tests.bench.counters_overhead --dir DIR`` with DIR on the file system to
measure, alone on the machine. Both delete identical trees, in turns whose order changes. The
program prints the wall times, their medians, and the ratio of the medians and of each pair.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time

from tui_fs.job.launcher import ENVIRONMENT

DIRECTORIES, FILES_EACH = 300, 1_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dir", default=None, help="where to build the trees")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--strategy", default="rm", choices=["rm", "find"])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tui-fs-bench-", dir=arguments.dir) as place:
        os.environ["XDG_STATE_HOME"] = os.path.join(place, "state")
        bare: list[float] = []
        watched: list[float] = []
        for pair in range(arguments.pairs + 1):
            ways = [(bare, _bare), (watched, _watched)]
            for times, measure in ways if pair % 2 else reversed(ways):
                times.append(measure(place, arguments.strategy))
            if pair == 0:
                bare.clear()  # the first pair warms the caches
                watched.clear()
                continue
            print(
                f"pair {pair}: bare {bare[-1]:.3f} s, watched {watched[-1]:.3f} s, "
                f"ratio {watched[-1] / bare[-1]:.3f}",
                flush=True,
            )
    bare_s, watched_s = statistics.median(bare), statistics.median(watched)
    ratios = statistics.median(w / b for w, b in zip(watched, bare, strict=True))
    files = DIRECTORIES * FILES_EACH
    print(f"{arguments.strategy}, {files:,} files: median bare {bare_s:.3f} s, ", end="")
    print(f"watched {watched_s:.3f} s, ratio of medians {watched_s / bare_s:.3f}, ", end="")
    print(f"median of ratios {ratios:.3f}")


def _bare(place: str, strategy: str) -> float:
    target = _tree(place)
    command = {
        "rm": ["/usr/bin/rm", "-rf", "--one-file-system", "--", target],
        "find": ["/usr/bin/find", target, "-xdev", "-depth", "-delete"],
    }[strategy]
    began = time.monotonic()
    subprocess.run(command, check=True, env=ENVIRONMENT, cwd="/")
    return time.monotonic() - began


def _watched(place: str, strategy: str) -> float:
    target = _tree(place)
    program = os.path.join(sysconfig.get_path("scripts"), "tui-fs")
    command = [program, "delete", target, "--strategy", strategy, "--yes", "--json"]
    done = subprocess.run(command, check=True, capture_output=True, cwd="/")
    report = json.loads(done.stdout.splitlines()[-1])
    if report["trace_source"] != "perf":
        sys.exit(f"not counted by the kernel here: {report['trace_note']}")
    return float(report["strategy_wall_s"])


def _tree(place: str) -> str:
    """Build the tree, stat all of it once (as a survey does), and sync the disk."""
    target = os.path.join(place, "tree")
    for directory in range(DIRECTORIES):
        path = os.path.join(target, f"d{directory:04}")
        os.makedirs(path)
        for number in range(FILES_EACH):
            os.close(os.open(os.path.join(path, f"f{number:04}"), os.O_CREAT | os.O_WRONLY))
    subprocess.run(["du", "-s", target], check=True, stdout=subprocess.DEVNULL)
    os.sync()
    return target


if __name__ == "__main__":
    main()
