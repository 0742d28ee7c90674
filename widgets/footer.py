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

from tui_fs.widgets.cell_drawing import ELLIPSIS, dots

GAP = "  "
KEY_NAMES = {
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
    "page up": "pageup",
    "page down": "pagedown",
}
"""Shown keys whose names for Textual differ."""
_WORDS = ("esc", "enter", "space", "tab")


def fitting_keys(keys: Sequence[tuple[str, str]], width: int) -> Sequence[tuple[str, str]]:
    """Return the keys that fit: drop keys from the end, but never the last one."""
    kept = list(keys)
    while len(kept) > 1 and _length(kept) > width:
        del kept[-2]
    return kept


def key_text(keys: str, style: Style, action: str = "app.simulate_key") -> Text:
    """Return a key, or several, on which a click runs an action with the name of the key."""
    text = Text()
    for key in (keys,) if _is_one(keys) else keys:
        text.append(key, style if key in " –" else style + pressing(key, action))
    return text


def _is_one(keys: str) -> bool:
    return len(keys) == 1 or keys in _WORDS


def pressing(key: str, action: str = "app.simulate_key") -> Style:
    """Return the style of a text on which a click runs an action with the name of a shown key."""
    return Style.from_meta({"@click": f"{action}({KEY_NAMES.get(key, key)!r})"})


def linked_hints(*hints: tuple[str, str, str]) -> Text:
    """Return keys and labels for the frame of a dialog, with the action that a click runs.

    They must fit in 34 cells, the frame of a terminal of 40 columns.
    """
    line = Text()
    for key, label, action in hints:
        link = Style.from_meta({"@click": action})
        line.append(GAP if line else "").append(key, link + Style(bold=True))
        line.append(f" {label}", link)
    return line


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
        link-color: $foreground;  /* auto takes a light terminal for a dark one */
        link-background: transparent;
        link-background-hover: transparent;

        /* Of the colour of the links: a label without a link looks like the others. */
        & > .key-line--key { color: $foreground; text-style: bold; }
        & > .key-line--label { color: $foreground; }
    }
    """

    keys: reactive[tuple[tuple[str, str], ...]] = reactive[tuple[tuple[str, str], ...]](())
    """Key and label, displayable; the last pair stays at every width."""

    idle: reactive[frozenset[str]] = reactive(frozenset())
    """Keys that are not shown, because they would do nothing now."""

    def render(self) -> RenderResult:
        """Draw the pairs that fit."""
        line = Text(no_wrap=True, overflow="ellipsis")
        keys = [pair for pair in self.keys if pair[0] not in self.idle]
        shown = [(key, label.replace(ELLIPSIS, dots())) for key, label in keys]
        for key, label in fitting_keys(shown, self.size.width):
            if line:
                line.append(GAP)
            style = self.get_component_rich_style("key-line--key")
            label_style = self.get_component_rich_style("key-line--label")
            if _is_one(key):
                label_style += pressing(key)
            line.append_text(key_text(key, style))
            line.append(f" {label}", label_style)
        return line
