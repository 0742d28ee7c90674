"""The supervisor's commands to a tool that takes commands, and when it stops tools instead."""

import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import closing

import psutil
import pytest

from tests.conftest import wait_until
from tests.needs import needs_tool
from tests.unit.test_job_launcher import directory
from tui_fs.job.launcher import Launcher
from tui_fs.job.throttle import CONTINUED_BY_OTHERS, PressureThrottle, Throttle
from tui_fs.model.command import Command
from tui_fs.model.events import Event, PaceChanged, ToolSaid
from tui_fs.model.strategy import IoPriority, Pace

__all__ = ["directory"]

DEADLINE_MS = 60_000


def cat_launcher(directory: int, steps: int = 1, *, takes_commands: bool = False) -> Launcher:
    """Return a launcher of steps of cat."""
    cat = (needs_tool("cat", package="coreutils"),)
    return Launcher(
        ((cat,),) * steps,
        (directory,) * steps,
        os.nice(0),
        IoPriority.NORMAL,
        takes_commands=takes_commands,
    )


@pytest.fixture
def launcher(directory: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Launcher]:
    """Yield a launcher of two steps: cat, which prints its commands."""
    monkeypatch.setattr("tui_fs.job.throttle.STOPPED_WITHIN_S", DEADLINE_MS / 1000)
    with closing(cat_launcher(directory, 2, takes_commands=True)) as made:
        yield made


def pacing_of(launcher: Launcher, pace: Pace, noted: list[Event] | None = None) -> Throttle:
    """Return the pacing of a job that began with a pace."""
    events = [] if noted is None else noted
    return Throttle(launcher, pace, os.nice(0), PressureThrottle(), events.append, lambda: 1.0)


def begin(launcher: Launcher, pacing: Throttle, step: int = 0) -> psutil.Process:
    """Begin a step; return its tool."""
    (pid,) = launcher.fork_step(step)
    pacing.step_begins()
    launcher.release()
    return psutil.Process(pid)


def said(launcher: Launcher, lines: int) -> list[str]:
    """Read this many lines of the tool's output."""
    text = b""
    poll = select.poll()
    poll.register(launcher.out, select.POLLIN)
    while text.count(b"\n") < lines:
        assert poll.poll(DEADLINE_MS), f"it says no more than {text!r}"
        text += os.read(launcher.out, 4096)
    return text.decode().splitlines()


def test_a_change_is_sent_to_the_running_tool(launcher: Launcher) -> None:
    noted: list[Event] = []
    pacing = pacing_of(launcher, Pace(), noted)
    begin(launcher, pacing)
    commands = [
        Command("rate", "500"),
        Command("threads", "3"),
        Command("gentle", "on"),
        Command("rate", "off"),
        Command("threads", "auto"),
    ]
    for command in commands:
        assert pacing.change(command) is None
    assert said(launcher, 5) == [str(command) for command in commands]
    assert pacing.pace == Pace(gentle=True)
    paces = [event.pace for event in noted if isinstance(event, PaceChanged)]
    assert [pace.threads for pace in paces] == [0, 3, 3, 3, 0]
    # And the supervisor does not stop it for the rate: the tool keeps to that by itself
    pacing.change(Command("gentle", "off"))
    pacing.change(Command("rate", "1"))
    assert pacing.look(lambda: 10**9) > 0.1
    assert noted == [event for event in noted if isinstance(event, PaceChanged)]


def test_a_later_step_receives_the_settings_missing_on_its_command_line(launcher: Launcher) -> None:
    # A job that began with two threads, and has four since its first step
    pacing = pacing_of(launcher, Pace(threads=2, rate_per_s=100))
    begin(launcher, pacing)
    pacing.change(Command("threads", "4"))
    assert said(launcher, 1) == ["threads 4"]
    launcher.signal_tools(signal.SIGKILL)
    launcher.ended()
    begin(launcher, pacing, 1)
    pacing.change(Command("gentle", "on"))
    assert said(launcher, 2) == ["threads 4", "gentle on"]


@pytest.mark.slow
def test_a_tool_that_does_not_read_is_not_waited_for(launcher: Launcher) -> None:
    # A tool that has not begun, and more commands than a pipe holds
    pacing = pacing_of(launcher, Pace())
    launcher.fork_step(0)
    answers = (pacing.change(Command("threads", str(1 + n % 2))) for n in range(100_000))
    assert next(filter(None, answers)).startswith("The tool does not accept commands now: ")


def test_other_tools_receive_no_commands(directory: int) -> None:
    with closing(cat_launcher(directory)) as launcher:
        pacing = pacing_of(launcher, Pace())
        begin(launcher, pacing)
        reason = pacing.change(Command("threads", "2"))
        assert reason == "Only the strategy parallel has an adjustable number of threads."
        assert pacing.pace == Pace()
        # And what it reads is empty, so that it ends
        assert launcher.ended().statuses == (0,)


def test_no_rate_is_promised_where_nothing_counts(directory: int) -> None:
    with closing(cat_launcher(directory)) as launcher:
        pacing = Throttle(
            launcher,
            Pace(),
            os.nice(0),
            PressureThrottle(),
            lambda _: None,
            lambda: 1.0,
            counts=False,
        )
        reason = pacing.change(Command("rate", "100"))
        assert (
            reason == "This job has no count of its removed entries, so its rate cannot be limited."
        )
        assert pacing.pace == Pace()
        assert pacing.change(Command("rate", "off")) is None


@pytest.mark.parametrize("rate", (0, 1_000_000))
def test_a_child_that_the_kernel_stops_late_goes_on(launcher: Launcher, rate: int) -> None:
    pacing = pacing_of(launcher, Pace(rate_per_s=rate))
    tool = begin(launcher, pacing)
    assert pacing.pause()
    pacing.resume()
    wait_until(lambda: tool.status() != psutil.STATUS_STOPPED, "going on")
    tool.suspend()
    wait_until(lambda: tool.status() == psutil.STATUS_STOPPED, "standing")
    # It is not stopped for ever
    wait_until(lambda: _is_going(pacing, tool), "going on")
    # But during a pause they stay stopped
    assert pacing.pause()
    assert not _is_going(pacing, tool)


def test_tools_that_were_never_stopped_are_not_continued(launcher: Launcher) -> None:
    # A tool that another process has stopped
    pacing = pacing_of(launcher, Pace())
    tool = begin(launcher, pacing)
    tool.suspend()
    wait_until(lambda: tool.status() == psutil.STATUS_STOPPED, "standing")
    assert not any(_is_going(pacing, tool) for _ in range(5))


def _is_going(pacing: Throttle, tool: psutil.Process) -> bool:
    pacing.look(lambda: 0)
    time.sleep(0.05)
    return tool.status() != psutil.STATUS_STOPPED


def test_tools_that_another_process_continues_during_a_pause_are_stopped_again(
    launcher: Launcher,
) -> None:
    noted: list[Event] = []
    pacing = pacing_of(launcher, Pace(), noted)
    tool = begin(launcher, pacing)
    assert pacing.pause()
    tool.resume()
    wait_until(lambda: tool.status() != psutil.STATUS_STOPPED, "the tool running")
    pacing.look(lambda: 0)
    wait_until(lambda: tool.status() == psutil.STATUS_STOPPED, "the tool stopped")
    assert noted == [ToolSaid(1.0, CONTINUED_BY_OTHERS)]
