"""find | xargs rm: shows the effect of the batch size; deletes by path, so it is not race-safe."""

import math

from tui_fs.model.calls import OTHER_CALLS, OTHER_CALLS_LABEL
from tui_fs.model.strategy import Guarantees, Options, Step, StrategyName
from tui_fs.model.units import count
from tui_fs.strategies.base import (
    Failure,
    Invocation,
    Progress,
    Strategy,
    below_root,
    find_tests,
    gnu_failure,
    tool_of,
    unquote_c,
    unquote_shell,
)
from tui_fs.strategies.find import FIND_BYTES
from tui_fs.strategies.fts import (
    COMMAND_BYTES,
    FTS_MEMORY,
    RM_ARGV_BYTES,
    entry_bytes,
    fts_bytes,
)
from tui_fs.strategies.prediction import CallTable, Work
from tui_fs.strategies.rm import RM_BYTES
from tui_fs.strategies.unit_costs import CostRelation

_CALLS: CallTable = {
    "unlinkat": {"entries": 1, "kept": -1},
    "getdents64": {"start": 2, "directory_reads": 1, "directories": 2},
    "openat": {"start": 17, "directories": 2, "reopened": 2, "children": 3},
    "newfstatat": {
        "start": 17,
        "directories": 6,
        "non_directories": 1,
        "reopened": 2,
        "children": 2,
    },
    "execve": {"start": 3, "children": 1},
    "clone": {"children": 1},
    OTHER_CALLS: {
        "start": 166,
        "directories": 14,
        "non_empty": 2,
        "parents": 2,
        "reopened": 2,
        "children": 44,
        "entries": 0.003,
        "path_bytes": 2 / 4096,
    },
}
"""Two find (names, then emptied directories), an xargs that reads names through a buffer of 4 KiB,
and an rm for each batch, which reads the status of each argument. Fitted as the table of rm."""


class Xargs(Strategy):
    """Files in batches through xargs and rm, then the directories with find -delete."""

    name = StrategyName("xargs")
    tools = ("find", "xargs", "rm", "rmdir")
    gnu_tools = ("find", "xargs", "rm")
    measured_with = {
        "find": "find (GNU findutils) 4.9",
        "xargs": "xargs (GNU findutils) 4.9",
        "rm": "rm (GNU coreutils) 9.1",
    }
    own_processes = 3
    has_batches = True
    memory_reason = FTS_MEMORY
    trade_off = (
        "it starts an rm for every batch of names, reads each directory twice, and works by path"
    )
    rank = 6
    calls = _CALLS
    call_reasons = {
        "getdents64": "Two find processes read each directory: one for the names of its files, "
        "one to remove the empty directory.",
        "openat": "Two find processes open each directory, and each rm opens its libraries.",
        "newfstatat": "Each rm examines every file that it is to remove, and find examines each "
        "directory six times.",
        "execve": "xargs starts an rm for every batch of names. Larger batches need fewer.",
        "clone": "xargs creates a process for every batch of names. Larger batches need fewer.",
        OTHER_CALLS_LABEL: "Each rm makes 44 calls to load its libraries. Larger batches need "
        "fewer.",
    }
    cost = CostRelation(0.004, 1.2, (0.9, 1.8), (0.9, 2.5))
    guarantees = Guarantees(race_safe=False, mount_safe=True, any_depth=False, takes_filters=True)

    def steps(self, run: Invocation) -> tuple[Step, ...]:
        rm_flags = "-fv" if run.with_output else "-f"
        directory_output = ("-printf", "%y\\n") if run.with_output else ()
        filters = run.options.filters
        tests = find_tests(filters) if filters.active else ("!", "-type", "d")
        names = (run.tools["find"], *run.targets, "-xdev", *tests, "-print0")
        batches = (
            *(run.tools["xargs"], "-0", "-r"),
            *("-n", str(run.options.batch_size), "-P", str(run.options.processes)),
            *(run.tools["rm"], rm_flags, "--"),
        )
        if filters.active:
            return ((names, batches),)
        keep = below_root(run.options)
        delete = ("-depth", "-type", "d", "-delete")
        directories = (run.tools["find"], *run.targets, "-xdev", *keep, *delete)
        return ((names, batches), ((*directories, *directory_output),))

    def parse_output(self, line: bytes) -> Progress | Failure | None:
        """See `Strategy.parse_output`.

        Several rm processes write in pieces to one pipe. Lines may be torn, but each removal still
        ends one line.
        """
        return Progress(1, 1 if line == b"d" else 0)

    def parse_error(self, line: bytes) -> Failure | None:
        """See `Strategy.parse_error`; rm and find quote names differently."""
        return gnu_failure(line, unquote_c if tool_of(line) == b"find" else unquote_shell)

    def child_processes(self, work: Work) -> int:
        """See `Strategy.child_processes`: an rm for each batch, by number or by length of paths.

        The prediction uses the mean length. There are more if path lengths differ widely.
        """
        names = work.survey.totals.non_directories
        if not names:
            return 0
        fitting = (COMMAND_BYTES - RM_ARGV_BYTES) / (self._path_bytes(work) + 1)
        batch = min(work.options.batch_size, max(1, int(fitting)))
        return max(work.runs, math.ceil(names / batch))

    def peak_memory_bytes(self, work: Work) -> int:
        """See `Strategy.peak_memory_bytes`; an rm holds its arguments and their entries."""
        find_bytes = FIND_BYTES + fts_bytes(work.survey)
        batches = self.child_processes(work)
        if not batches:
            return find_bytes
        path_bytes = self._path_bytes(work)
        names = work.survey.totals.non_directories / batches
        return max(find_bytes, int(RM_BYTES + names * (entry_bytes(path_bytes) + path_bytes)))

    def repeated_starts(self, work: Work) -> float:
        return self.child_processes(work) / work.options.processes

    def path_levels(self, work: Work) -> int:
        """See `Strategy.path_levels`; the first level is in the cost of a name."""
        return max(0, work.survey.non_directory_levels - work.survey.totals.non_directories)

    def longest_path_bytes(self, work: Work) -> int:
        """See `Strategy.longest_path_bytes`: rm gets paths of files; find takes directories."""
        return super().longest_path_bytes(work) if work.survey.totals.non_directories else 0

    def options_in_words(self, options: Options) -> tuple[str, ...]:
        return f"batch size {count(options.batch_size)}", f"processes {options.processes}"

    @staticmethod
    def _path_bytes(work: Work) -> float:
        """Return the mean length of the paths that find prints."""
        survey = work.survey
        cut = len(survey.path.encode(errors="surrogateescape")) - 1 if work.is_inside else 0
        mean_bytes = survey.non_directory_path_bytes / survey.totals.non_directories
        return max(1.0, mean_bytes - max(0, cut))
