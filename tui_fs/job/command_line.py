"""The command lines that do what a screen does."""

from collections.abc import Sequence

from tui_fs.model.calls import TraceSource
from tui_fs.model.errors import BadInput
from tui_fs.model.strategy import Argv, Confine, Filters, IoPriority, Options, StrategyName
from tui_fs.strategies.registry import STRATEGIES

_MAX_PATH_BYTES = 4_095
"""PATH_MAX without its NUL; a longer path can be named only relative to a current directory."""


def delete_command(
    paths: Sequence[str],
    strategy: StrategyName,
    options: Options,
    trace: TraceSource | None,
    now_s: float,
) -> Argv:
    """Return the `tui-fs delete` command with the same strategy, options and filters.

    Ages on the command line count from its start, so they are converted to ages at `now_s`.

    Raises:
        BadInput: a path is too long for a command line.
    """
    _check_lengths(paths)
    pace, usual = options.pace, Options()
    used = STRATEGIES[strategy]  # of a filled form, the command line refuses options of others
    batches = (options.batch_size, options.processes) if used.has_batches else (0, 0)
    given: list[tuple[str, object]] = [
        ("--shard", options.filters.share),
        ("--strategy", strategy),
        ("--batch-size", batches[0] if batches[0] != usual.batch_size else 0),
        ("--processes", batches[1] if batches[1] != usual.processes else 0),
        ("--confine", options.confine if options.confine is not Confine.AUTO else None),
        ("--rate", pace.rate_per_s),
        ("--nice", pace.nice),
        ("--ionice", pace.io_priority if pace.io_priority is not IoPriority.NORMAL else None),
        ("--threads", pace.threads if used.guarantees.speaks else 0),
        ("--trace", trace),
    ]
    flags = (
        ("--keep-root", options.keep_root),
        ("--accept-races", options.accept_races),
        ("--gentle", pace.gentle),
    )
    return (
        *("tui-fs", "delete"),
        *_filter_options(options.filters, now_s),
        *(f"{name}={value}" for name, value in given if value),
        *(name for name, is_given in flags if is_given),
        *("--", *paths),
    )


def survey_command(path: str, filters: Filters, now_s: float) -> Argv:
    """Return the command that counts a directory, or with filters what they select in it.

    Raises:
        BadInput: the path is too long for a command line.
    """
    _check_lengths([path])
    command = "estimate" if filters.active else "survey"
    return ("tui-fs", command, *_filter_options(filters, now_s), "--", path)


def _check_lengths(paths: Sequence[str]) -> None:
    if any(len(path.encode("utf-8", "surrogateescape")) > _MAX_PATH_BYTES for path in paths):
        raise BadInput(
            "The path is longer than a command line can name without a change of directory (cd)."
        )


def _filter_options(filters: Filters, now_s: float) -> tuple[str, ...]:
    """Return the filters as options; a pattern may begin with a dash."""
    given = (
        ("--name", filters.name_glob or None),
        ("--min-size", filters.min_size_bytes),
        ("--size-below", filters.size_below_bytes),
        ("--older-than", _age(filters.modified_before_s, now_s)),
        ("--newer-than", _age(filters.modified_after_s, now_s)),
    )
    return tuple(f"{name}={value}" for name, value in given if value is not None)


def _age(moment_s: int | None, now_s: float) -> str | None:
    return None if moment_s is None else f"{max(0, int(now_s) - moment_s)}s"


def attach_command(job_id: str) -> Argv:
    """Return the command that follows a job, or prints the report of an ended one."""
    return ("tui-fs", "attach", job_id)
