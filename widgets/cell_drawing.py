"""Text and bars drawn into an exact number of terminal cells."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.text import Text

if TYPE_CHECKING:
    from textual.widget import Widget

ELLIPSIS = "…"

_PLAIN_TERMINALS = frozenset(("linux", "vt100", "vt102", "vt220", "ansi", "dumb"))

_EIGHTHS = "▏▎▍▌▋▊▉█"


def fit_cells(text: str, width: int, *, right: bool = False) -> str:
    """Pad or cut a text to exactly `width` cells; a cut text ends with an ellipsis.

    Args:
        text: Displayable text on one line; wide characters count as two cells.
        width: Cells to fill; nothing is drawn when it is not positive.
        right: Align a text that is too short at the right.
    """
    if width <= 0:
        return ""
    missing = width - cell_len(text)
    if missing < 0:
        # Cutting a wide character leaves a space, which must not precede the ellipsis.
        kept = set_cell_size(text, width - 1).rstrip()
        return set_cell_size(kept + ELLIPSIS, width)
    return " " * missing + text if right else text + " " * missing


def fit_end(text: str, width: int) -> str:
    """Return `text` in at most `width` cells; a longer one loses its beginning."""
    if cell_len(text) <= width:
        return text
    if width <= 1:
        return ELLIPSIS[:width]
    kept = ""
    for character in reversed(text):
        if cell_len(character + kept) > width - 1:
            break
        kept = character + kept
    return ELLIPSIS + kept


def draws_blocks() -> bool:
    """Return whether the terminal's fonts have all block characters."""
    return os.environ.get("TERM", "") not in _PLAIN_TERMINALS


def share_bar(share: float, width: int) -> str:
    """Draw a bar as `eighth_blocks` does, in ASCII where the terminal lacks these characters."""
    if draws_blocks():
        return eighth_blocks(share, width)
    return "#" * max(1, round(min(1.0, share) * width)) if share > 0 else ""


def range_bar(low: float, middle: float, high: float, width: int, *, strong: bool = False) -> str:
    """Draw a range with a mark in its middle, in ASCII where the terminal lacks the characters.

    Args:
        low, middle, high: positions on the width, 0..1.
        width: Cells of the axis.
        strong: Draw the range denser.
    """
    first, at, last = (min(width - 1, int(share * width)) for share in (low, middle, high))
    weak, dense, mark = ("░", "▓", "█") if draws_blocks() else ("-", "=", "|")
    fill = dense if strong else weak
    return f"{' ' * first}{fill * (at - first)}{mark}{fill * (last - at)}".ljust(width)


def eighth_blocks(fraction: float, width: int) -> str:
    """Draw a bar without a track, exact to an eighth of a cell.

    Anything above zero shows at least one eighth; only a complete bar is full.

    Args:
        fraction: Filled part of the width, clamped to 0..1.
        width: Cells of a full bar.
    """
    if width <= 0 or not fraction > 0:
        return ""
    eighths = 8 * width if fraction >= 1 else min(8 * width - 1, int(fraction * 8 * width))
    full, rest = divmod(max(1, eighths), 8)
    return "█" * full + (_EIGHTHS[rest - 1] if rest else "")


def styled_line(widget: Widget, prefix: str, pieces: Iterable[tuple[str, str]]) -> Text:
    """Return one line of text.

    Args:
        widget: has the component classes.
        prefix: of the names of these classes.
        pieces: component, empty for plain text, and text.
    """
    line = Text(no_wrap=True, overflow="crop", end="")
    for component, text in pieces:
        style = widget.get_component_rich_style(f"{prefix}--{component}") if component else None
        line.append(text, style)
    return line
