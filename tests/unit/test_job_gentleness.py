"""A gentle job holds its tools back while somebody waits for the disk, but not for ever."""

from pathlib import Path

import pytest

from tui_fs.job.gentleness import LONGEST_HOLD_S, Gentleness
from tui_fs.linux.pressure import PressureMeter


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now_s


def test_holds_above_and_lets_go_below() -> None:
    # Given rising and falling pressure / When asked each time / Then it holds with hysteresis
    gentleness = Gentleness(Clock())
    decisions = [gentleness.decide(percent) for percent in (5.0, 20.0, 30.0, 20.0, 9.0, 20.0)]
    assert decisions == [False, False, True, True, False, False]


def test_a_busy_disk_does_not_stop_the_job_for_ever() -> None:
    # Given pressure that never falls / When held for the longest time / Then it lets go once
    clock = Clock()
    gentleness = Gentleness(clock)
    assert gentleness.decide(90.0)
    clock.now_s = LONGEST_HOLD_S
    assert not gentleness.decide(90.0)
    assert gentleness.decide(90.0)


def test_without_figures_nothing_is_held() -> None:
    # Given a kernel without pressure figures / When asked / Then it never holds
    gentleness = Gentleness(Clock())
    assert gentleness.decide(90.0)
    assert not gentleness.decide(None)


def test_the_meter_measures_between_two_looks(tmp_path: Path) -> None:
    # Given half a second of waiting in two seconds / When measured / Then 25 per cent
    clock, file = Clock(), tmp_path / "io"
    file.write_text("some avg10=1.00 avg60=0.00 avg300=0.00 total=1000000\nfull total=0\n")
    meter = PressureMeter(str(file), clock)
    file.write_text("some avg10=1.00 avg60=0.00 avg300=0.00 total=1500000\nfull total=0\n")
    clock.now_s = 2.0
    assert meter.percent() == pytest.approx(25.0)


def test_the_meter_knows_nothing_without_the_file(tmp_path: Path) -> None:
    # Given no file / When measured / Then None
    clock = Clock()
    meter = PressureMeter(str(tmp_path / "absent"), clock)
    clock.now_s = 1.0
    assert meter.percent() is None
