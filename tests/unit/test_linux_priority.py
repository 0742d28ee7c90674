"""Priorities of processes, as the kernel reports them afterwards."""

import ctypes
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.needs import lacks, needs_root
from tui_fs.linux.priority import rank_group
from tui_fs.model.strategy import IoPriority

_IOPRIO_GET = {"x86_64": 252, "aarch64": 31}
_WHO_PROCESS = 1
_CLASS_SHIFT = 13
RANKS = {IoPriority.LOW: (2, 7), IoPriority.IDLE: (3, 0)}
"""Class and level as ioprio_set(2) has them."""

_REPORT = "print(os.getpriority(os.PRIO_PROCESS, 0), flush=True); sys.stdin.readline()"


def io_rank_of(pid: int) -> tuple[int, int]:
    """Ask the kernel for class and level."""
    call = _IOPRIO_GET.get(platform.machine())
    if call is None:
        lacks(f"ioprio_get is not known for {platform.machine()}; run on x86-64 or arm64")
    libc = ctypes.CDLL(None, use_errno=True)
    value: int = libc.syscall(ctypes.c_long(call), ctypes.c_long(_WHO_PROCESS), ctypes.c_long(pid))
    assert value >= 0, os.strerror(ctypes.get_errno())
    return value >> _CLASS_SHIFT, value & 7


@contextmanager
def ranked(statement: str, uid: int = 0) -> Iterator[tuple[int, str]]:
    """Run a statement in a process of its own; yield its id and what it printed."""
    program = (
        "import os, sys; from tui_fs.linux.priority import *; "
        "from tui_fs.model.strategy import IoPriority; "
        f"os.setresuid({uid}, {uid}, {uid}) if {uid} else None; {statement}; {_REPORT}"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        yield process.pid, process.stdout.readline().strip()
    finally:
        process.communicate("\n")


@pytest.mark.parametrize("rank", RANKS)
def test_a_process_ranks_itself(rank: IoPriority) -> None:
    with ranked(f"rank_process(13, IoPriority.{rank.name})") as (pid, _):
        assert os.getpriority(os.PRIO_PROCESS, pid) == 13
        assert io_rank_of(pid) == RANKS[rank]


def test_an_ordinary_rank_at_the_disk_is_left_as_it_is() -> None:
    # It keeps its rank: only a group that is ranked loses it
    low = "rank_process(5, IoPriority.LOW)"
    with ranked(f"{low}; rank_process(6, IoPriority.NORMAL)") as (pid, printed):
        assert printed == "6"
        assert io_rank_of(pid) == RANKS[IoPriority.LOW]
        rank_group(pid, 7, IoPriority.NORMAL)
        assert os.getpriority(os.PRIO_PROCESS, pid) == 7
        assert io_rank_of(pid)[0] not in (3,) and io_rank_of(pid) != RANKS[IoPriority.LOW]


def test_a_group_is_ranked_as_one() -> None:
    child = "child = os.fork(); print(child, flush=True) if child else None"
    with ranked(f"{child}; child or sys.stdin.readline()") as (leader, printed):
        other = int(printed)
        for nice, rank in ((4, IoPriority.LOW), (19, IoPriority.IDLE)):
            rank_group(leader, nice, rank)
            for pid in (leader, other):
                assert os.getpriority(os.PRIO_PROCESS, pid) == nice
                assert io_rank_of(pid) == RANKS[rank]
        # And this process, which is not in it, has not
        assert io_rank_of(os.getpid()) not in RANKS.values()


def test_root_may_give_a_better_rank_again() -> None:
    needs_root("giving a better rank")
    with ranked("rank_process(19, IoPriority.IDLE)") as (pid, _):
        rank_group(pid, 0, IoPriority.NORMAL)
        assert os.getpriority(os.PRIO_PROCESS, pid) == 0
        assert io_rank_of(pid)[0] != 3


def test_others_may_not_give_a_better_rank() -> None:
    needs_root("becoming another user")
    statement = (
        "rank_process(19, IoPriority.NORMAL)\n"
        "try: rank_process(1, IoPriority.NORMAL)\n"
        "except PermissionError: print('refused')"
    )
    with ranked(f"exec({statement!r})", uid=65534) as (pid, printed):
        assert printed == "refused"
        assert os.getpriority(os.PRIO_PROCESS, pid) == 19


def test_a_group_that_is_gone_is_an_error() -> None:
    with ranked("pass") as (pid, _):
        pass
    with pytest.raises(ProcessLookupError):
        rank_group(pid, 5, IoPriority.NORMAL)


@pytest.mark.parametrize(("before", "after"), [(0, -10), (7, -10), (-15, -15)])
def test_a_watcher_ranks_above_the_tools(before: int, after: int) -> None:
    needs_root("a better rank")
    statement = f"os.setpriority(os.PRIO_PROCESS, 0, {before}); print(rank_above_the_tools())"
    with ranked(statement) as (pid, printed):
        assert printed == str(before)
        assert os.getpriority(os.PRIO_PROCESS, pid) == after


def test_a_watcher_without_rights_stays_as_it_is() -> None:
    needs_root("becoming another user")
    statement = "os.nice(3); print(rank_above_the_tools())"
    with ranked(statement, uid=65534) as (pid, printed):
        assert printed == str(os.getpriority(os.PRIO_PROCESS, pid))
