"""Reads the output of the tools and parses it into removals and failures."""

import errno
import os
import selectors
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tui_fs.model.calls import CallCount, Removed, added_up, quantiles_s
from tui_fs.model.events import EntryFailed, Event, FailuresCounted, ToolSaid
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Step
from tui_fs.safety.confinement import REFUSALS
from tui_fs.strategies.base import (
    Failure,
    Progress,
    Remark,
    Strategy,
    Totals,
    gnu_failure,
    tool_of,
    unquote_shell,
)

PATHS_KEPT = 10_000
FURTHER_KINDS = "further kinds"
LONGEST_LINE_BYTES = 65_536
"""The middle of a longer line is dropped; a path in it may have any length."""


class OutputLimits(Struct, frozen=True):
    """How much of the tools' output is journalled.

    Attributes:
        paths, paths_of_kind: failed entries are journalled with their paths up to these numbers,
            then counted by kind. Each kind has its own limit, so that a frequent failure does not
            hide the paths of a rare one.
        kinds: beyond this number all further kinds of failures are counted as one: messages can
            contain any text.
        bytes: of paths and other lines together: a path has up to 4,096 bytes, a line up to
            `LONGEST_LINE_BYTES`.
    """

    paths: int = PATHS_KEPT
    paths_of_kind: int = 2_000
    kinds: int = 100
    lines: int = 1_000
    bytes: int = 8 << 20


_LIMITS = OutputLimits()


