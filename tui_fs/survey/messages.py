"""Messages through a pipe: a length of four bytes, then what marshal has written."""

import marshal
import os
import struct
from collections.abc import Iterator
from typing import Any

LENGTH = struct.Struct("<I")

_READ_AT_ONCE = 1 << 20


class Inbox:
    """The reading end of a pipe, from which whole messages come."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = bytearray()

    def read(self) -> Iterator[Any]:
        """Wait for something to arrive, and yield the messages that are whole by then.

        Raises:
            EOFError: nobody can write any more.
        """
        chunk = os.read(self._descriptor, _READ_AT_ONCE)
        if not chunk:
            raise EOFError
        self._buffer += chunk
        while len(self._buffer) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._buffer)
            end = LENGTH.size + length
            if len(self._buffer) < end:
                return
            message = marshal.loads(memoryview(self._buffer)[LENGTH.size : end])
            del self._buffer[:end]
            yield message
