"""The signals of a command that follows jobs or hosts, which must not end it at once."""

import os
import signal

from tui_fs.cli.command_process import Notice, notify_watcher
from tui_fs.cli.exit_codes import CANCELLED_BY_INT, CANCELLED_BY_TERM

_EXIT_CODES = {signal.SIGINT: CANCELLED_BY_INT, signal.SIGTERM: CANCELLED_BY_TERM}


class Interrupts:
    """Records the first SIGINT or SIGTERM instead of exiting, and whether more followed."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self.came_again = False
        self.is_stop_wanted = False
        for number in _EXIT_CODES:
            signal.signal(number, self._note)

    def note_stops(self) -> None:
        """From now on, set `is_stop_wanted` on SIGTSTP instead of stopping."""
        if signal.getsignal(signal.SIGTSTP) is not signal.SIG_IGN:
            signal.signal(signal.SIGTSTP, self._note_stop)

    def _note_stop(self, _: int, __: object) -> None:
        self.is_stop_wanted = True

    def stop(self) -> None:
        """Stop this process; return when it is continued."""
        self.is_stop_wanted = False
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._note_stop)

    def _note(self, number: int, _: object) -> None:
        self.came_again = self.received is not None
        self.received = self.received or signal.Signals(number)
        notify_watcher(Notice.REACTED)

    @property
    def exit_code(self) -> int:
        """The exit code of the first signal, which must have arrived."""
        assert self.received is not None
        return _EXIT_CODES[self.received]
