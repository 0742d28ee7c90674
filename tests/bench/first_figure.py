"""Measure coverage and speed of quick estimates: a dozen tree shapes, with cold caches.

Run as root ``python -m tests.bench.first_figure --dir DIR`` with some 20 GB free in DIR, alone on
the machine. Each tree is built on a file system of its own in an image there (or in memory), and
estimated several times with different seeds, each time by a new process after all caches were
dropped. The program prints the truth, the interval, whether the truth is inside, the width of the
intervals (high/low) and the wall time of the whole process. It hides the file system's usage from
the estimate, as that would reveal the size of the tree. ``--keep-caches`` leaves the caches warm;
``--estimates N`` prints the last of N estimates, each taking twice as long as the one before.
"""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from typing import Any

from tests.bench.scratch_mount import mounted
from tui_fs.survey import quick_estimate as quick_estimate_module
from tui_fs.survey.quick_estimate import estimates
from tui_fs.survey.runner import SurveyRunner

IMAGE_BYTES = 40 << 30
_CONTENT_OF_EACH = 50
"""One file in this many has content."""


class Builder:
    """Makes directories and files, and counts them."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.entries = 1
        self._files = 0

    def directory(self, path: str) -> str:
        """Make a directory in one that exists."""
        os.mkdir(path)
        self.entries += 1
        return path

    def files(self, directory: str, number: int) -> None:
        """Make files in a directory."""
        directory_fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        for _ in range(number):
            self._files += 1
            name = f"{self._files:x}.dat"
            os.mknod(name, 0o600, dir_fd=directory_fd)
            if self._files % _CONTENT_OF_EACH == 0:
                file = os.open(name, os.O_WRONLY, dir_fd=directory_fd)
                os.write(file, b"x" * int(self.dice.lognormvariate(8, 1.5)))
                os.close(file)
        os.close(directory_fd)
        self.entries += number


def _flat(build: Builder, top: str, entries: int) -> None:
    build.files(top, entries)


def _even(build: Builder, top: str, entries: int, directories: int) -> None:
    for number in range(directories):
        build.files(build.directory(f"{top}/d{number}"), entries // directories)


def _thousands(build: Builder, top: str, entries: int) -> None:
    _even(build, top, entries, entries // 1_000)


def _many_small(build: Builder, top: str, entries: int) -> None:
    _even(build, top, entries, entries // 20)


def _three_levels(build: Builder, top: str, entries: int) -> None:
    for number in range(20):
        above = build.directory(f"{top}/g{number}")
        _even(build, above, entries // 20, 100)


def _hidden_giant(build: Builder, top: str, entries: int) -> None:
    small = 10_000 if entries >= 1_000_000 else 2_000
    giant = build.dice.randrange(small)
    for number in range(small):
        path = build.directory(f"{top}/d{number:05d}")
        build.files(path, entries * 19 // 20 if number == giant else entries // 20 // small)


def _lognormal(build: Builder, top: str, entries: int) -> None:
    number = 0
    while build.entries < entries:
        number += 1
        size = int(build.dice.lognormvariate(math.log(40), 2.0))
        build.files(build.directory(f"{top}/d{number}"), min(size, entries // 2))


def _deep_nest(build: Builder, top: str, entries: int) -> None:
    levels = min(400, entries // 500)
    path = top
    for _ in range(levels):
        for branch in range(10):
            number = entries // levels // 10 - 1
            build.files(build.directory(f"{path}/s{branch}"), build.dice.randrange(2 * number))
        path = build.directory(f"{path}/n")


def _hash_tree(build: Builder, top: str, entries: int) -> None:
    fan = 256 if entries >= 1_000_000 else 100
    each = max(1, entries // (fan * fan) - 1)
    for first in range(fan):
        above = build.directory(f"{top}/{first:02x}")
        for second in range(fan):
            build.files(build.directory(f"{above}/{second:02x}"), each)


def _modules(build: Builder, top: str, entries: int) -> None:
    """Packages that hold packages, each with files and a few directories of its own."""
    while build.entries < entries:
        number = build.entries
        _package(build, build.directory(f"{top}/package-{number}"), 0, entries)


def _package(build: Builder, path: str, depth: int, entries: int) -> None:
    dice = build.dice
    build.files(path, 1 + int(dice.expovariate(1 / 5)))
    for number in range(dice.choice((0, 0, 1, 1, 2, 4))):
        below = build.directory(f"{path}/lib{number}")
        build.files(below, int(dice.paretovariate(1.1) * 3) % 3_000)
    if depth < 8 and dice.random() < 0.45 and build.entries < entries:
        modules = build.directory(f"{path}/node_modules")
        for number in range(int(dice.paretovariate(0.9)) % 200 + 1):
            _package(build, build.directory(f"{modules}/p{number}"), depth + 1, entries)


def _mostly_empty(build: Builder, top: str, entries: int) -> None:
    empty = entries // 40
    full = set(build.dice.sample(range(empty), 5))
    for number in range(empty):
        path = build.directory(f"{top}/d{number}")
        if number in full:
            build.files(path, (entries - empty) // 5)


def _linked(build: Builder, top: str, entries: int) -> None:
    """Backups that share their files by further names."""
    names = entries // 20
    first = build.directory(f"{top}/day0")
    _even(build, first, names, max(1, names // 500))
    for day in range(1, 20):
        copy = build.directory(f"{top}/day{day}")
        for directory in os.listdir(first):
            below = build.directory(f"{copy}/{directory}")
            for name in os.listdir(f"{first}/{directory}"):
                os.link(f"{first}/{directory}/{name}", f"{below}/{name}")
                build.entries += 1


def _projects(build: Builder, top: str, entries: int) -> None:
    """A few users, each with projects of very different size, three levels deep."""
    while build.entries < entries:
        user = build.directory(f"{top}/user{build.entries}")
        for number in range(1 + int(build.dice.expovariate(1 / 20))):
            project = build.directory(f"{user}/project{number}")
            for part in range(1 + int(build.dice.paretovariate(1.0)) % 300):
                files = int(build.dice.lognormvariate(3, 1.2))
                build.files(build.directory(f"{project}/part{part}"), min(files, 20_000))


SHAPES: dict[str, Callable[[Builder, str, int], None]] = {
    "flat": _flat,
    "thousands": _thousands,
    "many small": _many_small,
    "three levels": _three_levels,
    "hidden giant": _hidden_giant,
    "lognormal": _lognormal,
    "deep nest": _deep_nest,
    "hash tree": _hash_tree,
    "modules": _modules,
    "mostly empty": _mostly_empty,
    "linked": _linked,
    "projects": _projects,
}


def main() -> None:
    """Build, estimate and print; or make one estimate."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dir", default=None, help="where the images are made")
    parser.add_argument("--entries", type=int, default=2_000_000)
    parser.add_argument("--filesystem", choices=("ext4", "xfs", "tmpfs", "btrfs"), default="ext4")
    parser.add_argument("--shape", choices=list(SHAPES), action="append")
    parser.add_argument("--seeds", type=int, default=5, help="estimates of each tree")
    parser.add_argument("--limit", type=float, default=1.0, help="seconds for an estimate")
    parser.add_argument("--estimates", type=int, default=1, help="print the last of so many")
    parser.add_argument("--keep-caches", action="store_true")
    parser.add_argument("--show-used", action="store_true", help="show what is in use")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        _estimate(options)
        return
    inside: list[int] = [0, 0, 0]
    widths: list[list[float]] = [[], [], []]
    times_s: list[float] = []
    for number, shape in enumerate(options.shape or SHAPES):
        with (
            tempfile.TemporaryDirectory(prefix="tui-fs-bench-", dir=options.dir) as place,
            mounted(place, options.filesystem, IMAGE_BYTES, 2 * options.entries) as ground,
        ):
            top = f"{ground}/tree"
            os.mkdir(top)
            SHAPES[shape](Builder(number), top, options.entries)
            *_, truth = SurveyRunner([top], checks_surroundings=False).run()
            totals = truth.totals
            truths = (totals.entries, totals.directories, totals.allocated_bytes)
            print(f"{shape}: {truths[0]:,} {truths[1]:,} {truths[2]:,}", flush=True)
            for seed in range(options.seeds):
                wall_s, estimate = _estimate_anew(options, top, seed)
                times_s.append(wall_s)
                words = []
                for which, true in enumerate(truths):
                    low, expected, high = estimate["intervals"][which]
                    is_inside = low <= true <= high
                    inside[which] += is_inside
                    widths[which].append((high + 1) / (low + 1))
                    shares = (low / true, expected / true, high / true)
                    words.append("in " if is_inside else "OUT")
                    words.append("{:5.2f} {:5.2f} {:6.2f}".format(*shares))
                exact = "exact" if estimate["is_complete"] else ""
                print(f"  {wall_s:.2f} s  {' '.join(words)}  {estimate['samples']} {exact}")
    number = len(times_s)
    shares_inside = ", ".join(f"{100 * count / number:.0f} %" for count in inside)
    medians = ", ".join(f"{statistics.median(each):.2f}" for each in widths)
    print(f"inside (entries, directories, bytes): {shares_inside} of {number}")
    print(f"high by low, median: {medians}; slowest {max(times_s):.2f} s")


def _estimate_anew(
    options: argparse.Namespace, top: str, seed: int
) -> tuple[float, dict[str, Any]]:
    if not options.keep_caches:
        os.sync()
        with open("/proc/sys/vm/drop_caches", "w") as file:
            file.write("3")
    words = [sys.executable, "-m", "tests.bench.first_figure", "--one", top, "--seed", str(seed)]
    words += ["--limit", str(options.limit), "--estimates", str(options.estimates)]
    words += ["--show-used"] if options.show_used else []
    began_s = time.monotonic()
    output = subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout
    return time.monotonic() - began_s, json.loads(output)


def _estimate(options: argparse.Namespace) -> None:
    if not options.show_used:
        setattr(quick_estimate_module, "_used", lambda _: (math.inf, math.inf))  # noqa: B010
    *_, estimate = islice(estimates([options.one], options.limit, options.seed), options.estimates)
    intervals = (estimate.entries, estimate.directories, estimate.allocated_bytes)
    json.dump(
        {
            "intervals": [(each.low, each.expected, each.high) for each in intervals],
            "is_complete": estimate.is_complete,
            "samples": estimate.samples,
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
