"""The append-only file of events: written by one supervisor, read by any number of viewers."""

import json
import os
from collections.abc import Iterable
from typing import BinaryIO

from tui_fs.linux.regular_file import open_regular
from tui_fs.model.codec import Json
from tui_fs.model.errors import BadInput
from tui_fs.model.events import Event, event_from_json, event_to_json
from tui_fs.model.paths import displayable

READ_AT_ONCE_BYTES = 256 << 10
"""A reader holds the events of about this many bytes at a time."""
MAX_LINE_BYTES = 64 << 20
"""More than any event has; a longer line is damage."""
_TAIL_BYTES = 4096


def json_line(value: Json) -> bytes:
    """Return a JSON value as one line of a journal."""
    return json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"


def event_lines(events: Iterable[Event]) -> bytes:
    """Return events as lines of a journal."""
    return b"".join(json_line(event_to_json(event)) for event in events)


def events_in(lines: bytes) -> list[Event]:
    """Return the events of whole lines of a journal; BadInput if a line is not one."""
    try:
        return [event_from_json(json.loads(line)) for line in lines.splitlines()]
    except (ValueError, RecursionError) as error:
        raise BadInput(f"A journal line is damaged: {error}.") from error


class LineWriter:
    """Appends JSON values; each is one line, written whole or not at all as far as readers see."""

    def __init__(self, path: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o600)

    def write_line(self, value: Json) -> None:
        """Append one value."""
        line = json_line(value)
        whole = os.fstat(self._descriptor).st_size
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
        except OSError:
            os.ftruncate(self._descriptor, whole)  # a torn line would spoil the next one
            raise

    def sync(self) -> None:
        """Wait until everything written so far is on the disk."""
        os.fsync(self._descriptor)


class JournalWriter(LineWriter):
    """Appends the events of a job."""

    def write(self, event: Event) -> None:
        """Append one event."""
        self.write_line(event_to_json(event))


class JournalReader:
    """Reads a journal that may still grow; a last line without its end is left for later."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._offset = 0

    def poll(self) -> list[Event]:
        """Return whole events written since the last call: all if few, else the next ones.

        Raises:
            BadInput: the file cannot be read, a whole line is not an event, or a line has no end;
                later lines are not read.
        """
        events: list[Event] = []
        try:
            with open_regular(self._path) as file:
                chunk = self._read(file)
        except FileNotFoundError:
            return events
        except OSError as error:
            cause = error.strerror or os.strerror(error.errno or 0)
            raise BadInput(f"{displayable(self._path)} cannot be read: {cause}.") from error
        whole, newline, _ = chunk.rpartition(b"\n")
        for line in whole.split(b"\n") if newline else ():
            try:
                events.append(event_from_json(json.loads(line)))
            except (ValueError, RecursionError, BadInput) as error:
                if events:
                    break  # what is whole is told now, the damage at the next call
                raise self._damage(str(error)) from error
            self._offset += len(line) + 1
        return events

    def _read(self, file: BinaryIO) -> bytes:
        """Return the next `READ_AT_ONCE_BYTES`, and more if a line is longer."""
        file.seek(self._offset)
        chunk = file.read(READ_AT_ONCE_BYTES)
        while b"\n" not in chunk and len(chunk) >= READ_AT_ONCE_BYTES:
            if len(chunk) >= MAX_LINE_BYTES:
                raise self._damage("a line is too long")
            more = file.read(len(chunk))
            if not more:
                break
            chunk += more
        return chunk

    def _damage(self, why: str) -> BadInput:
        where = f"{displayable(self._path)} is damaged at byte {self._offset}"
        return BadInput(f"{where}: {why.rstrip('.')}.")


def last_event(path: str) -> Event | None:
    """Return the last event of a journal without reading what is before it.

    Returns:
        None if no journal can be read, or its last line is not whole or is not an event.
    """
    try:
        with open_regular(path) as file:
            size = end = file.seek(0, os.SEEK_END)
            tail = b""
            length = _TAIL_BYTES
            while end > 0 and b"\n" not in tail[:-1] and len(tail) < MAX_LINE_BYTES:
                start = max(0, size - length)
                file.seek(start)
                tail, end, length = file.read(size - start), start, 4 * length
    except OSError:
        return None  # reading the whole journal raises the error
    if not tail.endswith(b"\n"):
        return None
    try:
        return event_from_json(json.loads(tail[:-1].rpartition(b"\n")[2]))
    except (ValueError, RecursionError, BadInput):
        return None  # reading the whole journal raises the error, with its place
