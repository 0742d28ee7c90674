"""A gentle job pauses to measure who waits for the disk, and yields while others do."""

import pytest

from tui_fs.job.throttle import (
    HOLD_S,
    LONGEST_TRUST_S,
    LOOK_EVERY_S,
    RUN_S,
    Pressure,
    PressureThrottle,
    disk_pressure,
)


class Disk:
    """A disk, and a clock that the decisions move."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.own_percent = 0.0
        self.others_percent = 0.0
        self.processors_percent: float | None = 0.0
        self.gentleness = PressureThrottle(
            self._pressure, lambda: self.processors_percent, self._clock
        )

    def _clock(self) -> float:
        return self.now_s

    def _pressure(self) -> float | None:
        own = 0.0 if self.gentleness.holds else self.own_percent
        return min(100.0, own + self.others_percent)

    def decide(self) -> Pressure | None:
        """Decide once, and let the time pass until the next decision."""
        waiting, poll_interval_s = self.gentleness.decide()
        assert poll_interval_s > 0
        self.now_s += poll_interval_s
        return waiting

    def share_run(self, seconds: float) -> float:
        """Return the share of the time that the tools run in the next seconds."""
        began, ran_s = self.now_s, 0.0
        while self.now_s - began < seconds:
            before = self.now_s
            if self.decide() is None:
                ran_s += self.now_s - before
        return ran_s / (self.now_s - began)


@pytest.fixture
def disk() -> Disk:
    """Return a quiet disk."""
    return Disk()


def test_without_waiting_processes_nothing_is_throttled(disk: Disk) -> None:
    assert disk.share_run(60) == 1.0


def test_own_waiting_costs_little_more_than_nothing(disk: Disk) -> None:
    # Only the job's tools wait for the disk, all the time
    disk.own_percent = 95.0
    assert 0.96 < disk.share_run(60) < 1.0


@pytest.mark.parametrize("own_percent", [0.0, 95.0])
def test_while_others_wait_the_tools_get_a_small_share(disk: Disk, own_percent: float) -> None:
    disk.own_percent, disk.others_percent = own_percent, 60.0
    assert disk.share_run(60) == pytest.approx(RUN_S / (RUN_S + HOLD_S), rel=0.25)


def test_when_others_stop_waiting_the_tools_run_again_soon(disk: Disk) -> None:
    # Tools that are held because others wait
    disk.others_percent = 60.0
    while disk.decide() is None:
        pass
    disk.others_percent = 0.0
    before = disk.now_s
    while disk.decide() is not None:
        pass
    assert disk.now_s - before <= 2 * LOOK_EVERY_S


def test_others_that_come_back_are_noticed(disk: Disk) -> None:
    disk.own_percent = 95.0
    disk.share_run(60)
    disk.others_percent = 60.0
    before = disk.now_s
    while disk.gentleness.decide()[0] is None:
        disk.now_s += LOOK_EVERY_S
    assert disk.now_s - before <= LONGEST_TRUST_S + 1


def test_the_one_who_waits_is_named(disk: Disk) -> None:
    disk.processors_percent = 80.0
    assert disk.decide() == Pressure("processors", 80.0)


def test_without_pressure_information_nothing_is_held() -> None:
    gentleness = PressureThrottle(lambda: None, lambda: None)
    assert gentleness.decide() == (None, LOOK_EVERY_S)


def test_a_hold_can_be_forgotten(disk: Disk) -> None:
    disk.others_percent = 60.0
    disk.decide()
    assert disk.gentleness.holds
    disk.gentleness.reset()
    assert not disk.gentleness.holds


def test_without_pressure_the_load_of_the_disk_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_fs.job.throttle.PressureMeter.percent", lambda _: None)
    monkeypatch.setattr("tui_fs.job.throttle.DiskLoad.percent", lambda _: 42.0)
    assert disk_pressure([0])() == 42.0
    monkeypatch.setattr("tui_fs.job.throttle.PressureMeter.percent", lambda _: 7.0)
    assert disk_pressure([0, 1])() == 7.0
