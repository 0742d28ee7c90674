"""rsync from an empty directory: three processes that unlink every entry just as rm does."""

import os
import re
from collections.abc import Mapping

from tui_fs.model.calls import OTHER_CALLS
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Guarantees, Options, Step, StrategyName
from tui_fs.strategies.base import (
    Failure,
    Invocation,
    Progress,
    Strategy,
    level_limit,
    path_limit,
    root_lengths,
    version_in,
)
from tui_fs.strategies.prediction import CallTable, Work, mean_name_bytes
from tui_fs.strategies.unit_costs import CostRelation

# Compiled for the first message, as those of `base`.
_FAILED = rb"(?s)rsync: (?:\[\w+\] )?[\w ]+?: (\w+)\((.*)\) failed: .* \((\d{1,4})\)"
_UNREAD = (
    rb"(?s)rsync: (?:\[\w+\] )?(opendir|readdir|readlink_stat|stat) ?\(?\"(.*)\"\)?(?: failed)?: "
    rb".* \((\d{1,4})\)"
)
_NOT_EMPTY = b"cannot delete non-empty directory: "
_ESCAPE = rb"\\#([0-3][0-7]{2})"
_ENOTEMPTY = 39

_CALLS: CallTable = {
    "unlink": {"top_non_directories": 1},
    "rmdir": {"top_directories": 1, "children": 1},
    "unlinkat": {"entries": 1, "targets": -1, "top_non_directories": -1, "top_directories": -1},
    "getdents64": {"start": 2, "directory_reads": 1},
    "openat": {"start": 20, "directories": 1, "non_empty": 1, "levels": 1, "children": 2},
    "newfstatat": {"start": 23, "directories": 2, "non_directories": 1, "children": 2},
    "execve": {"start": 1, "children": 1},
    "clone": {"start": 2},
    OTHER_CALLS: {
        "start": 241,
        "directories": 1,
        "non_empty": 3,
        "levels": 1,
        "children": 31,
        "entries": 0.005,
    },
}
"""Every file costs a stat and an unlink. rsync removes entries of the target itself by unlink and
rmdir. For all others it walks down from the target to their directory, with one openat for each
level (since 3.4), so the calls grow with the square of the depth. Fitted as the table of rm."""

_WALKS_SINCE = (3, 4)
MAX_LEVELS = 1_024
"""rsync 3.5.0 walks down to every entry and fails with ENOMEM beyond this depth (measured)."""

_RSYNC_BYTES = 5_900 << 10
"""Memory of the processes before they hold names."""
_ENTRY_BYTES = 42
"""Size of an entry in the list of a directory, without its name."""
_LEVEL_BYTES = 6_000
"""Size of the list of each directory on the path, however short."""
_MESSAGE_BYTES = 4
"""Size of the record of a removed entry, without its path below the target. rsync keeps both until
it exits (log.c)."""


class Rsync(Strategy):
    """``rsync -r --delete -x EMPTY/ TARGET/``, then rmdir unless the target is kept.

    The option is -r and not -a: with -a rsync would set the owner, mode and time of the target
    to those of the empty directory.
    """

    name = StrategyName("rsync")
    tools = ("rsync", "rmdir")
    ends_with_rmdir = True
    measured_with = {"rsync": "rsync  version 3.5"}
    own_processes = 3
    memory_reason = "keeps the names of a directory in memory, and all removed paths until the end"
    trade_off = (
        "it builds lists in memory, checks the status of every file, and then removes the files "
        "one by one as rm does"
    )
    rank = 5
    calls = _CALLS
    call_reasons = {
        "unlinkat": "Every entry below the first level needs one call. Those of the first level "
        "are removed by unlink and rmdir.",
        "unlink": "Every file of the first level needs one call; deeper ones need unlinkat.",
        "openat": "To remove an entry, it opens each directory on the way from the target. The "
        "number grows with the square of the depth.",
        "newfstatat": "It makes a list with the status of every file before it removes any.",
    }
    cost = CostRelation(0.01, 1.15, (1.1, 1.6), (1.1, 2.5))
    guarantees = Guarantees(race_safe=False, mount_safe=True, any_depth=False, takes_filters=False)

    def steps(self, run: Invocation) -> tuple[Step, ...]:
        (target,) = run.targets
        flags = ("--info=del",) if run.with_output else ()
        sync = (run.tools["rsync"], "-r", "--delete", "-x", *flags)
        first: Step = ((*sync, f"{run.empty_directory.rstrip('/')}/", f"{target}/"),)
        if run.options.keep_root:
            return (first,)
        return (first, ((run.tools["rmdir"], "--", target),))

    def at_once(self, options: Options) -> int | None:
        del options
        return 1

    def parse_output(self, line: bytes) -> Progress | Failure | None:
        """See `Strategy.parse_output`; rsync reports directories that it leaves here."""
        if line.startswith(b"deleting "):
            return Progress(1, 1 if line.endswith(b"/") else 0)
        if line.startswith(_NOT_EMPTY):
            return Failure(_path(line[len(_NOT_EMPTY) :]), "rmdir", _ENOTEMPTY)
        return None

    def parse_error(self, line: bytes) -> Failure | None:
        """See `Strategy.parse_error`; paths are relative to the target."""
        match = re.fullmatch(_FAILED, line) or re.fullmatch(_UNREAD, line)
        if match is None:
            return None
        return Failure(_path(match[2]), match[1].decode("ascii"), int(match[3]))

    def child_processes(self, work: Work) -> int:
        """See `Strategy.child_processes`: an rmdir for each target that is not kept."""
        return work.targets - work.kept

    def peak_memory_bytes(self, work: Work) -> int:
        survey, names = work.survey, work.survey.totals.non_directories
        above_bytes = len(survey.path.encode(errors="surrogateescape")) + 1
        removed_bytes = survey.non_directory_path_bytes + names * (_MESSAGE_BYTES - above_bytes)
        listed = survey.max_entries_in_directory * (_ENTRY_BYTES + mean_name_bytes(survey))
        held_bytes = listed + survey.max_depth * _LEVEL_BYTES + max(0, removed_bytes)
        return int(_RSYNC_BYTES + held_bytes)

    def limits(self, work: Work, versions: Mapping[str, str]) -> tuple[str, ...]:
        """See `Strategy.limits`; rsync limits the depth since 3.4."""
        paths = path_limit(self.name, self.longest_path_bytes(work))
        version = version_in(versions.get("rsync", ""))
        if version is not None and version < _WALKS_SINCE:
            return paths
        return (*paths, *level_limit("rsync walks down to every entry", MAX_LEVELS, work.survey))

    def longest_path_bytes(self, work: Work) -> int:
        """See `Strategy.longest_path_bytes`.

        rsync names entries relative to the target; its argument is the target and a slash.
        """
        survey, roots_bytes = work.survey, root_lengths(work.survey)
        if not survey.max_path_bytes:
            return 0
        named_bytes = len("./") if work.is_inside else max(roots_bytes) + len("/")
        return max(survey.max_path_bytes - min(roots_bytes) - 1, named_bytes)


def _path(escaped: bytes) -> PathStr:
    return PathStr(os.fsdecode(re.sub(_ESCAPE, lambda code: bytes([int(code[1], 8)]), escaped)))
