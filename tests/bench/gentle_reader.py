"""Measure how much a deletion slows a reader of the same disk, with --gentle and without.

    python -m tests.bench.gentle_reader --dir DIR

makes a slow disk below DIR (as root), fills it with a tree and a file to read, and in each
round, with cold caches, measures the reader's throughput alone, during a plain deletion and
during a gentle one. Prints medians and the share that the reader keeps. The disk answers --iops
requests a second, one after the other, reads and writes alike (`slow_disk.py`).
"""

import argparse
import contextlib
import json
import mmap
import os
import random
import shutil
import statistics
import subprocess
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.slow_disk import slow_disk
from tests.trees import many_directories

DIRECTORIES = 1_000
BLOCK_BYTES = 64 << 10
ALONE_S = 10.0
LONGEST_S = 90.0


@dataclass
class Reader:
    """Reads random blocks of a file with O_DIRECT, as fast as the disk delivers them."""

    path: Path
    blocks: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Read until asked to stop."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECT)
        number = os.fstat(descriptor).st_size // BLOCK_BYTES
        chooser = random.Random(1)
        buffer = mmap.mmap(-1, BLOCK_BYTES)
        while not self._stop.is_set():
            os.preadv(descriptor, [buffer], chooser.randrange(number) * BLOCK_BYTES)
            self.blocks += 1
        os.close(descriptor)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Read in a thread of its own; reading releases the interpreter's lock."""
        self._stop.clear()
        thread = threading.Thread(target=self.run)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()


def throughput(reader: Reader, seconds: float) -> float:
    """Return MiB/s over some seconds."""
    before, began = reader.blocks, time.monotonic()
    time.sleep(seconds)
    return (reader.blocks - before) * BLOCK_BYTES / (time.monotonic() - began) / (1 << 20)


def beside(reader: Reader, target: Path, options: list[str], limit_s: float) -> tuple[float, float]:
    """Return the reader's MiB/s while a job runs, and the job's seconds."""
    program = Path(sysconfig.get_path("scripts")) / "tui-fs"
    command = [str(program), "delete", "--strategy", "rm", "--yes", "--json", *options, str(target)]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert job.stdout is not None
    for line in job.stdout:
        if json.loads(line)["type"] == "StepStarted":
            break
    drain = threading.Thread(target=job.stdout.read)
    drain.start()
    before, began = reader.blocks, time.monotonic()
    while job.poll() is None and time.monotonic() - began < limit_s:
        time.sleep(0.02)
        if not any(target.iterdir()) if target.exists() else True:
            break
    seconds = time.monotonic() - began
    rate = (reader.blocks - before) * BLOCK_BYTES / seconds / (1 << 20)
    if job.poll() is None and target.exists():
        job.terminate()
    job.wait()
    drain.join()
    return rate, seconds


def cold() -> None:
    """Write everything out and forget what was read."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")


@contextlib.contextmanager
def filled_disk(
    directory: Path, files: int, read_bytes: int
) -> Iterator[tuple[Path, Callable[[float], None]]]:
    """Mount a fresh ext4 with a file to read; yield its path and the setter of the disk's speed."""
    with tempfile.TemporaryDirectory(prefix="tui-fs-bench-", dir=directory) as name:
        place, point = Path(name), Path(name) / "mounted"
        point.mkdir()
        size_bytes = (read_bytes + files * 3000 + (1 << 30)) >> 20 << 20
        with slow_disk(place, size_bytes) as (device, set_speed):
            options = ["-q", "-F", "-N", str(2 * files), "-E", "lazy_itable_init=0"]
            subprocess.run(["mkfs.ext4", *options, device], check=True)
            subprocess.run(["mount", device, point], check=True)
            try:
                with (point / "read").open("wb") as file:
                    for _ in range(read_bytes >> 20):
                        file.write(os.urandom(1 << 20))
                yield point, set_speed
            finally:
                set_speed(0)
                while subprocess.run(["umount", point], check=False).returncode != 0:
                    time.sleep(0.5)  # a supervisor is still closing its counters


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--files", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--read-mib", type=int, default=1024)
    parser.add_argument("--iops", type=int, default=500)
    parser.add_argument("--limit-s", type=float, default=LONGEST_S)
    asked = parser.parse_args()
    rates: dict[str, list[float]] = {"alone": [], "plain": [], "gentle": []}
    with filled_disk(asked.dir, asked.files, asked.read_mib << 20) as (point, set_speed):
        reader, target = Reader(point / "read"), point / "tree"
        for number in range(asked.rounds):
            for how in ("plain", "gentle") if number % 2 else ("gentle", "plain"):
                many_directories(target, DIRECTORIES, asked.files // DIRECTORIES)
                cold()
                set_speed(asked.iops)
                with reader.reading():
                    time.sleep(1)
                    alone = throughput(reader, ALONE_S)
                    options = ["--gentle"] if how == "gentle" else []
                    rate, seconds = beside(reader, target, options, asked.limit_s)
                set_speed(0)
                rates["alone"].append(alone)
                rates[how].append(rate)
                left = sum(1 for _ in target.rglob("*")) if target.exists() else 0
                print(
                    f"{how:6}  alone {alone:7.1f} MiB/s  beside {rate:7.1f} MiB/s  "
                    f"keeps {100 * rate / alone:5.1f} %  in {seconds:6.1f} s  left {left:,}",
                    flush=True,
                )
                shutil.rmtree(target, ignore_errors=True)
    alone = statistics.median(rates["alone"])
    for how in ("plain", "gentle"):
        print(f"{how}: the reader keeps {100 * statistics.median(rates[how]) / alone:.1f} %")


if __name__ == "__main__":
    main()
