"""Steps that are run to their end: what they printed, what they took, and how they are stopped."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import DEADLINE_S
from tests.limits.limits import limited, why_not_limited
from tests.needs import lacks, needs_root, needs_tool
from tui_fs.job.launcher import MAX_OUTPUT_BYTES, Launcher, StepsEnd, run_steps
from tui_fs.model.calls import TraceSource
from tui_fs.model.strategy import IoPriority, Step
from tui_fs.tracing.select_source import open_source

_OWN_FAULTS = 200
"""Of a small tool, which has 55; what the forked interpreter touches before makes 360 of them."""


class Stopped(Exception):
    """The test ends the steps."""


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    """Yield an open directory."""
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def tool(name: str) -> str:
    """Return the path of a tool that every system has."""
    return needs_tool(name, package="coreutils")


def run(steps: tuple[Step, ...], directory: int) -> StepsEnd:
    """Run steps that nothing counts."""
    return run_steps(steps, directory, open_source(TraceSource.OFF))


def test_steps_run_in_turn_in_their_directory(directory: int, tmp_path: Path) -> None:
    steps = (
        ((tool("touch"), "made"),),
        ((tool("ls"),), (tool("wc"), "-l")),
    )
    ended = run(steps, directory)
    assert ended.output == b"1\n" and ended.errors == b""
    assert [step.statuses for step in ended.steps] == [(0,), (0, 0)]
    assert os.listdir(tmp_path) == ["made"]


def test_a_tool_sees_the_c_locale_and_a_path_and_nothing_else(
    directory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=4096")
    monkeypatch.setenv("RSYNC_RSH", "false")
    ended = run((((tool("env"),),),), directory)
    variables = {line.partition(b"=")[0] for line in ended.output.splitlines()}
    assert variables == {b"LC_ALL", b"PATH"} and b"LC_ALL=C\n" in ended.output


_NICED = """
import os, sys
from tui_fs.job.launcher import run_steps
from tui_fs.model.calls import TraceSource
from tui_fs.tracing.select_source import open_source
os.nice(3)
directory = os.open("/", os.O_RDONLY)
ended = run_steps((((sys.argv[1],),),), directory, open_source(TraceSource.OFF))
print(ended.output.decode(), end="")
"""


def test_a_tool_is_as_nice_as_the_program() -> None:
    script = [sys.executable, "-c", _NICED, tool("nice")]
    own = os.getpriority(os.PRIO_PROCESS, 0)
    printed = subprocess.run(script, stdout=subprocess.PIPE, timeout=DEADLINE_S, check=True).stdout
    assert int(printed) == min(own + 3, 19)


@pytest.mark.slow
def test_a_name_that_a_killed_tool_has_not_finished_is_dropped(
    directory: int, tmp_path: Path
) -> None:
    writer = "printf 'whole\\0torn'; kill -KILL $$"
    reader = (needs_tool("xargs", package="findutils"), "-0", "-n", "1", tool("touch"), "--")
    steps = (((needs_tool("sh", package="dash"), "-c", writer), reader),)
    for _ in range(20):
        ended = run(steps, directory)
        # The second never reads end of file
        assert [step.statuses for step in ended.steps] == [(-signal.SIGKILL, -signal.SIGKILL)]
    assert os.listdir(tmp_path) in ([], ["whole"])


def test_a_reader_that_has_read_enough_ends_by_itself(directory: int) -> None:
    reader = "read -r first; exec <&-; sleep 0.3; echo $first; exit 7"
    steps = (((tool("yes"),), (needs_tool("sh", package="dash"), "-c", reader)),)
    ended = run(steps, directory)
    assert [step.statuses for step in ended.steps] == [(-signal.SIGPIPE, 7)]
    assert ended.output == b"y\n"


def test_a_tool_that_fails_by_itself_has_printed_all_names(directory: int, tmp_path: Path) -> None:
    writer = "printf 'whole\\0last\\0'; exit 1"
    reader = (needs_tool("xargs", package="findutils"), "-0", tool("touch"), "--")
    steps = (((needs_tool("sh", package="dash"), "-c", writer), reader),)
    ended = run(steps, directory)
    assert [step.statuses for step in ended.steps] == [(1, 0)]
    assert sorted(os.listdir(tmp_path)) == ["last", "whole"]


def test_page_faults_are_the_tools_own(directory: int) -> None:
    ended = run((((tool("true"),),),), directory)
    assert 0 < ended.steps[0].minor_faults < _OWN_FAULTS


def test_only_the_beginning_of_much_output_is_kept_and_nothing_blocks(directory: int) -> None:
    ended = run((((tool("head"), "-c", "5000000", "/dev/zero"),),), directory)
    assert ended.steps[0].statuses == (0,)
    assert ended.output == bytes(MAX_OUTPUT_BYTES)


def test_what_the_question_raises_ends_the_tools(directory: int) -> None:
    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        run_steps((((tool("sleep"), "600"),),), directory, open_source(TraceSource.OFF), stop)


def test_tools_that_cannot_be_forked_are_an_error_and_can_be_forked_later(directory: int) -> None:
    reason = why_not_limited("processes")
    if reason is not None:
        lacks(reason)
    launcher = Launcher((((tool("true"),),),), (directory,), 0, IoPriority.NORMAL)
    try:
        with limited("processes", launcher.pid), pytest.raises(BlockingIOError):
            launcher.fork_step(0)
        launcher.fork_step(0)
        launcher.release()
        assert launcher.ended().statuses == (0,)
    finally:
        launcher.close()


_NUMBER_GIVEN_AGAIN = """
import ctypes, os, select, signal, sys
from tui_fs.job.launcher import Launcher
from tui_fs.model.strategy import IoPriority
directory = os.open("/", os.O_RDONLY)
launcher = Launcher((((sys.argv[1],),),), (directory,), 0, IoPriority.NORMAL)
(tool,) = launcher.fork_step(0)
launcher.release()
select.select([launcher], [], [])
os.kill(launcher.pid, signal.SIGKILL)
ctypes.CDLL(None).prctl(36, 0)  # PR_SET_CHILD_SUBREAPER: the stranger is nobody's child here
running, running_end = os.pipe()
middle = os.fork()
while middle == 0:
    with open("/proc/sys/kernel/ns_last_pid", "w") as last:
        last.write(str(tool - 1))
    stranger = os.fork()
    if stranger == 0:
        if os.getpid() == tool:
            os.setsid()
            os.write(running_end, b"r")
            signal.pause()
        os._exit(0)
    if stranger == tool:
        os._exit(0)
    os.waitpid(stranger, 0)
os.waitpid(middle, 0)
os.read(running, 1)
launcher.close()
with open(f"/proc/{tool}/stat") as status:
    print(status.read().split()[2] in "RS")
"""


@pytest.mark.root
def test_a_group_that_has_got_the_number_of_collected_tools_is_not_killed() -> None:
    needs_root("a PID namespace")
    namespace = [needs_tool("unshare", package="util-linux"), "--pid", "--fork", "--mount-proc"]
    namespace += ["sh", "-c", '"$@"; exit $?', "sh"]  # the parent of orphans
    finished = subprocess.run(
        [*namespace, sys.executable, "-c", _NUMBER_GIVEN_AGAIN, tool("true")],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert (finished.stderr, finished.stdout) == ("", "True\n")
