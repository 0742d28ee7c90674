"""Compare `tui-fs survey` with `du -s`: whole commands in turns, caches warm.

Run ``python -m tests.bench.survey_speed --dir DIR`` with DIR on the file system to measure,
alone on the machine, as root if other caches must not interfere. For each shape the program prints
the median wall times and their ratio, compares the totals byte for byte, and prints the peak
resident memory of all processes of the survey together (sampled every 5 ms in a run of
its own). ``--scale`` also compares the time for each entry of a tree ten times as large.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time

import psutil

PROGRAM = os.path.join(sysconfig.get_path("scripts"), "tui-fs")
SHAPES = {
    "800 x 1000": (800, 1_000),
    "8000 x 100": (8_000, 100),
    "40000 x 20": (40_000, 20),
    "1 x 800000": (1, 800_000),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dir", default=None, help="where to build the trees")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--shape", choices=list(SHAPES), action="append")
    parser.add_argument("--scale", action="store_true", help="compare 400,000 with 4,000,000")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tui-fs-bench-", dir=arguments.dir) as place:
        if arguments.scale:
            _compare_scales(place, arguments.rounds)
            return
        for name in arguments.shape or SHAPES:
            target = _tree(place, *SHAPES[name])
            _compare_with_du(name, target, arguments.rounds)
            shutil.rmtree(target)


def _compare_with_du(name: str, target: str, rounds: int) -> None:
    survey = json.loads(_output([PROGRAM, "survey", target, "--json"]))
    allocated, apparent = (
        int(_output(["du", "-s", "--block-size=1", *options, target]).split()[0])
        for options in ([], ["--apparent-size"])
    )
    if (survey["allocated_bytes"], survey["apparent_bytes"]) != (allocated, apparent):
        sys.exit(f"the totals differ from du's: {survey} {allocated} {apparent}")
    ours: list[float] = []
    theirs: list[float] = []
    commands = [(ours, [PROGRAM, "survey", target, "--json"]), (theirs, ["du", "-s", target])]
    for number in range(rounds):
        for times, command in commands if number % 2 else reversed(commands):
            times.append(_seconds(command))
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(
        f"{name}: {survey['entries']:,} entries; survey {_spread(ours)}, du {_spread(theirs)}, "
        f"ratio of medians {ratio:.2f}; peak memory {_peak_bytes(commands[0][1]) / 1e6:.0f} MB",
        flush=True,
    )


def _compare_scales(place: str, rounds: int) -> None:
    small = _tree(place, 400, 1_000, "small")
    large = _tree(place, 4_000, 1_000, "large")
    each: dict[str, list[float]] = {small: [], large: []}
    entries = {small: 400_401, large: 4_004_001}
    for number in range(rounds):
        for target in (small, large) if number % 2 else (large, small):
            seconds = _seconds([PROGRAM, "survey", target, "--json"])
            each[target].append(seconds / entries[target] * 1e6)
    ratio = statistics.median(each[large]) / statistics.median(each[small])
    print(
        f"microseconds an entry: {_spread(each[small])} of 400,000, {_spread(each[large])} of "
        f"4,000,000; ratio of medians {ratio:.2f}; peak memory "
        f"{_peak_bytes([PROGRAM, 'survey', large, '--json']) / 1e6:.0f} MB"
    )


def _tree(place: str, directories: int, files: int, name: str = "tree") -> str:
    target = os.path.join(place, name)
    for directory in range(directories):
        path = os.path.join(target, f"{directory // 1000:03}", f"d{directory % 1000:04}")
        os.makedirs(path)
        descriptor = os.open(path, os.O_RDONLY)
        for number in range(files):
            file = os.open(f"file-{number}", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor)
            if number % 8 == 0:
                os.write(file, b"x" * (number % 9_000))
            os.close(file)
        os.close(descriptor)
    os.sync()
    return target


def _output(command: list[str]) -> bytes:
    return subprocess.run(command, check=True, capture_output=True).stdout


def _seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def _peak_bytes(command: list[str]) -> int:
    """Return the largest sum of resident memory; pages that processes share count for each."""
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    root, peak = psutil.Process(running.pid), 0
    while running.poll() is None:
        try:
            every = [root, *root.children(recursive=True)]
            peak = max(peak, sum(process.memory_info().rss for process in every))
        except psutil.Error:
            continue  # one of them has ended between two questions
        time.sleep(0.005)
    return peak


if __name__ == "__main__":
    main()
