"""A line of figures with their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.text import Text
from textual.reactive import reactive
from textual.widget import Widget

from tui_fs.widgets.cell_drawing import ELLIPSIS, styled_line

SEPARATOR = " · "

Tone = Literal["normal", "muted", "warning", "danger"]
Component = Literal["", "separator", "value", "muted", "warning", "danger"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its label.

    Attributes:
        label: Displayable text next to the value; may be empty.
        value: Displayable figure with its unit.
        tone: Warning and danger are also shown by a `!` at the end.
        label_first: `elapsed 0:08` instead of `81,204 /s`.
    """

    label: str
    value: str
    tone: Tone = "normal"
    label_first: bool = False


def figure_parts(figure: Figure) -> list[tuple[Component, str]]:
    """Draw a figure as coloured pieces of text."""
    loud = figure.tone in ("warning", "danger")
    value: Component = "value" if figure.tone == "normal" else figure.tone
    label: Component = "muted" if figure.tone == "muted" else ""
    pieces: list[tuple[Component, str]] = [(value, figure.value), (label, figure.label)]
    if figure.label_first:
        pieces.reverse()
    pieces = [piece for piece in pieces if piece[1]]
    if loud and pieces and not pieces[-1][1].endswith("!"):
        pieces.append((value, "!"))
    return [
        (component, " " + text if index else text) for index, (component, text) in enumerate(pieces)
    ]


def line_parts(figures: Sequence[Figure], width: int) -> list[tuple[Component, str]]:
    """Draw as many figures as fit, each of them whole.

    Args:
        figures: The most important first.
        width: Cells of the line; one ellipsis replaces the figures that do not fit.
    """
    drawn = [parts for figure in figures if (parts := figure_parts(figure))]
    for kept in range(len(drawn), -1, -1):
        line: list[tuple[Component, str]] = []
        for parts in drawn[:kept]:
            line += [("separator", SEPARATOR), *parts] if line else parts
        if kept < len(drawn):
            line.append(("separator", SEPARATOR + ELLIPSIS if line else ELLIPSIS))
        if sum(cell_len(text) for _, text in line) <= width:
            return line
    return []


class StatsLine(Widget):
    """One line of figures."""

    COMPONENT_CLASSES = {
        "figure-line--separator",
        "figure-line--value",
        "figure-line--muted",
        "figure-line--warning",
        "figure-line--danger",
    }

    DEFAULT_CSS = """
    StatsLine {
        height: 1;

        & > .figure-line--separator { color: $text-muted; }
        & > .figure-line--value { text-style: bold; }
        & > .figure-line--muted { color: $text-muted; }
        & > .figure-line--warning { color: $text-warning; text-style: bold; }
        & > .figure-line--danger { color: $text-error; text-style: bold; }
    }
    """

    figures: reactive[tuple[Figure, ...]] = reactive[tuple[Figure, ...]](())
    """The figures, the most important first."""

    def render(self) -> Text:
        """Draw the figures that fit."""
        parts = line_parts(self.figures, self.content_size.width)
        return styled_line(self, "figure-line", parts)
