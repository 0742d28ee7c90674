"""Kernel counters on a real process; the contracts compare them with strace."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import open_descriptors
from tests.needs import needs_kernel_counters
from tests.trees import many_directories
from tui_fs.model.calls import CallCount, Removed
from tui_fs.model.errors import Missing
from tui_fs.tracing import perf
from tui_fs.tracing.perf import PerfCounters, find_tracefs, why_not
from tui_fs.tracing.source import Counts

# A shell that inherits PWD checks it with stat(2): both runs must inherit it.
ENVIRONMENT = {"LC_ALL": "C", "PWD": "/"}


def started(argv: list[str]) -> "subprocess.Popen[bytes]":
    """Start a shell that waits for a line, and then becomes the command."""
    return subprocess.Popen(
        ["/bin/sh", "-c", 'read _; exec "$@"', "sh", *argv],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=ENVIRONMENT,
    )


def traced(argv: list[str], only: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> Counts:
    """Run a command under kernel counters of these calls; closing each takes the kernel 40 ms."""
    needs_kernel_counters()
    monkeypatch.setattr(perf, "SYSCALLS", only)
    waiting = started(argv)
    counters = PerfCounters(find_tracefs())
    try:
        counters.attach(waiting.pid)
        waiting.communicate(b"\n")
        return counters.read()
    finally:
        waiting.kill()
        waiting.wait()
        counters.close()


def plant(target: Path) -> None:
    """Make the tree that both runs delete."""
    many_directories(target, 8, 20)


def test_removed_entries_and_directories_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path / "t")
    argv = ["/bin/rm", "-rf", "--", str(tmp_path / "t")]
    counts = traced(argv, ("unlinkat", "rmdir"), monkeypatch)
    assert counts.removed == Removed(169, 9)


def test_with_errors_directories_are_not_distinguished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A removal that fails: the flag is known at entry, the error at exit
    argv = ["/usr/bin/find", str(tmp_path / "t"), "-maxdepth", "0", "-delete"]
    (tmp_path / "t" / "d").mkdir(parents=True)
    counts = traced(argv, ("unlinkat", "rmdir"), monkeypatch)
    assert counts.calls["unlinkat"] == CallCount(1, 1)
    assert counts.removed == Removed(0, None)


def test_what_has_ended_is_counted_but_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_kernel_counters()
    names = ("unlinkat", "openat", "rmdir")
    monkeypatch.setattr(perf, "SYSCALLS", names)
    counters = PerfCounters(find_tracefs())
    ended: set[int] = set()
    read: set[int] = set()
    reads = []
    real = os.read

    def noted(descriptor: int, size: int) -> bytes:
        read.add(descriptor)
        return real(descriptor, size)

    monkeypatch.setattr("tui_fs.tracing.perf.os.read", noted)
    for _ in range(2):
        plant(tmp_path / "t")
        waiting = started(["/bin/rm", "-rf", "--", str(tmp_path / "t")])
        counters.attach(waiting.pid)
        waiting.communicate(b"\n")
        read.clear()
        counters.step_ended()
        assert not read & ended
        ended |= read
        read.clear()
        reads.append((counters.read(), counters.removed()))
        assert not read & ended
    counters.close()
    # The counts are those of both together, and the first one's were not read again
    (one, one_removed), (two, two_removed) = reads
    assert one.removed == Removed(169, 9)
    assert two.removed == Removed(338, 18)
    assert (one_removed, two_removed) == (169, 338)
    assert {name: 2 * count.calls for name, count in one.calls.items()} == {
        name: count.calls for name, count in two.calls.items()
    }


def test_closing_gives_back_every_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    before = open_descriptors()
    traced(["/bin/true"], ("unlinkat",), monkeypatch)
    assert open_descriptors() == before


@pytest.mark.parametrize(
    ("code", "says"), [(1, "does not permit"), (13, "does not permit"), (24, "descriptors")]
)
def test_refusals_of_the_kernel_are_explained(code: int, says: str) -> None:
    sentence, advice = why_not(OSError(code, ""))
    assert says in sentence
    assert advice


def test_a_refused_probe_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    event = tmp_path / "events" / "raw_syscalls" / "sys_exit"
    event.mkdir(parents=True)
    (event / "id").write_text("1\n")

    def refuse(*_: object) -> int:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(perf, "_perf_event_open", refuse)
    with pytest.raises(Missing, match="does not permit"):
        PerfCounters(str(tmp_path)).probe()
