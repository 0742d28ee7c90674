"""Calibration next to a target leaves nothing there, whichever process is killed at any moment."""

import os
import random
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import wait_until
from tests.contracts.calibrating import (
    Measurement,
    above,
    command_for,
    kill_all,
    left_as_it_was,
    run,
    scratches,
    started,
)
from tests.unit.scratching import records

__all__ = ["above", "records"]


def wait_for_trees(measurement: Measurement, above: Path, number: int) -> None:
    """Wait until this many trees have come or gone from now on: a moment of the measurement."""
    (name,) = scratches(above)
    tree = os.path.join(os.fsencode(above), name, b"tree")
    is_there = os.path.exists(tree)

    def has_changed() -> bool:
        return os.path.exists(tree) is not is_there or measurement.is_over()

    for _ in range(number):
        wait_until(has_changed, "a tree that is made or gone")
        is_there = not is_there


@pytest.mark.parametrize("moment", range(4))
def test_the_measuring_process_killed_leaves_nothing(
    above: Path, records: Path, moment: int
) -> None:
    with left_as_it_was(above, records):
        measurement = started(above / "target")
        wait_for_trees(measurement, above, random.Random(moment).randrange(2 + 4 * moment))
        os.kill(measurement.child(), signal.SIGKILL)
        code, output, complaint = measurement.ended()
    assert (code, complaint) == (0, "")
    assert "the measuring process ended" in output["problem"].lower()


@pytest.mark.parametrize("moment", range(4))
def test_the_waiting_process_killed_leaves_nothing(above: Path, records: Path, moment: int) -> None:
    with left_as_it_was(above, records):
        measurement = started(above / "target")
        wait_for_trees(measurement, above, random.Random(moment).randrange(2 + 4 * moment))
        os.kill(measurement.pid, signal.SIGKILL)
        measurement.ended()


def test_a_tool_or_its_launcher_killed_leaves_nothing(above: Path, records: Path) -> None:
    with left_as_it_was(above, records):
        measurement = started(above / "target")
        family = {measurement.pid, measurement.child()}
        wait_until(lambda: bool(set(measurement.processes()) - family), "a tool")
        while not measurement.is_over():
            for pid in set(measurement.processes()) - family:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        code, output, _ = measurement.ended()
    assert code == 0
    assert output["problem"]


@pytest.mark.parametrize("moment", range(2))
def test_what_all_killed_at_once_have_left_the_next_one_removes(
    above: Path, records: Path, moment: int
) -> None:
    with left_as_it_was(above, records):
        measurement = started(above / "target")
        wait_for_trees(measurement, above, random.Random(moment).randrange(2 + 6 * moment))
        kill_all(measurement)
        assert len(scratches(above)) == len(os.listdir(records)) == 1
        run(command_for(above / "target", 0.1))


ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_it_and_leaves_nothing(
    above: Path, records: Path, number: signal.Signals
) -> None:
    with left_as_it_was(above, records):
        measurement = started(above / "target")
        os.kill(measurement.pid, number)
        assert measurement.ended() == (1, {}, "")


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_to_everybody_leaves_nothing(
    above: Path, records: Path, number: signal.Signals
) -> None:
    with left_as_it_was(above, records):
        measurement = started(above / "target")
        for pid in measurement.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        measurement.ended()


_IMPATIENTLY = """
import os, signal, sys
import tui_fs.job.calibration.child as one
from tui_fs.job.scratch import Scratch
waiting, clear_away = os.getpid(), Scratch.remove
def disturbed(scratch):
    if os.getpid() == waiting:
        os.kill(waiting, signal.{name})
    clear_away(scratch)
Scratch.remove = disturbed
one.LIMIT_S = 0.1
one.main()
"""


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_while_it_clears_away_leaves_nothing(
    above: Path, records: Path, number: signal.Signals
) -> None:
    script = _IMPATIENTLY.format(name=number.name)
    with left_as_it_was(above, records):
        Measurement([sys.executable, "-P", "-c", script, str(above / "target")]).ended()
