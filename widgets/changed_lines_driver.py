"""A terminal driver that sends only what differs from what the terminal already shows."""

import re
import time
from collections.abc import Callable
from functools import lru_cache
from itertools import takewhile

from rich.cells import cell_len
from textual.drivers.linux_driver import LinuxDriver

from tui_fs.widgets.cell_drawing import for_terminal

FORGETS_AFTER_S = 20.0
"""What another program has written over the screen is repaired after this time."""

_FRAME = re.compile(r"(?:\x1b\[[\d;]*[mH]|[^\x1b\a\b\r\f\v])*")
_MOVE = re.compile(r"\x1b\[(\d+);(\d+)H")
_TOKEN = re.compile(r"\x1b\[([\d;]*)m|([^\x1b\n]+)")
_COLOUR = re.compile(r"\b[34]8;(?:2;\d+;\d+;\d+|5;\d+)")
"""Of the text or its background."""

_SYNCHRONISED = ("\x1b[?2026h", "\x1b[?2026l")

_Piece = tuple[tuple[str, str], ...]
"""A part of a line: texts with their styles (the parameters of SGR)."""


class ChangedLines:
    """Removes from frames what the screen already shows.

    A frame is a text with moves of the cursor, styles and nothing else. Anything else passes
    unchanged, and everything known about the screen is forgotten.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._forgot_at_s = clock()
        self._lines: dict[int, dict[int, _Piece]] = {}
        """By line and column."""

    def forget(self) -> None:
        """Send everything once more, as after a change of the terminal's size."""
        self._lines.clear()

    def reduced(self, data: str) -> str:
        """Return what has to be sent of `data`."""
        if data in _SYNCHRONISED:
            return data
        if self._clock() - self._forgot_at_s > FORGETS_AFTER_S:
            self._forgot_at_s = self._clock()
            self.forget()
        if not _FRAME.fullmatch(data):
            self.forget()
            return data
        before, *moves = _MOVE.split(data)
        if before:
            self.forget()  # it went where the cursor happened to be
        sent = [before]
        for line, column, text in zip(moves[::3], moves[1::3], moves[2::3], strict=True):
            piece = _parsed(text)
            sent.append(
                self._changed(int(line), int(column), piece) if piece else f"\x1b[{line};{column}H"
            )
        return "".join(sent)

    def _changed(self, line: int, column: int, piece: _Piece) -> str:
        """Return what draws a piece where the screen does not show it yet."""
        shown = self._lines.setdefault(line, {})
        old, width = shown.get(column, ()), _width(piece)
        for start, other in list(shown.items()):
            if start < column + width and column < start + _width(other):
                del shown[start]
        shown[column] = piece
        if piece == old:
            return ""
        at, part = _difference(old, piece)
        return _drawn(part, line, column + at)


def _difference(old: _Piece, new: _Piece) -> tuple[int, _Piece]:
    """Return what is to be drawn over `old` to show `new`, and at which of its columns."""
    if not (_is_plain(old) and _is_plain(new)):
        same = _number_same(old, new)
        return _width(new[:same]), new[same:]
    shown, cells = _cells(old), _cells(new)
    first, end = _number_same(shown, cells), len(cells)
    if len(shown) == end:
        end -= _number_same(shown[:first:-1], cells[:first:-1])
    return first, cells[first:end]


def _number_same(old: _Piece, new: _Piece) -> int:
    """Return how many are the same at the beginning."""
    pairs = zip(old, new, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _cells(piece: _Piece) -> _Piece:
    return tuple((style, character) for style, text in piece for character in text)


def _is_plain(piece: _Piece) -> bool:
    """Return whether each character fills one cell."""
    texts = (text for _, text in piece if not text.isascii())
    return all(cell_len(character) == 1 for text in texts for character in text)


def _parsed(text: str) -> _Piece:
    """Return the texts and their styles."""
    piece: list[tuple[str, str]] = []
    style = ""
    for codes, plain in _TOKEN.findall(text):
        if plain:
            piece.append((style, plain))
        else:
            style = "" if codes in ("", "0") else f"{style};{codes}".lstrip(";")
    return tuple(piece)


def _width(piece: _Piece) -> int:
    return sum(cell_len(text) for _, text in piece)


def _drawn(piece: _Piece, line: int, column: int) -> str:
    """Return what draws a piece at a place, each style once while it is in force.

    Terminals differ in the cells that they give to combining and to wide characters, so after
    these the cursor is sent to where it must be.
    """
    drawn, before = f"\x1b[{line};{column}H", ""
    is_exact = True
    for style, text in piece:
        if style != before:
            drawn += _switch(before, style)
            before = style
        drawn += text if is_exact else f"\x1b[{line};{column}H{text}"
        column += cell_len(text)
        is_exact = _is_plain(((style, text),))
    return drawn + ("\x1b[0m" if before else "")


@lru_cache(maxsize=1024)
def _switch(before: str, style: str) -> str:
    """Return the shortest change from a style to another one."""
    old, new = _COLOUR.findall(before), _COLOUR.findall(style)
    is_same_else = _COLOUR.sub("", before) == _COLOUR.sub("", style)
    kinds = [code[0] for code in new]
    is_each_once = len(set(kinds)) == len(kinds)
    if before and is_same_else and is_each_once and [code[0] for code in old] == kinds:
        codes = [each for each, code in zip(new, old, strict=True) if each != code]
        return f"\x1b[{';'.join(codes)}m"
    return ("\x1b[0m" if before else "") + (f"\x1b[{style}m" if style else "")


class ChangedLinesDriver(LinuxDriver):
    """Textual's driver for Linux, for connections that are slow or paid for."""

    _changed = ChangedLines()  # a process has one terminal

    def forget(self) -> None:
        """Send everything once more, as after a change of the terminal's size."""
        self._changed.forget()

    def write(self, data: str) -> None:
        """Send what the terminal does not show yet, in characters that it has."""
        super().write(self._changed.reduced(for_terminal(data)))
