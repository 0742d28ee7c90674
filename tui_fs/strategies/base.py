"""The base class of the strategies, and helpers that they share."""

import errno
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct, field
from msgspec.structs import replace

from tui_fs.linux.mounts import is_served
from tui_fs.model.calls import OTHER_CALLS, CallCount, Removed
from tui_fs.model.paths import PATH_MAX_BYTES, PathStr
from tui_fs.model.strategy import Filters, Guarantees, Options, Step, StrategyName
from tui_fs.model.survey import Survey
from tui_fs.model.target import Pin
from tui_fs.strategies.prediction import (
    CallCounts,
    CallTable,
    Work,
    apply,
    features,
    reopened_directories,
)
from tui_fs.strategies.unit_costs import CostRelation, UnitCosts

_OF_A_DIRECTORY = {"directories": 1, "non_empty": 1, "directory_reads": 2, "entries": 1}
"""Features of a tree that a directory with few files adds to, without the files."""


class Failure(Struct, frozen=True):
    """An entry that a tool could not delete, as its message names it.

    Attributes:
        error: errno, 0 if the message is not one of the C library's.
    """

    path: PathStr
    operation: str
    error: int


class Progress(Struct, frozen=True):
    """Entries that a line of a tool's output reports as removed."""

    entries: int
    directories: int


class Totals(Struct, frozen=True):
    """What a tool that counts its own calls has done since its start.

    Attributes:
        threads: that remove entries now.
        removal_ns: times of the unlinkat calls that were timed alone: the upper limit of each class
            in nanoseconds, and its number of calls.
    """

    removed: Removed = field(default_factory=lambda: Removed(0, 0))
    calls: dict[str, CallCount] = field(default_factory=dict)
    threads: int = 0
    removal_ns: dict[int, int] = field(default_factory=dict)


class Remark(Struct, frozen=True):
    """A line of a tool's standard output without counts, to be shown to the user."""

    text: str


Report = Progress | Totals | Failure | Remark


class Invocation(Struct, frozen=True):
    """What one run of a strategy's tools deletes, and with what.

    Attributes:
        targets: canonical absolute paths of as many as `at_once` permits, or the one ``.``.
        tools: absolute path of each tool.
        empty_directory: an empty directory of the job's own.
        with_output: report each removal on standard output.
    """

    targets: tuple[str, ...]
    options: Options
    tools: Mapping[str, str]
    empty_directory: str = ""
    with_output: bool = False


