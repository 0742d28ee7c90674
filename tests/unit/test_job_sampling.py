"""Reports of the free space when the file system does not always answer."""

import errno
import os
import threading
import time

import pytest
from msgspec.structs import replace

from tests.conftest import wait_until
from tui_fs.job import sampling
from tui_fs.job.sampling import Sampler
from tui_fs.job.tool_output import ToolOutput
from tui_fs.linux.timeouts import BackgroundCall
from tui_fs.model.calls import Removed, TraceSource
from tui_fs.model.space import Space
from tui_fs.model.strategy import StrategyName
from tui_fs.strategies.registry import STRATEGIES
from tui_fs.tracing.source import CallSource, Counts

EARLY, LATE = Space(1_000, 10), Space(9_000, 90)


def sampler(monkeypatch: pytest.MonkeyPatch, answers: list[Space | Exception]) -> Sampler:
    """Return a sampler with these answers of the file system, one for each sample."""

    def answer(_: str) -> Space:
        given = answers.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    monkeypatch.setattr(sampling, "read_space", answer)
    monkeypatch.setattr(sampling, "LOOK_AT_PROCESSES_EVERY_S", 0.0)
    output = ToolOutput(STRATEGIES[StrategyName("rm")], "/t")
    return Sampler(CallSource(TraceSource.OFF, ""), output, ["/"], os.getpid())


@pytest.mark.parametrize(
    "error", [OSError(errno.EMFILE, "no descriptors"), OSError(errno.EAGAIN, ""), MemoryError()]
)
def test_space_that_a_limit_hides_keeps_its_last_value_and_is_read_again(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    made = sampler(monkeypatch, [EARLY, error, LATE])
    assert made.sample(1.0, 1.0).space == EARLY
    assert made.sample(2.0, 2.0).space == LATE


def test_space_is_unknown_while_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    def sleep(_: float) -> None:
        raise AssertionError("it waits for a space that can be compared with nothing")

    with monkeypatch.context() as limited:
        limited.setattr("_thread.start_new_thread", refuse)
        limited.setattr(time, "sleep", sleep)
        made = sampler(monkeypatch, [EARLY])
        assert made.last_sample(0.0, 0.0).space is None
    assert made.sample(1.0, 1.0).space == EARLY


def test_a_file_system_that_hangs_is_asked_once_and_never_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = sampler(monkeypatch, [EARLY])
    asked: list[str] = []
    answers_again = threading.Event()

    def hang(place: str) -> Space:
        asked.append(place)
        answers_again.wait()
        return LATE

    waits_s: list[float] = []
    result = BackgroundCall[Space].result

    def waiting(question: BackgroundCall[Space], timeout_s: float) -> Space:
        waits_s.append(timeout_s)
        return result(question, timeout_s)

    monkeypatch.setattr(sampling, "read_space", hang)
    monkeypatch.setattr(BackgroundCall, "result", waiting)
    for number in range(5):
        assert made.sample(float(number), 1.0).space == EARLY
    assert waits_s == [sampling.SPACE_TIMEOUT_S] * 5
    assert asked == ["/"]
    # And its late answer is taken
    answers_again.set()
    wait_until(lambda: made.sample(9.0, 1.0).space == LATE, "the late answer")


def test_what_was_free_before_is_not_reported_as_free_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone = OSError(errno.EIO, "")
    made = sampler(monkeypatch, [EARLY, gone, gone])
    assert made.last_sample(2.0, 2.0).space is None
    assert made.space is None


def with_free_inodes(number: int) -> Space:
    """Return a space with this number of free inodes."""
    return replace(EARLY, free_inodes=number)


@pytest.mark.parametrize(
    ("most_late", "free", "waits"), [(1, (111, 109, 109), 1), (None, (111, 109, 112, 112), 2)]
)
def test_the_end_waits_for_late_inodes_but_not_for_files_that_others_create(
    monkeypatch: pytest.MonkeyPatch, most_late: int | None, free: tuple[int, ...], waits: int
) -> None:
    # One inode is late; then another process creates two files
    made = sampler(monkeypatch, [EARLY, *map(with_free_inodes, free)])
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    assert made.last_sample(2.0, 2.0, 112, most_late).space == with_free_inodes(free[-1])
    assert len(slept) == waits


def test_counts_that_cannot_be_read_keep_their_last_value(monkeypatch: pytest.MonkeyPatch) -> None:
    made = sampler(monkeypatch, [EARLY] * 4)
    counts = [Counts({}, Removed(5, 1))]

    def read() -> Counts:
        if not counts:
            raise OSError(errno.ENOMEM, "no memory")
        return counts.pop()

    monkeypatch.setattr(made, "_counts", read)
    assert made.sample(1.0, 1.0).removed == Removed(5, 1)
    monkeypatch.setattr(sampling, "LAST_PATIENCE_S", 0.0)
    assert made.last_sample(2.0, 2.0).removed == Removed(5, 1)
    assert not made.has_last_counts


@pytest.mark.parametrize(("strategy", "removed"), [("parallel", Removed(12, 2)), ("rm", None)])
def test_removals_that_the_tool_reports_anyway_are_known_without_a_source(
    monkeypatch: pytest.MonkeyPatch, strategy: str, removed: Removed | None
) -> None:
    monkeypatch.setattr(sampling, "read_space", lambda _: EARLY)
    output = ToolOutput(STRATEGIES[StrategyName(strategy)], "/t")
    line = (
        b'{"type":"counts","removed":12,"directories":2,"threads":3,"calls":{"unlinkat":[9,0,5]}}\n'
    )
    assert not [*output.take_output(line, 0.5)]
    made = Sampler(CallSource(TraceSource.OFF, ""), output, ["/"], os.getpid())
    sampled = made.sample(1.0, 1.0)
    assert (sampled.removed, sampled.calls) == (removed, {})
    assert made.removed() == (removed and removed.entries)
