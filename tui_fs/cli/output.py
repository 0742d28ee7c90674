"""Printing: data to standard output, everything else to standard error."""

import contextlib
import io
import json
import os
import select
import sys
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from tui_fs.cli.wrapping import wrapped

SCHEMA = 1
CLEAR_LINE = "\r\x1b[2K"


_USUAL_COLUMNS = 80
_MIN_BAR, _MAX_BAR = 10, 30


class OutputLost(Exception):
    """A write to standard output failed, as on a full disk; the text is the reason."""


@contextlib.contextmanager
def writing_output() -> Iterator[None]:
    """Distinguish errors of standard output from all others.

    Raises:
        BrokenPipeError: the reader has closed the pipe.
        OutputLost: any other error.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is not None:
            raise  # a file that was opened meanwhile
        reason = os.strerror(error.errno or 0)
        raise OutputLost(f"Standard output cannot be written: {reason}.") from error


def is_reader_gone() -> bool:
    """Return whether standard output is a pipe or socket whose reader has closed it."""
    poll = select.poll()
    try:
        poll.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError):
        return False  # no descriptor
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


class DataOutput(io.RawIOBase):
    """Standard output for bytes; raises as ``writing_output``."""

    def writable(self) -> bool:
        """Return True, as `io.RawIOBase` requires of a writable file."""
        return True

    def write(self, data: Any) -> int:
        """Write all of the data."""
        with writing_output():
            return sys.stdout.buffer.write(data)

    def flush(self) -> None:
        """Flush standard output."""
        with writing_output():
            sys.stdout.buffer.flush()


def print_text(text: str) -> None:
    """Print text `for_reader`, and a newline, at once; raises as ``writing_output``."""
    print_unwrapped(for_reader(text, sys.stdout))


def print_unwrapped(text: str) -> None:
    """Print the input of a program and a newline at once; raises as ``writing_output``."""
    with writing_output():
        print(text, flush=True)


def print_json(value: Any) -> None:
    """Print one indented JSON value."""
    print_unwrapped(json.dumps(value, indent=2))


def print_json_line(value: dict[str, Any]) -> None:
    """Print one JSON object of a stream at once."""
    print_unwrapped(json.dumps({"schema": SCHEMA, **value}, separators=(",", ":")))


def note(text: str) -> None:
    """Print text `for_reader` to standard error."""
    print(for_reader(text, sys.stderr), file=sys.stderr)


def print_question(question: str) -> None:
    """Print a question to standard error; the cursor waits behind it for the answer."""
    print(f"{for_reader(question, sys.stderr)} ", end="", file=sys.stderr, flush=True)


def for_reader(text: str, stream: TextIO) -> str:
    """Return text with its lines wrapped at words for a terminal; else unchanged.

    A program that reads the stream finds each sentence in one line.
    """
    return wrapped(text, _columns(stream)) if stream.isatty() else text


def use_real_terminal_size() -> None:
    """Ignore COLUMNS and LINES where standard output is a terminal that reports its size.

    Some shells and scripts export them; they do not follow the size of the window.
    """
    with contextlib.suppress(OSError, ValueError):
        size = os.get_terminal_size(sys.stdout.fileno())
        if size.columns and size.lines:
            os.environ.pop("COLUMNS", None)
            os.environ.pop("LINES", None)


def moves_cursor(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")


def print_over_status(text: str) -> None:
    """Print a line to standard error over a status line."""
    start = CLEAR_LINE if moves_cursor(sys.stderr) else ""
    print(f"{start}{for_reader(text, sys.stderr)}", file=sys.stderr, flush=True)


class StatusLine:
    """A line of standard error that each update overwrites.

    Nothing is printed if standard error is not a terminal that can move its cursor, or while
    another process group is in the foreground of the terminal.
    """

    def __init__(self) -> None:
        self._is_usable = moves_cursor(sys.stderr)
        self._shown = ""

    def show(self, text: str, fraction: float | None = None) -> None:
        """Replace the line; fit it into the terminal, as a wrapped line would stay.

        Args:
            text: parts with two spaces between them, the most important first.
            fraction: the done part, as a bar where there is room; None for no bar.
        """
        if self._is_usable and _is_in_foreground():
            width = _columns(sys.stderr) - 1
            shown = with_bar(whole_parts(text, width), fraction, width)
            if shown != self._shown:
                print(f"{CLEAR_LINE}{shown}", end="", file=sys.stderr, flush=True)
                self._shown = shown

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            print(CLEAR_LINE, end="", file=sys.stderr, flush=True)
            self._shown = ""


def whole_parts(text: str, width: int) -> str:
    """Return the first parts that fit; a cut number would be another one."""
    while len(text) > width and "  " in text.strip():
        text = text.rpartition("  ")[0].rstrip()
    return text[:width]


def with_bar(text: str, fraction: float | None, width: int) -> str:
    """Return a text with a bar of characters that every terminal has, if both fit."""
    cells = min(_MAX_BAR, width - len(text) - len("[]  "))
    if fraction is None or cells < _MIN_BAR:
        return text
    done = int(cells * max(0.0, min(1.0, fraction)))
    head = ">" if 0 < done < cells else ""
    return f"[{'=' * (done - len(head))}{head}{' ' * (cells - done)}]  {text}"


def _columns(terminal: TextIO) -> int:
    return os.get_terminal_size(terminal.fileno()).columns or _USUAL_COLUMNS


def _is_in_foreground() -> bool:
    try:
        return os.tcgetpgrp(sys.stderr.fileno()) == os.getpgrp()
    except OSError:
        return True  # not the terminal of this session, so it has no foreground group


def columns(rows: Sequence[tuple[str, ...]], right: frozenset[int]) -> str:
    """Return rows as aligned columns; `right` has the indexes of the right-aligned ones."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
