"""A line with the keys of a screen, the most important first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.app import RenderResult
from textual.reactive import reactive
from textual.widget import Widget

GAP = "  "


def fitting_keys(keys: Sequence[tuple[str, str]], width: int) -> Sequence[tuple[str, str]]:
    """Return the keys that fit: drop keys from the end, but never the last one."""
    kept = list(keys)
    while len(kept) > 1 and _length(kept) > width:
        del kept[-2]
    return kept


def _length(keys: Sequence[tuple[str, str]]) -> int:
    return cell_len(GAP.join(f"{key} {label}" for key, label in keys))


class Footer(Widget):
    """Draws pairs of key and label."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"key-line--key", "key-line--label"}

    DEFAULT_CSS = """
    Footer {
        height: 1;
        padding: 0 1;

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
            line.append(key, self.get_component_rich_style("key-line--key"))
            line.append(f" {label}", self.get_component_rich_style("key-line--label"))
        return line
