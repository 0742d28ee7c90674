"""Jobs whose supervisor meets a limit for a moment, and what they report."""

import os
import random
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import Cli, Json
from tests.limits.limits import limited
from tests.trees import flat
from tui_fs.job.journal import read_crash

RATE_PER_S = 1_000
JOB_S = 3.0
FILES = int(RATE_PER_S * JOB_S) - 1
LONGEST_LIMIT_S = 2.5
_END_S = 60.0
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Hit:
    """One limit in one job.

    Attributes:
        after_s: from the start of the job to the limit.
        lasts_s: how long it lasts.
    """

    strategy: str
    kind: str
    keeps_root: bool
    is_paused: bool
    after_s: float
    lasts_s: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a job.

    Attributes:
        faults: what its report or its end has wrong; empty if nothing.
        was_hit: the supervisor lived when the limit began.
    """

    hit: Hit
    faults: tuple[str, ...]
    was_hit: bool


def hits(number: int, strategies: Sequence[str], kinds: Sequence[str], seed: int) -> list[Hit]:
    """Return this many hits at random moments, spread over every strategy and kind."""
    dice = random.Random(seed)
    return [
        Hit(
            strategy=strategies[turn % len(strategies)],
            kind=kinds[turn // len(strategies) % len(kinds)],
            keeps_root=dice.random() < 0.25,
            is_paused=dice.random() < 0.25,
            after_s=dice.uniform(0.0, JOB_S),
            lasts_s=dice.uniform(0.2, LONGEST_LIMIT_S),
        )
        for turn in range(number)
    ]


def run(cli: Cli, base: Path, hit: Hit) -> Verdict:
    """Run one job, put the limit on its supervisor, and judge how it ends."""
    target = base / f"{hit.strategy}-{time.monotonic_ns()}"
    flat(target, FILES)
    options = ("--keep-root",) if hit.keeps_root else ()
    words = ("--strategy", hit.strategy, "--yes", "--detach", "--rate", str(RATE_PER_S))
    job = cli.run("delete", *words, *options, target).expect(0).stdout.decode().strip()
    supervisor = cli.supervisor_of(job)
    time.sleep(hit.after_s)
    was_hit = _is_alive(supervisor)
    began_s = time.monotonic()
    with limited(hit.kind, supervisor):
        if hit.is_paused and was_hit:
            cli.run("pause", job)  # it may have ended
        while time.monotonic() - began_s < hit.lasts_s and _is_alive(supervisor):
            time.sleep(_POLL_S)
    if hit.is_paused:
        cli.run("resume", job)
    faults = _faults(cli, job, target, hit)
    shutil.rmtree(target, ignore_errors=True)
    return Verdict(hit, faults, was_hit)


def _faults(cli: Cli, job: str, target: Path, hit: Hit) -> tuple[str, ...]:
    deadline = time.monotonic() + _END_S
    while cli.state_of(job) in ("running", "paused", "held"):
        if time.monotonic() > deadline:
            return (f"job {job} has not ended",)
        time.sleep(10 * _POLL_S)
    ended = cli.run("attach", "--json", job)
    report: Json = ended.report()
    faults: list[str] = []
    if ended.code != 0 or report["outcome"] != "done":
        faults.append(f"exit {ended.code}, {report['outcome']}: {report['explanation']}")
    left = len(os.listdir(target)) if target.exists() else None
    if left != (0 if hit.keeps_root else None):
        faults.append(f"left behind: {left}")
    deleted = report["deleted_files"], report["deleted_directories"]
    if deleted != (FILES, 0 if hit.keeps_root else 1):
        faults.append(f"reported as deleted: {deleted}")
    crash = read_crash(str(cli.jobs_directory / job / "crash"))
    if crash:
        faults.append(f"the supervisor failed: {crash}")
    return tuple(faults)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
