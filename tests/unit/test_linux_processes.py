"""Processes that stop, wait in system calls, and descend from others."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.conftest import wait_until
from tests.fuse.hanging_tree import fuse_tree
from tests.fuse.protocol import FuseMount
from tui_fs.linux.processes import (
    StalledCall,
    StalledCalls,
    age_s,
    all_stopped,
    blocks_signal,
    processes_in_session,
    state_of,
    times_of,
    waits_of,
    with_descendants,
)
from tui_fs.model.paths import PathStr

THREADED = """
import os, threading
def work():
    while True:
        os.stat("/")
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"""


@pytest.fixture
def parent() -> Iterator[psutil.Process]:
    """Yield a process whose one child has several threads that are at work."""
    command = ["sh", "-c", '"$0" -c "$1" & wait', sys.executable, THREADED]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        made = psutil.Process(process.pid)
        (child,) = made.children()
        yield made
        child.kill()


def test_all_threads_have_to_be_stopped(parent: psutil.Process) -> None:
    (child,) = parent.children()
    assert not all_stopped(parent.pid)
    child.suspend()
    wait_until(lambda: all_stopped(parent.pid), "all threads standing")
    child.resume()
    wait_until(lambda: not all_stopped(parent.pid), "going on")


@pytest.mark.parametrize(
    "letter, is_still", [("T", True), ("t", True), ("Z", True), ("R", False), ("D", False)]
)
def test_a_thread_in_a_call_is_not_stopped(tmp_path: Path, letter: str, is_still: bool) -> None:
    (tmp_path / "stat").write_text(f"7 (a) T b) {letter} 1 7 7 0 -1 4194304 0 0 0 0 0 0 0 0 20 0")
    assert state_of(str(tmp_path)).is_still is is_still


Call = Callable[[], object]


@contextmanager
def _repeating(prepare: Callable[[], Call]) -> Iterator[int]:
    """Repeat a call in a child process, which is killed at the end."""
    ready, is_ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            call = prepare()
            os.write(is_ready, b"r")
            while True:
                call()
                time.sleep(0.05)
        finally:
            os._exit(1)
    os.close(is_ready)
    try:
        assert os.read(ready, 1) == b"r"
        yield pid
    finally:
        os.close(ready)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@pytest.fixture
def fuse(tmp_path: Path) -> Iterator[FuseMount]:
    """Yield a file system whose server can be stopped."""
    with fuse_tree(tmp_path / "mount") as fuse:
        yield fuse


def _by_absolute_path(tree: Path) -> Call:
    return lambda: os.stat(tree)


def _by_relative_path(tree: Path) -> Call:
    os.chdir(tree.parent.parent)
    return lambda: os.stat(f"{tree.parent.name}/tree")


def _by_descriptor(tree: Path) -> Call:
    descriptor = os.open(tree, os.O_RDONLY)
    return lambda: os.listdir(descriptor)


@pytest.mark.parametrize("prepare", (_by_absolute_path, _by_relative_path, _by_descriptor))
@pytest.mark.slow
def test_a_waiting_call_is_reported_with_the_path_it_works_on(
    fuse: FuseMount, prepare: Callable[[Path], Call]
) -> None:
    now_s = 0.0
    calls = StalledCalls(lambda: now_s)
    with _repeating(lambda: prepare(fuse.tree)) as pid:
        fuse.stop_answering()
        wait_until(lambda: calls.longest([pid]) is not None, "a waiting call")
        now_s = 7.0
        assert calls.longest([pid]) == StalledCall(7.0, PathStr(str(fuse.tree)))
        # And not any more when it has returned
        fuse.answer_again()
        wait_until(lambda: calls.longest([pid]) is None, "the call's return")


def test_the_time_of_a_new_wait_starts_at_zero(tmp_path: Path) -> None:
    thread = tmp_path / "9" / "task" / "9"
    thread.mkdir(parents=True)
    (thread / "children").touch()
    status = "State:\tD (disk sleep)\nvoluntary_ctxt_switches:\t{}\n"
    now_s = 0.0
    calls = StalledCalls(lambda: now_s, str(tmp_path))
    (thread / "status").write_text(status.format(5))
    assert calls.longest([9]) == StalledCall(0.0, None)
    now_s = 2.0
    assert calls.longest([9]) == StalledCall(2.0, None)
    (thread / "status").write_text(status.format(6))
    assert calls.longest([9]) == StalledCall(0.0, None)


def test_a_thread_that_sleeps_for_something_else_is_not_reported() -> None:
    with _repeating(lambda: lambda: time.sleep(60)) as pid:
        # Python 3.10 sleeps in select
        sleeps, wchan = re.compile(b"nanosleep|poll_schedule"), Path(f"/proc/{pid}/wchan")
        wait_until(lambda: bool(sleeps.search(wchan.read_bytes())), "its sleep")
        assert StalledCalls().longest([pid]) is None


def test_descendants_and_sessions_are_found() -> None:
    def prepare() -> Call:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        return lambda: time.sleep(60)

    with _repeating(prepare) as pid:
        both = with_descendants([pid])
        assert pid in both and len(both) == 2
        assert set(processes_in_session(pid)) == both
        for child in both - {pid}:
            os.kill(child, signal.SIGKILL)


def test_a_blocked_signal_is_seen() -> None:
    def prepare() -> Call:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        return lambda: time.sleep(60)

    with _repeating(prepare) as pid:
        assert blocks_signal(pid, signal.SIGINT)
        assert not blocks_signal(pid, signal.SIGTERM)
    assert not blocks_signal(pid, signal.SIGINT)


def test_waits_for_a_processor_are_measured_by_thread() -> None:
    waits = waits_of("/proc/self")
    assert os.getpid() in waits
    assert all(queue_s >= 0 and disk_s >= 0 for queue_s, disk_s in waits.values())
    ended = subprocess.Popen(["true"])
    ended.wait()
    with pytest.raises((FileNotFoundError, ProcessLookupError)):
        waits_of(f"/proc/{ended.pid}")
    assert 0 < age_s(times_of("/proc/self")) < time.clock_gettime(time.CLOCK_BOOTTIME)
