"""The native engine: one process with several threads, which descends by descriptors."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import TypeGuard

from msgspec.structs import replace

from tui_fs.linux.limits import processors
from tui_fs.linux.mounts import is_served
from tui_fs.linux.tools import ENGINE, engine_filters, installed_engine
from tui_fs.model.calls import OTHER_CALLS, OTHER_CALLS_LABEL, CallCount, Removed
from tui_fs.model.codec import Json
from tui_fs.model.paths import is_within
from tui_fs.model.quick_estimate import rounded
from tui_fs.model.strategy import Argv, Guarantees, Options, Step, StrategyName
from tui_fs.model.survey import Survey
from tui_fs.model.target import Pin
from tui_fs.strategies.base import (
    Failure,
    Invocation,
    Remark,
    Report,
    Strategy,
    Totals,
    gnu_failure,
    unquote_c,
)
from tui_fs.strategies.prediction import FURTHER_READS, CallTable, Work, mean_name_bytes
from tui_fs.strategies.unit_costs import CostRelation, UnitCosts

TOLD_EVERY_MS = 50
"""A job is polled four times a second, so its counts are at most a fifth of that interval old."""

_LARGEST_SUM = (1 << 64) - 1  # the engine counts in 64 bits
_MOST_THREADS = 1 << 16
_CALL = re.compile(r"[a-z][a-z0-9_]{0,31}")
_MOST_CALLS = 64
_MOST_CLASSES = 128

_CALLS: CallTable = {
    "unlinkat": {"entries": 1, "kept": -1},
    "openat2": {"directories": 1, "targets": -1},
    "getdents64": {"directories": 2, FURTHER_READS: 1, "kept": 2, "emptied": 2},
    "statx": {"start": 4, "directories": 1, "closed": 1},
    "openat": {"start": 7, "targets": 1, "path_parts": 1, "evicted": 1},
    "newfstatat": {"start": 4, "targets": 1, "kept": -1, "examined": 1},
    "execve": {"start": 1},
    OTHER_CALLS: {
        "start": 120,
        "targets": 2,
        "path_parts": 1,
        "kept": 1,
        "emptied": 1,
        "directories": 1,
        "non_empty": 1,
        "entries": 0.003,
        "closed": 1,
        "evicted": 1,
    },
}
"""The engine opens each directory relative to its parent, reads its status and all its entries,
removes and closes it. It opens a target part by part, and reads it again if it remains. A thread
makes a directory its current one before it removes names in it. If it is gentle, it examines each
name before its removal (version 0.1)."""

_USUAL_READ_BYTES = 32 << 10
"""Size of the buffer with which other tools read directories."""
_DIRENT_BYTES = 24
"""Size of an entry in that buffer, without its name (struct linux_dirent64)."""
_THREADS_WAIT = frozenset({"xfs"})
"""File systems where threads may wait for each other, for reasons that no survey shows: small trees
of equal directories gain, others gain as much or nothing. The prediction is the geometric mean of
the costs of small trees and of rm (eight shapes took 0.8 to 1.8 times the former, 0.7 to 1.3 times
the mean)."""
_RAISING_NAMES = 8
"""For as many answers the engine works with fewer threads than a server can answer: each of its
samples takes six, and the second one has half of the threads."""
_EVICTED_SHARE = 0.65
"""Share of the names in a shared directory whose inodes a helper thread evicts: it opens the files
before they are removed and closes them afterwards. How many depends on the scheduler: 0.52 to 0.67
of 50,000 to 200,000 names in one directory or two targets, up to 0.83 beside a second directory."""
_ENGINE_BYTES = 2_150 << 10
_NAME_BYTES = 17
"""Memory of a name that waits to be removed, without its letters: inode number, position, end."""


class Parallel(Strategy):
    """``tui-fs-engine delete TARGETS``."""

    name = StrategyName("parallel")
    tools = (ENGINE, "rmdir")
    measured_with = {ENGINE: f"{ENGINE} 0.1"}
    memory_reason = "its threads keep up to 32 MiB of names in memory"
    trade_off = "the gain of several threads depends on the file system"
    rank = 3
    calls = _CALLS
    call_reasons = {
        "openat2": "It opens each directory once, relative to the one above, so that no renamed "
        "path can lead it outside.",
        "openat": "It opens each part of the target's path. In a directory that several threads "
        "share, a helper also opens files before they are removed; it frees their space when it "
        "closes them.",
        "getdents64": "It reads each directory to its end: two calls for a small one.",
        "statx": "It compares the identity of each directory that it has opened.",
        "newfstatat": "It examines a target before it removes it; in gentle mode also each file, "
        "to free a large one in steps.",
        OTHER_CALLS_LABEL: "Threads start, and change into each directory before they remove "
        "names. In a shared directory a helper also closes the files that it has held open.",
    }
    has_threads = True
    cost = CostRelation(0.002, 1.0, (0.1, 1.0), (0.1, 1.0))
    guarantees = Guarantees(
        race_safe=True,
        mount_safe=True,
        any_depth=True,
        takes_filters=True,
        speaks=True,
        takes_shares=True,
    )

    def steps(self, run: Invocation) -> tuple[Step, ...]:
        """See `Strategy.steps`; the engine always reports its counts."""
        flags = (*_flags(run.options), "--every", str(TOLD_EVERY_MS), "--")
        return (((run.tools[ENGINE], "delete", *flags, *run.targets),),)

    def pinned(
        self, steps: tuple[Step, ...], pins: Sequence[Pin], *, on_own_mounts: bool = False
    ) -> tuple[Step, ...]:
        flags = ("--own-mounts",) if on_own_mounts else ()
        return with_pins(steps, [pin_argument(pin) for pin in pins], flags)

    def parse_output(self, line: bytes) -> Report | None:
        """See `Strategy.parse_output`; a line outside the protocol is a remark."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return _remark(line)
        match message:
            case {"type": "counts"}:
                return _totals(message) or _remark(line)
            case {"type": "answer", "problem": None}:
                return None
            case {"type": "answer", "command": str(command), "problem": str(problem)}:
                return Remark(f"tui-fs-engine: {command}: {problem}")
        return _remark(line)

    def parse_error(self, line: bytes) -> Failure | None:
        return gnu_failure(line, unquote_c)

    def features(self, work: Work) -> dict[str, float]:
        """See `Strategy.features`.

        The engine opens a directory that it closed on a long descent again by ``..``. It reads the
        names of other shares in a target, too, and once more to detect remaining ones.
        """
        survey, threads, engine = work.survey, threads_of(work.options), installed_engine()
        record_bytes = _DIRENT_BYTES + mean_name_bytes(survey)
        is_large = survey.max_entries_in_directory * record_bytes > engine.read_bytes
        further = max(0, survey.directory_reads - 2 * survey.totals.directories)
        share = work.options.filters.share
        of_others = 0 if share is None else share.of - 1
        of_others *= survey.top_directories + survey.top_non_directories
        pace = work.options.pace
        kept_open = engine.open_directories // 2 // threads
        kept_open += engine.open_directories - threads * kept_open
        shared = shared_names(work, threads)
        is_slowed = pace.rate_per_s > 0 or pace.gentle
        evicts = work.filesystem in engine.evicts_on and shared > engine.min_shared_names
        return {
            **super().features(work),
            FURTHER_READS: (further * _USUAL_READ_BYTES if is_large else 0) // engine.read_bytes
            + 2 * of_others * record_bytes // engine.read_bytes,
            "path_parts": work.path_parts,
            "emptied": 0 if work.kept else work.emptied,
            "examined": survey.totals.non_directories if pace.gentle else 0,
            "closed": max(0, survey.max_depth - kept_open),
            "evicted": rounded(round(_EVICTED_SHARE * shared), 2)
            if evicts and not is_slowed
            else 0,
        }

    def unit_costs(self, work: Work, own: UnitCosts, rm: UnitCosts) -> tuple[UnitCosts, float]:
        """See `Strategy.unit_costs`.

        Each thread has a directory of its own until only the largest is left, which all threads
        share. Nested directories are emptied one after the other, as by rm.
        """
        survey, threads = work.survey, threads_of(work.options)
        totals, names = survey.totals, survey.totals.non_directories
        if is_served(work.filesystem):
            return _costs_of_waiting(survey, own, rm, work.options.pace.threads)
        in_turn = 1.0
        if threads > 1:
            # the names in the lowest directory are one level more
            on_one_path = min(1.0, max(0, survey.max_depth - 1) / max(1, totals.directories))
            in_turn = max(0.0, (threads * on_one_path - 1) / (threads - 1))
        shared = min(1 - in_turn, shared_names(work, threads) / max(1, names))
        beside_s = own.name_s if own.beside_s is None else own.beside_s
        directory_s = own.directory_s
        if work.filesystem in _THREADS_WAIT:
            beside_s = math.sqrt(beside_s * rm.name_s)
            directory_s = math.sqrt(directory_s * rm.directory_s)
        name_s = in_turn * rm.name_s + shared * own.name_s + (1 - in_turn - shared) * beside_s
        directory_s = in_turn * rm.directory_s + (1 - in_turn) * directory_s
        return replace(own, name_s=name_s, directory_s=directory_s), name_s / rm.name_s

    def options_in_words(self, options: Options) -> tuple[str, ...]:
        return (f"threads {options.pace.threads or 'auto'}",)

    def peak_memory_bytes(self, work: Work) -> int:
        survey, name_bytes = work.survey, mean_name_bytes(work.survey)
        engine = installed_engine()
        largest = sum(directory.entries for directory in survey.largest[: threads_of(work.options)])
        names = min(max(largest, survey.max_entries_in_directory), survey.totals.entries)
        stored_bytes = min(names * (_NAME_BYTES + name_bytes), engine.name_bytes)
        return int(_ENGINE_BYTES + min(engine.read_bytes, stored_bytes) + stored_bytes)


