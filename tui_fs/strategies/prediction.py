"""Prediction of a strategy's system calls from a table of coefficients and the counts of a survey.

A tool makes calls to start, for each directory, for each process and so on, so its calls are a sum
over features of the tree. The tables of the strategies hold the measured coefficients.
"""

import math
from collections.abc import Mapping

from msgspec import Struct, field

from tui_fs.model.calls import OTHER_CALLS
from tui_fs.model.strategy import Options
from tui_fs.model.survey import Survey

CallTable = Mapping[str, Mapping[str, float]]
"""For each call, and for `OTHER_CALLS`, how many each feature of a tree costs."""

START = "start"
FURTHER_READS = "further_reads"

RMDIR_CALLS: CallTable = {
    "rmdir": {"targets": 1},
    "openat": {START: 2},
    "newfstatat": {START: 2},
    "execve": {START: 1},
    OTHER_CALLS: {START: 31},
}
"""An rmdir process (coreutils 9.1)."""

_FTS_OPEN_LEVELS = 4
"""gnulib's fts keeps this many directories open on its descent (lib/i-ring.h)."""
_MORE_BY_LENGTH, _MAX_MORE = 0.8, 2.0
"""Fitted to complete trees, and to trees in which each directory is in one of the last 6, in one of
the last 50 or in any before it, of 20 to 4,000 directories."""
_NAME_BYTES = 8
"""Assumed where the lengths of the names are not known."""


class Work(Struct, frozen=True):
    """What a strategy is to delete, and how its tools are started for it.

    Attributes:
        filesystem: its type, as the mount table names it; empty if not known.
        targets: directories that the survey has counted together.
        runs: how often the tools are started for them.
        is_inside: the tools run in the targets and name them ``.``.
        counts_itself: the tool counts its own calls, which leaves its start out.
        emptied: targets that the tools must not remove, which rmdir processes do afterwards.
    """

    survey: Survey
    options: Options = field(default_factory=Options)
    filesystem: str = ""
    targets: int = 1
    runs: int = 1
    is_inside: bool = False
    counts_itself: bool = False
    emptied: int = 0

    @property
    def kept(self) -> int:
        """Targets that are emptied and kept."""
        return self.targets if self.options.keep_root else 0

    @property
    def path_parts(self) -> int:
        """The parts of the paths of all targets."""
        roots = [root.path for root in self.survey.roots] or [self.survey.path] * self.targets
        return sum(path.rstrip("/").count("/") for path in roots)


class CallCounts(Struct, frozen=True):
    """Predicted system calls of all processes together.

    Attributes:
        calls: by name, the calls that are predicted individually.
        other: about how many other calls there are; None if not known.
    """

    calls: dict[str, int]
    other: int | None

    @property
    def total(self) -> int:
        """The approximate number of all of them."""
        return sum(self.calls.values()) + (self.other or 0)


def features(work: Work, children: int) -> dict[str, float]:
    """Return the counts that calls depend on.

    Args:
        children: processes that the strategy's own processes start.
    """
    survey, totals = work.survey, work.survey.totals
    return {
        START: 0 if work.counts_itself else work.runs,
        "targets": work.targets,
        "kept": work.kept,
        "entries": totals.entries,
        "non_directories": totals.non_directories,
        "directories": totals.directories,
        "non_empty": survey.non_empty_directories,
        "parents": survey.parent_directories,
        "directory_reads": survey.directory_reads,
        FURTHER_READS: max(0, survey.directory_reads - 2 * totals.directories),
        "levels": survey.non_empty_levels,
        "top_directories": survey.top_directories,
        "top_non_directories": survey.top_non_directories,
        "path_bytes": survey.non_directory_path_bytes,
        "reopened": reopened_directories(work),
        "children": children,
    }


def reopened_directories(work: Work) -> int:
    """Return about how many directories fts opens again by ``..``: those with four levels below.

    A survey does not count them. On the deepest path they are all but the last five. Among
    the other directories their share falls with the fourth power of the share that contains
    directories, and is larger in long trees. The result is exact for chains, also with side
    branches, and within 3 % of all opens for regular trees and for trees that grew at random.
    """
    survey, directories = work.survey, work.survey.totals.directories
    on_deepest_path = min(survey.max_depth, directories)
    if on_deepest_path <= _FTS_OPEN_LEVELS:
        return 0
    others = max(1, directories - on_deepest_path)
    parents_share = min(1.0, max(0, survey.parent_directories - on_deepest_path) / others)
    length = on_deepest_path / math.log2(directories)
    more = min(_MAX_MORE, _MORE_BY_LENGTH * length) * (1 - parents_share)
    share = parents_share**_FTS_OPEN_LEVELS * (1 + more)
    return on_deepest_path - 1 - _FTS_OPEN_LEVELS + round(share * (directories - on_deepest_path))


def apply(table: CallTable, counts: Mapping[str, float]) -> CallCounts:
    """Return the sums of a table over the features of a tree."""
    sums = {
        call: max(0, round(sum(share * counts[feature] for feature, share in shares.items())))
        for call, shares in table.items()
    }
    other = sums.pop(OTHER_CALLS, None)
    return CallCounts({call: number for call, number in sorted(sums.items()) if number}, other)


def mean_name_bytes(survey: Survey) -> float:
    """Return the mean length of the names of non-directories."""
    names, name_bytes = survey.totals.non_directories, survey.non_directory_name_bytes
    return name_bytes / names if names and name_bytes else _NAME_BYTES


def about_bytes(peak_bytes: float) -> int:
    """Return an amount of memory as an order of magnitude: MiB with one digit that counts."""
    mebibytes = max(1.0, peak_bytes / (1 << 20))
    step: int = 10 ** math.floor(math.log10(mebibytes))
    return int(round(mebibytes / step) * step) << 20
