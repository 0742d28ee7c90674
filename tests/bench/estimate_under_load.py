"""Measure whether predicted ranges hold on a machine that other processes keep busy.

Run ``python -m tests.bench.estimate_under_load`` as root, alone on the machine. It calibrates a
scratch ext4 on the idle machine. Then it runs busy loops, waits until the load average follows
them, and has `tui-fs delete` delete a tree several times. It compares the time in the report with
the range predicted before the start, and discards what the model learns from each job.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.scratch_mount import mounted
from tui_fs.job.calibration.store import calibrate

PROGRAM = os.path.join(sysconfig.get_path("scripts"), "tui-fs")
DIRECTORIES = 50
LOADS = (4, 2, 0)
SETTLE_LIMIT_S = 100.0
"""The load average covers about a minute."""


@contextmanager
def busy_loops(number: int) -> Iterator[None]:
    """Run loops at niceness 0 until the end of the block."""
    command = ["/usr/bin/yes"]
    processes = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=_nice_zero)
        for _ in range(number)
    ]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _nice_zero() -> None:
    os.setpriority(os.PRIO_PROCESS, 0, 0)


def wait_for_load(number: int) -> None:
    """Wait until the load average is near the number of loops, or the time limit."""
    deadline = time.monotonic() + SETTLE_LIMIT_S
    while abs(os.getloadavg()[0] - number) > 0.6 and time.monotonic() < deadline:
        time.sleep(1)


def make_tree(target: Path, files: int) -> None:
    """Make empty files in some directories."""
    for number in range(DIRECTORIES):
        directory = target / f"d{number}"
        directory.mkdir(parents=True)
        for name in range(files // DIRECTORIES):
            (directory / f"f{name}").touch()
    subprocess.run(["sync", "-f", str(target)], check=True)


def report_of_deletion(target: Path, strategy: str) -> dict[str, Any]:
    """Delete a tree and return the report."""
    command = [PROGRAM, "delete", str(target), "--strategy", strategy, "--yes", "--json"]
    lines = subprocess.run(command, capture_output=True, check=True).stdout.splitlines()
    report: dict[str, Any] = json.loads(lines[-1])
    return report


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dir", default=None, help="where the image is kept")
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--strategy", action="append")
    parser.add_argument("--loops", type=int, action="append", help="busy loops; without: 4, 2, 0")
    chosen = parser.parse_args()
    inside = total = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the loops and the mount
    with tempfile.TemporaryDirectory(prefix="t-", dir=chosen.dir) as place:
        os.environ["XDG_STATE_HOME"] = f"{place}/state"
        with mounted(place, "ext4", 4 << 30, 500_000) as point:
            (point / "t").mkdir()
            calibrate(str(point / "t"))
            (point / "t").rmdir()
            shutil.copytree(f"{place}/state/tui-fs/calibrations", f"{place}/pristine")
            for loops in chosen.loops or LOADS:
                with busy_loops(loops):
                    wait_for_load(loops)
                    for strategy in chosen.strategy or ("rm", "parallel"):
                        for _ in range(chosen.runs):
                            load = os.getloadavg()[0]
                            make_tree(point / "t", chosen.files)
                            report = report_of_deletion(point / "t", strategy)
                            shutil.rmtree(f"{place}/state/tui-fs/calibrations")
                            shutil.copytree(
                                f"{place}/pristine", f"{place}/state/tui-fs/calibrations"
                            )
                            took_s, predicted = report["strategy_wall_s"], report["predicted"]
                            low, high = predicted["seconds_low"], predicted["seconds_high"]
                            is_inside = low <= took_s <= high
                            inside, total = inside + is_inside, total + 1
                            print(
                                f"{loops} loops, load {load:4.1f}  {strategy:9} {took_s:5.2f} s  "
                                f"{low:5.2f} to {high:5.2f}  {'inside' if is_inside else 'OUTSIDE'}"
                                f"  {report['time_comment']}",
                                flush=True,
                            )
    print(f"{inside} of {total} inside")


if __name__ == "__main__":
    main()
