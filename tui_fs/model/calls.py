"""System call counts and their sources."""

import errno
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from tui_fs.model.compat import StrEnum
from tui_fs.model.units import call_time, count


class CallGroup(StrEnum):
    """What calls are for; a table lists them in this order."""

    REMOVE = "remove"
    DIRECTORIES = "directories"
    EXAMINE = "examine"
    PROCESSES = "processes"
    START = "start-up"


class CallGuide(Struct, frozen=True):
    """What is known of a system call, as sentences for the user.

    Attributes:
        action: what the kernel does.
        reason: why a deletion makes it; a strategy with a reason of its own has that in its module.
        harmless: why it returns errors that no tool reports as a failure; a key of
            `HARMLESS_ERRORS`.
        man: its manual page.
        experiment: the experiment of the lab that shows it.
    """

    group: CallGroup
    action: str
    reason: str
    harmless: str
    man: str
    experiment: str


_UNLINK = CallGuide(
    CallGroup.REMOVE,
    "The kernel locks the directory, removes one name from it and lowers the link count of the "
    "inode. With the last link it also frees the inode and its blocks, unless a process has the "
    "file open.",
    "Every entry needs one call; no call removes several.",
    "gone",
    "unlink(2)",
    "ext4-vs-xfs",
)
_RMDIR = replace(
    _UNLINK,
    action="The kernel checks that the directory is empty, removes its name from the directory "
    "above and frees its inode.",
    reason="Every directory that is removed by path needs one call.",
    man="rmdir(2)",
)
_OPEN = CallGuide(
    CallGroup.DIRECTORIES,
    "The kernel looks up the path, checks the permissions and returns a descriptor. Calls relative "
    "to the descriptor of a directory cannot be led elsewhere by a renamed path.",
    "Every directory is opened to read it. Each process also opens its libraries at the start.",
    "searches",
    "open(2)",
    "tree-shapes",
)
_STAT = CallGuide(
    CallGroup.EXAMINE,
    "The kernel reads type, owner, size and times from the inode. An inode that is not in memory "
    "is read from the disk first.",
    "A directory is examined before and after it is opened, to detect that it was exchanged.",
    "searches",
    "stat(2)",
    "rsync-vs-rm",
)
_CLONE = CallGuide(
    CallGroup.PROCESSES,
    "The kernel creates a process or a thread, with a copy of the page tables of its parent unless "
    "they share memory.",
    "Each tool that another tool starts needs one call.",
    "retries",
    "clone(2)",
    "exec-vs-xargs",
)

HARMLESS_ERRORS = {
    "gone": "No failure was reported: the entry was gone already, or the tool tried again.",
    "searches": "A process searches several directories for its libraries and optional files.",
    "retries": "No failure was reported: the tool tried again.",
    "confined": "A confined tool may not remove the target itself, so rmdir does.",
    "not empty": "An entry is left in the directory, so rmdir cannot remove it. It is not counted "
    "as a further failure.",
}
"""What errors mean that are no failures, by the word for it in a table."""
NORMAL = "normal: "
"""What begins the words for errors that a run without any failure has, too."""

CALL_GUIDES = {
    "unlinkat": _UNLINK,
    "unlink": _UNLINK,
    "rmdir": _RMDIR,
    "open": _OPEN,
    "openat": _OPEN,
    "openat2": replace(
        _OPEN,
        action="The kernel opens a path like openat, and refuses it if it leads through a symbolic "
        "link or a mount, as the flags demand.",
        harmless="gone",
        man="openat2(2)",
    ),
    "getdents64": CallGuide(
        CallGroup.DIRECTORIES,
        "The kernel copies the next names of an open directory into a buffer, usually of 32 KiB. "
        "One more call, which returns nothing, reports the end.",
        "A directory of some thousand entries needs several calls, every directory at least two.",
        "gone",
        "getdents(2)",
        "tree-shapes",
    ),
    "stat": _STAT,
    "lstat": _STAT,
    "newfstatat": _STAT,
    "statx": replace(_STAT, man="statx(2)"),
    "execve": CallGuide(
        CallGroup.PROCESSES,
        "The kernel replaces the program of a process: it drops the old memory, maps the new file "
        "and starts its loader.",
        "Each tool is started once.",
        "searches",
        "execve(2)",
        "exec-vs-xargs",
    ),
    "clone": _CLONE,
    "vfork": replace(_CLONE, man="vfork(2)"),
}
"""The calls with their own row in a table."""

EXPLAINED_CALLS = frozenset(CALL_GUIDES)
REMOVING_CALLS = frozenset(
    name for name, guide in CALL_GUIDES.items() if guide.group is CallGroup.REMOVE
)

OTHER_CALLS = "other"
"""The key of all other calls in a prediction; no system call has this name."""
OTHER_CALLS_LABEL = "all others"
"""The label of the table row for all other calls."""
OTHER_CALLS_GUIDE = CallGuide(
    CallGroup.START,
    "These calls load libraries, get memory, change the current directory and close descriptors. "
    "None of them removes anything.",
    "Each process makes 30 to 400 at its start, and some for each directory.",
    "searches",
    "syscalls(2)",
    "exec-vs-xargs",
)

