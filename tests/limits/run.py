"""Let jobs meet limits at random moments and print a table: ``python -m tests.limits.run``.

The exit code is 0 if every job has done its work and reports it truly.
"""

import argparse
import os
import sys
import sysconfig
import tempfile
import threading
from collections import Counter
from pathlib import Path

from tests.conftest import Cli
from tests.limits.campaign import Hit, Verdict, hits, run
from tests.limits.limits import KINDS, why_not_limited
from tui_fs.linux.tools import ENGINE, find_engine
from tui_fs.strategies.registry import STRATEGIES

_COLUMNS = "{:<12}{:<14}{:>6}{:>8}{:>8}"


def main(arguments: list[str]) -> int:
    """Run the jobs; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.limits.run", description=__doc__)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dir", help="where to make the trees")
    parsed = parser.parse_args(arguments)
    kinds = [
        kind for kind in KINDS if (reason := why_not_limited(kind)) is None or _lacks(kind, reason)
    ]
    with tempfile.TemporaryDirectory(prefix="tui-fs-limits-", dir=parsed.dir) as made:
        base = Path(made)
        os.environ["XDG_STATE_HOME"] = str(base / "state")
        program = str(Path(sysconfig.get_path("scripts")) / "tui-fs")
        cli = Cli(program, base / "state")
        wanted = hits(parsed.jobs, strategies(), kinds, parsed.seed)
        verdicts = run_all(cli, base, wanted, parsed.at_once)
    _print(verdicts)
    return (
        0 if len(verdicts) == parsed.jobs and not any(verdict.faults for verdict in verdicts) else 1
    )


def strategies() -> list[str]:
    """Return the strategies that can run here."""
    return [name for name in STRATEGIES if ENGINE not in STRATEGIES[name].tools or find_engine()]


def run_all(cli: Cli, base: Path, wanted: list[Hit], at_once: int) -> list[Verdict]:
    """Run the jobs, some at once; a job whose run raises an error has no verdict."""
    waiting, verdicts = list(reversed(wanted)), list[Verdict]()

    def work() -> None:
        while waiting:
            verdicts.append(run(cli, base, waiting.pop()))

    threads = [threading.Thread(target=work) for _ in range(at_once)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return verdicts


def _lacks(kind: str, reason: str) -> bool:
    print(f"not limited: {kind}: {reason}")
    return False


def _print(verdicts: list[Verdict]) -> None:
    print(_COLUMNS.format("strategy", "limit", "jobs", "in run", "faulty"))
    jobs = Counter((verdict.hit.strategy, verdict.hit.kind) for verdict in verdicts)
    in_run = Counter(
        (verdict.hit.strategy, verdict.hit.kind) for verdict in verdicts if verdict.was_hit
    )
    faulty = Counter(
        (verdict.hit.strategy, verdict.hit.kind) for verdict in verdicts if verdict.faults
    )
    for key in sorted(jobs):
        print(_COLUMNS.format(*key, jobs[key], in_run[key], faulty[key]))
    total = "all", "", jobs.total(), in_run.total(), faulty.total()
    print(_COLUMNS.format(*total))
    for verdict in verdicts:
        for fault in verdict.faults:
            print(f"{verdict.hit}: {fault}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