def _costs_of_waiting(
    survey: Survey, own: UnitCosts, rm: UnitCosts, threads: int
) -> tuple[UnitCosts, float]:
    """Return the costs where threads wait for a server.

    The kernel lets one thread at a time work in a directory. So the names in the largest directory
    take as long as with rm, and the subdirectories of the widest one are opened and removed one
    after the other, which is the measured cost of a directory. A path is emptied level by level.

    Args:
        threads: their number; 0 for as many as the server can answer.
    """
    totals = survey.totals
    names, directories = max(1, totals.non_directories), max(1, totals.directories)
    largest, widest = survey.max_entries_in_directory, survey.top_directories
    if largest == widest + survey.top_non_directories:  # the target itself
        below = (directory.entries for directory in survey.largest[1:2])
        largest = max(survey.top_non_directories, *below, 0)
    gain = (own.name_s if own.beside_s is None else own.beside_s) / rm.name_s
    if threads:
        gain = max(gain, 1 / threads)
    in_turn = min(1.0, max(survey.max_depth, largest) / names)
    name_s = rm.name_s * max(gain, in_turn)
    side_by_side = gain + widest / directories * (own.directory_s / rm.directory_s)
    on_one_path = min(1.0, survey.max_depth / directories)
    directory_s = rm.directory_s * max(min(1.0, side_by_side), on_one_path)
    raising_s = 0.0 if threads else (1 - in_turn) * _RAISING_NAMES * rm.name_s
    costs = replace(own, start_s=own.start_s + raising_s, name_s=name_s, directory_s=directory_s)
    return costs, name_s / rm.name_s


