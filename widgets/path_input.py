"""An input for the path of a directory that completes names like a shell."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from functools import partial

from textual.binding import Binding
from textual.message import Message
from textual.suggester import Suggester

from tui_fs.widgets.daemon_thread import in_daemon_thread
from tui_fs.widgets.ordered_input import OrderedInput

# Control characters and lone surrogates cannot be typed and would reach the terminal.
TYPABLE = r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]*"

# Maximum of names to read: a completion must not list a directory of millions.
NAME_LIMIT = 20_000

# Reading ends after this: a slow disk must cost a suggestion, not a pile of threads.
TIME_LIMIT_S = 0.3


class PathInput(OrderedInput):
    """An input whose suggestion is accepted with Tab, or with the right arrow at its end."""

    BINDINGS = [
        Binding(
            "tab",
            "complete",
            "complete",
            show=False,
            id="path-input.complete",
            tooltip="Accept the suggestion, or go on to the next field",
        ),
        Binding(
            "escape", "cancel", "cancel", show=False, id="path-input.cancel", tooltip="Go back"
        ),
    ]

    class Chosen(Message):
        """The user entered a path.

        Attributes:
            path: The path with a leading `~` expanded; it need not exist.
        """

        def __init__(self, path_input: PathInput, path: str) -> None:
            self.path_input = path_input
            self.path = path
            super().__init__()

        @property
        def control(self) -> PathInput:
            """The input that sent the message."""
            return self.path_input

    class Cancelled(Message):
        """The user left the input with Escape."""

        def __init__(self, path_input: PathInput) -> None:
            self.path_input = path_input
            super().__init__()

        @property
        def control(self) -> PathInput:
            """The input that sent the message."""
            return self.path_input

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        """Create an input that completes directories of this machine."""
        super().__init__(
            suggester=DirectorySuggester(),
            restrict=TYPABLE,
            # The initial path is the beginning of the typed one, not text to be replaced.
            select_on_focus=False,
            id=id,
            classes=classes,
        )

    def validate_value(self, value: str) -> str:
        """Return the path after a double slash, which was typed after another path."""
        _, double, rest = value.rpartition("//")
        return f"/{rest}" if double else value

    async def action_submit(self) -> None:
        """Choose the path as typed; an empty one is not a choice."""
        if self.value:
            self.post_message(self.Chosen(self, os.path.expanduser(self.value)))

    def action_cancel(self) -> None:
        """Leave without a choice."""
        self.post_message(self.Cancelled(self))

    def action_complete(self) -> None:
        """Accept the suggestion, if there is one.

        A Tab typed before the suggestion has arrived waits for it, as in a shell.
        """
        if self._suggestion:
            self._accept(self._suggestion)
        else:
            self.run_worker(self._complete(), group="complete", exclusive=True)

    async def _complete(self) -> None:
        """Wait for a suggestion; typing in the meantime cancels the Tab."""
        value = self.value
        suggestion = await self.suggester.get_suggestion(value) if self.suggester else None
        if suggestion is not None and self.value == value and self.has_focus:
            self._accept(suggestion)

    def _accept(self, suggestion: str) -> None:
        """Replace the value and put the cursor at its end."""
        self.value = suggestion
        self.cursor_position = len(suggestion)


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
        name_limit: Maximum of names to read.
        time_limit_s: Maximum reading time; the best name read until then counts.
        clock: Monotonic seconds.

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
        # An unreadable directory has no completion. The screen reports it when the path is chosen.
        return None
    return None if best is None else f"{head}{slash}{best}/"


class DirectorySuggester(Suggester):
    """Suggests directories, one scan at a time and only for the latest value."""

    def __init__(self, complete: Callable[[str], str | None] = complete_directory) -> None:
        """Create a suggester.

        Args:
            complete: Called in a thread with the path as typed.
        """
        # No cache: directories come and go while the user types.
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
    """Return whether an entry is a directory that continues the prefix and can be typed."""
    return (
        entry.name.startswith(prefix)
        and entry.name.isprintable()
        and entry.is_dir(follow_symlinks=False)
    )
