"""The pipes of the tools, read in pieces: tools may write faster than anybody can read."""

import os
import selectors
from collections.abc import Callable, Iterator

from tui_fs.job.tool_output import ToolOutput
from tui_fs.model.events import Event

_PIPE_BYTES = 1 << 16


class ToolPipes:
    """Reads both pipes when a selector says so, and notes what was said.

    Args:
        out, err: non-blocking, of all tools.
        output: makes events of it.
        selector: whose key's data is called when there is something to read.
        note: journals an event.
        now_s: the time of events.
    """

    def __init__(
        self,
        out: int,
        err: int,
        output: ToolOutput,
        selector: selectors.BaseSelector,
        note: Callable[[Event], None],
        now_s: Callable[[], float],
    ) -> None:
        self._out, self._err = out, err
        self._output = output
        self._selector = selector
        self._note = note
        self._now_s = now_s
        selector.register(out, selectors.EVENT_READ, self.read_output)
        selector.register(err, selectors.EVENT_READ, self.read_errors)

    def read_output(self) -> bool:
        """Read what fits into a pipe; return whether there was anything."""
        return self._take(self._out, self._output.take_output)

    def read_errors(self) -> bool:
        """Do the same with the other one."""
        return self._take(self._err, self._output.take_errors)

    def read_all(self) -> None:
        """Read what ended tools have written, to the last line."""
        while self.read_output() | self.read_errors():
            pass
        for event in self._output.take_rest(self._now_s()):
            self._note(event)

    def _take(self, pipe: int, take: Callable[[bytes, float], Iterator[Event]]) -> bool:
        chunk = self._read(pipe)
        for event in take(chunk, self._now_s()) if chunk else ():
            self._note(event)
        return bool(chunk)

    def _read(self, pipe: int) -> bytes:
        """Return what a pipe holds now, nothing if it is empty."""
        try:
            chunk = os.read(pipe, _PIPE_BYTES)
        except BlockingIOError:
            return b""
        if not chunk and pipe in self._selector.get_map():
            self._selector.unregister(pipe)  # nobody has its other end any more
        return chunk
