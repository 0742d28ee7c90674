"""An input that applies keys in the order in which they were typed."""

from __future__ import annotations

from textual.events import Key
from textual.reactive import reactive
from textual.widgets import Input


class OrderedInput(Input):
    """An input whose editing keys are never overtaken by the characters that follow them.

    Textual's input inserts a character immediately, but passes every other key up to the app, which
    calls the action later. Of keys that arrive together, as over a slow connection, `x`, Backspace,
    `y` would leave `x`.

    Its cursor does not blink: where the theme gives the focused field no background of its own, the
    cursor is all that shows the focus.
    """

    cursor_blink = reactive(False, init=False)

    def on_resize(self) -> None:
        """Show the end of a text that was there before the field had this width."""
        if self.cursor_at_end:
            self.scroll_to(self.max_scroll_x, animate=False)

    async def _on_key(self, event: Key) -> None:
        """Call the action of an editing key immediately."""
        if event.is_printable:
            return
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            if await self.app.run_action(binding.action, self):
                event.stop()
                event.prevent_default()
                return
