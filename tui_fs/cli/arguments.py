"""Arguments that several commands share: their types and their conversion."""

import argparse
import sys
import time

from tui_fs.linux.resolve_path import canonical_directory
from tui_fs.model.calls import TraceSource
from tui_fs.model.command import MOST_THREADS
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import PathStr, displayable, is_encodable
from tui_fs.model.strategy import Filters, IoPriority, Options, Pace, StrategyName
from tui_fs.model.target import Pin
from tui_fs.model.units import parse_age, parse_size
from tui_fs.strategies.registry import STRATEGIES, strategy_named

EXPORT_FORMATS = ("ncdu", "csv", "json")
"""The formats of an exported survey."""


def options_of(parsed: argparse.Namespace) -> Options:
    """Return the strategy's options."""
    older_than_s = getattr(parsed, "older_than", None)
    return Options(
        keep_root=parsed.keep_root,
        batch_size=parsed.batch_size,
        processes=parsed.processes,
        pace=Pace(
            gentle=getattr(parsed, "gentle", False),
            rate_per_s=getattr(parsed, "rate", 0),
            nice=getattr(parsed, "nice", 0),
            io_priority=getattr(parsed, "ionice", IoPriority.NORMAL),
            threads=getattr(parsed, "threads", 0),
        ),
        accept_races=parsed.accept_races,
        filters=Filters(
            name_glob=getattr(parsed, "name", None),
            min_size_bytes=getattr(parsed, "min_size", None),
            modified_before_s=None if older_than_s is None else int(time.time()) - older_than_s,
        ),
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


def strategy(text: str) -> StrategyName:
    """Return a strategy."""
    try:
        return strategy_named(text).name
    except BadInput as error:
        names = ", ".join(STRATEGIES)
        raise argparse.ArgumentTypeError(f"there is no {text!r}; there are {names}") from error


def io_priority(text: str) -> IoPriority:
    """Return a rank at the disk."""
    try:
        return IoPriority(text)
    except ValueError as error:
        names = ", ".join(IoPriority)
        raise argparse.ArgumentTypeError(f"there is no {text!r}; there are {names}") from error


def glob(text: str) -> str:
    """Return a shell pattern."""
    if not text:
        raise argparse.ArgumentTypeError("an empty pattern matches nothing")
    if "\0" in text or not is_encodable(text):
        raise argparse.ArgumentTypeError(f"no name can match {text!r}")
    if "/" in text:
        raise argparse.ArgumentTypeError(
            f"{text!r} is compared with names, and no name has a slash; to delete a directory, "
            "name it as a target"
        )
    return text


def require_terminal() -> None:
    """Raise BadInput unless a terminal is available for a question."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInput(
            "There is no terminal to ask for confirmation on.", "Add --yes if you are sure."
        )


def add_answers(parser: argparse.ArgumentParser) -> None:
    """Add the options that answer the questions before a job starts."""
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--confirm", metavar="NAME",
        help="the directory's name, where a policy wants it typed; delete for several",
    )  # fmt: skip
    parser.add_argument("--detach", action="store_true", help="start the job and return")


def add_strategy_options(parser: argparse.ArgumentParser) -> None:
    """Add the strategy options, on which an estimate depends, too."""
    parser.add_argument(
        "--keep-root", action="store_true", help="empty the directories, but keep them"
    )
    parser.add_argument(
        "--batch-size", type=positive, default=1000, metavar="N", help="names per rm (xargs)"
    )
    parser.add_argument(
        "--accept-races",
        action="store_true",
        help="run xargs or rsync even where another user could redirect them",
    )
    parser.add_argument(
        "--processes", type=positive, default=1, metavar="P", help="rm processes at once (xargs)"
    )
