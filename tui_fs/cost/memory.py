"""How much memory the largest process of a strategy needs at most, measured on x86-64.

rm and find (gnulib's fts) hold the names of a directory and of all above it, at most 100,000 of
each; rsync and Python hold whole directories. Counted is resident memory, as VmHWM gives it.
"""

from tui_fs.cost.calls_parallel import threads_of
from tui_fs.cost.calls_rsync import RSYNC_LIST_BYTES, listed_bytes
from tui_fs.cost.calls_xargs import batches_of
from tui_fs.cost.heap import (
    entries_held,
    entries_on_one_way,
    fts_entry_bytes,
    mean_name_bytes,
)
from tui_fs.model.fts import FTS_SORTED_ABOVE, NOT_SORTED
from tui_fs.model.strategy import Options, StrategyName
from tui_fs.model.survey import Survey

_RM_BYTES = 1_400 << 10
_FIND_BYTES = 2_500 << 10
_RSYNC_BYTES = 5_900 << 10
_PYTHON_BYTES = 9_850 << 10
"""A process that holds no names yet."""

_SORTED_EXTRA_BYTES = 16
"""Two arrays of pointers, to sort by inode."""

_RSYNC_PLACE_BYTES = 9.5
"""Where an entry of a list stands: 8 bytes in an array that grows faster than the list."""

_RSYNC_LEVEL_BYTES = 6_000
"""rsync's list of names for each directory on the way down, however short."""

_DIRECTORY_ENTRY_BYTES = 850
"""What shutil.rmtree holds of a directory in a directory, its status among it."""

_FILE_ENTRY_BYTES = 155
"""An os.DirEntry with its place in a list, without the name."""

_PYTHON_LEVEL_BYTES = 2_900
"""Frames of a call of shutil.rmtree inside itself."""


_ENGINE_BYTES = 2_150 << 10
_ENGINE_BUFFER_BYTES = 256 << 10
"""Of a directory so much is read at once."""

_ENGINE_ENTRY_BYTES = 24
"""Of a name in that buffer, without its letters (struct linux_dirent64)."""

_ENGINE_NAME_BYTES = 17
"""Of a name that waits to be removed: the number of its inode, its place, its end."""

_ENGINE_NAMES = 1_000_000
_ENGINE_HELD_BYTES = 32 << 20
"""Names that all threads hold at most, and what they take (engine/src/delete/worker.rs)."""


def peak_memory_bytes(
    survey: Survey, strategy: StrategyName, options: Options, filesystem: str = ""
) -> int:
    """Return what the largest single process will have in memory at most.

    Within 25 % or 5 MB of what was measured, from an empty directory to one of 1,000,000 names.

    Args:
        filesystem: its type, as the mount table names it.
    """
    match strategy:
        case StrategyName.RM:
            rm_bytes = _RM_BYTES + _fts_bytes(survey, filesystem)
            return max(rm_bytes, _FIND_BYTES) if options.keep_root else rm_bytes
        case StrategyName.FIND:
            return _FIND_BYTES + _fts_bytes(survey, filesystem)
        case StrategyName.XARGS:
            return max(
                _FIND_BYTES + _fts_bytes(survey, filesystem),
                _RM_BYTES + _batch_bytes(survey, options),
            )
        case StrategyName.RSYNC:
            return _RSYNC_BYTES + _rsync_lists_bytes(survey)
        case StrategyName.RMTREE:
            return _PYTHON_BYTES + _rmtree_bytes(survey)
        case StrategyName.PARALLEL:
            return _engine_bytes(survey, threads_of(options))


def _engine_bytes(survey: Survey, threads: int) -> int:
    largest, name_bytes = survey.max_entries_in_directory, mean_name_bytes(survey)
    read_bytes = int(min(largest * (_ENGINE_ENTRY_BYTES + name_bytes), _ENGINE_BUFFER_BYTES))
    # while one list is given back another grows: of the next directory half is there, about
    entries = [one.entries for one in survey.largest[: threads + 1]]
    together = sum(entries[:threads]) + sum(entries[threads:]) // 2
    names = min(max(largest, together), survey.totals.entries, _ENGINE_NAMES)
    held_bytes = min(names * (_ENGINE_NAME_BYTES + name_bytes), _ENGINE_HELD_BYTES)
    return int(_ENGINE_BYTES + read_bytes + held_bytes)


def _rsync_lists_bytes(survey: Survey) -> int:
    """Return what rsync's lists take: one for each level of the way down, in a place of its own.

    That place is filled by the largest directory of the level, wherever it lies. A list that is
    larger takes places of levels further down, too; of such lists only the largest counts.
    """
    entry_bytes = listed_bytes(survey) + _RSYNC_PLACE_BYTES
    lists = [entries * entry_bytes for entries in survey.most_by_level]
    beyond = max((max(0.0, one - RSYNC_LIST_BYTES) for one in lists), default=0.0)
    of_levels = sum(min(one, RSYNC_LIST_BYTES) for one in lists) + beyond
    of_a_way = entries_on_one_way(survey) * entry_bytes
    return int(max(of_levels, of_a_way)) + survey.max_depth * _RSYNC_LEVEL_BYTES


def _fts_bytes(survey: Survey, filesystem: str) -> int:
    entry_bytes = fts_entry_bytes(mean_name_bytes(survey))
    if survey.max_entries_in_directory > FTS_SORTED_ABOVE and filesystem not in NOT_SORTED:
        entry_bytes += _SORTED_EXTRA_BYTES
    return entries_held(survey) * entry_bytes


def _batch_bytes(survey: Survey, options: Options) -> int:
    """Return what an rm of xargs holds: the names it was given as arguments, and their entries."""
    batches = batches_of(survey, options)
    if not batches:
        return 0
    names = survey.totals.non_directories / batches
    path_bytes = survey.non_directory_path_bytes / survey.totals.non_directories
    return int(names * (fts_entry_bytes(path_bytes) + path_bytes))


def _rmtree_bytes(survey: Survey) -> int:
    entries = survey.max_entries_in_directory
    if survey.largest and survey.largest[0].path in {survey.path, *(r.path for r in survey.roots)}:
        directories = min(entries, survey.top_directories)
    else:
        share = survey.totals.directories / max(1, survey.totals.entries)
        directories = min(survey.totals.directories - 1, int(entries * share))
    file_bytes = _FILE_ENTRY_BYTES + mean_name_bytes(survey)
    held_bytes = int((entries - directories) * file_bytes) + directories * _DIRECTORY_ENTRY_BYTES
    return held_bytes + survey.max_depth * _PYTHON_LEVEL_BYTES
