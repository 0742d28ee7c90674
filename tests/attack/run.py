"""Attack every strategy at length and print a table: ``python -m tests.attack.run``.

Needs root. The exit code is 0 if no strategy that promises to withstand has lost anything,
and the naive deletions have.
"""

import argparse
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.attack.arena import Play
from tests.attack.campaign import (
    NAIVE_TURNS,
    VARIANTS,
    Toll,
    campaign,
    exchanged,
    has_lost,
    job,
    naively,
)
from tests.attack.parent import (
    ACL_EXCHANGES,
    REFUSED,
    Exchange,
    Verdict,
    attack_at_the_last_moment,
    attack_rm_by_path,
)
from tests.conftest import Cli
from tests.preloaded import Preloaded
from tests.strategies import BY_PATH

_COLUMNS = "{:<36}{:>6}{:>10}{:>8}{:>8}{:>8}   {}"
_HEADINGS = ("strategy", "jobs", "swaps", "before", "after", "lost", "jobs by exit code")
_LIMIT_S = 600.0
_UNCONFINED = ("--confine", "off")
_ACCEPTED = tuple((name, *_UNCONFINED, "--accept-races") for name in BY_PATH)
_LED_INTO_MOUNTS = ("find", *_UNCONFINED)

_NOTE = """\
swaps   exchanges and mounts that succeeded between StepStarted and the end of the step's tools
before  names of root's that links, moved directories and mounts lead to, before each job
after   how many of them were left after the worst job
lost    how many fell in all jobs together; they are put back after each
"""
_ACL_COLUMNS = "{:<14}{:>8}{:>8}{:>10}{:>10}{:>8}"
_BY_ACL = """\
One exchange by a user who owns nothing and may write only through an access control list, after
the last check and before the tool starts
rm -rf    names of root's outside the target that rm -rf PATH by itself deletes in one run
refused   jobs of strategies that work by path, refused before a tool starts
attacked  jobs whose tool waited for the exchange
lost      names of root's outside the target that all jobs together deleted
"""
_LAST_MOMENT = """\
One exchange after the last check and before the tool starts: how many of the 50 names of
root's that it leads to fell, and how the job ended
"""