_OPERATIONS = {
    CallGroup.DIRECTORIES: {"open", "opendir", "read", "readdir", "enter", "access", "chdir"},
    CallGroup.EXAMINE: {"stat", "lstat", "fstat", "readlink_stat", "statx"},
    CallGroup.PROCESSES: {"run", "fork", "exec"},
}
"""The operations of failures, as tools name them; all others are removals."""


def guide_of(name: str) -> CallGuide:
    """Return what is known of a call, or of all others."""
    return CALL_GUIDES.get(name, OTHER_CALLS_GUIDE)


def group_of_operation(operation: str) -> CallGroup:
    """Return the group of the call whose failure a tool reports under this name."""
    word = operation.partition(" ")[0]
    for group, operations in _OPERATIONS.items():
        if word in operations:
            return group
    return CallGroup.REMOVE


class TraceSource(StrEnum):
    """The source of the counts."""

    PERF = "perf"
    ENGINE = "engine"
    BPF = "bpf"
    STRACE = "strace"
    OUTPUT = "output"
    OFF = "off"


_WAITS_FROM_S, _LONG_P99, _LONG_MEAN = 200e-6, 20, 3
"""A removal takes 2 to 20 µs where nothing waits, also under bpftrace. A few take long
if the p99 or the mean is this multiple of the p50: 1 in 100 can take most of the time."""


_MIN_TIMED_CALLS = 100


def quantiles_s(classes: Sequence[tuple[int, int]]) -> tuple[float, float] | None:
    """Return the upper limits of the classes with the median and the 99th percentile, in seconds.

    None for fewer than 100 calls, which have no 99th percentile.

    Args:
        classes: upper limits in nanoseconds, ascending, and numbers.
    """
    limits, numbers = zip(*classes, strict=True) if classes else ((), ())
    sums = list(accumulate(numbers))
    if not sums or sums[-1] < _MIN_TIMED_CALLS:
        return None
    p50, p99 = (limits[bisect_left(sums, share * sums[-1])] / 1e9 for share in (0.5, 0.99))
    return p50, p99


class CallCount(Struct, frozen=True):
    """The number of returns of a system call, and of those with an error.

    Attributes:
        seconds: time spent in the call, None if the source does not measure it.
        quantiles_s: a time that half of the calls did not exceed, and one that 99 of 100 did not;
            None if the source does not measure them.
        timed_calls: how many calls the quantiles are of; None for all.
    """

    calls: int
    errors: int = 0
    seconds: float | None = None
    quantiles_s: tuple[float, float] | None = None
    timed_calls: int | None = None

    @property
    def times_text(self) -> str:
        """The quantiles in words; empty if they are unknown."""
        if self.quantiles_s is None:
            return ""
        p50, p99 = map(call_time, self.quantiles_s)
        words = f"p50 {p50}, p99 {p99}"
        if not self.timed_calls:
            return words
        return f"{words} (sampled: 1 in {max(1, round(self.calls / self.timed_calls))})"

    @property
    def waits_text(self) -> str:
        """What the quantiles mean for the choice of strategy, if the call removes entries."""
        if self.quantiles_s is None:
            return ""
        p50_s, p99_s = self.quantiles_s
        if p50_s > _WAITS_FROM_S:
            return (
                "Most of them took long: they waited for a server, a disk or a lock, or freed "
                "large files. More threads (strategy parallel) wait at the same time, but hardly "
                "within one directory."
            )
        mean_s = (self.seconds or 0.0) / max(1, self.calls)
        if p99_s > _LONG_P99 * p50_s or mean_s > _LONG_MEAN * p50_s:
            return (
                "A few took far longer: they waited for a lock, the journal, the disk or a "
                "processor, or freed a large file. Another strategy would meet that, too."
            )
        return "They hardly waited, so waits are no reason to choose another strategy."


class Removed(Struct, frozen=True):
    """The numbers of removed entries so far.

    Attributes:
        directories: None if the source cannot distinguish directories from files.
    """

    entries: int
    directories: int | None = None


class FailedKind(Protocol):
    """A number of entries that failed alike."""

    @property
    def operation(self) -> str:
        """What failed, as the tool names it."""

    @property
    def error(self) -> int:
        """The errno; 0 if it is not known."""

    @property
    def number(self) -> int:
        """How often."""


def failed_by_operation(kinds: Iterable[FailedKind]) -> Counter[str]:
    """Return the number of failures of each operation; an entry that was gone is none."""
    failed: Counter[str] = Counter()
    for kind in kinds:
        if kind.error != errno.ENOENT:
            failed[kind.operation] += kind.number
    return failed


