"""Patterns are matched as find matches them in the C locale."""

import pytest

from tui_fs.linux.fnmatch import matches_glob


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        (b"*", b".hidden", True),
        (b"*", b"new\nline", True),
        (b"", b"", True),
        (b"a", b"A", False),
        (b"?", b"\xff", True),
        (b"?", "é".encode(), False),
        (b"??", "é".encode(), True),
        (b"[^a]", b"b", True),
        (b"[^a]", b"a", False),
        (b"[!a]", b"a", False),
        (b"[[:digit:]]", b"7", True),
        (b"\\*", b"*", True),
        (b"\\*", b"x", False),
        (b"[", b"[", True),
        (b"*/x", b"a/x", True),
    ],
)
def test_patterns_mean_what_they_mean_to_find(pattern: bytes, name: bytes, matches: bool) -> None:
    assert matches_glob(pattern, name) is matches
