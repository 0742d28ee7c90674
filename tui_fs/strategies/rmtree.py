"""Python's shutil.rmtree in a process of its own: scripts use it, and py-spy can look into it."""

import os
import re
from collections.abc import Mapping

from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Guarantees, Options, Step, StrategyName
from tui_fs.strategies.base import Failure, Progress

_FAILED = re.compile(rb"rmtree: (\w+): (\d{1,4}): (.*)", re.DOTALL)
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
_CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rmtree_child.py")
"""Not imported here: loading shutil takes some milliseconds of every command."""

MAX_LEVELS = 900
"""shutil.rmtree calls itself for each level, and Python allows 1,000 calls inside each other."""


class Rmtree:
    """``python -I -S rmtree_child.py TARGETS``."""

    name = StrategyName.RMTREE
    tools = ("python", "rmdir")
    gnu_tools = ()
    guarantees = Guarantees(
        race_safe=True,
        mount_safe=True,
        any_depth=True,
        takes_filters=False,
        max_levels=MAX_LEVELS,
    )

    def steps(
        self,
        targets: tuple[str, ...],
        options: Options,
        tools: Mapping[str, str],
        empty_directory: str,
    ) -> tuple[Step, ...]:
        """See `Strategy.steps`."""
        del empty_directory
        return self._steps(targets, options, tools, ())

    def steps_with_output(
        self,
        targets: tuple[str, ...],
        options: Options,
        tools: Mapping[str, str],
        empty_directory: str,
    ) -> tuple[Step, ...]:
        """See `Strategy.steps_with_output`."""
        del empty_directory
        return self._steps(targets, options, tools, ("--tell",))

    def at_once(self, options: Options) -> int | None:
        """See `Strategy.at_once`."""
        del options
        return None

    def read_output(self, line: bytes) -> Progress | Failure | None:
        """See `Strategy.read_output`."""
        if line == b"removed":
            return Progress(1, 0)
        return Progress(1, 1) if line == b"removed directory" else None

    def failure(self, line: bytes) -> Failure | None:
        """See `Strategy.failure`."""
        match = _FAILED.fullmatch(line)
        if match is None:
            return None
        path = _ESCAPE.sub(lambda code: b"\n" if code[1] == b"n" else code[1], match[3])
        return Failure(PathStr(os.fsdecode(path)), match[1].decode("ascii"), int(match[2]))

    @staticmethod
    def _steps(
        targets: tuple[str, ...],
        options: Options,
        tools: Mapping[str, str],
        flags: tuple[str, ...],
    ) -> tuple[Step, ...]:
        keep = ("--keep-root",) if options.keep_root else ()
        return (((tools["python"], "-I", "-S", _CHILD, *flags, *keep, "--", *targets),),)
