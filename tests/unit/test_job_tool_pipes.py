"""What tools write, however fast, does not keep the supervisor from everything else."""

import os
import selectors
from collections.abc import Iterator

import pytest

from tui_fs.job.tool_output import ToolOutput, ToolPipes
from tui_fs.model.events import Event
from tui_fs.model.strategy import StrategyName
from tui_fs.strategies.registry import STRATEGIES

LINE = b"rm: cannot remove '/t/x': Operation not permitted\n"


class Reader(ToolPipes):
    """Pipes whose events are kept."""

    def __init__(self, out: int, err: int) -> None:
        for descriptor in (out, err):
            os.set_blocking(descriptor, False)
        self.selector = selectors.DefaultSelector()
        self.noted: list[Event] = []
        output = ToolOutput(STRATEGIES[StrategyName("rm")], "/t")
        super().__init__(out, err, output, self.selector, self.noted.append, lambda: 1.0)

    @property
    def watched(self) -> set[int]:
        """The descriptors that are waited for."""
        return {key.fd for key in self.selector.get_map().values()}


@pytest.fixture
def pipes() -> Iterator[tuple[int, int, int, int]]:
    """Yield two pipes: their ends to read, then those to write."""
    out, out_end = os.pipe()
    err, err_end = os.pipe()
    yield out, err, out_end, err_end
    for descriptor in (out, err, out_end, err_end):
        try:
            os.close(descriptor)
        except OSError:
            continue  # the test has closed it


def test_a_tool_that_writes_without_end_is_read_in_pieces(
    pipes: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A tool that writes failures faster than they can be read: its pipe is always full
    reader = Reader(*pipes[:2])
    reads: list[int] = []

    def full(_: int, most: int) -> bytes:
        reads.append(most)
        assert len(reads) < 10, "it is read until it falls silent"
        return LINE * (most // len(LINE))

    monkeypatch.setattr(os, "read", full)
    assert reader.read_errors()
    assert len(reads) == 1
    assert len(reader.noted) == reads[0] // len(LINE)


def test_what_was_written_before_the_end_is_read_to_the_last_line(
    pipes: tuple[int, int, int, int],
) -> None:
    out, err, out_end, err_end = pipes
    reader = Reader(out, err)
    number = 60_000 // len(LINE)
    os.write(err_end, LINE * number)
    os.close(err_end)
    os.close(out_end)
    reader.read_all()
    assert len(reader.noted) == number
    assert reader.watched == set()
