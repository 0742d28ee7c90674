"""What the present screen shows, and all of its keys."""

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

_SHOWN = {
    "question_mark": "?",
    "slash": "/",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "escape": "esc",
    "pageup": "page up",
    "pagedown": "page down",
}
_NOT_OURS = ("app.copy_text", "screen.copy_text", "copy_text", "command_palette", "help_quit")


class HelpScreen(ModalScreen[None]):
    """A box over the screen that it explains."""

    BINDINGS = [
        Binding("escape,q,question_mark,enter", "dismiss", "close"),
        Binding("j", "scroll_down", show=False),
        Binding("k", "scroll_up", show=False),
    ]

    def __init__(self, explanation: str, bindings: Iterable[ActiveBinding]) -> None:
        super().__init__()
        self._explanation = explanation
        self._active = list(bindings)

    def compose(self) -> ComposeResult:
        """Lay out the explanation above the keys."""
        with VerticalScroll(classes="box") as box:
            box.border_title = "help"
            box.border_subtitle = "j k scroll · esc closes"
            yield Static(Text(self._explanation + "\n"))
            yield Static(self._table())

    def action_scroll_down(self) -> None:
        """Scroll on."""
        self.query_one(VerticalScroll).scroll_down(animate=False)

    def action_scroll_up(self) -> None:
        """Scroll back."""
        self.query_one(VerticalScroll).scroll_up(animate=False)

    def _table(self) -> Table:
        keys: dict[str, tuple[list[str], str]] = {}
        for active in self._active:
            binding = active.binding
            text = binding.tooltip or binding.description
            if not text or binding.action in _NOT_OURS or binding.action.startswith("app.focus"):
                continue
            shown, _ = keys.setdefault(binding.action, ([], text))
            key = _SHOWN.get(binding.key, binding.key)
            if key not in shown:
                shown.append(key)
        table = Table.grid(padding=(0, 2))
        for shown, text in keys.values():
            table.add_row(Text(", ".join(shown), style="bold"), Text(text))
        return table
