"""Completion of directory names for a path that is being typed."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from functools import partial

from textual.suggester import Suggester

from widgets.daemon_thread import in_daemon_thread

# Names read at most: a completion must not list a directory of millions.
NAME_LIMIT = 20_000

# Reading ends after this, so that a slow disk costs a suggestion and not a pile of threads.
TIME_LIMIT_S = 0.3


def complete_directory(
    value: str,
    *,
    name_limit: int = NAME_LIMIT,
    time_limit_s: float = TIME_LIMIT_S,
    clock: Callable[[], float] = time.monotonic,
) -> str | None:
    """Find the first directory, in order of names, that continues a path.

    Symbolic links are not followed, and names that cannot be typed are left out. A path that ends
    in a slash is complete.

    Args:
        value: The path as typed; a leading `~` is understood and stays as it is.
        name_limit: Names read at most.
        time_limit_s: Seconds of reading at most; the best name found until then counts.
        clock: Seconds that never go back.

    Returns:
        The path as typed with its last name completed and a slash; None without a candidate.
    """
    head, slash, prefix = value.rpartition("/")
    if not value.isprintable() or not prefix:
        return None
    if prefix.startswith("~") and not slash:
        return "~/" if prefix == "~" else None
    parent = os.path.expanduser(head + slash) or "."
    best: str | None = None
    deadline_s = clock() + time_limit_s
    try:
        with os.scandir(parent) as entries:
            for count, entry in enumerate(entries, start=1):
                if _is_candidate(entry, prefix) and (best is None or entry.name < best):
                    best = entry.name
                if count >= name_limit or clock() >= deadline_s:
                    break
    except OSError:
        # What cannot be read has no completion; the screen reports it when the path is chosen.
        return None
    return None if best is None else f"{head}{slash}{best}/"


class DirectorySuggester(Suggester):
    """Suggests directories, one scan at a time and only for the latest value."""

    def __init__(self, complete: Callable[[str], str | None] = complete_directory) -> None:
        """Create a suggester.

        Args:
            complete: Called in a thread with the path as typed.
        """
        # Directories come and go while one types: nothing is remembered.
        super().__init__(use_cache=False, case_sensitive=True)
        self._complete = complete
        self._scan = asyncio.Lock()
        self._latest = ""

    async def get_suggestion(self, value: str) -> str | None:
        """Complete a path; None when another value was asked for meanwhile."""
        self._latest = value
        # A dead network mount blocks its thread for minutes: it must not get one per key.
        async with self._scan:
            if value != self._latest:
                return None
            return await in_daemon_thread(partial(self._complete, value))


def _is_candidate(entry: os.DirEntry[str], prefix: str) -> bool:
    """Whether an entry is a directory that continues the prefix and can be typed."""
    return (
        entry.name.startswith(prefix)
        and entry.name.isprintable()
        and entry.is_dir(follow_symlinks=False)
    )
