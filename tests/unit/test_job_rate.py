"""A rate limit, enforced with tools that can only run or be stopped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_fs.job.throttle import LONGEST_LOOK_S, LONGEST_SAVING_S, SHORTEST_LOOK_S, RateLimit


class Tools:
    """Tools that remove at a speed of their own while they run."""

    def __init__(self, limit_per_s: int, speed_per_s: float) -> None:
        self.now_s = 50.0
        self.removed = 0.0
        self.speed_per_s = speed_per_s
        self.straggle = 0
        self.limit = RateLimit(limit_per_s, lambda: self.now_s)

    def run(self, seconds: float) -> float:
        """Let them work under the limit; return how many a second they removed."""
        began, before = self.now_s, self.removed
        while self.now_s - began < seconds:
            hold_s = self.limit.hold_s(int(self.removed))
            if hold_s > 0:
                self.now_s += hold_s
                self.removed += self.straggle
            else:
                look_s = self.limit.poll_interval_s
                assert SHORTEST_LOOK_S <= look_s <= LONGEST_LOOK_S
                self.now_s += look_s
                self.removed += look_s * self.speed_per_s
        return (self.removed - before) / (self.now_s - began)


@given(st.integers(1, 100_000), st.floats(1.5, 1000))
@pytest.mark.slow
def test_fast_tools_are_slowed_to_the_limit(limit_per_s: int, times_faster: float) -> None:
    tools = Tools(limit_per_s, limit_per_s * times_faster)
    tools.run(2)
    seconds = max(20.0, 200 / limit_per_s)
    burst = limit_per_s * times_faster * SHORTEST_LOOK_S
    assert tools.run(seconds) <= limit_per_s * 1.05 + 2 * burst / seconds


def test_the_limit_is_used() -> None:
    assert Tools(1_000, 200_000).run(30) == pytest.approx(1_000, rel=0.05)


def test_a_straggler_does_not_make_the_tools_look_slow() -> None:
    tools = Tools(1_000, 200_000)
    tools.straggle = 1
    tools.run(10)
    assert tools.limit.poll_interval_s == SHORTEST_LOOK_S


def test_slow_tools_are_never_held() -> None:
    assert Tools(10_000, 500).run(30) == pytest.approx(500, rel=0.02)


def test_a_pause_does_not_end_in_a_burst() -> None:
    tools = Tools(1_000, 100_000)
    tools.run(5)
    tools.now_s += 60
    before = tools.removed
    tools.run(1)
    assert tools.removed - before < 1_000 * (1 + LONGEST_SAVING_S) * 1.2


def test_after_slow_tools_the_next_ones_are_sampled_soon() -> None:
    # Tools that remove little, so that the samples are far apart
    tools = Tools(1000, 10.0)
    tools.run(2.0)
    assert tools.limit.poll_interval_s == LONGEST_LOOK_S
    tools.limit.step_begins()
    assert tools.limit.poll_interval_s == SHORTEST_LOOK_S