class Strategy(ABC):
    """A method of deletion: what runs, what its tools report, and what it costs.

    Attributes:
        tools: names of the programs it starts.
        gnu_tools: those of them whose GNU options it uses.
        measured_with: for each tool, how the first line of ``--version`` begins in the version
            that the call tables were measured with.
        calls: its usual `call_table`.
        call_reasons: why it makes its number of a call, where `CALL_GUIDES` does not say it.
        own_processes: processes that each run starts, without `child_processes`.
        memory_reason: why its largest process may need much memory.
        trade_off: its disadvantage, as the end of a sentence in the preview.
        rank: its place among all; of equally fast strategies the lowest is recommended, so no
            two have the same and those that are not race-safe come last.
        cost: the known relation of its unit costs to rm's before they are measured.
        has_threads: it may remove several entries at a time, and so be faster by much.
        has_batches: it has the options batch_size and processes.
        ends_with_rmdir: its last step is an rmdir of the targets, unless they are kept.
    """

    name: StrategyName
    tools: tuple[str, ...]
    gnu_tools: tuple[str, ...] = ()
    guarantees: Guarantees
    measured_with: Mapping[str, str] = {}
    calls: CallTable
    call_reasons: Mapping[str, str] = {}
    own_processes: int = 1
    memory_reason: str
    trade_off: str
    rank: int
    cost: CostRelation
    has_threads: bool = False
    has_batches: bool = False
    ends_with_rmdir: bool = False

    @abstractmethod
    def steps(self, run: Invocation) -> tuple[Step, ...]:
        """Return the exact command lines that will run."""

    def file_step(
        self, name: str, pin: Pin, tools: Mapping[str, str], *, with_output: bool = False
    ) -> Step:
        """Return the command that removes a single file, for a strategy that `takes_files`.

        Args:
            name: in the working directory.
        """
        del name, pin, tools, with_output
        raise NotImplementedError(f"{self.name} does not delete single files")

    def at_once(self, options: Options) -> int | None:
        """Return how many targets one run of its tools takes; None for any number."""
        del options
        return None

    @abstractmethod
    def parse_output(self, line: bytes) -> Report | None:
        """Return the report in a line of standard output, None if it has none."""

    @abstractmethod
    def parse_error(self, line: bytes) -> Failure | None:
        """Return the failed entry that a line of standard error names, None if it names none."""

    def call_table(self, options: Options) -> CallTable:
        """Return the calls per feature of a tree, for the tools of `measured_with`."""
        del options
        return self.calls

    def features(self, work: Work) -> dict[str, float]:
        """Return the counts that its calls depend on."""
        return features(work, self.child_processes(work))

    def predicted_calls(self, work: Work) -> CallCounts:
        """Return the calls of all processes together; with filters removals only."""
        matched = work.survey.matched
        if matched is not None:
            return CallCounts({"unlinkat": matched.entries}, None)
        return apply(self.call_table(work.options), self.features(work))

    def child_processes(self, work: Work) -> int:
        """Return how many processes its own processes start."""
        del work
        return 0

    def processes(self, work: Work) -> int:
        """Return how many processes run, forked ones among them."""
        return self.own_processes * work.runs + self.child_processes(work)

    @abstractmethod
    def peak_memory_bytes(self, work: Work) -> int:
        """Return about how much memory its largest process needs."""

    def unit_costs(self, work: Work, own: UnitCosts, rm: UnitCosts) -> tuple[UnitCosts, float]:
        """Return its unit costs in this tree, and the factor on costs measured with rm alone.

        Args:
            own: measured with it in small trees.
            rm: the same of rm.
        """
        del rm
        if not is_served(work.filesystem):
            return own, 1.0
        directories = max(1, work.survey.totals.directories)
        again = reopened_directories(work) / directories * self._answers_for_opening_again()
        return replace(own, directory_s=own.directory_s * (1 + again)), 1.0

    def _answers_for_opening_again(self) -> float:
        """Return how many answers of a server it takes, relative to a directory opened once.

        Small trees, in which the costs are measured, are not deep enough for it.
        """
        shares = [each for call, each in self.calls.items() if call != OTHER_CALLS]
        calls = sum(
            number * each.get(feature, 0.0)
            for each in shares
            for feature, number in _OF_A_DIRECTORY.items()
        )
        return sum(each.get("reopened", 0.0) for each in shares) / calls

    def repeated_starts(self, work: Work) -> float:
        """Return how many starts of child processes it waits for, one after the other."""
        del work
        return 0.0

    def path_levels(self, work: Work) -> int:
        """Return how many levels of paths the kernel walks for it, beyond the first of each."""
        del work
        return 0

    def limits(self, work: Work, versions: Mapping[str, str]) -> tuple[str, ...]:
        """Return why it cannot delete this tree, each a part of a sentence.

        Args:
            versions: of its tools the first line of ``--version``, as far as known.
        """
        del versions
        survey, max_levels = work.survey, self.guarantees.max_levels
        reasons: tuple[str, ...] = ()
        if not self.guarantees.any_depth:
            reasons = path_limit(self.name, self.longest_path_bytes(work))
        if max_levels is None:
            return reasons
        reason = f"{self.name} calls itself for each level"
        return (*reasons, *level_limit(reason, max_levels, survey))

    def longest_path_bytes(self, work: Work) -> int:
        """Return the length of the longest path by which it works; 0 where it has none."""
        cut = min(root_lengths(work.survey)) - 1 if work.is_inside else 0
        return work.survey.max_path_bytes - cut

    def options_in_words(self, options: Options) -> tuple[str, ...]:
        """Return the options that only this strategy has."""
        del options
        return ()


def root_lengths(survey: Survey) -> list[int]:
    """Return the lengths of the paths of the targets, in bytes."""
    paths = [root.path for root in survey.roots] or [survey.path]
    return [len(path.encode(errors="surrogateescape")) for path in paths]


def path_limit(name: str, longest_bytes: int) -> tuple[str, ...]:
    """Return that a path is too long for a strategy; nothing if it is not."""
    if longest_bytes < PATH_MAX_BYTES:
        return ()
    return (
        f"{name} works by path, and paths are limited to {PATH_MAX_BYTES:,} bytes; the longest "
        f"here has {longest_bytes:,}",
    )


def level_limit(reason: str, max_levels: int, survey: Survey) -> tuple[str, ...]:
    """Return that a tree has too many levels; nothing if it has not."""
    if survey.max_depth <= max_levels:
        return ()
    return (
        f"{reason} and stops at about {max_levels:,} levels; this tree has {survey.max_depth:,}",
    )