def threads_of(options: Options) -> int:
    """Return how many threads the engine starts."""
    return options.pace.threads or min(installed_engine().auto_threads, processors())


def shared_names(work: Work, threads: int) -> float:
    """Return how many names all threads share once only the largest directory is left.

    If each target has its own run, the threads share the largest directory of each.
    """
    if threads < 2:
        return 0.0
    survey = work.survey
    largest = [survey.max_entries_in_directory]
    if work.runs > 1 and survey.roots:
        largest = [
            max((d.entries for d in survey.largest if is_within(d.path, root.path)), default=0)
            for root in survey.roots
        ]
    names = survey.totals.non_directories
    elsewhere = max(0, names - sum(largest)) / max(1, len(largest))
    return sum(max(0.0, min(number, names) - elsewhere / (threads - 1)) for number in largest)


def pin_argument(pin: Pin) -> str:
    """Return the value of the engine's ``--pin`` for a target; a birth time of 0 is unknown."""
    return f"{pin.device}:{pin.inode}:{pin.birth_ns or 0}"


def with_pins(
    steps: tuple[Step, ...], pins: Sequence[str], flags: tuple[str, ...] = ()
) -> tuple[Step, ...]:
    """Return the engine's one command with a ``--pin`` for each target, which it requires.

    Args:
        pins: values of ``--pin``, in the order of the targets.
        flags: further options.
    """
    (((*argv,),),) = steps
    words = [word for pin in pins for word in ("--pin", pin)]
    end = len(argv) - len(pins) - 1  # the targets are the last words, after --
    return (((*argv[:end], *flags, *words, *argv[end:]),),)


def _flags(options: Options) -> Argv:
    filters, pace = options.filters, options.pace
    words = ["--keep-root"] if options.keep_root else []
    words += engine_filters(filters)
    for option, value in (("--threads", pace.threads), ("--rate", pace.rate_per_s)):
        words += [option, str(value)] if value else []
    return (*words, *(["--gentle"] if pace.gentle else []))


def _totals(message: Mapping[str, Json]) -> Totals | None:
    """Return the totals of a message with counts, None if it is malformed."""
    removed, directories = message.get("removed"), message.get("directories")
    calls, threads = message.get("calls"), message.get("threads")
    if not (_is_sum(removed) and _is_sum(directories) and directories <= removed):
        return None
    if not (_is_sum(threads) and threads <= _MOST_THREADS):
        return None
    if not isinstance(calls, dict) or len(calls) > _MOST_CALLS:
        return None
    counts: dict[str, CallCount] = {}
    for name, numbers in calls.items():
        is_count = isinstance(numbers, list) and len(numbers) == 3 and all(map(_is_sum, numbers))
        if not is_count or not _CALL.fullmatch(name):
            return None
        number, errors, nanoseconds = numbers
        if number:
            counts[name] = CallCount(number, min(number, errors), nanoseconds / 1e9)
    times = message.get("removal_ns", [])
    if not isinstance(times, list) or len(times) > _MOST_CLASSES:
        return None
    if not all(
        isinstance(each, list) and len(each) == 2 and all(map(_is_sum, each)) for each in times
    ):
        return None
    return Totals(Removed(removed, directories), counts, threads, dict(times))


def _is_sum(value: Json) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_SUM


def _remark(line: bytes) -> Remark | None:
    return Remark(line.decode("utf-8", "replace")) if line.strip() else None
