"""Text and bars drawn into an exact number of terminal cells."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.text import Text

if TYPE_CHECKING:
    from textual.widget import Widget

ELLIPSIS = "…"

BLOCKS = "▏▎▍▌▋▊▉█"

# The kernel's font of the console has the characters of code page 437. Dash and ellipsis, which
# names may contain, become characters that names do not, so that names stay different.
_CODE_PAGE_437 = str.maketrans(
    "▏▎▍▋▊▉▁▂▃▅▆▇▔▕╭╮╰╯…›–✓✗●◇△□␣",
    "▌▌▌███__▄▄██▀▐┌┐└┘»►─√x•*^■_",
)
_KERNEL_FONT = bytes(range(256)).decode("cp437")
_ASCII = str.maketrans(
    "▏▎▍▌▋▊▉█▐▁▂▃▄▅▆▇▀▔▕░▒▓─│┌┐└┘├┤┬┴┼╭╮╰╯›✓✗●◇△□◆▲■○▼▶→←␣",
    "::::#####__..--#'-|-:=-|+++++++++++++>vxo*^o*^#ov>><_",
)
_FEW_CHARACTERS = {
    "linux": _CODE_PAGE_437,
    **dict.fromkeys(("vt100", "vt102", "vt220", "ansi", "dumb"), _ASCII),
}


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


_WORDS_BEFORE_PATH = re.compile(r"[^/].*? (in|of) (?=/)")


def fit_end(text: str, width: int) -> str:
    """Return `text` in at most `width` cells; a longer one loses its beginning.

    Words before a path stay: a cut ``matches in /srv/a`` would read as the directory itself.
    """
    if cell_len(text) <= width:
        return text
    if words := _WORDS_BEFORE_PATH.match(text):
        room = width - cell_len(words[0])
        path = fit_end(text[words.end() :], room)
        return words[0] + path if path else fit_cells(words[0].rstrip(), width).rstrip()
    if width <= 1:
        return ELLIPSIS[:width]
    return ELLIPSIS + _last_cells(text, width - 1)


def fit_ends(text: str, width: int) -> str:
    """Return `text` in at most `width` cells; a longer one loses what is between its ends.

    Names of many files differ only at the end. A link loses the end of its target.
    """
    if cell_len(text) <= width:
        return text
    end = _last_cells(text, width // 3)
    if not end or " → " in text:
        return fit_cells(text, width)
    return set_cell_size(text, width - 1 - cell_len(end)).rstrip() + ELLIPSIS + end


def _last_cells(text: str, width: int) -> str:
    """Return the end of a text, without a mark that would combine with what precedes it."""
    kept = ""
    for character in reversed(text):
        if cell_len(character + kept) > width:
            break
        kept = character + kept
    while kept and not cell_len(kept[0]):
        kept = kept[1:]
    return kept


def dots() -> str:
    """Return what words end with that something goes on after; a font may lack the ellipsis.

    A text that is cut ends with `ELLIPSIS`, for which such a font has one cell: see `for_terminal`.
    """
    return "..." if has_few_characters() else ELLIPSIS


def has_few_characters() -> bool:
    """Return whether the fonts of the terminal lack most characters for drawing."""
    return os.environ.get("TERM", "") in _FEW_CHARACTERS


def has_glyph(character: str) -> bool:
    """Return whether every font of the terminal has a character of a name.

    The fonts of the console are the kernel's own, with code page 437, and those of the
    distributions, with Latin-1.
    """
    table = _FEW_CHARACTERS.get(os.environ.get("TERM", ""))
    if table is None or character.isascii():
        return True
    return table is _CODE_PAGE_437 and ord(character) < 0x100 and character in _KERNEL_FONT


def for_terminal(text: str) -> str:
    """Replace the characters for drawing that the fonts of the terminal lack."""
    table = _FEW_CHARACTERS.get(os.environ.get("TERM", ""))
    return text if table is None else text.translate(table)


def range_bar(low: float, middle: float, high: float, width: int, *, strong: bool = False) -> str:
    """Draw a range with a mark in its middle.

    Args:
        low, middle, high: positions on the width, 0..1.
        width: Cells of the axis.
        strong: Draw the range denser.
    """
    first, at, last = (min(width - 1, int(share * width)) for share in (low, middle, high))
    fill = "▒" if strong else "░"
    return f"{' ' * first}{fill * (at - first)}█{fill * (last - at)}".ljust(width)


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
    return "█" * full + (BLOCKS[rest - 1] if rest else "")


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
