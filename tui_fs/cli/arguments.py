"""Arguments that several commands share: their types and their conversion."""

import argparse
import re
import sys
import time
from collections.abc import Iterable

from tui_fs.linux.resolve_path import canonical_directory
from tui_fs.model.calls import TraceSource
from tui_fs.model.command import MOST_THREADS
from tui_fs.model.errors import BadInput, nearest_word
from tui_fs.model.filter_text import check_glob, check_limits
from tui_fs.model.paths import PathStr, displayable, is_encodable
from tui_fs.model.strategy import Confine, Filters, IoPriority, Options, Pace, Share, StrategyName
from tui_fs.model.target import Pin
from tui_fs.model.units import parse_age, parse_size
from tui_fs.strategies.registry import STRATEGIES

Group = argparse._ArgumentGroup
"""A group of arguments under one heading of the help."""

EXPORT_FORMATS = ("ncdu", "csv", "json")
"""The formats of an exported survey."""

MOST_SHARES = 10_000
"""Limit of --shard: more machines than share one file system."""

TRACE_SOURCES = ("auto", *(source for source in TraceSource if source is not TraceSource.OUTPUT))
"""The values of --trace."""


def add_filter_options(group: argparse._ArgumentGroup) -> None:
    """Add the options that select a part of the entries."""
    group.add_argument(
        "--name", type=glob, metavar="GLOB",
        help="only entries whose name matches this shell pattern",
    )  # fmt: skip
    group.add_argument(
        "--min-size", type=size, metavar="SIZE",
        help="only files of at least SIZE: 500, 10k, 2G (k = 1024)",
    )  # fmt: skip
    group.add_argument(
        "--size-below", type=size, metavar="SIZE",
        help="only files smaller than SIZE",
    )  # fmt: skip
    group.add_argument(
        "--older-than", type=age, metavar="AGE",
        help="only entries not modified for AGE: 90s, 15m, 12h, 30d, 2w",
    )  # fmt: skip
    group.add_argument(
        "--newer-than", type=age, metavar="AGE",
        help="only entries modified within AGE",
    )  # fmt: skip


def options_of(parsed: argparse.Namespace) -> Options:
    """Return the strategy's options; raise BadInput for filters that nothing can match."""
    now_s = int(time.time())
    older_than_s = getattr(parsed, "older_than", None)
    newer_than_s = getattr(parsed, "newer_than", None)
    filters = Filters(
        name_glob=getattr(parsed, "name", None),
        min_size_bytes=getattr(parsed, "min_size", None),
        size_below_bytes=getattr(parsed, "size_below", None),
        modified_before_s=None if older_than_s is None else now_s - older_than_s,
        modified_after_s=None if newer_than_s is None else now_s - newer_than_s,
        share=getattr(parsed, "shard", None),
    )
    try:
        check_limits(filters)
    except ValueError as error:
        raise BadInput(str(error)) from error
    return Options(
        keep_root=parsed.keep_root,
        batch_size=parsed.batch_size or Options().batch_size,
        processes=parsed.processes or Options().processes,
        pace=Pace(
            gentle=getattr(parsed, "gentle", False),
            rate_per_s=getattr(parsed, "rate", 0),
            nice=getattr(parsed, "nice", 0),
            io_priority=getattr(parsed, "ionice", IoPriority.NORMAL),
            threads=getattr(parsed, "threads", 0),
        ),
        accept_races=parsed.accept_races,
        confine=Confine(parsed.confine),
        filters=filters,
    )


def trace_of(parsed: argparse.Namespace) -> TraceSource | None:
    """Return the call source; None selects the best one."""
    return None if parsed.trace == "auto" else TraceSource(parsed.trace)


def directory_argument(path: str) -> PathStr:
    """Return the canonical absolute path of a directory; raise BadInput if it is none."""
    if not path or "\0" in path or not is_encodable(path):
        raise BadInput(f"'{displayable(path)}' is not a path.")
    return canonical_directory(path)


def _number(text: str, low: int, high: int) -> int:
    digits = text.isascii() and text.isdigit() and len(text) <= len(str(high))
    if not digits or not low <= int(text) <= high:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {low} to {high:,}")
    return int(text)


def natural(text: str) -> int:
    """Return a number from 0; like the following functions, an argparse type."""
    return _number(text, 0, 1_000_000)


def positive(text: str) -> int:
    """Return a number from 1."""
    return _number(text, 1, 1_000_000)


def threads(text: str) -> int:
    """Return a number of threads; 0 leaves the choice to the tool."""
    return _number(text, 0, MOST_THREADS)


def nice(text: str) -> int:
    """Return a niceness."""
    return _number(text, 0, 19)


def pin(text: str) -> Pin:
    """Return a pin."""
    try:
        return Pin.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a pin") from error