class Failures(Struct, frozen=True):
    """What is known of the failures of a job, to distinguish its errors from harmless ones.

    Attributes:
        by_operation: the number of entries that failed in each operation.
        has_messages: the tools also wrote messages that name no entry.
        confined_targets: targets whose removal the kernel refuses to the confined tools.
        is_final: the tools have ended. A running tool reports a failure after the kernel has
            counted the error, up to a second after it if it is stopped in between.
        is_target_left: a target was not removed in the end.
    """

    by_operation: Mapping[str, int] = field(default_factory=dict)
    has_messages: bool = False
    confined_targets: int = 0
    is_final: bool = True
    is_target_left: bool = False

    def note_on(self, name: str, errors: int, rmdir_errors: int = 0) -> tuple[str, bool]:
        """Return why a call returned errors, and whether entries failed in it.

        Args:
            name: of a system call, or `OTHER_CALLS_LABEL`.
            rmdir_errors: those of rmdir(2). A directory that it finds not empty is no further
                failure if something in the directory failed.
        """
        if not errors:
            return "", False
        guide = guide_of(name)
        failed = sum(
            number
            for operation, number in self.by_operation.items()
            if group_of_operation(operation) is guide.group
        )
        if guide.group is CallGroup.REMOVE:
            by_rmdir = min(self.by_operation.get("rmdir", 0), rmdir_errors)
            if name == "rmdir" and not by_rmdir and (failed or self.is_target_left):
                return "not empty", False
            failed = by_rmdir if name == "rmdir" else failed - by_rmdir
        if failed:
            number = f"{count(min(failed, errors))} " if self.is_final else ""
            return f"{number}failed", True
        if guide.group is CallGroup.REMOVE and errors <= self.confined_targets:
            return f"{NORMAL}confined", False
        # rm reports a directory that it cannot open as one that it cannot remove.
        is_certain = not self.by_operation and not self.has_messages
        if is_certain or guide.group is CallGroup.START:
            return f"{NORMAL}{guide.harmless}", False
        return "see the errors", False


class CallLine(Struct, frozen=True):
    """A row of a table with counted and predicted calls.

    Attributes:
        name: of a system call, or `OTHER_CALLS_LABEL`.
        predicted: 0 without a prediction.
        predicted_text: empty without a prediction.
        note: why calls returned errors, in a few words.
        has_failed: whether entries failed in this call.
    """

    name: str
    counted: CallCount
    predicted: int
    predicted_text: str
    note: str = ""
    has_failed: bool = False

    @property
    def guide(self) -> CallGuide:
        """What is known of the call."""
        return guide_of(self.name)


def call_lines(
    counted: Mapping[str, CallCount],
    predicted: Mapping[str, int],
    predicted_other: int | None,
    failures: Failures,
) -> list[CallLine]:
    """Return one line for each call in `EXPLAINED_CALLS`, and one for all others, by group.

    Args:
        predicted: calls by name.
        predicted_other: approximate number of predicted calls not in `predicted`; None if unknown.
        failures: the known failures of the job.
    """
    lines = []
    rmdir_errors = counted.get("rmdir", CallCount(0)).errors
    for name in {*counted, *predicted} & EXPLAINED_CALLS:
        calls, number = counted.get(name, CallCount(0)), predicted.get(name, 0)
        if counted:
            note = failures.note_on(name, calls.errors, rmdir_errors)
            lines.append(CallLine(name, calls, number, count(number) if number else "", *note))
    lines.sort(key=line_order)
    other_calls = [calls for name, calls in counted.items() if name not in EXPLAINED_CALLS]
    if other_calls:
        seconds = [calls.seconds for calls in other_calls if calls.seconds is not None]
        total = CallCount(
            sum(calls.calls for calls in other_calls),
            sum(calls.errors for calls in other_calls),
            sum(seconds) if len(seconds) == len(other_calls) else None,
        )
        text = "" if predicted_other is None else about_text(predicted_other)
        note = failures.note_on(OTHER_CALLS_LABEL, total.errors)
        lines.append(CallLine(OTHER_CALLS_LABEL, total, 0, text, *note))
    return lines


_GROUPS = tuple(CallGroup)


def line_order(line: CallLine) -> tuple[int, int, int, str]:
    """Return the place of a line in a table: by group, then the most frequent first."""
    group = _GROUPS.index(line.guide.group)
    return group, -line.predicted, -line.counted.calls, line.name


def about_text(number: int) -> str:
    """Return the text of a number of calls that is only predicted approximately."""
    digits = len(str(number))
    return f"about {count(round(number, 2 - digits))}" if digits > 2 else f"about {number}"


def removal_times(counts: Mapping[str, CallCount]) -> list[tuple[str, str]]:
    """Return the known times of the removing calls, each with its name."""
    times = ((name, counts[name].times_text) for name in counts if name in REMOVING_CALLS)
    return [(label, text) for label, text in times if text]


def added_up(counts: Iterable[Mapping[str, CallCount]]) -> dict[str, CallCount]:
    """Return the sums by name of several counts that all have times."""
    sums: dict[str, CallCount] = {}
    for calls in counts:
        for name, call in calls.items():
            before = sums.get(name, CallCount(0, 0, 0.0))
            seconds = (before.seconds or 0.0) + (call.seconds or 0.0)
            sums[name] = CallCount(before.calls + call.calls, before.errors + call.errors, seconds)
    return sums