class ToolOutput:
    """Reads a strategy's standard output and standard error as they come.

    Args:
        target: the first target of a step; see `step_begins`.
        confined: targets that confined tools cannot remove themselves; rmdir removes them later.
    """

    def __init__(
        self,
        strategy: Strategy,
        target: str,
        limits: OutputLimits = _LIMITS,
        confined: Sequence[str] = (),
    ) -> None:
        self._limits = limits
        self._strategy = strategy
        self._target = target
        self._output_rest = self._error_rest = b""
        self._entries = self._directories = 0
        self._running = Totals()
        self._ended_calls: dict[str, CallCount] = {}
        self._ended_ns: Counter[int] = Counter()
        self._kept = self._said = self._kept_bytes = 0
        self._kept_of_kind: Counter[tuple[str, int]] = Counter()
        self._counted: Counter[tuple[str, int]] = Counter()
        self._unsaid = 0
        self._confined = frozenset(confined)
        self._withheld: dict[str, tuple[Failure, bytes]] = {}
        self._not_removed: dict[str, tuple[Failure, bytes]] = {}
        self._rmdir_failures = 0
        self._was_killed = False

    def removed(self) -> Removed:
        """Return the removals reported so far."""
        running = self._running.removed
        directories = self._directories + (running.directories or 0)
        return Removed(self._entries + running.entries, directories)

    def calls(self) -> dict[str, CallCount]:
        """Return the system calls that the tools report themselves."""
        calls = added_up((self._ended_calls, self._running.calls))
        classes = sorted((self._ended_ns + Counter(self._running.removal_ns)).items())
        times_s = quantiles_s(classes)
        if times_s is not None and "unlinkat" in calls:
            timed_calls = sum(number for _, number in classes)
            calls["unlinkat"] = replace(
                calls["unlinkat"], quantiles_s=times_s, timed_calls=timed_calls
            )
        return calls

    @property
    def has_totals(self) -> bool:
        """Whether the tools report their removals without being asked to."""
        return self._strategy.guarantees.speaks

    @property
    def threads(self) -> int:
        """The number of active threads that the tool reports; 0 if it reports none."""
        return self._running.threads

    @property
    def refused_targets(self) -> int:
        """The number of targets that an unlinkat of a confined tool could not remove."""
        return sum(failure.operation != "rmdir" for failure, _ in self._withheld.values())

    def take_output(self, chunk: bytes, at_s: float) -> Iterator[Event]:
        """Parse a chunk of standard output; yield the failures and remarks in it."""
        lines, self._output_rest = _lines(self._output_rest + chunk)
        for line in lines:
            match self._strategy.parse_output(line):
                case Progress(entries, directories):
                    self._entries += entries
                    self._directories += directories
                case Totals() as totals:
                    self._running = totals
                case Failure() as failure:
                    yield from self._failed(failure, line, at_s)
                case Remark(text):
                    yield from self._remarked(text, at_s)

    def take_errors(self, chunk: bytes, at_s: float) -> Iterator[Event]:
        """Parse a chunk of standard error; yield the failures and all other lines in it."""
        lines, self._error_rest = _lines(self._error_rest + chunk)
        for line in lines:
            failure = self._failure(line)
            if failure is not None and self._withholds(failure, line):
                continue
            if failure is not None:
                yield from self._failed(failure, line, at_s)
            elif line.strip():
                yield from self._remarked(line.decode("utf-8", "replace"), at_s)

    def step_begins(self, target: str) -> None:
        """Resolve names that do not begin with ``/`` relative to this target from now on.

        The whole output of earlier steps must have been parsed, including the rest.
        """
        self._target = target
        self._rmdir_failures = 0

    def step_ended(self, step: Step, statuses: tuple[int, ...]) -> None:
        """Keep the totals of tools that have ended.

        A directory removed by rmdir is counted here, because rmdir reports it before the removal.
        """
        self._ended_calls = self.calls()
        self._ended_ns.update(self._running.removal_ns)
        done = self.removed()
        self._entries, self._directories = done.entries, done.directories or 0
        self._running = Totals()
        self._was_killed |= min(statuses) < 0
        argv = step[-1]
        if os.path.basename(argv[0]) == "rmdir" and statuses[-1] >= 0:
            removed = len(argv) - argv.index("--") - 1 - self._rmdir_failures
            if statuses[-1] and not self._rmdir_failures:
                removed = 0  # it could not start
            self._entries += removed
            self._directories += removed

    def withheld_failures(self, left: Collection[str], at_s: float) -> Iterator[Event]:
        """Yield the failures for targets that are left, if the user has no access to them.

        If no failure, message or killed tool explains why, also yield those for targets that rmdir
        found not empty, or gone.
        """
        for path, (failure, line) in self._withheld.items():
            has_access = os.access(path, os.R_OK | os.W_OK | os.X_OK, effective_ids=True)
            if path in left and not has_access:
                yield from self._failed(failure, line, at_s)
        is_explained = bool(self._kept_of_kind) or self._said > 0 or self._was_killed
        for path, (failure, line) in self._not_removed.items():
            if path in left and not is_explained:
                yield from self._failed(failure, line, at_s)

    def take_rest(self, at_s: float) -> Iterator[Event]:
        """Parse the unfinished last lines of killed tools."""
        yield from self.take_output(b"\n" if self._output_rest else b"", at_s)
        yield from self.take_errors(b"\n" if self._error_rest else b"", at_s)

    def counted_failures(self, at_s: float) -> Iterator[Event]:
        """Yield the failures since the last call that were not journalled, counted by kind."""
        yield from self.pending_failures(at_s)
        self._counted.clear()
        if self._unsaid:
            yield ToolSaid(at_s, f"(further lines of this kind omitted: {self._unsaid:,})")
            self._unsaid = 0

    def pending_failures(self, at_s: float) -> Iterator[Event]:
        """Yield the failures that `counted_failures` will yield, for a view, and clear nothing."""
        for (operation, error), number in self._counted.items():
            yield FailuresCounted(at_s, operation, error, number)

    def _failure(self, line: bytes) -> Failure | None:
        if tool_of(line) != b"rmdir":
            return self._strategy.parse_error(line)
        failure = gnu_failure(line, unquote_shell)
        if failure is None:
            return None
        self._rmdir_failures += 1
        # rmdir gets only targets: one by its name, several by their absolute paths
        is_absolute = failure.path.startswith("/")
        path = failure.path if is_absolute else PathStr(self._target)
        return replace(failure, path=path, operation="rmdir")

    def _withholds(self, failure: Failure, line: bytes) -> bool:
        """Keep a failure to remove a target itself, if it may follow from something else.

        A confined tool cannot remove its target, which rmdir removes later. A target that rmdir
        finds not empty has entries that could not be removed, or those of other shares. One that is
        gone was removed or renamed by another process.
        """
        path = self._absolute(failure.path)
        if tool_of(line) == b"rmdir":
            if failure.error in (errno.ENOTEMPTY, errno.ENOENT):
                self._not_removed[path] = failure, line
                return True
            return False
        if path in self._confined and failure.error in REFUSALS:
            self._withheld[path] = failure, line
            return True
        return False

    def _remarked(self, text: str, at_s: float) -> Iterator[Event]:
        self._said += 1
        if self._said <= self._limits.lines and self._has_room(len(text)):
            yield ToolSaid(at_s, text)
        else:
            self._unsaid += 1

    def _failed(self, failure: Failure, line: bytes, at_s: float) -> Iterator[Event]:
        kind = failure.operation, failure.error
        if kind not in self._kept_of_kind and len(self._kept_of_kind) >= self._limits.kinds:
            self._counted[FURTHER_KINDS, 0] += 1
            return
        is_whole = len(line) < LONGEST_LINE_BYTES  # else its path lacks the middle
        is_kept = (
            self._kept < self._limits.paths
            and self._kept_of_kind[kind] < self._limits.paths_of_kind
        )
        path = self._absolute(failure.path)
        if is_whole and is_kept and self._has_room(len(path)):
            self._kept += 1
            self._kept_of_kind[kind] += 1
            yield EntryFailed(at_s, path, *kind)
        else:
            self._kept_of_kind[kind] += 0  # makes the kind known even if no path of it is kept
            self._counted[kind] += 1

    def _has_room(self, length: int) -> bool:
        """Return whether a text of this length fits into the journal, and count it if so."""
        if self._kept_bytes + length > self._limits.bytes:
            return False
        self._kept_bytes += length
        return True

    def _absolute(self, path: PathStr) -> PathStr:
        """Return the absolute path; tools that run in the target print relative paths."""
        below = path.removeprefix("./")
        return PathStr(self._target if below == "." else os.path.join(self._target, below))


