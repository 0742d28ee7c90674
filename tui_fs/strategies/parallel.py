"""The native engine: one process with several threads, which goes from descriptor to descriptor."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import TypeGuard

from tui_fs.linux.tools import ENGINE
from tui_fs.model.calls import CallCount, Removed
from tui_fs.model.codec import Json
from tui_fs.model.strategy import Argv, Guarantees, Options, Step, StrategyName
from tui_fs.model.target import Pin
from tui_fs.strategies.base import Failure, Remark, Told, Totals, gnu_failure, unquote_c

TOLD_EVERY_MS = 50
"""A job is looked at four times a second: what it knows then is a fifth of that old at most."""

_LARGEST_SUM = (1 << 64) - 1  # the engine counts in 64 bits
_MOST_THREADS = 1 << 16
_CALL = re.compile(r"[a-z][a-z0-9_]{0,31}")
_MOST_CALLS = 64


class Parallel:
    """``tui-fs-engine delete TARGETS``."""

    name = StrategyName.PARALLEL
    tools = (ENGINE, "rmdir")
    gnu_tools = ()
    guarantees = Guarantees(
        race_safe=True,
        mount_safe=True,
        any_depth=True,
        takes_filters=True,
        speaks=True,
    )

    def steps(
        self,
        targets: tuple[str, ...],
        options: Options,
        tools: Mapping[str, str],
        empty_directory: str,
    ) -> tuple[Step, ...]:
        """See `Strategy.steps`."""
        del empty_directory
        how = (*_how_much(options), "--every", str(TOLD_EVERY_MS), "--")
        return (((tools[ENGINE], "delete", *how, *targets),),)

    def steps_with_output(
        self,
        targets: tuple[str, ...],
        options: Options,
        tools: Mapping[str, str],
        empty_directory: str,
    ) -> tuple[Step, ...]:
        """See `Strategy.steps_with_output`; it always tells."""
        return self.steps(targets, options, tools, empty_directory)

    def pinned(self, steps: tuple[Step, ...], pins: Sequence[Pin]) -> tuple[Step, ...]:
        """See `ComparesPins.pinned`."""
        return with_pins(steps, [pin_argument(pin) for pin in pins])

    def at_once(self, options: Options) -> int | None:
        """See `Strategy.at_once`."""
        del options
        return None

    def read_output(self, line: bytes) -> Told | None:
        """See `Strategy.read_output`; what is not in the shape that was agreed on is a remark."""
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            return _remark(line)
        match told:
            case {"type": "counts"}:
                return _totals(told) or _remark(line)
            case {"type": "answer", "problem": None}:
                return None
            case {"type": "answer", "command": str(command), "problem": str(problem)}:
                return Remark(f"tui-fs-engine: {command}: {problem}")
        return _remark(line)

    def failure(self, line: bytes) -> Failure | None:
        """See `Strategy.failure`."""
        return gnu_failure(line, unquote_c)


def pin_argument(pin: Pin) -> str:
    """Return the value of the engine's ``--pin`` for a target; a birth time of 0 is unknown."""
    return f"{pin.device}:{pin.inode}:{pin.birth_ns or 0}"


def with_pins(steps: tuple[Step, ...], pins: Sequence[str]) -> tuple[Step, ...]:
    """Return the engine's one command with a ``--pin`` for each target, without which it refuses.

    Args:
        pins: values of ``--pin``, in the order of the targets.
    """
    (((*argv,),),) = steps
    words = [word for pin in pins for word in ("--pin", pin)]
    end = len(argv) - len(pins) - 1  # the targets are the last words, behind --
    return (((*argv[:end], *words, *argv[end:]),),)


def _how_much(options: Options) -> Argv:
    """Return what is to be deleted of the targets, and how fast."""
    filters, pace = options.filters, options.pace
    words: list[str] = []
    if options.keep_root:
        words.append("--keep-root")
    for option, value in (
        ("--name", filters.name_glob),
        ("--min-size", filters.min_size_bytes),
        ("--modified-before", filters.modified_before_s),
        ("--threads", pace.threads or None),
        ("--rate", pace.rate_per_s or None),
    ):
        words += [option, str(value)] if value is not None else []
    return (*words, *(["--gentle"] if pace.gentle else []))


def _totals(told: Mapping[str, Json]) -> Totals | None:
    """Return what a line of counts says, None if it makes no sense."""
    removed, directories, calls = told.get("removed"), told.get("directories"), told.get("calls")
    threads = told.get("threads")
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
    return Totals(Removed(removed, directories), counts, threads)


def _is_sum(value: Json) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_SUM


def _remark(line: bytes) -> Remark | None:
    return Remark(line.decode("utf-8", "replace")) if line.strip() else None
