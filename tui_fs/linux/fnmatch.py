"""Match shell patterns exactly like find -name in the C locale.

Python's fnmatch differs in sets, classes, backslashes and the notion of a character. A count made
with it would differ from what find deletes.
"""

import ctypes
import os
from collections.abc import Callable
from functools import partial

from tui_fs.model.errors import BadInput

_LC_ALL_MASK = 8127
"""LC_ALL_MASK of glibc (locale.h); other C libraries treat any locale as C here."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.newlocale.restype = ctypes.c_void_p
_libc.newlocale.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p]
_libc.uselocale.restype = ctypes.c_void_p
_libc.uselocale.argtypes = [ctypes.c_void_p]
_libc.fnmatch.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int]
_C_LOCALE = _libc.newlocale(_LC_ALL_MASK, b"C", None)


def is_pattern(text: str) -> bool:
    """Return whether a text to search for is a pattern and not a part of a name."""
    return any(special in text for special in "*?[")


def name_matcher(pattern: str) -> Callable[[bytes], bool]:
    """Return a function that matches names with a pattern; see `matches_glob`."""
    encoded = os.fsencode(pattern)
    if not any(special in encoded for special in b"*?[\\"):
        return encoded.__eq__
    return partial(matches_glob, encoded)


def matches_glob(pattern: bytes, name: bytes) -> bool:
    """Return whether `name` matches, as fnmatch(3) without flags in the C locale.

    Raises:
        BadInput: a string contains a NUL, at which C would stop and match a shorter string.
    """
    if b"\0" in pattern or b"\0" in name:
        raise BadInput("A pattern or a name contains a NUL byte, which is not allowed in a name.")
    before = _libc.uselocale(_C_LOCALE)
    try:
        return bool(_libc.fnmatch(pattern, name, 0) == 0)
    finally:
        _libc.uselocale(before)
