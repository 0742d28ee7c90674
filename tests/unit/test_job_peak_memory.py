"""The largest process of a step: by VmHWM while it lives, by ru_maxrss where that is its own."""

from pathlib import Path

import pytest

from tui_fs.job.launcher import FORKED_EXTRA_BYTES, LAST_LOOK_S, PeakMemory

MIB = 1 << 20
FORKED = 18 * MIB


class Clock:
    """Stand-in for the monotonic clock."""

    now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def process(
    proc: Path,
    pid: int,
    peak_kib: int,
    *,
    parent: int = 1,
    executed: bool = True,
    children: str = "",
    ran_us: int | None = None,
) -> None:
    """Write the /proc files of a process."""
    (proc / f"{pid}/task/{pid}").mkdir(parents=True, exist_ok=True)
    (proc / f"{pid}/stat").write_text(f"{pid} (x) S {parent} 1 1 0 -1 {0 if executed else 64} 0")
    (proc / f"{pid}/status").write_text(f"Name:\tx\nPPid:\t{parent}\nVmHWM:\t{peak_kib} kB\n")
    (proc / f"{pid}/task/{pid}/children").write_text(children)
    if ran_us is not None:
        (proc / f"{pid}/schedstat").write_text(f"{ran_us * 1000} 0 1\n")


@pytest.fixture
def clock() -> Clock:
    """Return a clock that the samples move."""
    return Clock()


@pytest.fixture
def peak(tmp_path: Path, clock: Clock) -> PeakMemory:
    """Return the peak of the tool 7."""
    return PeakMemory([7], FORKED, str(tmp_path), clock)


def sample_next(peak: PeakMemory, clock: Clock) -> None:
    """Advance the clock to the next sample."""
    wait_s = peak.wait_s()
    assert wait_s is not None
    clock.now += wait_s
    peak.look()


def test_a_tool_is_counted_from_its_second_sample_on(
    tmp_path: Path, clock: Clock, peak: PeakMemory
) -> None:
    peak.released()
    process(tmp_path, 7, 200)
    sample_next(peak, clock)
    assert peak.bytes == 0
    process(tmp_path, 7, 3_000)
    sample_next(peak, clock)
    peak.ended(7, FORKED + FORKED_EXTRA_BYTES)
    assert peak.bytes == 3_000 * 1024


def test_a_tool_that_waits_for_a_processor_is_not_counted(
    tmp_path: Path, clock: Clock, peak: PeakMemory
) -> None:
    peak.released()
    for ran_us in (5_000, 5_000, 5_000, 5_900):  # the first is that of the interpreter before it
        process(tmp_path, 7, 4, ran_us=ran_us)
        sample_next(peak, clock)
    assert peak.bytes == 0
    process(tmp_path, 7, 3_000, ran_us=6_000)
    sample_next(peak, clock)
    assert peak.bytes == 3_000 * 1024


def test_what_has_not_executed_is_the_interpreter(
    tmp_path: Path, clock: Clock, peak: PeakMemory
) -> None:
    peak.released()
    process(tmp_path, 7, 18_000, executed=False)
    for _ in range(5):
        sample_next(peak, clock)
    assert peak.bytes == 0


def test_above_the_interpreter_ru_maxrss_is_exact(
    tmp_path: Path, clock: Clock, peak: PeakMemory
) -> None:
    peak.released()
    process(tmp_path, 7, 3_000)
    sample_next(peak, clock)
    peak.ended(7, 80 * MIB)
    assert peak.bytes == 80 * MIB


def test_children_count_and_strangers_do_not(
    tmp_path: Path, clock: Clock, peak: PeakMemory
) -> None:
    peak.released()
    process(tmp_path, 7, 1_000, children="8 9 ")
    process(tmp_path, 8, 5_000, parent=7)
    process(tmp_path, 9, 90_000, parent=1)
    sample_next(peak, clock)
    sample_next(peak, clock)
    assert peak.bytes == 5_000 * 1024


def test_looks_become_rarer_and_end(tmp_path: Path, clock: Clock, peak: PeakMemory) -> None:
    assert peak.wait_s() is None
    peak.released()
    process(tmp_path, 7, 1_000)
    waits = []
    for _ in range(9):
        wait_s = peak.wait_s()
        assert wait_s is not None
        waits.append(round(wait_s, 4))
        sample_next(peak, clock)
    assert waits == [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, *[LAST_LOOK_S] * 3]
    # And a sample that is too early is skipped
    process(tmp_path, 7, 9_000)
    peak.look()
    assert peak.bytes == 1_000 * 1024
    # And a reaped process is not sampled
    peak.ended(7, 0)
    assert peak.wait_s() is None
    clock.now += 1
    peak.look()
    assert peak.bytes == 1_000 * 1024
