"""The report's call counts equal those of strace for the same commands."""

import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.needs import needs_kernel_counters, needs_root, needs_tool
from tests.trees import flat, many_directories
from tui_fs.job.launcher import ENVIRONMENT
from tui_fs.linux.pins import take_pin
from tui_fs.strategies.parallel import pin_argument

REMOVALS = ("unlinkat", "unlink", "rmdir")
OTHERS = ("getdents64", "openat", "newfstatat", "lstat", "execve")
TOLERANCE = 0.01
_PIN = re.compile(r"\d+:\d+:\d+")


def build(target: Path, strategy: str) -> None:
    """Make the tree that both runs delete; the same names at the same path."""
    many_directories(target, 20, 50)
    # Above 10,000 entries rm and find sort a directory by inode (fts), which changes their calls.
    flat(target / "flat", 12_000 if strategy in ("rm", "find", "xargs") else 2_000)


def strace_counts(commands: list[list[str]], directory: Path) -> tuple[Counter[str], Counter[str]]:
    """Run the report's commands under strace; count calls and errors by name."""
    strace = needs_tool("strace", package="strace")
    tables: list[Path] = []
    waiting: list[subprocess.Popen[bytes]] = []
    piped: int | None = None
    for number, argv in enumerate(commands):
        table = directory / f"strace-{number}"
        tables.append(table)
        feeds_the_next = argv[-1] == "-print0"
        process = subprocess.Popen(
            [strace, "-f", "-c", "-U", "name,calls,errors", "-o", str(table), *argv],
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL if piped is None else waiting[-1].stdout,
            stdout=subprocess.PIPE if feeds_the_next else subprocess.DEVNULL,
        )
        if piped is not None:
            source = waiting[-1].stdout
            assert source is not None
            source.close()
        waiting.append(process)
        piped = number if feeds_the_next else None
        if not feeds_the_next:
            assert [started.wait() for started in waiting] == [0] * len(waiting), argv
            waiting = []
    calls: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    for table in tables:
        for line in table.read_text(encoding="ascii").splitlines():
            words = line.split()
            if len(words) < 2 or not words[1].isdigit() or words[0] == "total":
                continue
            calls[words[0]] += int(words[1])
            errors[words[0]] += int(words[2]) if len(words) > 2 else 0
    return calls, errors


def _of_now(target: Path) -> Callable[[str], str]:
    """Return what puts the pin of the directory that is there now in the place of another."""
    pin = pin_argument(take_pin(str(target)))
    return lambda word: pin if _PIN.fullmatch(word) else word


def test_the_report_counts_what_strace_counts(
    cli: Cli, ext4: Path, tmp_path: Path, strategy: str
) -> None:
    needs_kernel_counters()
    target = ext4 / "target"
    build(target, strategy)
    report = cli.delete(target, strategy, "--trace", "perf", "--confine", "off").expect(0).report()
    assert report["trace_source"] == "perf"
    build(target, strategy)
    empty = tmp_path / "empty"
    empty.mkdir()
    commands = [
        [*map(_of_now(target), argv)] if "--pin" in argv else argv for argv in report["command"]
    ]
    commands = [
        [f"{empty}/" if word.rstrip("/").endswith("/empty") else word for word in argv]
        for argv in commands
    ]
    calls, errors = strace_counts(commands, tmp_path)
    assert not target.exists()
    reported = report["syscalls"]
    for name in REMOVALS:
        counted = reported.get(name, {"calls": 0, "errors": 0})
        assert (counted["calls"], counted["errors"]) == (calls[name], errors[name]), name
    # (two threads that ask for memory at once ask how many processors there are, too, and how far
    # one is ahead of the other decides which names it opens)
    by_chance = 2 if strategy == "parallel" else 0
    differing = {
        name: (reported.get(name, {"calls": 0})["calls"], calls[name])
        for name in set(OTHERS) - ({"openat"} if strategy == "parallel" else set())
        if abs(reported.get(name, {"calls": 0})["calls"] - calls[name])
        > TOLERANCE * calls[name] + by_chance
    }
    assert differing == {}, "report and strace differ"


def test_without_counters_the_entries_are_counted_still(
    cli: Cli, tmpfs: Path, strategy: str
) -> None:
    many_directories(tmpfs / "target", 5, 40)
    report = cli.delete(tmpfs / "target", strategy, "--trace", "off").expect(0).report()
    assert report["trace_source"] == "off"
    assert report["syscalls"] == {}
    assert (report["deleted_files"], report["deleted_directories"]) == (200, 6)


# Processes one after the other, side by side, and threads; perf is compared with strace above.
@pytest.mark.parametrize("strategy", ("xargs", "rsync", "parallel"), indirect=True)
@pytest.mark.parametrize("source", ("bpf", "strace"))
def test_every_source_counts_the_same(cli: Cli, ext4: Path, strategy: str, source: str) -> None:
    if source == "bpf":
        needs_root("bpftrace")
        needs_tool("bpftrace", "bpftrace")
        needs_kernel_counters()
    target = ext4 / "t"
    many_directories(target, 20, 100)
    report = cli.delete(target, strategy, "--trace", source).expect(0).report()
    counted = {
        name: report["syscalls"].get(name, {"calls": 0, "errors": 0})
        for name in ("unlinkat", "unlink", "rmdir")
    }
    assert report["trace_source"] == source
    assert (report["deleted_files"], report["deleted_directories"]) == (2000, 21)
    assert report["counts_are"] == "exact"
    assert sum(count["calls"] - count["errors"] for count in counted.values()) == 2021
