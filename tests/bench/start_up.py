"""Measure how large programs are, and how long they take to start.

    python -m tests.bench.start_up [--rounds 11] PROGRAM...

A program is a file; `dua` gets the argument `i`, which opens its screens. Prints medians:
the size, the time of --version, and the time from the start until the screen shows the only file of
a directory. Every round starts each program once, in turn.
"""

import argparse
import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import tempfile
import termios
import time
from pathlib import Path

_NEEDLE = "the-only-file"
_WHERE_IS_THE_CURSOR = b"\x1b[6n"
_DEADLINE_S = 30.0
_LINES_AND_COLUMNS = struct.pack("HHHH", 24, 80, 0, 0)


def version_s(program: Path) -> float:
    """Return the seconds of --version."""
    began_s = time.monotonic()
    subprocess.run([program, "--version"], stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - began_s


def screen_s(program: Path, directory: Path) -> float:
    """Return the seconds until the screen shows the file in the directory."""
    words = [str(program), *(["i"] if program.name == "dua" else []), str(directory)]
    began_s = time.monotonic()
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, _LINES_AND_COLUMNS)
        os.environ["TERM"] = "xterm-256color"
        os.execv(program, words)
    shown = b""
    try:
        while _NEEDLE.encode() not in shown:
            rest_s = began_s + _DEADLINE_S - time.monotonic()
            ready, _, _ = select.select([terminal], [], [], max(0.0, rest_s))
            if not ready:
                raise SystemExit(f"{program} does not show the file: {shown[-500:]!r}")
            read = os.read(terminal, 65_536)
            if _WHERE_IS_THE_CURSOR in read:
                os.write(terminal, b"\x1b[1;1R")
            shown += read
        return time.monotonic() - began_s
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("programs", nargs="+", type=Path)
    arguments = parser.parse_args()
    times: dict[Path, list[tuple[float, float]]] = {each: [] for each in arguments.programs}
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / _NEEDLE).touch()
        for _ in range(arguments.rounds):
            for program, measured in times.items():
                measured.append((version_s(program), screen_s(program, Path(directory))))
    print("| program | size | --version | first screen |\n|---|---|---|---|")
    for program, measured in times.items():
        versions, screens = (statistics.median(column) for column in zip(*measured, strict=True))
        size_mib = os.stat(program).st_size / (1 << 20)
        print(f"| {program} | {size_mib:.1f} MiB | {versions:.2f} s | {screens:.2f} s |")


if __name__ == "__main__":
    main()
