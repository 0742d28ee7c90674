"""Lines of coloured pieces that are laid out again for every width."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text
from textual.geometry import Size
from textual.widget import Widget

from tui_fs.widgets.cell_drawing import styled_line
from tui_fs.widgets.figure_layout import Line

COMPONENTS = ("strong", "muted", "faint", "bar", "accent")


class FittedLines(Widget):
    """A widget as high as its content needs in the present width."""

    COMPONENT_CLASSES = {f"fitted-lines--{name}" for name in COMPONENTS}

    DEFAULT_CSS = """
    FittedLines {
        height: auto;

        & > .fitted-lines--strong { text-style: bold; }
        & > .fitted-lines--muted { color: $text-muted; }
        & > .fitted-lines--faint { color: auto 50%; }
        &:ansi > .fitted-lines--faint { color: $foreground; text-style: dim; }
        & > .fitted-lines--bar { color: $primary 80%; }
        & > .fitted-lines--accent { color: $text-accent; text-style: bold; }
    }
    """

    def __init__(self, lay_out: Callable[[int], Sequence[Line]], *, id: str | None = None) -> None:
        """Create the lines.

        Args:
            lay_out: returns the lines for a width in cells.
            id: of the widget.
        """
        super().__init__(id=id)
        self._lay_out = lay_out

    def lay_out_by(self, lay_out: Callable[[int], Sequence[Line]]) -> None:
        """Replace the function that lays out the lines."""
        self._lay_out = lay_out
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        """Count the lines."""
        return len(self._lay_out(width))

    def render(self) -> Text:
        """Draw the lines."""
        lines = [
            styled_line(self, "fitted-lines", pieces)
            for pieces in self._lay_out(self.content_size.width)
        ]
        return Text("\n", no_wrap=True, overflow="crop", end="").join(lines)