def size(text: str) -> int:
    """Return bytes."""
    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def age(text: str) -> int:
    """Return seconds."""
    try:
        return parse_age(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _choice(text: str, noun: str, choices: Iterable[str]) -> str:
    names = tuple(choices)
    if text not in names:
        nearest = nearest_word(text, names)
        listed = f"{', '.join(names[:-1])} or {names[-1]}"
        hint = f". Did you mean {nearest}?" if nearest else ""
        raise argparse.ArgumentTypeError(f"{text!r} is not {noun}; use {listed}{hint}")
    return text


def strategy(text: str) -> StrategyName:
    """Return a strategy."""
    return StrategyName(_choice(text, "a strategy", STRATEGIES))


def io_priority(text: str) -> IoPriority:
    """Return an I/O priority."""
    return IoPriority(_choice(text, "an I/O priority", IoPriority))


def trace_source(text: str) -> str:
    """Return the name of a call source, or auto."""
    return _choice(text, "a source of system call counts", TRACE_SOURCES)


def export_format(text: str) -> str:
    """Return a format of an exported survey."""
    return _choice(text, "an export format", EXPORT_FORMATS)


def share(text: str) -> Share:
    """Return one share of several."""
    number, slash, of = text.partition("/")
    if not slash:
        raise argparse.ArgumentTypeError(f"{text!r} is not K/N, for example 1/4")
    result = Share(_number(number, 1, MOST_SHARES), _number(of, 1, MOST_SHARES))
    if result.number > result.of:
        raise argparse.ArgumentTypeError(f"{text!r}: there is no share {number} of {of}")
    return result


def directory_id(text: str) -> str:
    """Return the id of a directory."""
    if not re.fullmatch("[0-9a-f]{16}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not an id: 16 digits and letters a to f")
    return text


def job_id(text: str) -> str:
    """Return the id of a new job."""
    if not re.fullmatch("[0-9a-f]{6,16}", text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an id of a job: 6 to 16 digits and letters a to f"
        )
    return text


def glob(text: str) -> str:
    """Return a shell pattern."""
    try:
        check_glob(text)
    except ValueError as error:
        advice = "; to delete a directory, give it as PATH" if "/" in text else ""
        raise argparse.ArgumentTypeError(f"{error}{advice}") from error
    return text


def require_terminal() -> None:
    """Raise BadInput unless a terminal is available for a question."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInput(
            "Cannot ask for confirmation: standard input or standard error is not a terminal.",
            "Add --yes if you are sure.",
        )


def add_confirmation_options(group: Group) -> None:
    """Add the options that answer the questions before a job starts."""
    group.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    group.add_argument(
        "--confirm", metavar="NAME",
        help="with --yes: the name to type where a policy requires it",
    )  # fmt: skip


def refuse_confirmation_alone(parsed: argparse.Namespace) -> None:
    """Raise BadInput for an answer on the command line to a question that is still asked."""
    if parsed.confirm is not None and not parsed.yes:
        raise BadInput("--confirm is only allowed with --yes.")


def add_detach_option(group: Group) -> None:
    """Add the option that starts a job without following it."""
    group.add_argument(
        "--detach", action="store_true", help="start the job, print its id and return at once"
    )


def add_strategy_options(group: Group) -> None:
    """Add the strategy options, on which an estimate depends, too."""
    group.add_argument(
        "--keep-root",
        action="store_true",
        help="empty the directories but do not remove them",
    )
    group.add_argument(
        "--batch-size", type=positive, metavar="N",
        help="xargs: names passed to each rm (default: 1000)",
    )  # fmt: skip
    group.add_argument(
        "--processes", type=positive, metavar="N",
        help="xargs: rm processes at the same time (default: 1)",
    )  # fmt: skip
    group.add_argument(
        "--accept-races",
        action="store_true",
        help="run xargs or rsync where others could redirect them",
    )
    group.add_argument(
        "--confine", choices=("auto", "always", "off"), default="auto", metavar="HOW",
        help="the kernel keeps tools inside PATH: auto, always, off",
    )  # fmt: skip


def add_pace_options(group: Group) -> None:
    """Add the options that say how fast a job may work."""
    group.add_argument(
        "--gentle",
        action="store_true",
        help="suspend the tools while others wait for disk or CPU",
    )
    add_rate_option(group)
    group.add_argument(
        "--nice", type=nice, default=0, metavar="N",
        help="niceness of the tools, 0 to 19 (default: 0)",
    )  # fmt: skip
    group.add_argument(
        "--ionice", type=io_priority, default=IoPriority.NORMAL, metavar="PRIORITY",
        help="I/O priority of the tools: normal (default), low, idle",
    )  # fmt: skip
    group.add_argument(
        "--threads", type=threads, default=0, metavar="N",
        help="threads for 'parallel', 1 to 256 (default: 0, automatic)",
    )  # fmt: skip


def add_rate_option(group: Group) -> None:
    """Add the option that limits the rate of the removals."""
    group.add_argument(
        "--rate", type=positive, default=0, metavar="N",
        help="limit to N entries per second (default: no limit)",
    )  # fmt: skip


def add_output_options(parser: argparse.ArgumentParser, *, has_json: bool = True) -> Group:
    """Add the group of the options that every command has, and return it."""
    group = parser.add_argument_group("output")
    group.add_argument("-h", "--help", action="help", help="show this help")
    if has_json:
        group.add_argument("--json", action="store_true", help="print JSON")
    return group
