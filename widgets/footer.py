"""A line with the keys of a screen, the most important first; a click presses a key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.app import RenderResult
from textual.reactive import reactive
from textual.widget import Widget

GAP = "  "
_NAMES = {
    "esc": "escape",
    "?": "question_mark",
    "/": "slash",
    ":": "colon",
    ".": "full_stop",
    "=": "equals_sign",
    "[": "left_square_bracket",
    "]": "right_square_bracket",
    "<": "less_than_sign",
    ">": "greater_than_sign",
    "←": "left",
    "→": "right",
    "↑": "up",
    "↓": "down",
}
"""Shown keys whose names for Textual differ."""
_WORDS = ("esc", "enter", "space", "tab")


def fitting_keys(keys: Sequence[tuple[str, str]], width: int) -> Sequence[tuple[str, str]]:
    """Return the keys that fit: drop keys from the end, but never the last one."""
    kept = list(keys)
    while len(kept) > 1 and _length(kept) > width:
        del kept[-2]
    return kept


def _pressing(key: str) -> Style:
    """Return the style of a text on which a click presses a shown key."""
    return Style.from_meta({"@click": f"app.simulate_key({_NAMES.get(key, key)!r})"})


def _length(keys: Sequence[tuple[str, str]]) -> int:
    return cell_len(GAP.join(f"{key} {label}" for key, label in keys))


class Footer(Widget):
    """Draws pairs of key and label."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"key-line--key", "key-line--label"}

    DEFAULT_CSS = """
    Footer {
        height: 1;
        padding: 0 1;
        link-style: none;
        link-style-hover: underline;
        link-color: auto;
        link-background: transparent;
        link-background-hover: transparent;

        &:ansi { link-color: $foreground; }  /* auto takes the terminal for a dark one */

        & > .key-line--key { color: $text-accent; text-style: bold; }
        & > .key-line--label { color: $text-muted; }
    }
    """

    keys: reactive[tuple[tuple[str, str], ...]] = reactive[tuple[tuple[str, str], ...]](())
    """Key and label, displayable; the last pair stays at every width."""

    def render(self) -> RenderResult:
        """Draw the pairs that fit."""
        line = Text(no_wrap=True, overflow="ellipsis")
        for key, label in fitting_keys(self.keys, self.size.width):
            if line:
                line.append(GAP)
            style = self.get_component_rich_style("key-line--key")
            label_style = self.get_component_rich_style("key-line--label")
            if len(key) == 1 or key in _WORDS:
                style, label_style = style + _pressing(key), label_style + _pressing(key)
                line.append(key, style)
            else:  # several keys
                for each in key:
                    line.append(each, style + _pressing(each) if each not in " –" else style)
            line.append(f" {label}", label_style)
        return line
