"""Wrap sentences for a terminal, which would break them inside words."""

import os
import re
import sys
import textwrap
from unicodedata import east_asian_width

from tui_fs.model.paths import displayable

_MIN_WRAPPED = 20
"""Fewer columns would hold hardly a word."""

_GAP = re.compile(r"(?<=\S)  +(?=\S)")
"""Between the cells of a table."""

_LABEL = re.compile(r"- |[^:.]{1,30}: ")
"""How an item begins."""

_UNBROKEN = re.compile(
    r"(?<!\w)'[^']+'(?!\w)"  # a quoted command or name
    r"|(?<=: )[a-z]\S*(?<![,;])(?: \S+(?<![,;]))*?(?=\. [A-Z]|$)"  # a command at its end
    r"|\S+(?: --?\w\S*)+"  # a program and its options
    r"|[^·\s][^·]* ·|(?<=· )[^·]+$"  # one of several figures
)
"""What is copied, or read, as a whole."""

_IS_COPIED = re.compile(r"['/]|tui-fs ")
"""How a command or a path begins."""

_SPACE_INSIDE = "\0"
"""Stands for a space that is no place for a break: `displayable` never yields it."""

_SECOND_CELL = "\1"
"""Stands for the second cell of a wide letter."""


def wrapped(text: str, width: int) -> str:
    """Return text with longer lines wrapped at spaces that are not inside a path or a command.

    The lines after the first are indented under the last cell of a table's row, further than an
    item begins, else as far as the first.
    """
    width = max(width, _MIN_WRAPPED)
    lines = [_wrapped_line(line, width) for line in _by_cells(text).split("\n")]
    return "\n".join(lines).replace(_SPACE_INSIDE, " ").replace(_SECOND_CELL, "")


def _by_cells(text: str) -> str:
    """Return a text with a character for each cell of a terminal, as far as letters are wide."""
    if text.isascii():
        return text
    return "".join(
        f"{letter}{_SECOND_CELL}" if east_asian_width(letter) in "FW" else letter for letter in text
    )


def _wrapped_line(line: str, width: int) -> str:
    start = indent = len(line) - len(line.lstrip())
    if len(line) <= width or line.startswith("$", start):
        return line
    if gaps := [*_GAP.finditer(line)]:
        start = indent = gaps[-1].end()
        if indent > width - _MIN_WRAPPED or _IS_COPIED.match(line, start):
            return line
    elif label := _LABEL.match(line, start):
        start, indent = label.end(), indent + 2

    def joined(found: re.Match[str]) -> str:
        is_kept = len(found[0]) <= width - indent or _IS_COPIED.match(found[0])
        return found[0].replace(" ", _SPACE_INSIDE) if is_kept else found[0]

    text = line[start:]
    for path in _paths_with_spaces():
        text = text.replace(path, path.replace(" ", _SPACE_INSIDE))
    lines = textwrap.wrap(
        _UNBROKEN.sub(joined, text),
        width,
        initial_indent=line[:start],
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines)


def _paths_with_spaces() -> set[str]:
    """Return the arguments and the working directory, as far as they have a space."""
    given = (*sys.argv[1:], os.environ.get("PWD", ""))
    return {_by_cells(displayable(path)) for path in given if " " in path}