def version_in(line: str) -> tuple[int, int] | None:
    """Return the first two numbers of the version in a line; None if there is none."""
    match = re.search(r"(\d+)\.(\d+)", line)
    return (int(match[1]), int(match[2])) if match else None


@runtime_checkable
class ComparesPins(Protocol):
    """A strategy whose tool checks the pins again on its own descriptors."""

    def pinned(
        self, steps: tuple[Step, ...], pins: Sequence[Pin], *, on_own_mounts: bool = False
    ) -> tuple[Step, ...]:
        """Return the steps with the pins of their targets, which are in the same order.

        Args:
            on_own_mounts: confinement mounts each target for the tool.
        """
        ...


def find_tests(filters: Filters) -> tuple[str, ...]:
    """Return the find tests that are equivalent to the filters."""
    tests: list[str] = []
    if filters.active:
        tests += ["!", "-type", "d"]
    if filters.name_glob is not None:
        tests += ["-name", filters.name_glob]
    if filters.min_size_bytes is not None or filters.size_below_bytes is not None:
        tests += ["-type", "f"]
    if filters.min_size_bytes:
        tests += ["-size", f"+{filters.min_size_bytes - 1}c"]
    if filters.size_below_bytes is not None:
        tests += ["-size", f"-{filters.size_below_bytes}c"]
    if filters.modified_before_s is not None:
        tests += ["!", "-newermt", f"@{filters.modified_before_s}"]
    if filters.modified_after_s is not None:
        tests += ["-newermt", f"@{filters.modified_after_s}"]
    return tuple(tests)


def below_root(options: Options) -> tuple[str, ...]:
    """Return the find option that spares the target itself where it is to be kept."""
    return ("-mindepth", "1") if options.keep_root or options.filters.active else ()


def errno_of(text: str) -> int:
    """Return the errno whose message in the C locale is `text`, 0 if there is none."""
    return _ERRNO_BY_TEXT.get(text.strip(), 0)


_ERRNO_BY_TEXT = {os.strerror(number): number for number in sorted(errno.errorcode, reverse=True)}

# Compiled for the first message: that takes 1 ms, and commands print none.
_GNU_MESSAGE = rb"(?s)[^:]*: (?:(?:cannot|failed to) ([a-z ]+?) )?(['\"$].*): ([^:]+)"
_C_QUOTED = rb"'((?:[^'\\]|\\[0-3][0-7]{2}|\\[^0-7])*)'"
_SHELL_PART = rb"\$%s|'([^']*)'|\"([^\"]*)\"|\\(')" % _C_QUOTED
_SHELL_QUOTED = rb"(?:%s)+" % _SHELL_PART
_C_PART = rb"(?s)\\([0-7]{3})|\\(.)|([^\\]+)"
_C_ESCAPES = {
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
}


Unquote = Callable[[bytes], bytes | None]


def gnu_failure(line: bytes, unquote: Unquote) -> Failure | None:
    """Return the failure in a GNU tool's message, ``TOOL: cannot OPERATION 'NAME': REASON``.

    Args:
        unquote: undoes this tool's quoting of names; returns None for a name that is not
            quoted so, as in a line that two tools have written into.
    """
    match = re.fullmatch(_GNU_MESSAGE, line)
    name = None if match is None else unquote(match[2])
    if match is None or name is None:
        return None
    return Failure(
        PathStr(os.fsdecode(name)),
        (match[1] or b"read").decode("ascii"),
        errno_of(match[3].decode("utf-8", "replace")),
    )


def tool_of(line: bytes) -> bytes:
    """Return the name of the tool that begins a message, without its directory."""
    return line.partition(b":")[0].rpartition(b"/")[2]


def unquote_shell(quoted: bytes) -> bytes | None:
    """Undo coreutils' shell-escape quoting: ``'a'$'\\n''b'`` is a, newline, b."""
    if re.fullmatch(_SHELL_QUOTED, quoted) is None:
        return None
    return b"".join(
        _unescape_c(dollar) if dollar else single or double or backslashed
        for dollar, single, double, backslashed in re.findall(_SHELL_PART, quoted)
    )


def unquote_c(quoted: bytes) -> bytes | None:
    """Undo findutils' quoting in the C locale: ``'a\\nb'``."""
    match = re.fullmatch(_C_QUOTED, quoted)
    return None if match is None else _unescape_c(match[1])


def _unescape_c(text: bytes) -> bytes:
    return b"".join(
        bytes([int(octal, 8)]) if octal else _C_ESCAPES.get(letter, letter) or plain
        for octal, letter, plain in re.findall(_C_PART, text)
    )
