"""Jobs under attack, again and again, and what they cost."""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.attack import naive
from tests.attack.arena import Play, Tree, attacking
from tests.conftest import Cli, Json
from tests.strategies import BY_PATH, RACE_SAFE

NAIVE_TURNS = {"paths": ((Play.LINK,),), "chdir": ((Play.LIFT,),)}
"""Each naive deletion, and the attack that it cannot withstand."""

VARIANTS: tuple[tuple[str, ...], ...] = (
    *((name,) for name in RACE_SAFE),
    *((name, "--keep-root") for name in RACE_SAFE),
    ("find", "--name", "file-*"),
    ("parallel", "--name", "file-*"),
    *((name,) for name in BY_PATH),
)
"""The strategies, which are race-safe at least where the kernel confines their tools, with the
options that change their command lines."""

TURNS: tuple[tuple[Play, ...], ...] = (
    (Play.LINK,),
    (Play.LIFT,),
    (Play.MOUNT,),
    tuple(Play),
)
"""A tool that detects a move may stop before it reaches the rest."""
LIMIT_S = 300.0

Spans = list[tuple[float, float]]
"""When tools were running, in seconds since the epoch."""


@dataclass(slots=True)
class Toll:
    """The cost of a number of jobs under attack.

    Attributes:
        sentinels: names that had to survive, before each job.
        fewest_left: how many of them were left after the worst job.
        swaps: exchanges and mounts that succeeded while a job's tools ran.
        lost: sentinels that fell, by path; one that fell in two jobs counts twice.
        codes: the exit codes, and how many jobs ended with each.
    """

    way: str
    sentinels: int
    fewest_left: int
    jobs: int = 0
    swaps: int = 0
    lost: list[str] = field(default_factory=list)
    codes: dict[int, int] = field(default_factory=dict)


def campaign(
    way: str,
    place: Path,
    delete: Callable[[Path], tuple[int, Spans]],
    is_enough: Callable[[Toll], bool],
    turns: tuple[tuple[Play, ...], ...] = TURNS,
    limit_s: float = LIMIT_S,
) -> Toll:
    """Delete the attacked tree again and again, until it is enough or time is up.

    Args:
        place: an empty directory that everybody may enter.
        delete: deletes a tree; returns an exit code and when its tools ran.
        turns: what the attacker does in the first job, the second, and so on, and again.
    """
    tree = Tree(place)
    guarded = tree.guard()
    toll = Toll(way, len(guarded), len(guarded))
    deadline = time.monotonic() + limit_s
    while not is_enough(toll) and time.monotonic() < deadline:
        with attacking(place, tree.orders(turns[toll.jobs % len(turns)])) as attackers:
            code, spans = delete(tree.target)
        tree.clear()
        lost = guarded.lost()
        toll.jobs += 1
        toll.swaps += sum(attackers.swaps_between(start, end) for start, end in spans)
        toll.lost += lost
        toll.fewest_left = min(toll.fewest_left, toll.sentinels - len(lost))
        toll.codes[code] = toll.codes.get(code, 0) + 1
        if lost:
            guarded.restore()
    return toll


def exchanged(swaps: int) -> Callable[[Toll], bool]:
    """Return a check that this many exchanges happened and that every turn had its job."""
    return lambda toll: toll.swaps >= swaps and toll.jobs >= len(TURNS)


def has_lost(toll: Toll) -> bool:
    """Return whether a sentinel was deleted."""
    return bool(toll.lost)


def job(cli: Cli, strategy: str, *options: str) -> Callable[[Path], tuple[int, Spans]]:
    """Return a deletion by a job of the program."""

    def delete(target: Path) -> tuple[int, Spans]:
        finished = cli.delete(target, strategy, "--trace", "off", *options)
        assert "Traceback" not in finished.stderr, finished.stderr
        return finished.code, spans_of(finished.stream())

    return delete


def spans_of(stream: list[Json]) -> Spans:
    """Return when the tools ran: from StepStarted on, for as long as the step's wall time."""
    spans: Spans = []
    origin = before_s = begun_s = running_s = 0.0
    for event in stream:
        match event["type"]:
            case "JobStarted":
                origin = event["started_at"] - event["at_s"]
            case "StepStarted":
                begun_s, before_s = event["at_s"], running_s
            case "Sampled":
                running_s = event["strategy_s"]
            case "StepFinished":
                start = origin + begun_s
                spans.append((start, start + running_s - before_s))
    return spans


def naively(way: str) -> Callable[[Path], tuple[int, Spans]]:
    """Return a deletion that can be led astray."""

    def delete(target: Path) -> tuple[int, Spans]:
        start = time.time()
        command = [sys.executable, "-I", naive.__file__, way, str(target)]
        finished = subprocess.run(command, capture_output=True, check=False)
        return finished.returncode, [(start, time.time())]

    return delete
