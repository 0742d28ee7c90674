"""How right the estimate is: predicted beside measured, for tree shapes, file systems, strategies.

Run ``python tests/bench/estimate_accuracy.py`` as root, alone on the machine. It mounts scratch
file systems below ``--dir`` (ext4 and xfs on loop devices, tmpfs), measures each once for every
shape, as the program does before the first estimate, and then makes the tree anew for every
strategy, has `tui-fs delete` delete it, and compares the report with what was predicted before the
start. What jobs teach the model is forgotten between them. Before each deletion it looks how long
the start of some processes takes, which is the same work each time: times cannot be told better
than the machine repeats itself. ``--json FILE`` keeps the cases, one in a line.
"""

import argparse
import collections
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tui_fs.job.calibrating import calibrate
from tui_fs.model.calls import OF_CHANCE, countable
from tui_fs.model.strategy import StrategyName

PROGRAM = os.path.join(sysconfig.get_path("scripts"), "tui-fs")
FILESYSTEMS = ("ext4", "xfs", "tmpfs")
IMAGE_BYTES = 8 << 30
STRATEGIES: dict[str, tuple[str, ...]] = {
    "rm": ("rm",),
    "find": ("find",),
    "xargs 1": ("xargs", "--batch-size", "1"),
    "xargs 100": ("xargs", "--batch-size", "100"),
    "xargs 5000": ("xargs", "--batch-size", "5000"),
    "rsync": ("rsync",),
    "parallel": ("parallel",),
}
REMOVING = ("unlink", "unlinkat", "rmdir")
STARTS = 200
SMALLER_FOR_BATCHES_OF_1 = 20
LARGER_ON_TMPFS = 3


