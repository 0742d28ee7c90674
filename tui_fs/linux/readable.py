"""Waiting for one descriptor."""

import select
from typing import Protocol


class HasFileno(Protocol):
    """A file, a socket, or anything else with a descriptor."""

    def fileno(self) -> int:
        """Return the descriptor."""
        ...


def is_readable(file: int | HasFileno, timeout_s: float) -> bool:
    """Return whether a file can be read without waiting, or its other end is closed.

    A process with many targets has descriptors above 1,023, which select(2) does not know.
    """
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(1000 * timeout_s))