def main(arguments: list[str]) -> int:
    """Run both attacks; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack.run", description=__doc__)
    parser.add_argument("--swaps", type=int, default=10_000, help="exchanges for each strategy")
    parser.add_argument(
        "--acl-runs", type=int, default=100, help="jobs for each exchange through an ACL"
    )
    parser.add_argument(
        "--only-acl", action="store_true", help="leave out the attacks by the owner of the tree"
    )
    parser.add_argument("--dir", help="where to make the trees (a file system to try)")
    parsed = parser.parse_args(arguments)
    if os.geteuid() != 0:
        parser.error("an attack by another user needs root")
    with tempfile.TemporaryDirectory(prefix="tui-fs-attack-", dir=parsed.dir) as made:
        base = Path(made)
        os.environ["XDG_STATE_HOME"] = str(base / "state")
        preloaded = Preloaded()
        cli = Cli(_program(), base / "state", preloaded)
        withstood = _print_acl_attacks(cli, base, parsed.acl_runs)
        if not parsed.only_acl:
            withstood &= _print_campaigns(cli, base, parsed.swaps)
            withstood &= _print_last_moments(cli, base)
        preloaded.close()
        return 0 if withstood else 1


def _print_acl_attacks(cli: Cli, base: Path, runs: int) -> bool:
    """Attack through an ACL, with one strategy after another; return whether all withstood."""
    print(_BY_ACL)
    print(_ACL_COLUMNS.format("exchange", "rm -rf", "jobs", "refused", "attacked", "lost"))
    is_as_promised = True
    ways = (*VARIANTS, *((name, *_UNCONFINED) for name in BY_PATH))
    for exchange in ACL_EXCHANGES:
        with _place(base) as place:
            naive = attack_rm_by_path(cli, place, exchange, by_acl=True)
        verdicts: list[Verdict] = []
        for number in range(runs):
            words = ways[number % len(ways)]
            with _place(base) as place:
                verdicts.append(
                    attack_at_the_last_moment(cli, place, exchange, *words, by_acl=True)
                )
        refused = sum(verdict.code == REFUSED and not verdict.was_rung for verdict in verdicts)
        attacked = sum(verdict.was_rung for verdict in verdicts)
        lost = sum(len(verdict.lost) for verdict in verdicts)
        numbers = (len(naive.lost), runs, refused, attacked, lost)
        print(_ACL_COLUMNS.format(exchange, *numbers), flush=True)
        is_as_promised &= bool(naive.lost) and not lost and refused + attacked == runs
    return is_as_promised


def _print_campaigns(cli: Cli, base: Path, swaps: int) -> bool:
    print(_NOTE)
    print(_COLUMNS.format(*_HEADINGS))
    is_as_promised = True
    for way, turns in NAIVE_TURNS.items():
        with _place(base) as place:
            toll = campaign(f"naive, by {way}", place, naively(way), has_lost, turns, _LIMIT_S)
        is_as_promised &= bool(toll.lost)
        _print_toll(toll)
    with _place(base) as place:
        delete, way = job(cli, *_LED_INTO_MOUNTS), " ".join(_LED_INTO_MOUNTS)
        toll = campaign(way, place, delete, has_lost, ((Play.MOUNT,),), _LIMIT_S)
    is_as_promised &= bool(toll.lost)
    _print_toll(toll)
    for words in (*VARIANTS, *_ACCEPTED):
        delete, way = job(cli, *words), " ".join(words)
        with _place(base) as place:
            toll = campaign(way, place, delete, exchanged(swaps), limit_s=_LIMIT_S)
        is_as_promised &= words in _ACCEPTED or (not toll.lost and toll.swaps >= swaps)
        _print_toll(toll)
    return is_as_promised


def _print_toll(toll: Toll) -> None:
    codes = ", ".join(f"{code}: {jobs}" for code, jobs in sorted(toll.codes.items()))
    numbers = (toll.jobs, toll.swaps, toll.sentinels, toll.fewest_left, len(toll.lost))
    print(_COLUMNS.format(toll.way, *numbers, codes), flush=True)


def _print_last_moments(cli: Cli, base: Path) -> bool:
    print(f"\n{_LAST_MOMENT}")
    print(f"{'strategy':<36}" + "".join(f"{exchange:>16}" for exchange in Exchange))
    is_as_promised = True
    naive = [_attack(base, attack_rm_by_path, cli, exchange) for exchange in Exchange]
    _print_verdicts("rm -rf PATH itself", naive)
    is_as_promised &= any(verdict.lost for verdict in naive)
    for words in (*VARIANTS, *_ACCEPTED):
        verdicts = [
            _attack(base, attack_at_the_last_moment, cli, exchange, *words) for exchange in Exchange
        ]
        _print_verdicts(" ".join(words), verdicts)
        is_as_promised &= words in _ACCEPTED or not any(verdict.lost for verdict in verdicts)
    return is_as_promised


def _print_verdicts(way: str, verdicts: list[Verdict]) -> None:
    cells = (f"{len(verdict.lost)} (exit {verdict.code})" for verdict in verdicts)
    print(f"{way:<36}" + "".join(f"{cell:>16}" for cell in cells), flush=True)


def _attack(
    base: Path, attack: Callable[..., Verdict], cli: Cli, exchange: Exchange, *words: str
) -> Verdict:
    with _place(base) as place:
        return attack(cli, place, exchange, *words)


@contextmanager
def _place(base: Path) -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(dir=base))
    place.chmod(0o755)
    try:
        yield place
    finally:
        shutil.rmtree(place)


def _program() -> str:
    return str(Path(sysconfig.get_path("scripts")) / "tui-fs")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