@dataclass(frozen=True, slots=True)
class Case:
    """One deletion: predicted beside measured."""

    filesystem: str
    shape: str
    strategy: str
    entries: int
    seconds: float
    predicted_s: float
    low_s: float
    high_s: float
    calls: int
    predicted_calls: int
    removing_are_exact: bool
    worst_call: str
    steady_are_right: bool
    memory_bytes: int
    predicted_memory_bytes: int
    freed_bytes: int
    freed_bytes_min: int
    freed_bytes_max: int
    starts_s: float

    @property
    def error(self) -> float:
        return abs(self.predicted_s - self.seconds) / self.seconds

    @property
    def is_inside(self) -> bool:
        return self.low_s <= self.seconds <= self.high_s

    @property
    def sum_is_right(self) -> bool:
        return abs(self.predicted_calls - self.calls) <= 0.03 * self.calls + 20

    @property
    def memory_is_right(self) -> bool:
        off = abs(self.predicted_memory_bytes - self.memory_bytes)
        return off <= max(self.memory_bytes // 4, 5_000_000)

    @property
    def freed_is_right(self) -> bool:
        return self.freed_bytes_min <= self.freed_bytes <= self.freed_bytes_max


def flat(root: Path, entries: int, seed: int) -> None:
    """One directory."""
    del seed
    _files(root, entries)


def hundred(root: Path, entries: int, seed: int) -> None:
    """100 directories of 1,000 files, for 100,000 entries."""
    del seed
    for number in range(100):
        _files(root / f"d{number:03}", entries // 100)


def small_directories(root: Path, entries: int, seed: int) -> None:
    """Directories of 20 files."""
    del seed
    for number in range(entries // 20):
        _files(root / f"d{number:06}", 20)


def chain(root: Path, entries: int, seed: int) -> None:
    """2,000 directories inside each other, files in each; its paths end below PATH_MAX."""
    del seed
    held = os.open(root, os.O_RDONLY)
    for _ in range(1900):
        _files_at(held, entries // 1900, "f{:05}")
        os.mkdir("d", dir_fd=held)
        below = os.open("d", os.O_RDONLY, dir_fd=held)
        os.close(held)
        held = below
    os.close(held)


def long_names(root: Path, entries: int, seed: int) -> None:
    """Names of 200 bytes."""
    del seed
    for number in range(10):
        _files(root / f"d{number}", entries // 10, "n" * 192 + "{:08}")


def hard_links(root: Path, entries: int, seed: int) -> None:
    """As rsnapshot: four generations of the same files."""
    del seed
    each = entries // 40
    for number in range(10):
        first = root / "daily.0" / f"d{number}"
        _files(first, each, content=b"x" * 100)
        for generation in range(1, 4):
            other = root / f"daily.{generation}" / f"d{number}"
            other.mkdir(parents=True)
            held, there = os.open(first, os.O_RDONLY), os.open(other, os.O_RDONLY)
            for name in os.listdir(held):
                os.link(name, name, src_dir_fd=held, dst_dir_fd=there)
            os.close(held)
            os.close(there)


def mixed_sizes(root: Path, entries: int, seed: int) -> None:
    """Most files small, some up to 100 MB, 2 GB together."""
    chance = random.Random(seed)
    left, written = entries, 0
    chunk = bytes(1 << 20)
    for number in range(entries // 200):
        directory = root / f"d{number:05}"
        directory.mkdir(parents=True)
        for name in range(200):
            size = int(10 ** chance.uniform(1, 4.6))
            if written < 1 << 30 and chance.random() < 0.002:
                size = int(10 ** chance.uniform(6, 8))
            written += size
            with open(directory / f"{name:04}", "wb", buffering=0) as file:
                for at in range(0, size, len(chunk)):
                    file.write(chunk[: min(len(chunk), size - at)])
            left -= 1


def seeded(root: Path, entries: int, seed: int) -> None:
    """A random tree: directories anywhere, of any number of files, symbolic links, long names."""
    chance = random.Random(seed)
    directories = [root]
    left = entries
    while left > 0:
        directory = chance.choice(directories[-50:]) / f"{chance.randrange(10**9)}"
        number = min(left, int(chance.lognormvariate(4, 1.8)) + 1)
        _files(directory, number, "a" * chance.randrange(60) + "{:06}")
        for link in range(number // 20):
            os.symlink("nowhere", directory / f"link-{link}")
        directories.append(directory)
        left -= number + 1


SHAPES: dict[str, Callable[[Path, int, int], None]] = {
    "flat": flat,
    "100 x 1000": hundred,
    "n x 20": small_directories,
    "chain 1900": chain,
    "long names": long_names,
    "hard links": hard_links,
    "mixed sizes": mixed_sizes,
    "seeded": seeded,
}


def _files(directory: Path, number: int, name: str = "file-{:06}", content: bytes = b"") -> None:
    directory.mkdir(parents=True, exist_ok=True)
    held = os.open(directory, os.O_RDONLY)
    _files_at(held, number, name, content)
    os.close(held)


def _files_at(held: int, number: int, name: str, content: bytes = b"") -> None:
    for which in range(number):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        descriptor = os.open(name.format(which), flags, 0o644, dir_fd=held)
        if content:
            os.write(descriptor, content)
        os.close(descriptor)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dir", default=None, help="where the images are kept")
    parser.add_argument("--entries", type=int, default=120_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--filesystem", choices=FILESYSTEMS, action="append")
    parser.add_argument("--shape", choices=list(SHAPES), action="append")
    parser.add_argument("--strategy", choices=list(STRATEGIES), action="append")
    parser.add_argument("--json", help="a file for the cases, one in a line")
    chosen = parser.parse_args()
    cases: list[Case] = []
    with tempfile.TemporaryDirectory(prefix="t-", dir=chosen.dir) as place:
        os.environ["XDG_STATE_HOME"] = f"{place}/state"
        for filesystem in chosen.filesystem or FILESYSTEMS:
            with _mounted(filesystem, place) as mounted:
                for shape in chosen.shape or SHAPES:
                    (mounted / "t").mkdir()
                    calibrate(str(mounted / "t"))
                    (mounted / "t").rmdir()
                    shutil.copytree(
                        f"{place}/state/tui-fs", f"{place}/pristine", dirs_exist_ok=True
                    )
                    for strategy in chosen.strategy or STRATEGIES:
                        case = _measure(chosen, filesystem, mounted, shape, strategy)
                        shutil.rmtree(f"{place}/state/tui-fs")
                        shutil.copytree(f"{place}/pristine", f"{place}/state/tui-fs")
                        if case is None:
                            print(f"{filesystem:6}{shape:12}{strategy:11} not feasible", flush=True)
                            continue
                        _print(case)
                        cases.append(case)
                        if chosen.json:
                            with open(chosen.json, "a", encoding="utf-8") as file:
                                file.write(json.dumps(asdict(case)) + "\n")
    _conclude(cases)
    _print_table(cases)


def _print_table(cases: list[Case]) -> None:
    """Print the table of the documentation: measured seconds, predicted by measured below."""
    print("\n| | " + " | ".join(STRATEGIES) + " |")
    print("|---" * (len(STRATEGIES) + 1) + "|")
    by_key = {(case.filesystem, case.shape, case.strategy): case for case in cases}
    for filesystem in dict.fromkeys(case.filesystem for case in cases):
        for shape in SHAPES:
            found = [by_key.get((filesystem, shape, strategy)) for strategy in STRATEGIES]
            if any(found):
                cells = (
                    f"{one.seconds:.2f} s · {one.predicted_s / one.seconds:.2f}" if one else "–"
                    for one in found
                )
                print(f"| {filesystem} {shape} | " + " | ".join(cells) + " |")


def _measure(
    chosen: argparse.Namespace, filesystem: str, mounted: Path, shape: str, strategy: str
) -> Case | None:
    target = mounted / "t"
    target.mkdir()
    entries: int = chosen.entries
    if strategy == "xargs 1":
        entries //= SMALLER_FOR_BATCHES_OF_1
    elif filesystem == "tmpfs":
        entries *= LARGER_ON_TMPFS
    SHAPES[shape](target, entries, chosen.seed)
    subprocess.run(["sync", "-f", str(mounted)], check=True)
    starts_s = _seconds_of_starts()
    name, *options = STRATEGIES[strategy]
    command = [PROGRAM, "delete", str(target), "--strategy", name, *options, "--yes", "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode == 2 and "cannot do this" in ended.stderr:
        subprocess.run(["rm", "-rf", str(target)], check=True)  # deeper than rmtree goes
        return None
    if ended.returncode != 0:
        sys.exit(f"{command} ended with {ended.returncode}: {ended.stderr}")
    report = json.loads(ended.stdout.splitlines()[-1])
    return _case(filesystem, shape, strategy, report, starts_s)


def _seconds_of_starts() -> float:
    """Return how long `STARTS` processes take, one after the other, that do nothing."""
    began = time.perf_counter()
    for _ in range(STARTS):
        subprocess.run(["/bin/true"], check=True)
    return time.perf_counter() - began


def _case(
    filesystem: str, shape: str, strategy: str, report: dict[str, Any], starts_s: float
) -> Case:
    predicted, expected = report["predicted"], report["expected"]
    calls = {name: counted["calls"] for name, counted in report["syscalls"].items()}
    foretold = countable(predicted["syscalls"], predicted["uncounted_syscalls"])
    off = {
        name: calls.get(name, 0) - foretold.get(name, 0)
        for name in {*calls, *foretold}
        if abs(calls.get(name, 0) - foretold.get(name, 0)) > max(20, 0.03 * calls.get(name, 0))
    }
    chance = OF_CHANCE.get(StrategyName(report["strategy"]), frozenset())
    worst = max(off, key=lambda name: abs(off[name]), default="")
    return Case(
        filesystem,
        shape,
        strategy,
        report["deleted_entries"],
        report["strategy_wall_s"],
        predicted["seconds"],
        predicted["seconds_low"],
        predicted["seconds_high"],
        sum(calls.values()),
        sum(foretold.values()),
        all(calls.get(name, 0) == foretold.get(name, 0) for name in REMOVING),
        f"{worst} {calls.get(worst, 0):,} not {foretold.get(worst, 0):,}" if worst else "",
        off.keys() <= chance,
        report["peak_memory_bytes"],
        predicted["peak_memory_bytes"],
        report["freed_bytes"],
        expected["freed_bytes_min"],
        expected["freed_bytes_max"] + expected["metadata_bytes_max"],
        starts_s,
    )


def _print(case: Case) -> None:
    print(
        f"{case.filesystem:6}{case.shape:12}{case.strategy:11}{case.entries:>9,}"
        f"{case.seconds:8.2f} s, predicted {case.predicted_s:6.2f} "
        f"({case.low_s:.2f} to {case.high_s:.2f}, {case.predicted_s / case.seconds:.2f})"
        f"{'' if case.is_inside else ' OUTSIDE'}; "
        f"calls {case.calls:,} / {case.predicted_calls:,}"
        f"{f' ({case.worst_call})' if case.worst_call else ''}; "
        f"memory {case.memory_bytes / 1e6:.1f} / {case.predicted_memory_bytes / 1e6:.1f}"
        f"{'' if case.memory_is_right else ' WRONG'}"
        f"{'' if case.freed_is_right else f' FREED {case.freed_bytes:,} {case.freed_bytes_min:,}'}",
        flush=True,
    )


def _conclude(cases: list[Case]) -> None:
    timed = [case for case in cases if case.seconds >= 1.0]
    if timed:
        median = statistics.median(case.error for case in timed)
        inside = sum(case.is_inside for case in timed) / len(timed)
        widest = max(case.high_s / case.low_s for case in timed)
        print(
            f"time, {len(timed)} cases of a second or more: median error {median:.1%}, "
            f"inside low to high {inside:.1%}, high/low at most {widest:.2f}"
        )
    starts = sorted(case.starts_s for case in cases)
    print(
        f"the machine: {STARTS} processes started in {statistics.median(starts):.2f} s, "
        f"{starts[0]:.2f} to {starts[-1]:.2f} before one case or another"
    )
    wrong = collections.Counter(case.worst_call.split(" ")[0] for case in cases if case.worst_call)
    print(f"the call that is furthest off, where one is: {dict(wrong)}")
    for what, right in (
        ("removing calls exact", [case.removing_are_exact for case in cases]),
        ("all calls together within 3 % or 20", [case.sum_is_right for case in cases]),
        ("every call within 3 % or 20", [not case.worst_call for case in cases]),
        ("the same without calls of chance", [case.steady_are_right for case in cases]),
        ("memory within 25 % or 5 MB", [case.memory_is_right for case in cases]),
        ("freed bytes within the bounds", [case.freed_is_right for case in cases]),
    ):
        print(f"{what}: {sum(right)} of {len(cases)}")
    apart = [case.freed_bytes_max - case.freed_bytes_min for case in cases]
    shares = [gap / max(1, case.freed_bytes) for gap, case in zip(apart, cases, strict=True)]
    together = sum(gap == 0 for gap in apart)
    print(
        f"bounds of the freed bytes the same: {together} of {len(cases)}, else apart by at most "
        f"{max(apart, default=0) / 1024:,.0f} KiB, {max(shares, default=0.0):.1%}"
    )


@contextlib.contextmanager
def _mounted(filesystem: str, place: str) -> Iterator[Path]:
    point = Path(place) / filesystem
    point.mkdir()
    image = Path(place) / f"{filesystem}.img"
    if filesystem == "tmpfs":
        options = "size=6g,nr_inodes=4m,mode=0755"
        command = ["mount", "-t", "tmpfs", "-o", options, "tui-fs-bench", str(point)]
    else:
        with open(image, "wb") as file:
            file.truncate(IMAGE_BYTES)
        extra = ["-F", "-N", "2000000"] if filesystem == "ext4" else ["-f"]
        subprocess.run([f"mkfs.{filesystem}", "-q", *extra, str(image)], check=True)
        options = "loop,noinit_itable" if filesystem == "ext4" else "loop"
        command = ["mount", "-o", options, str(image), str(point)]
    subprocess.run(command, check=True)
    try:
        yield point
    finally:
        subprocess.run(["umount", str(point)], check=True)
        image.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
