"""What makes a walker fast: the ways to stat and to add up that decision 0013 chose, and others.

Run ``python -m tests.bench.stat_ways --dir DIR`` with DIR on the file system to measure, alone on
the machine. It builds directories of files there and looks at all of them, in one process, caches
warm, the ways in turns; printed are medians, least and most, and ratios of medians:

- list and stat: `DirEntry.stat` in one thread and in two, and `fchdir` with a bare `os.lstat`;
- add up: a loop over the entries, and the columns of `DirectoryTally`; both must agree;
- combine flags: `enum.IntFlag` and plain numbers.
"""

import argparse
import enum
import os
import stat
import statistics
import sys
import tempfile
import time
import timeit
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tui_fs.survey.records import DirectoryFlag
from tui_fs.survey.tally import DirectoryTally

Seen = tuple[list[bytes], list[os.stat_result]]


class _Flag(enum.IntFlag):
    SHARED = DirectoryFlag.SHARED
    CHANGED = DirectoryFlag.CHANGED


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dir", default=None, help="where to build the tree")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--directories", type=int, default=800)
    parser.add_argument("--files", type=int, default=1_000, help="in each directory")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tui-fs-bench-", dir=asked.dir) as place:
        directories = _tree(os.fsencode(place), asked.directories, asked.files)
        entries = asked.directories * asked.files
        _compare(
            f"list and stat {entries:,}",
            {
                "DirEntry.stat": lambda: _look(_by_entries, directories),
                "the same in 2 threads": lambda: _look_in_threads(_by_entries, directories),
                "fchdir and lstat": lambda: _look(_by_bare_names, directories),
            },
            asked.rounds,
        )
        seen = [_by_bare_names(path) for path in directories[: max(1, len(directories) // 8)]]
        if [_by_loop(one) for one in seen] != [_by_columns(one) for one in seen]:
            sys.exit("the two ways to add up disagree")
        number = sum(len(names) for names, _ in seen)
        _compare(
            f"add up {number:,}",
            {
                "loop": lambda: _each(_by_loop, seen),
                "columns": lambda: _each(_by_columns, seen),
            },
            asked.rounds,
        )
        os.chdir("/")  # out of the tree, which is removed
    times, what = 100_000, "f = a | b; f & b"
    _compare(
        f"combine and ask {times:,} flags",
        {
            "IntFlag": lambda: _flags(what, times, _Flag.SHARED, _Flag.CHANGED),
            "numbers": lambda: _flags(what, times, int(_Flag.SHARED), int(_Flag.CHANGED)),
        },
        asked.rounds,
    )


def _tree(place: bytes, directories: int, files: int) -> list[bytes]:
    paths = [os.path.join(place, b"d%04d" % number) for number in range(directories)]
    for path in paths:
        os.mkdir(path)
        descriptor = os.open(path, os.O_RDONLY)
        for number in range(files):
            file = os.open(f"file-{number}", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor)
            if number % 8 == 0:
                os.write(file, b"x" * (number % 9_000))
            os.close(file)
        os.close(descriptor)
    os.sync()
    return paths


def _compare(what: str, ways: dict[str, Callable[[], None]], rounds: int) -> None:
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name in ways if number % 2 else reversed(ways):
            began = time.perf_counter()
            ways[name]()
            if number:  # the first round warms the caches
                times[name].append(time.perf_counter() - began)
    first = statistics.median(next(iter(times.values())))
    for name, values in times.items():
        median = statistics.median(values)
        spread = f"{median:.3f} s ({min(values):.3f} to {max(values):.3f})"
        print(f"{what}: {name} {spread}, ratio {median / first:.2f}", flush=True)


def _by_entries(path: bytes) -> Seen:
    with os.scandir(path) as entries:
        found = list(entries)
    return [one.name for one in found], [one.stat(follow_symlinks=False) for one in found]


def _by_bare_names(path: bytes) -> Seen:
    os.chdir(path)
    with os.scandir(b".") as entries:
        names = [one.name for one in entries]
    return names, list(map(os.lstat, names))


def _look(way: Callable[[bytes], Seen], directories: Sequence[bytes]) -> None:
    for path in directories:
        way(path)


def _look_in_threads(way: Callable[[bytes], Seen], directories: Sequence[bytes]) -> None:
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda half: _look(way, half), (directories[::2], directories[1::2])))


def _each(way: Callable[[Seen], tuple[int, ...]], seen: Sequence[Seen]) -> None:
    for one in seen:
        way(one)


def _by_loop(seen: Seen) -> tuple[int, ...]:
    files = symlinks = other = apparent = allocated = 0
    name_bytes = record_bytes = longest = newest = flags = 0
    oldest, owner = 1 << 62, os.geteuid()
    for name, status in zip(*seen, strict=True):
        if stat.S_ISREG(status.st_mode):
            files += 1
        elif stat.S_ISLNK(status.st_mode):
            symlinks += 1
        else:
            other += 1
        apparent += status.st_size
        allocated += status.st_blocks * 512
        name_bytes += len(name)
        record_bytes += 20 + len(name) + 7 & ~7
        if status.st_uid != owner:
            flags |= DirectoryFlag.FOREIGN_OWNERS
        if name.startswith(b"-"):
            flags |= DirectoryFlag.DASH_NAMES
        if name.startswith(b" ") or name.endswith(b" "):
            flags |= DirectoryFlag.SPACE_NAMES
        if not name.isascii() or not name.decode("ascii").isprintable():
            flags |= DirectoryFlag.CONTROL_NAMES
        longest = max(longest, len(name))
        newest = max(newest, int(status.st_mtime))
        oldest = min(oldest, int(status.st_mtime))
    return (
        files,
        symlinks,
        other,
        apparent,
        allocated,
        name_bytes,
        record_bytes,
        longest,
        oldest,
        newest,
        flags,
    )


def _by_columns(seen: Seen) -> tuple[int, ...]:
    tally = DirectoryTally(0, os.geteuid())
    tally.add(*seen, None)
    return (
        tally.files,
        tally.symlinks,
        tally.other,
        tally.apparent,
        tally.allocated,
        tally.name_bytes,
        tally.record_bytes,
        tally.longest,
        tally.oldest,
        tally.newest,
        tally.flags,
    )


def _flags(what: str, times: int, a: int, b: int) -> None:
    timeit.timeit(what, globals={"a": a, "b": b}, number=times)


if __name__ == "__main__":
    main()
