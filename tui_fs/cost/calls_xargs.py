"""What ``find | xargs rm`` and the find after it call; for which tools see `calls_rm_find`.

The two find cost what `of_find` says, but for what they remove; xargs reads names through a buffer
of 4 KiB, and every rm is a process that asks the status of each of its arguments.
"""

import math
from collections import Counter
from collections.abc import Iterator

from tui_fs.cost.calls_rm_find import COMMAND_BYTES, RM_ARGV_BYTES, Calls
from tui_fs.cost.heap import RM_STEPS, fts_entry_bytes, heap_growth, heap_steps, mean_name_bytes
from tui_fs.model.strategy import Options
from tui_fs.model.survey import LikePaths, Survey

_PIPE_BUFFER_BYTES = 4_096
_ROUNDING = 1e-6  # what adding fractions up may leave above a whole number
_WAITS_SIDE_BY_SIDE = 2.4
"""wait4 calls of xargs for each batch with -P 2 or more; 1.7 to 2.9 were measured, for it looks
without waiting."""


def batches_of(survey: Survey, options: Options, runs: int = 1, *, is_inside: bool = False) -> int:
    """Return how many rm processes xargs starts: by count or by the length of the command.

    Exact where the paths are equally long, else by the mean of those of like length.

    Args:
        runs: how many xargs share the files; each is taken to have some.
        is_inside: the tools run in the target, and the paths begin with ``.``.
    """
    cut = _cut_of(survey, is_inside=is_inside)
    batches = sum(like.number / size for like, _, size in _like_batches(survey, options, cut))
    return max(runs, math.ceil(batches - _ROUNDING)) if batches else 0


def _like_batches(
    survey: Survey, options: Options, cut: int
) -> Iterator[tuple[LikePaths, float, int]]:
    """Yield files of like length of path, their mean path as an argument, and a batch of them."""
    if not survey.totals.non_directories:
        return
    whole = LikePaths(survey.totals.non_directories, survey.non_directory_path_bytes)
    for like in survey.like_paths or (whole,):
        path_bytes = like.path_bytes / like.number - cut
        fitting = max(1, int((COMMAND_BYTES - RM_ARGV_BYTES) / (path_bytes + 1)))
        yield like, path_bytes, min(options.batch_size, fitting)


def _heap_growth_of_batches(survey: Survey, options: Options, cut: int) -> int:
    """Each rm holds its arguments, whole paths, as fts does the names of a directory."""
    growth, every = 0.0, list(_like_batches(survey, options, cut))
    for like, path_bytes, size in every:
        entry_bytes = fts_entry_bytes(path_bytes)
        of_one = int(heap_steps(size, entry_bytes) + RM_STEPS)
        full, rest = divmod(like.number, size)
        growth += full * of_one
        if len(every) == 1:
            growth += int(heap_steps(rest, entry_bytes) + RM_STEPS)
        else:
            growth += rest / size * of_one  # in a batch with paths of another length
    return round(growth)


def path_bytes_of(survey: Survey, *, is_inside: bool) -> int:
    """Return the length of all paths that find writes, added up."""
    cut = _cut_of(survey, is_inside=is_inside)
    return survey.non_directory_path_bytes - cut * survey.totals.non_directories


def _cut_of(survey: Survey, *, is_inside: bool) -> int:
    """Return by how much each path is shorter where it begins with ``.``."""
    return max(0, len(survey.path.encode(errors="surrogateescape")) - 1) if is_inside else 0


def of_xargs(survey: Survey, options: Options, runs: int = 1, *, is_inside: bool = False) -> Calls:
    """Twice find (names, then emptied directories), one xargs, and an rm for each batch.

    Args:
        runs, is_inside: see `batches_of`.
    """
    totals, parents = survey.totals, survey.parent_directories
    batches = batches_of(survey, options, runs, is_inside=is_inside)
    written = path_bytes_of(survey, is_inside=is_inside) + totals.non_directories
    directories, full = totals.directories, survey.non_empty_directories
    upwards = 2 * survey.tall_directories
    pipe_writes = math.ceil(written / _PIPE_BUFFER_BYTES)
    waits = batches * (_WAITS_SIDE_BY_SIDE if options.processes > 1 and batches > 1 else 1)
    entry_bytes = fts_entry_bytes(mean_name_bytes(survey))
    growth = heap_growth(survey)
    growth += _heap_growth_of_batches(survey, options, _cut_of(survey, is_inside=is_inside))
    growth += math.ceil(heap_steps(survey.top_directories, entry_bytes))  # of the second find
    return Counter(
        {
            "unlinkat": totals.entries,
            "getdents64": survey.directory_reads + 2 * directories + 2,
            "openat": 17 + 2 * directories + upwards + 3 * batches,
            "close": 22 + 6 * directories + full + parents + upwards + 11 * batches,
            "newfstatat": 17 + 6 * directories + totals.non_directories + upwards + 2 * batches,
            "fcntl": 3 + 8 * directories + full + parents + 2 * batches,
            "execve": 3 + batches,
            **dict.fromkeys(("clone", "dup2", "pipe2"), batches),
            "wait4": round(waits),
            "access": 5 + batches,
            "brk": 9 + 3 * batches + growth,
            "fchdir": 2,
            "fstatfs": 2,
            "getrandom": 3 + batches,
            "ioctl": 3 + batches,
            "lseek": 1 + batches,
            "mmap": 51 + 8 * batches,
            "mprotect": 15 + 3 * batches,
            "munmap": 3 + batches,
            "poll": 4,
            "pread64": 6 + 2 * batches,
            "prlimit64": 5 + batches,
            "read": 14 + 2 * batches + pipe_writes,
            "rseq": 3 + batches,
            "rt_sigaction": 3,
            "set_robust_list": 3 + 2 * batches,
            "set_tid_address": 3 + batches,
            "statfs": 4,
            "uname": 2,
            "write": pipe_writes,
        }
    )
