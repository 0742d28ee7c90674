"""Close descriptors at the end of a block."""

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def closing(descriptor: int) -> Iterator[int]:
    """Close an open descriptor at the end of a block, as `contextlib.closing` closes a file."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)
