"""Printing: data to standard output, everything else to standard error."""

import json
import sys
from typing import Any

SCHEMA = 1
_CLEAR_LINE = "\r\x1b[2K"


def print_json(value: Any) -> None:
    """Print one indented JSON value."""
    print(json.dumps(value, indent=2))


def print_json_line(value: dict[str, Any]) -> None:
    """Print one JSON object of a stream at once."""
    print(json.dumps({"schema": SCHEMA, **value}, separators=(",", ":")), flush=True)


def note(text: str) -> None:
    """Print a line to standard error."""
    print(text, file=sys.stderr)


class StatusLine:
    """One line of standard error that is written over; silent where that is no terminal."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._is_dirty = False

    def show(self, text: str) -> None:
        """Replace the line."""
        if self._is_terminal:
            print(f"{_CLEAR_LINE}{text}", end="", file=sys.stderr, flush=True)
            self._is_dirty = True

    def clear(self) -> None:
        """Remove the line."""
        if self._is_dirty:
            print(_CLEAR_LINE, end="", file=sys.stderr, flush=True)
            self._is_dirty = False


def columns(rows: list[tuple[str, ...]], right: frozenset[int]) -> str:
    """Return rows as aligned columns; `right` are the positions that are right-aligned."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
