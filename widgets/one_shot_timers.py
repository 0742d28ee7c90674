"""Timers for one tick that are never skipped."""

from typing import Any

from textual.message_pump import MessagePump
from textual.timer import Timer


class OneShotTimers(MessagePump):
    """Base class of an application or a screen whose timers for one tick run even if late.

    Textual skips a tick that is late. On a busy machine a timer for one tick then never runs: an
    application would not pass the new size of the terminal on to its screens, nor any later one.
    """

    def set_timer(self, *args: Any, **kwargs: Any) -> Timer:
        """Set a timer that runs its callback once."""
        timer = super().set_timer(*args, **kwargs)
        timer._skip = False
        return timer