def _lines(text: bytes) -> tuple[list[bytes], bytes]:
    """Return the lines of a text and the rest after the last newline, each of bounded length."""
    *lines, rest = map(_shortened, text.split(b"\n"))
    return lines, rest


def _shortened(line: bytes) -> bytes:
    """Return a line, or its beginning and its end; repeated calls return the same."""
    half = LONGEST_LINE_BYTES // 2
    return line if len(line) <= 2 * half else line[:half] + line[-half:]


_PIPE_BYTES = 1 << 16


class ToolPipes:
    """Reads both pipes when a selector reports them readable, and journals the events.

    Args:
        out, err: non-blocking pipes from all tools.
        output: parses the bytes into events.
        selector: its user calls a key's data when the key is readable.
        note: journals an event.
        now_s: the time of events.
    """

    def __init__(
        self,
        out: int,
        err: int,
        output: ToolOutput,
        selector: selectors.BaseSelector,
        note: Callable[[Event], None],
        now_s: Callable[[], float],
    ) -> None:
        self._out, self._err = out, err
        self._output = output
        self._selector = selector
        self._note = note
        self._now_s = now_s
        selector.register(out, selectors.EVENT_READ, self.read_output)
        selector.register(err, selectors.EVENT_READ, self.read_errors)

    def read_output(self) -> bool:
        """Read standard output, at most `_PIPE_BYTES`; return whether there was any."""
        return self._take(self._out, self._output.take_output)

    def read_errors(self) -> bool:
        """Read standard error, at most `_PIPE_BYTES`; return whether there was any."""
        return self._take(self._err, self._output.take_errors)

    def read_all(self) -> None:
        """Read the whole output of ended tools, unfinished last lines included."""
        while self.read_output() | self.read_errors():
            pass
        for event in self._output.take_rest(self._now_s()):
            self._note(event)

    def _take(self, pipe: int, take: Callable[[bytes, float], Iterator[Event]]) -> bool:
        chunk = self._read(pipe)
        for event in take(chunk, self._now_s()) if chunk else ():
            self._note(event)
        return bool(chunk)

    def _read(self, pipe: int) -> bytes:
        """Return bytes from a pipe, b"" if it is empty."""
        try:
            chunk = os.read(pipe, _PIPE_BYTES)
        except BlockingIOError:
            return b""
        if not chunk and pipe in self._selector.get_map():
            self._selector.unregister(pipe)  # all writers have closed it
        return chunk
