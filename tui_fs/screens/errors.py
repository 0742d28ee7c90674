"""What could not be deleted, grouped by meaning."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from tui_fs.model.errors import meaning
from tui_fs.model.paths import displayable, harmless
from tui_fs.model.snapshot import Snapshot
from tui_fs.model.units import count
from tui_fs.screens.frame import FramedScreen, Settings, muted


class ErrorsScreen(FramedScreen):
    """Failures so far."""

    KEYS: ClassVar = (("↑↓", "scroll"), ("esc", "back"))
    EXPLANATION = "Entries that could not be deleted, by what was tried and why it failed."

    BINDINGS = [
        Binding("escape,q,e,left,h", "app.pop_screen", tooltip="Go back"),
        Binding("j,down", "scroll(1)", tooltip="Scroll down"),
        Binding("k,up", "scroll(-1)", tooltip="Scroll up"),
    ]

    def __init__(self, snapshot: Snapshot, settings: Settings) -> None:
        super().__init__(settings)
        self._snapshot = snapshot

    def compose_body(self) -> ComposeResult:
        """Lay out one paragraph for each group."""
        with VerticalScroll(id="body"):
            if not self._snapshot.failures and not self._snapshot.tool_lines:
                yield Static(muted("Nothing has failed."))
            for group in self._snapshot.failures:
                text = Text(f"{count(group.number)} × {group.operation}: ", style="bold")
                text.append(f"{meaning(group.error)}\n", "not bold")
                for path, cause in zip(group.examples, group.causes, strict=True):
                    why = f": {cause}" if cause else ""
                    text.append(f"   {displayable(path)}{why}\n", "dim not bold")
                if group.number > len(group.examples):
                    more = group.number - len(group.examples)
                    text.append(f"   … and {count(more)} more\n", "dim not bold")
                yield Static(text)
            for line in self._snapshot.tool_lines:
                yield Static(muted(harmless(line)))

    def on_mount(self) -> None:
        """Name the job."""
        self.show_place("", f"{count(self._snapshot.failed)} failed")

    def action_scroll(self, direction: int) -> None:
        """Scroll by a line."""
        self.query_one("#body").scroll_relative(y=direction, animate=False)
