"""Counts and times per call from strace, on request only: strace slows the deletion."""

import os
import re
import selectors
import threading
import time
from collections.abc import Sequence

from tui_fs.model.calls import REMOVING_CALLS, CallCount, Removed, TraceSource, added_up
from tui_fs.model.strategy import Argv
from tui_fs.tracing.source import CallSource, Counts
from tui_fs.tracing.syscalls import AT_REMOVEDIR

# With raw arguments no line can hold a file name: PID NAME(ARGS) = RESULT <SECONDS>
_RETURNED = re.compile(
    rb"\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed>)(.*)\) += (\?|-?[0-9a-fx]+)[^<]*"
    rb"(?:<(\d{1,9}\.\d{1,9})>)?"
)
_ENTERED = re.compile(rb"(\d+) +(\w+)\((.*) <unfinished \.\.\.>")
_PID = re.compile(rb"\d+")
_WITHOUT_MEMORY_S = 0.01
_HEXADECIMAL = re.compile(rb"0x[0-9a-f]{1,16}")


class StraceParser:
    """Adds up lines of ``strace -f -T -e raw=all -o FILE``."""

    def __init__(self) -> None:
        self._calls: dict[str, list[float]] = {}
        self._removed = self._directories = 0
        self._unfinished: dict[bytes, bytes] = {}

    def line(self, line: bytes) -> None:
        """Parse one line; skip lines of signals and exits."""
        entered = _ENTERED.match(line)
        if entered is not None:
            self._unfinished[entered[1]] = entered[3]
            return
        match = _RETURNED.match(line)
        if match is None or match[3] == b"?":
            return
        name, arguments = match[1].decode("ascii"), match[2]
        if b"resumed>" in line:
            pid = _PID.match(line)
            assert pid is not None
            arguments = self._unfinished.pop(pid[0], b"") + arguments
        failed = match[3].startswith(b"-")
        entry = self._calls.setdefault(name, [0, 0, 0.0])
        entry[0] += 1
        entry[1] += failed
        entry[2] += float(match[4] or 0)
        if not failed and name in REMOVING_CALLS:
            self._removed += 1
            if name == "rmdir" or (name == "unlinkat" and _last_number(arguments) & AT_REMOVEDIR):
                self._directories += 1

    def counts(self) -> Counts:
        """Return the sums."""
        calls = {
            name: CallCount(int(number), int(errors), seconds)
            for name, (number, errors, seconds) in list(self._calls.items())
        }
        return Counts(calls, Removed(self._removed, self._directories))


def _last_number(arguments: bytes) -> int:
    """Return the last argument; raw ones are hexadecimal, or 0 (strace writes no other)."""
    last = arguments.rpartition(b",")[2].strip()
    return int(last, 16) if _HEXADECIMAL.fullmatch(last) else 0


class Strace(CallSource):
    """One strace around every command, each with a pipe of its own that is read continuously.

    Two straces must not share a pipe: they write lines in pieces.
    """

    def __init__(self, path: str) -> None:
        note = "strace: deletion 5 to 7 times slower, call durations distorted"
        super().__init__(TraceSource.STRACE, note)
        self._path = path
        self._parsers: dict[int, StraceParser] = {}
        self._writing: list[int] = []
        self._has_lost = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._collect, name="strace", daemon=True)

    @property
    def is_whole(self) -> bool:
        """See `CallSource.is_whole`; a killed strace is reported as a killed tool."""
        return not self._has_lost

    def wrap(self, argv: Argv) -> Argv:
        """See `CallSource.wrap`; creates the pipe that the launcher inherits."""
        reading, writing = os.pipe()
        os.set_inheritable(writing, True)
        self._parsers[reading] = StraceParser()
        self._writing.append(writing)
        options = ("-f", "-qq", "-T", "-e", "raw=all", "-e", "signal=none")
        return (self._path, *options, "-o", f"/dev/fd/{writing}", "--", *argv)

    def prepare(self, launcher_pid: int) -> None:
        """See `CallSource.prepare`; from now on only the launcher's children hold the pipes."""
        del launcher_pid
        while self._writing:
            os.close(self._writing.pop())
        self._thread.start()

    def read(self, refused_directories: int = 0) -> Counts:
        del refused_directories  # each call is read with its flags and its result
        with self._lock:
            return add_up([parser.counts() for parser in self._parsers.values()])

    def close(self) -> None:
        """See `CallSource.close`; waits for the last lines."""
        if self._thread.ident is not None:
            self._thread.join()

    def _collect(self) -> None:
        """Read all pipes until the last strace and the launcher have closed them."""
        rests = dict.fromkeys(self._parsers, b"")
        with selectors.DefaultSelector() as selector:
            for reading in rests:
                selector.register(reading, selectors.EVENT_READ)
            while selector.get_map():
                for key, _ in selector.select():
                    try:
                        if not self._take(key.fd, rests):
                            selector.unregister(key.fd)
                            os.close(key.fd)
                    except MemoryError:
                        self._has_lost = (
                            True  # read on: a full pipe would block strace and its tool
                        )
                        time.sleep(_WITHOUT_MEMORY_S)

    def _take(self, pipe: int, rests: dict[int, bytes]) -> bool:
        """Read one chunk from a pipe; return False at its end."""
        chunk = os.read(pipe, 1 << 16)
        *lines, rests[pipe] = (rests[pipe] + chunk).split(b"\n")
        with self._lock:
            for line in lines:
                self._parsers[pipe].line(line)
        return bool(chunk)


def add_up(counts: Sequence[Counts]) -> Counts:
    """Return the sums of several counts."""
    entries = directories = 0
    for part in counts:
        if part.removed is not None:
            entries += part.removed.entries
            directories += part.removed.directories or 0
    calls = added_up(part.calls for part in counts)
    return Counts(calls, Removed(entries, directories))
