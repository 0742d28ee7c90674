"""The pipes between the tools of a step, and when their readers may see the end of them."""

import os
import select
from collections.abc import Callable


class StepPipes:
    """Ends of pipes to write to, kept besides those that the writing tools have.

    What a tool that was killed has written may end in the middle of a name, and its reader
    (xargs -0) takes that for a whole one: of another file. So its reader is killed before it can
    see the end.
    """

    def __init__(self) -> None:
        self._ends: dict[int, int] = {}

    def keep(self, writer: int, end: int) -> None:
        """Keep what a process writes to open; until `end_after` it may not be waited for."""
        self._ends[writer] = end

    def are_kept_for(self, writer: int) -> bool:
        """Tell whether the end of what a process writes was not told yet."""
        return writer in self._ends

    def forget(self) -> None:
        """Close all ends: what was to write into them was never released."""
        for end in self._ends.values():
            os.close(end)
        self._ends.clear()

    def end_after(self, kill_readers: Callable[[], None]) -> None:
        """Tell the end of what was written by processes that have ended, whole or to nobody."""
        for writer, end in tuple(self._ends.items()):
            ended = os.waitid(os.P_PID, writer, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                continue
            if ended.si_code != os.CLD_EXITED and _has_reader(end):
                kill_readers()
            os.close(end)
            del self._ends[writer]


def _has_reader(pipe: int) -> bool:
    poll = select.poll()
    poll.register(pipe, 0)
    return not any(events & select.POLLERR for _, events in poll.poll(0))
