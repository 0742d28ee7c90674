"""GNU rm: one process, descends by descriptors, sorts large directories by inode."""

import errno
import os
import re
from collections.abc import Mapping

from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Argv, Guarantees, Options, Step, StrategyName
from tui_fs.strategies.base import Failure, Progress, gnu_failure, unquote_shell

_SKIPPED = re.compile(rb"[^:]*: skipping (.*), since it's on a different device", re.DOTALL)


class Rm:
    """``rm -rf --one-file-system``; to keep a target, find hands its entries to rm.

    find's -execdir starts rm inside the directory itself, so no path is walked twice.
    """

    name = StrategyName.RM
    tools = ("rm", "find", "rmdir")
    gnu_tools = ("rm", "find")
    guarantees = Guarantees(race_safe=True, mount_safe=True, any_depth=True, takes_filters=False)

    def steps(
        self,
        targets: tuple[str, ...],
        options: Options,
        tools: Mapping[str, str],
        empty_directory: str,
    ) -> tuple[Step, ...]:
        """See `Strategy.steps`."""
        del empty_directory
        return self._steps(targets, options, tools, "-rf")

    def steps_with_output(
        self,
        targets: tuple[str, ...],
        options: Options,
        tools: Mapping[str, str],
        empty_directory: str,
    ) -> tuple[Step, ...]:
        """See `Strategy.steps_with_output`."""
        del empty_directory
        return self._steps(targets, options, tools, "-rfv")

    def at_once(self, options: Options) -> int | None:
        """See `Strategy.at_once`; started by find, rm names entries only as they lie below one."""
        return 1 if options.keep_root else None

    def read_output(self, line: bytes) -> Progress | Failure | None:
        """See `Strategy.read_output`."""
        if not line.startswith(b"removed "):
            return None
        return Progress(1, 1 if line.startswith(b"removed directory ") else 0)

    def failure(self, line: bytes) -> Failure | None:
        """See `Strategy.failure`."""
        skipped = _SKIPPED.fullmatch(line)
        name = None if skipped is None else unquote_shell(skipped[1])
        if name is not None:
            return Failure(PathStr(os.fsdecode(name)), "enter", errno.EXDEV)
        return gnu_failure(line, unquote_shell)

    @staticmethod
    def _steps(
        targets: tuple[str, ...], options: Options, tools: Mapping[str, str], flags: str
    ) -> tuple[Step, ...]:
        rm: Argv = (tools["rm"], flags, "--one-file-system")
        if not options.keep_root:
            return (((*rm, "--", *targets),),)
        # each entry is an argument here, and only this keeps rm from one that is a mount point
        rm = (*rm, "--preserve-root=all", "--")
        top = (tools["find"], *targets, "-xdev", "-mindepth", "1", "-maxdepth", "1")
        return (((*top, "-execdir", *rm, "{}", "+"),),)
