"""The append-only file of events: the supervisor writes it, any number of viewers read it."""

import contextlib
import errno
import json
import os
import resource
import time
from collections.abc import Callable, Iterable
from typing import BinaryIO

from msgspec.structs import replace

from tui_fs.linux.limits import cause_of, measured
from tui_fs.linux.resolve_path import open_regular
from tui_fs.model.codec import Json, encode, why_no_json
from tui_fs.model.errors import BadInput, TuiFsError
from tui_fs.model.events import (
    EntryFailed,
    Event,
    FailuresCounted,
    RecordIncomplete,
    Sampled,
    Throttled,
    ToolSaid,
    Unthrottled,
    event_from_json,
)
from tui_fs.model.paths import displayable, harmless
from tui_fs.model.plan import Plan

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
    return b"".join(json_line(encode(event)) for event in events)


def events_in(lines: bytes) -> list[Event]:
    """Return the events of whole lines of a journal; BadInput if a line is not an event."""
    try:
        return [event_from_json(json.loads(line)) for line in lines.splitlines()]
    except (ValueError, RecursionError) as error:
        raise BadInput(f"A journal line is damaged: {error}.") from error


class LineWriter:
    """Appends JSON values, one on a line; readers see only whole lines."""

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
            os.ftruncate(self._descriptor, whole)  # a torn line would corrupt the next line
            raise

    def sync(self) -> None:
        """Wait until everything written so far is on the disk."""
        os.fsync(self._descriptor)


class JournalWriter(LineWriter):
    """Appends the events of a job."""

    def write(self, event: Event) -> None:
        """Append one event."""
        self.write_line(encode(event))


class JournalReader:
    """Reads a growing journal; an unfinished last line waits for a later call."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._offset = 0

    def poll(self) -> list[Event]:
        """Return events written since the last call, about `READ_AT_ONCE_BYTES` at most.

        Raises:
            BadInput: the file cannot be read, a whole line is not an event, or a line is too long.
                Later lines are not read.
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
                    break  # return the whole events now, raise at the next call
                raise self._damage(why_no_json(error)) from error
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

    def _damage(self, reason: str) -> BadInput:
        where = f"{displayable(self._path)} is damaged at byte {self._offset}"
        return BadInput(f"{where}: {reason.rstrip('.')}.")


def last_event(path: str) -> Event | None:
    """Return the last event of a journal without reading the lines before it.

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


PATIENCE_S = 30.0
"""A job ends if its journal cannot be written for this long."""
LAST_PATIENCE_S = 30.0


class EndReserve:
    """Disk space for the end of a job, allocated together with its folder.

    Appending to the journal can fail: the disk is full, or the process has reached its file size
    limit. The outcome is then written here, in place, which needs no further space.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def write(self, events: list[Event]) -> None:
        """Write the end of a job.

        Raises:
            OSError: writing fails, or the end is longer than the reserve (ENOSPC).
        """
        lines = event_lines(events)
        if len(lines) > os.fstat(self._descriptor).st_size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        _write_at_start(self._descriptor, lines)
        os.fsync(self._descriptor)

    def release(self) -> None:
        """Remove the reserve: the journal has the end."""
        os.close(self._descriptor)
        with contextlib.suppress(OSError):  # readers ignore the blank file
            os.unlink(self._path)


def read_reserve(path: str) -> list[Event]:
    """Return the events in the reserve of a job that is over; none if nothing is written there."""
    try:
        with open_regular(path) as file:
            content = file.read(_MAX_BYTES).rstrip(b"\0")
    except OSError:
        return []
    if not content.endswith(b"\n"):
        return []  # empty, or cut off by the end of the machine
    try:
        return events_in(content)
    except BadInput:
        return []


def _write_at_start(descriptor: int, content: bytes) -> None:
    offset = 0
    while offset < len(content):
        offset += os.pwrite(descriptor, content[offset:], offset)


