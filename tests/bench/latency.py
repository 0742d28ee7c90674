"""Compare deleters and counters on a file system that answers late, as a server behind a network.

Run as root ``python -m tests.bench.latency`` alone on the machine. The file system is
`tests/fuse/latency_fs.c` over a tmpfs: each request waits for the given time, and all requests
wait at the same time. The caches are dropped before each run. The program prints for each delay
and shape the time of parallel, and the times of the others over it: rm, rmz where it is installed,
``rm -rf`` of each directory by ``xargs -P 32``. It compares parallel with fixed numbers of
threads, and on one directory with two, three and four clients, each with its mount and its share.
Then it prints the same for the survey: du, dua and gdu where they are installed.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.bench.scratch_mount import mounted
from tests.engine.running import delete_command, engine
from tests.fuse.latency import served_late
from tests.trees import chain, flat, many_directories

_SIZE_BYTES, _INODES = 2 << 30, 200_000
_DELAYS_MS = (0.2, 1.0, 2.0, 5.0)
_THREADS = (8, 16, 32, 64, 128)
_CLIENTS = (1, 2, 3, 4)
_CACHED_S = 1.1  # the kernel remembers attributes and names for a second
_SHAPES: dict[str, Callable[[Path], None]] = {
    "40 x 60": lambda root: many_directories(root, 40, 60),
    "1000 x 20": lambda root: many_directories(root, 1_000, 20),
    "flat 2000": lambda root: flat(root, 2_000),
    "chain 300": lambda root: chain(root, 300),
}
Command = Callable[[Path], Sequence[str | bytes | Path]]

_BY_XARGS = (
    'cd "$0" && find . -mindepth 1 -maxdepth 1 -print0 | xargs -0 -n 1 -P 32 rm -rf -- '
    '&& cd .. && rmdir "$0"'
)
_DELETERS: dict[str, Command] = {
    "parallel": lambda tree: delete_command("--", tree),
    "rm": lambda tree: ("rm", "-rf", tree),
    "rmz": lambda tree: ("rmz", "-f", tree),
    "xargs -P 32 rm": lambda tree: ("sh", "-c", _BY_XARGS, tree),
}
_COUNTERS: dict[str, Command] = {
    "survey": lambda tree: (engine(), "survey", "--", tree),
    "du": lambda tree: ("du", "-s", tree),
    "dua": lambda tree: ("dua", "aggregate", tree),
    "gdu": lambda tree: ("gdu", "--non-interactive", "--summarize", tree),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delay-ms", type=float, action="append")
    parser.add_argument("--shape", choices=list(_SHAPES), action="append")
    parser.add_argument("--only", choices=("delete", "threads", "survey"))
    asked = parser.parse_args()
    deleters = {name: command for name, command in _DELETERS.items() if _is_installed(name)}
    counters = {name: command for name, command in _COUNTERS.items() if _is_installed(name)}
    with (
        tempfile.TemporaryDirectory(prefix="tui-fs-bench-") as place,
        mounted(place, "tmpfs", _SIZE_BYTES, _INODES) as backing,
    ):
        for delay_ms in asked.delay_ms or _DELAYS_MS:
            for name in asked.shape or _SHAPES:
                bench = _Bench(backing, Path(place) / "late", delay_ms, _SHAPES[name], asked.rounds)
                print(f"{delay_ms} ms, {name}")
                if asked.only in (None, "delete"):
                    _print(bench.times(deleters, is_deleted=True))
                if asked.only != "survey":
                    _print_best(bench)
                if asked.only in (None, "delete") and name.startswith("flat"):
                    _print_clients(bench)
                if asked.only in (None, "survey"):
                    _print(bench.times(counters, is_deleted=False))


def _is_installed(name: str) -> bool:
    return name in ("parallel", "survey", "xargs -P 32 rm") or shutil.which(name) is not None


class _Bench:
    """One shape behind one delay.

    Args:
        backing: an empty directory in memory.
        mount_point: where the server shows it.
    """

    def __init__(
        self,
        backing: Path,
        mount_point: Path,
        delay_ms: float,
        build: Callable[[Path], None],
        rounds: int,
    ) -> None:
        self._backing, self._mount_point = backing, mount_point
        self._delay_ms, self._build, self._rounds = delay_ms, build, rounds

    def times(self, commands: Mapping[str, Command], *, is_deleted: bool) -> dict[str, float]:
        """Return the median seconds of each command, in the order of the commands."""
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        with served_late(self._backing, self._mount_point, self._delay_ms) as shown:
            for _ in range(self._rounds):
                for name, command in commands.items():
                    tree = self._backing / "tree"
                    if not tree.exists():
                        self._build(tree)
                    seconds[name].append(_time_of(command, shown / "tree"))
                    if is_deleted and tree.exists():
                        raise SystemExit(f"{name} has left something")
        shutil.rmtree(self._backing / "tree", ignore_errors=True)
        return {name: statistics.median(times) for name, times in seconds.items()}

    def seconds_of_clients(self, clients: int) -> float:
        """Return the median seconds that several clients take, one share each."""
        seconds: list[float] = []
        tree = self._backing / "tree"
        for _ in range(self._rounds):
            self._build(tree)
            with ExitStack() as mounts:
                shown = [
                    mounts.enter_context(
                        served_late(
                            self._backing, Path(f"{self._mount_point}-{number}"), self._delay_ms
                        )
                    )
                    for number in range(1, clients + 1)
                ]
                shares = [
                    delete_command("--share", f"{number}/{clients}", "--", mounted / "tree")
                    for number, mounted in enumerate(shown, start=1)
                ]
                began = time.perf_counter()
                jobs = [subprocess.Popen(words, stdout=subprocess.DEVNULL) for words in shares]
                codes = [job.wait() for job in jobs]
                if any(codes):
                    raise SystemExit("a client has failed")
                seconds.append(time.perf_counter() - began)
            tree.rmdir()  # fails if anything is left
        return statistics.median(seconds)


def _time_of(command: Command, tree: Path) -> float:
    time.sleep(_CACHED_S)
    Path("/proc/sys/vm/drop_caches").write_text("3\n", encoding="ascii")
    words = command(tree)
    began = time.perf_counter()
    subprocess.run(words, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=False)
    return time.perf_counter() - began


def _print(seconds: dict[str, float]) -> None:
    (ours, own_s), *others = seconds.items()
    ratios = "".join(f"  {name} {other_s / own_s:6.2f}" for name, other_s in others)
    print(f"  {ours:9} {own_s:7.2f} s {ratios}", flush=True)


def _print_best(bench: _Bench) -> None:
    """Print the time of the chosen number of workers over that of the best fixed number."""

    def fixed(number: int) -> Command:
        return lambda tree: delete_command("--threads", str(number), "--", tree)

    ways = {"chosen": _DELETERS["parallel"], **{str(number): fixed(number) for number in _THREADS}}
    seconds = bench.times(ways, is_deleted=True)
    chosen_s = seconds.pop("chosen")
    best = min(seconds, key=lambda number: seconds[number])
    print(
        f"  {chosen_s:.2f} s, {chosen_s / seconds[best]:.2f} of the time with --threads {best}, "
        "the best",
        flush=True,
    )


def _print_clients(bench: _Bench) -> None:
    """Print how many times faster several clients are than one."""
    alone_s, *others_s = [bench.seconds_of_clients(clients) for clients in _CLIENTS]
    ratios = "".join(
        f"  {clients} clients {alone_s / seconds:.2f}"
        for clients, seconds in zip(_CLIENTS[1:], others_s, strict=True)
    )
    print(f"  one client {alone_s:.2f} s {ratios}", flush=True)


if __name__ == "__main__":
    os.umask(0o022)
    main()
