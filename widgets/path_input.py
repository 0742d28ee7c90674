"""An input for the path of a directory that completes names like a shell."""

from __future__ import annotations

import os

from textual.binding import Binding
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input

from widgets.directory_completion import DirectorySuggester

# Control characters and lone surrogates cannot be typed and would reach the terminal.
TYPABLE = r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]*"


class PathInput(Input):
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

    def __init__(
        self,
        value: str = "",
        placeholder: str = "",
        *,
        suggester: Suggester | None = None,
        compact: bool = False,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        """Create an input for a path.

        Args:
            value: Displayable path to begin with.
            placeholder: Shown while the input is empty.
            suggester: Completes the path; by default directories of this machine.
            compact: Draw one line without a border.
            name: Name of the widget.
            id: Identifier of the widget.
            classes: CSS classes of the widget.
        """
        super().__init__(
            value,
            placeholder,
            suggester=suggester or DirectorySuggester(),
            restrict=TYPABLE,
            # The path given is the beginning of what one types, not text to be replaced.
            select_on_focus=False,
            compact=compact,
            name=name,
            id=id,
            classes=classes,
        )
        self.cursor_blink = False

    async def action_submit(self) -> None:
        """Choose the path as typed; an empty one is not a choice."""
        if self.value:
            self.post_message(self.Chosen(self, os.path.expanduser(self.value)))

    def action_cancel(self) -> None:
        """Leave without a choice."""
        self.post_message(self.Cancelled(self))

    def action_complete(self) -> None:
        """Accept the suggestion, or go to the next widget when there is none.

        A Tab typed before the suggestion has arrived waits for it, as in a shell.
        """
        if self._suggestion:
            self._accept(self._suggestion)
        else:
            self.run_worker(self._complete_or_leave(), group="complete", exclusive=True)

    async def _complete_or_leave(self) -> None:
        """Look for a suggestion; what is typed meanwhile makes the Tab void."""
        value = self.value
        suggestion = await self.suggester.get_suggestion(value) if self.suggester else None
        if self.value != value or not self.has_focus:
            return
        if suggestion is None:
            self.screen.focus_next()
        else:
            self._accept(suggestion)

    def _accept(self, suggestion: str) -> None:
        """Replace the value and go on behind it."""
        self.value = suggestion
        self.cursor_position = len(suggestion)
