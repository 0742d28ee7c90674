"""The interface of the sources of system call counts."""

from msgspec import Struct, field

from tui_fs.model.calls import CallCount, Removed, TraceSource
from tui_fs.model.strategy import Argv


class Counts(Struct, frozen=True):
    """Totals since the start.

    Attributes:
        removed: entries removed by successful unlink, unlinkat and rmdir calls; None where
            the source does not count calls.
        lock_wait_s: how long all threads slept until a lock was free; None where the source does
            not measure it.
    """

    calls: dict[str, CallCount] = field(default_factory=dict)
    removed: Removed | None = None
    lock_wait_s: float | None = None


class CallSource:
    """A counter of the system calls of a strategy's processes; this one counts nothing.

    The life of a source: `wrap` each command line; `prepare` once, before the launcher has
    started anything; `attach` to each process that is about to execute a tool and `step_ended`
    when all these have ended, for each step; `read` as often as wanted; `close` once.

    Attributes:
        kind: OUTPUT or ENGINE if the output of the tool counts instead.
    """

    def __init__(self, kind: TraceSource, note: str) -> None:
        self.kind = kind
        self.note = note

    @property
    def is_whole(self) -> bool:
        """Whether the counts so far are complete."""
        return True

    def wrap(self, argv: Argv) -> Argv:
        """Return the command line that runs `argv` under this source."""
        return argv

    def prepare(self, launcher_pid: int) -> None:
        """Get ready for the children of the launcher; Missing if that is not permitted."""

    def attach(self, pid: int) -> None:
        """Count the process `pid` from its next execve on, and all its descendants."""

    def step_ended(self) -> None:
        """Keep the counts of the processes attached so far; all of them have exited."""

    def read(self, refused_directories: int = 0) -> Counts:
        """Return the counts so far.

        Args:
            refused_directories: failed removals that are known to have been of directories.
        """
        del refused_directories
        return Counts()

    def removed(self) -> int | None:
        """Return the entries removed so far, quickly; None where calls are not counted."""
        removed = self.read().removed
        return None if removed is None else removed.entries

    def close(self) -> None:
        """Release all resources; may wait for the kernel."""
