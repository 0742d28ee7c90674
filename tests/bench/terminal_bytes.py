"""Measure what the run screen sends to the terminal each second, with and without --slow-link.

    python -m tests.bench.terminal_bytes --dir DIR [--seconds N] [--columns C] [--lines L]

Makes 60,000 files in DIR, deletes them at 500 a second, watches the job in a pseudo-terminal, and
counts the bytes that the program writes there. The job is cancelled afterwards.
"""

import argparse
import os
import signal
import subprocess
import sysconfig
import tempfile
import time
from pathlib import Path

from tests.bench.keys_while_counting import Screen, start
from tests.trees import flat

FILES, RATE = 60_000, 500
STRATEGIES = ("rm", "xargs", "parallel")
SETTLING_S = 3.0


def bytes_per_s(strategy: str, scratch: Path, asked: argparse.Namespace, *options: str) -> float:
    """Watch a job of a strategy for some seconds; return the bytes written in each."""
    state, target = scratch / "state", scratch / "place" / "target"
    target.mkdir(parents=True)
    flat(target, FILES)
    program = str(Path(sysconfig.get_path("scripts"), "tui-fs"))
    environment = os.environ | {"XDG_STATE_HOME": str(state)}
    how = ("--yes", "--detach", "--strategy", strategy, "--rate", str(RATE))
    job = subprocess.run(
        [program, "delete", *how, target], env=environment, stdout=subprocess.PIPE, check=True
    ).stdout.decode()
    pid, terminal = start(
        (*options, str(target.parent)), asked.columns, asked.lines, str(state), colours="truecolor"
    )
    try:
        screen = Screen(terminal)
        screen.wait_for("watch")
        os.write(terminal, b"w")
        screen.wait_for("system calls")
        written, began = 0, time.monotonic()
        while time.monotonic() < began + SETTLING_S:
            screen.read(0.1)
        before, began = screen.bytes_read, time.monotonic()
        while time.monotonic() < began + asked.seconds:
            screen.read(0.1)
        written = screen.bytes_read - before
        return written / (time.monotonic() - began)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        subprocess.run([program, "cancel", job.strip()], env=environment, check=True)


def main() -> None:
    """Measure each strategy both ways, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--columns", type=int, default=80)
    parser.add_argument("--lines", type=int, default=24)
    asked = parser.parse_args()
    for options in ((), ("--slow-link",)):
        for strategy in STRATEGIES:
            with tempfile.TemporaryDirectory(dir=asked.dir) as scratch:
                rate = bytes_per_s(strategy, Path(scratch), asked, *options)
            print(f"{strategy} {' '.join(options)}: {rate / 1000:.1f} KB/s", flush=True)


if __name__ == "__main__":
    main()
