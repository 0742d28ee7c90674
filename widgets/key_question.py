"""A question that one key answers; every other key means No."""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from tui_fs.widgets.dialog import Dialog


class KeyQuestion(Dialog[bool]):
    """A question before something that is not dangerous but takes long.

    A key that is pressed too often, such as an arrow or Enter, never answers Yes.
    """

    DEFAULT_CSS = """
    KeyQuestion {
        align: center middle;

        #question-frame {
            width: 72;
            max-width: 100%;
            height: auto;
            max-height: 100%;
            padding: 0 2;
            border: round $foreground 40%;
            background: $surface;
        }
        #question-title { text-style: bold; margin-bottom: 1; }
        #question-answer { margin-top: 1; }
    }
    """

    def __init__(self, title: str, lines: Sequence[str], key: str, label: str) -> None:
        """Create the question.

        Args:
            title: The question.
            lines: Facts, displayable.
            key: The key for Yes.
            label: What the key does.
        """
        super().__init__()
        self._heading = title
        self._lines = lines
        self._key = key
        self._label = label

    def compose(self) -> ComposeResult:
        """Lay out the facts between the question and the answers."""
        with Vertical(id="question-frame"):
            yield Static(Text(self._heading), id="question-title")
            for line in self._lines:
                yield Static(Text(line))
            yes = Text.assemble((self._key, "bold"), f" {self._label}")
            yes.stylize(Style.from_meta({"@click": "screen.dismiss(True)"}))
            answer = yes.append(" · any other key: No")
            yield Static(answer, id="question-answer")

    def on_key(self, event: events.Key) -> None:
        """Answer."""
        event.stop()
        event.prevent_default()
        self.dismiss(event.key == self._key)

    def on_click(self) -> None:
        """Answer No to a click beside the answer Yes."""
        self.dismiss(False)