class BufferedJournal:
    """Writes events in order; it queues those that cannot be written now.

    The job itself may be about to free a full disk. Events still queued when the job has ended go
    to the reserve, shortened.
    """

    def __init__(
        self,
        writer: JournalWriter,
        reserve: EndReserve,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._writer = writer
        self._reserve = reserve
        self._clock = clock
        self._pending: list[Event] = []
        self._failing_since: float | None = None
        self._is_final = False
        self.problem = ""

    @property
    def is_behind(self) -> bool:
        """Whether there are events that could not be written yet."""
        return bool(self._pending)

    @property
    def is_lost(self) -> bool:
        """Whether nothing could be written for `PATIENCE_S`, so that the job must end."""
        since = self._failing_since
        return since is not None and self._clock() - since > PATIENCE_S

    def write(self, event: Event) -> None:
        """Append one event, now or later."""
        self._pending.append(event)
        self._flush()

    def sync(self) -> None:
        """Wait until everything written so far is on the disk."""
        try:
            self._writer.sync()
        except OSError as error:
            self._note_problem(error)

    def finish(self, sleep: Callable[[float], None] = time.sleep) -> bool:
        """Write the pending events to the journal, trying for `LAST_PATIENCE_S`, or to the reserve.

        Returns:
            Whether the journal is complete.

        Raises:
            OSError: the reserve cannot be written either.
        """
        deadline = self._clock() + LAST_PATIENCE_S
        while not self._flush() and not self._is_final and self._clock() < deadline:
            sleep(1.0)
        self.sync()
        if not self._pending:
            self._reserve.release()
            return True
        incomplete = RecordIncomplete(self._pending[0].at_s, self.problem)
        self._reserve.write([incomplete, *shortened(self._pending)])
        return False

    def _flush(self) -> bool:
        written = 0
        try:
            for event in self._pending:
                self._writer.write(event)
                written += 1
        except OSError as error:
            self._note_problem(error)
        else:
            self._failing_since = None
        del self._pending[:written]
        return not self._pending

    def _note_problem(self, error: OSError) -> None:
        self.problem = os.strerror(error.errno or 0)
        self._is_final = error.errno == errno.EFBIG  # the limit of this process stays
        if self._failing_since is None:
            self._failing_since = self._clock()
            with contextlib.suppress(OSError):  # the log is on the same disk
                os.write(2, f"The journal cannot be written: {self.problem}.\n".encode())


def shortened(events: Iterable[Event]) -> list[Event]:
    """Return fewer events that fold to the same figures.

    Failures of one kind become one count without paths, all samples become one, and lines of the
    tools are dropped. The sample has the time for which gentle mode held the job.
    """
    result: dict[object, Event] = {}  # a later event with the same key replaces an earlier one
    has_hold = False
    for number, event in enumerate(events):
        key: object = number
        match event:
            case ToolSaid():
                continue
            case Throttled():
                has_hold = True
                continue
            case Unthrottled() if has_hold:
                continue
            case EntryFailed() | FailuresCounted():
                key = event.operation, event.error
                before = result.pop(key, None)
                failed = event.number if isinstance(event, FailuresCounted) else 1
                failed += before.number if isinstance(before, FailuresCounted) else 0
                event = FailuresCounted(event.at_s, event.operation, event.error, failed)
            case Sampled():
                key = Sampled
                before = result.pop(key, None)
                event = _merged(before, event) if isinstance(before, Sampled) else event
        result[key] = event
    return list(result.values())


def _merged(earlier: Sampled, later: Sampled) -> Sampled:
    """Return one sample for two; a sample has only the calls that changed since the one before."""
    return replace(
        later,
        calls={**earlier.calls, **later.calls},
        removed=later.removed if later.removed is not None else earlier.removed,
        usage=later.usage or earlier.usage,
        space=later.space or earlier.space,
        held_s=max(earlier.held_s, later.held_s),
    )


_BASE_BYTES = 16 << 10
_PATHS_FACTOR = 3
"""The last event names a target at most three times: left, unknown, and in its sentences."""
_MAX_BYTES = 64 << 20
"""More than any reserve has; the rest of a larger file is damage."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)


def create_reserve(path: str, plan: Plan) -> None:
    """Allocate the reserve of a job.

    Raises:
        OSError: there is no room for it.
    """
    size = _BASE_BYTES + _PATHS_FACTOR * len(json.dumps(plan.paths))
    limits = measured(lambda: resource.getrlimit(resource.RLIMIT_FSIZE))
    if limits is not None and limits[0] != resource.RLIM_INFINITY:
        size = min(size, limits[0])
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        # Even with copy-on-write the first write goes to the allocated blocks.
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise
        _write_at_start(descriptor, bytes(size))
    finally:
        os.close(descriptor)


_MARK_BYTES = 512


class CrashMark:
    """A file into which a crashing supervisor writes its error.

    It is opened and filled with blanks in advance: at a crash there may be no space or descriptor.
    """

    def __init__(self, path: str) -> None:
        self._descriptor = -1
        with contextlib.suppress(OSError):  # then only the log distinguishes a crash from a kill
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
            self._descriptor = os.open(path, flags, 0o600)
            os.pwrite(self._descriptor, b" " * _MARK_BYTES, 0)

    def leave(self, error: BaseException) -> None:
        """Write the error that ends this process."""
        sentence = _sentence(error).encode("utf-8", "replace")[: _MARK_BYTES - 1]
        with contextlib.suppress(OSError):  # the log has it too
            os.pwrite(self._descriptor, sentence + b"\n", 0)


def read_crash(path: str) -> str:
    """Return the error that ended a supervisor, in words; empty if it left no mark."""
    try:
        with open_regular(path) as file:
            mark = file.read(_MARK_BYTES)
    except OSError:
        return ""
    return harmless(mark.decode("utf-8", "replace").partition("\n")[0].strip())


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError | MemoryError | TuiFsError):
        return cause_of(error)[0].rstrip(".")
    return f"{type(error).__name__}: {error}".partition("\n")[0].rstrip(": .")
