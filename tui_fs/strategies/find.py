"""GNU find -delete: one process, descends by descriptors, takes filters."""

from tui_fs.model.calls import OTHER_CALLS
from tui_fs.model.strategy import Guarantees, Step, StrategyName
from tui_fs.strategies.base import (
    Failure,
    Invocation,
    Progress,
    Strategy,
    below_root,
    find_tests,
    gnu_failure,
    unquote_c,
)
from tui_fs.strategies.fts import FTS_MEMORY, fts_bytes
from tui_fs.strategies.prediction import CallTable, Work
from tui_fs.strategies.unit_costs import CostRelation

_CALLS: CallTable = {
    "unlinkat": {"entries": 1, "kept": -1},
    "getdents64": {"directory_reads": 1},
    "openat": {"start": 7, "directories": 1, "reopened": 1},
    "newfstatat": {"start": 6, "directories": 3, "reopened": 1},
    "execve": {"start": 1},
    OTHER_CALLS: {"start": 60, "directories": 7, "non_empty": 2, "reopened": 1, "entries": 0.003},
}
"""find reads the status of directories only. Fitted as the table of rm."""

FIND_BYTES = 2_500 << 10
"""Memory of a find process that holds no names yet."""


class Find(Strategy):
    """``find TARGETS -xdev -depth -delete``."""

    name = StrategyName("find")
    tools = ("find", "rmdir")
    gnu_tools = ("find",)
    measured_with = {"find": "find (GNU findutils) 4.9"}
    memory_reason = FTS_MEMORY
    trade_off = "same names, same calls; useful with filters"
    rank = 2
    calls = _CALLS
    call_reasons = {
        "newfstatat": "It examines each directory three times. The type of a file is in the "
        "directory, so files need no call unless a filter needs their size or age.",
    }
    cost = CostRelation(0.0015, 1.0, (0.9, 1.3), (0.9, 2.5))
    guarantees = Guarantees(race_safe=True, mount_safe=True, any_depth=True, takes_filters=True)

    def steps(self, run: Invocation) -> tuple[Step, ...]:
        tests = (*below_root(run.options), "-depth", *find_tests(run.options.filters))
        output = ("-printf", "%y\\n") if run.with_output else ()
        return (((run.tools["find"], *run.targets, "-xdev", *tests, "-delete", *output),),)

    def parse_output(self, line: bytes) -> Progress | Failure | None:
        return Progress(1, 1 if line == b"d" else 0)

    def parse_error(self, line: bytes) -> Failure | None:
        return gnu_failure(line, unquote_c)

    def peak_memory_bytes(self, work: Work) -> int:
        return FIND_BYTES + fts_bytes(work.survey)
