"""What is told of the free space when the file system does not always answer."""

import os

import pytest

from tui_fs.job import sampling
from tui_fs.job.sampling import Sampler
from tui_fs.job.tool_output import ToolOutput
from tui_fs.model.calls import TraceSource
from tui_fs.model.space import Space
from tui_fs.model.strategy import StrategyName
from tui_fs.strategies.registry import STRATEGIES
from tui_fs.tracing.source import NoCounts

EARLY, LATE = Space(1_000, 10), Space(9_000, 90)


def sampler(monkeypatch: pytest.MonkeyPatch, answers: list[Space | None]) -> Sampler:
    """Give a sampler to which the file system answers this, once for each look."""
    monkeypatch.setattr(sampling, "space_of", lambda _: answers.pop(0))
    monkeypatch.setattr(sampling, "LOOK_AT_PROCESSES_EVERY_S", 0.0)
    output = ToolOutput(STRATEGIES[StrategyName.RM], "/t")
    return Sampler(NoCounts(TraceSource.OFF, ""), output, ["/"], os.getpid())


def test_a_file_system_that_was_slow_once_is_asked_again_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given a look that was not answered
    made = sampler(monkeypatch, [EARLY, None, LATE])
    assert made.sample(1.0, 1.0).space == EARLY
    # When the tools have run on for long / Then it is not waited for again, until they have ended
    assert made.sample(2.0, 2.0).space == EARLY
    assert made.last_sample(3.0, 3.0).space == LATE
    assert made.space == LATE


def test_what_was_free_before_is_not_told_as_what_is_free_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = sampler(monkeypatch, [EARLY, EARLY, None])
    assert made.sample(1.0, 1.0).space == EARLY
    assert made.last_sample(2.0, 2.0).space is None
    assert made.space is None
