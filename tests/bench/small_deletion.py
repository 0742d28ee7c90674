"""Measure the deletion of one file, from the command's start to its exit.

Run ``python -m tests.bench.small_deletion TREE [TREE …]`` as root, alone on the machine; each TREE
is a checkout of tui-fs, and they take turns. Between two deletions the kernel gets two seconds to
close the counters of the last one, which would slow down the next one.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from tui_fs.linux.interpreter import module_command

_CLOSING_S = 2.0


def seconds_of(tree: Path, place: Path, *arguments: str) -> float:
    """Run a command of a checkout, with compiled modules; return its wall time."""
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    environment |= {
        "PYTHONPATH": str(tree),
        "PYTHONPYCACHEPREFIX": str(place / "compiled"),
        "XDG_STATE_HOME": str(place / "state"),
    }
    command = module_command("tui_fs.cli", *arguments)
    began = time.perf_counter()
    subprocess.run(command, cwd="/", env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def deletion_s(tree: Path, place: Path) -> float:
    """Delete a directory of one file; return the wall time."""
    target = place / "target"
    target.mkdir()
    (target / "file").touch()
    seconds = seconds_of(tree, place, "delete", str(target), "--strategy", "rm", "--yes")
    time.sleep(_CLOSING_S)
    return seconds


def main() -> None:
    """Print the medians of each checkout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", type=Path, nargs="+")
    parser.add_argument("--runs", type=int, default=21)
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        times: dict[tuple[Path, str], list[float]] = {}
        for round_number in range(parsed.runs + 1):
            for number, tree in enumerate(parsed.trees):
                place = Path(scratch, str(number))
                place.mkdir(exist_ok=True)
                version_s, delete_s = seconds_of(tree, place, "--version"), deletion_s(tree, place)
                if round_number:  # the first one has compiled the modules
                    times.setdefault((tree, "--version"), []).append(version_s)
                    times.setdefault((tree, "delete"), []).append(delete_s)
    for (tree, command), each in times.items():
        print(f"{tree} {command}: {1000 * statistics.median(each):.0f} ms, of {len(each)} runs")


if __name__ == "__main__":
    main()
