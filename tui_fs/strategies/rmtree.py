"""Python's shutil.rmtree in a process of its own: the reference for scripts and py-spy."""

import os
import re
from collections.abc import Mapping

from tui_fs.model.calls import OTHER_CALLS, OTHER_CALLS_LABEL
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Guarantees, Step, StrategyName
from tui_fs.model.target import Pin
from tui_fs.strategies.base import Failure, Invocation, Progress, Strategy
from tui_fs.strategies.prediction import CallTable, Work, mean_name_bytes
from tui_fs.strategies.unit_costs import CostRelation

# Compiled for the first message, as those of `base`.
_FAILED = rb"(?s)rmtree: (\w+): (\d{1,4}): (.*)"
_ESCAPE = rb"(?s)\\(.)"
_CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rmtree_child.py")
"""Not imported here: loading shutil takes some milliseconds of every command."""

EXIT_EXCHANGED = 3
"""Of the child: another process exchanged the file between the last comparison and its removal."""

MAX_LEVELS = 900
"""shutil.rmtree calls itself for each level, and Python permits 1,000 nested calls."""

_CALLS: CallTable = {
    "unlinkat": {"entries": 1, "targets": -1},
    "rmdir": {"targets": 1, "kept": -1},
    "getdents64": {"start": 10, "directory_reads": 1},
    "openat": {"start": 67, "directories": 1},
    "newfstatat": {"start": 213, "directories": 4},
    "execve": {"start": 1},
    OTHER_CALLS: {"start": 380, "directories": 6},
}
"""shutil.rmtree stats, opens and compares each directory, reads it through its own descriptor
and removes it. The calls of the interpreter's start differ by some dozens between installations.
Fitted as the table of rm."""

_PYTHON_BYTES = 11_000 << 10
"""Memory of a process that holds no names yet."""
_FILE_BYTES, _DIRECTORY_BYTES = 155, 850
"""An os.DirEntry with its slot in a list, without the name; for a directory with its status."""
_LEVEL_BYTES = 2_900
"""Frames of one nested call of shutil.rmtree."""


class Rmtree(Strategy):
    """``python -I -S rmtree_child.py TARGETS``."""

    name = StrategyName("rmtree")
    tools = ("python", "rmdir")
    measured_with = {"python": "Python 3.11"}
    memory_reason = "keeps all names of a directory in memory"
    trade_off = "same calls as rm plus interpreter overhead; useful as a reference"
    rank = 4
    calls = _CALLS
    call_reasons = {
        "openat": "It opens each directory once. The Python interpreter opens about 70 files at "
        "its start.",
        "newfstatat": "It examines each directory four times, to detect that it was exchanged "
        "for a link. The interpreter makes about 200 calls at its start.",
        OTHER_CALLS_LABEL: "The Python interpreter makes about 400 calls at its start, and six "
        "for each directory.",
    }
    cost = CostRelation(0.03, 1.3, (0.9, 2.5), (0.9, 2.5))
    guarantees = Guarantees(
        race_safe=True,
        mount_safe=True,
        any_depth=True,
        takes_filters=False,
        max_levels=MAX_LEVELS,
        takes_files=True,
    )

    def steps(self, run: Invocation) -> tuple[Step, ...]:
        flags = ("--report",) if run.with_output else ()
        keep = ("--keep-root",) if run.options.keep_root else ()
        return (((run.tools["python"], "-I", "-S", _CHILD, *flags, *keep, "--", *run.targets),),)

    def file_step(
        self, name: str, pin: Pin, tools: Mapping[str, str], *, with_output: bool = False
    ) -> Step:
        flags = ("--report",) if with_output else ()
        identity = f"{pin.device}:{pin.inode}"
        return ((tools["python"], "-I", "-S", _CHILD, *flags, "--file", identity, "--", name),)

    def parse_output(self, line: bytes) -> Progress | Failure | None:
        if line == b"removed":
            return Progress(1, 0)
        return Progress(1, 1) if line == b"removed directory" else None

    def parse_error(self, line: bytes) -> Failure | None:
        match = re.fullmatch(_FAILED, line)
        if match is None:
            return None
        path = re.sub(_ESCAPE, lambda code: b"\n" if code[1] == b"n" else code[1], match[3])
        return Failure(PathStr(os.fsdecode(path)), match[1].decode("ascii"), int(match[2]))

    def peak_memory_bytes(self, work: Work) -> int:
        survey, totals = work.survey, work.survey.totals
        share = totals.directories / max(1, totals.entries)
        directories = min(totals.directories, int(survey.max_entries_in_directory * share))
        files = survey.max_entries_in_directory - directories
        held_bytes = files * (_FILE_BYTES + mean_name_bytes(survey))
        held_bytes += directories * _DIRECTORY_BYTES + survey.max_depth * _LEVEL_BYTES
        return int(_PYTHON_BYTES + held_bytes)
