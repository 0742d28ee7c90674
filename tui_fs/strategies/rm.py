"""GNU rm: one process, descends by descriptors, sorts large directories by inode."""

import errno
import math
import os
import re
from collections.abc import Mapping

from tui_fs.model.calls import OTHER_CALLS
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Argv, Guarantees, Options, Step, StrategyName
from tui_fs.strategies.base import (
    Failure,
    Invocation,
    Progress,
    Strategy,
    gnu_failure,
    unquote_shell,
    version_in,
)
from tui_fs.strategies.fts import COMMAND_BYTES, FTS_MEMORY, RM_ARGV_BYTES, fts_bytes
from tui_fs.strategies.prediction import CallTable, Work, mean_name_bytes
from tui_fs.strategies.unit_costs import CostRelation

_CALLS: CallTable = {
    "unlinkat": {"entries": 1},
    "getdents64": {"directory_reads": 1, "non_empty": 1},
    "openat": {"start": 2, "directories": 1, "non_empty": 1, "reopened": 1},
    "newfstatat": {"start": 3, "directories": 2, "non_empty": 1, "reopened": 1},
    "execve": {"start": 1},
    OTHER_CALLS: {"start": 32, "directories": 3, "non_empty": 5, "reopened": 1, "entries": 0.003},
}
"""rm reads every non-empty directory once more. Fitted to kernel counters over 30
shapes of trees on ext4, xfs and tmpfs; the coefficients came out as whole numbers."""

_CALLS_KEEPING_ROOT: CallTable = {
    "unlinkat": {"entries": 1, "kept": -1},
    "getdents64": {"directory_reads": 1, "non_empty": 1, "start": -1},
    "openat": {"start": 8, "children": 2, "directories": 1, "non_empty": 1, "reopened": 1},
    "newfstatat": {
        "start": 7,
        "children": 2,
        "top_non_directories": 1,
        "top_directories": 2,
        "directories": 2,
        "non_empty": 1,
        "reopened": 1,
    },
    "execve": {"start": 1, "children": 1},
    "clone": {"children": 1},
    OTHER_CALLS: {
        "start": 68,
        "children": 34,
        "top_directories": 2,
        "directories": 3,
        "non_empty": 5,
        "reopened": 1,
        "entries": 0.003,
    },
}
"""find starts rm, which reads the status of each of its arguments."""

_PRESERVES_ALL_SINCE = (8, 30)

RM_BYTES = 1_400 << 10
_FIND_BYTES = 2_500 << 10
"""Memory of a process that holds no names yet."""

_SKIPPED = re.compile(rb"[^:]*: skipping (.*), since it's on a different device", re.DOTALL)


class Rm(Strategy):
    """``rm -rf --one-file-system``; to keep a target, find hands its entries to rm.

    find's -execdir starts rm inside the directory itself, so no path is walked twice.
    """

    name = StrategyName("rm")
    tools = ("rm", "find", "rmdir")
    gnu_tools = ("rm", "find")
    measured_with = {"rm": "rm (GNU coreutils) 9.1", "find": "find (GNU findutils) 4.9"}
    memory_reason = FTS_MEMORY
    trade_off = "it removes the same names one by one"
    rank = 1
    calls = _CALLS
    call_reasons = {
        "getdents64": "It reads a directory in pieces, and each directory that is not empty once "
        "more before it removes it.",
        "openat": "It opens each directory once, and each that is not empty a second time before "
        "it removes it. In a deep tree it also opens .. on the way back.",
        "newfstatat": "It examines each directory two or three times, and no files.",
    }
    cost = CostRelation(0.001, 1.0, (1.0, 1.0), (1.0, 1.0))
    guarantees = Guarantees(race_safe=True, mount_safe=True, any_depth=True, takes_filters=False)

    def steps(self, run: Invocation) -> tuple[Step, ...]:
        flags = "-rfv" if run.with_output else "-rf"
        rm: Argv = (run.tools["rm"], flags, "--one-file-system")
        if not run.options.keep_root:
            return (((*rm, "--", *run.targets),),)
        # each entry is an argument here, and only this makes rm refuse one that is a mount point
        rm = (*rm, "--preserve-root=all", "--")
        top = (run.tools["find"], *run.targets, "-xdev", "-mindepth", "1", "-maxdepth", "1")
        return (((*top, "-execdir", *rm, "{}", "+"),),)

    def at_once(self, options: Options) -> int | None:
        """See `Strategy.at_once`; started by find, rm reports paths relative to one target."""
        return 1 if options.keep_root else None

    def parse_output(self, line: bytes) -> Progress | Failure | None:
        if not line.startswith(b"removed "):
            return None
        return Progress(1, 1 if line.startswith(b"removed directory ") else 0)

    def parse_error(self, line: bytes) -> Failure | None:
        skipped = _SKIPPED.fullmatch(line)
        name = None if skipped is None else unquote_shell(skipped[1])
        if name is not None:
            return Failure(PathStr(os.fsdecode(name)), "enter", errno.EXDEV)
        return gnu_failure(line, unquote_shell)

    def call_table(self, options: Options) -> CallTable:
        return _CALLS_KEEPING_ROOT if options.keep_root else _CALLS

    def child_processes(self, work: Work) -> int:
        """See `Strategy.child_processes`; their arguments are the entries of the target."""
        survey = work.survey
        if not work.options.keep_root:
            return 0
        entries = survey.top_directories + survey.top_non_directories
        if not entries:
            return work.runs if survey.totals.entries > work.targets else 0
        each_bytes = len("./") + mean_name_bytes(survey) + 1
        started = math.ceil(entries / max(1, (COMMAND_BYTES - RM_ARGV_BYTES) // each_bytes))
        return max(work.runs, started)

    def peak_memory_bytes(self, work: Work) -> int:
        rm_bytes = RM_BYTES + fts_bytes(work.survey)
        return max(rm_bytes, _FIND_BYTES) if work.options.keep_root else rm_bytes

    def limits(self, work: Work, versions: Mapping[str, str]) -> tuple[str, ...]:
        """See `Strategy.limits`; to keep a target it uses ``--preserve-root=all``."""
        version = version_in(versions.get("rm", ""))
        if not work.options.keep_root or version is None or version >= _PRESERVES_ALL_SINCE:
            return ()
        number = ".".join(map(str, version))
        return (
            f"rm {number} does not support --preserve-root=all; install coreutils 8.30 or later",
        )
