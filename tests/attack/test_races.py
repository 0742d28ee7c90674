"""Others swap names and mount while root deletes: nothing of root's may fall."""

import itertools
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import pytest

from tests.attack.campaign import (
    NAIVE_TURNS,
    VARIANTS,
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
    Spool,
    attack_all_the_time,
    attack_at_the_last_moment,
    attack_rm_by_path,
)
from tests.attack.swapper import RENAMEAT2
from tests.conftest import Cli
from tests.needs import lacks, needs_root, needs_tools_of
from tests.strategies import BY_PATH
from tests.trees import manifest

SWAPS = 1_200
DONE, PARTIAL, CANCELLED = 0, 1, 130
UNCONFINED = ("--confine", "off")
JOBS_ALL_THE_TIME = 8
"""When a link in the path was followed, nearly half of such jobs deleted the wrong directory."""

Attack = tuple[tuple[str, ...], Exchange]

_PLAIN = [words for words in VARIANTS if len(words) == 1]
_WITH_OPTIONS = [words for words in VARIANTS if len(words) > 1]


def _name(part: object) -> str:
    return part.value if isinstance(part, Exchange) else " ".join(cast(tuple[str, ...], part))


@pytest.fixture(params=VARIANTS, ids="".join)
def variant(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Return each strategy that is race-safe, with options."""
    words: tuple[str, ...] = request.param
    needs_tools_of(words[0])
    return words


@pytest.fixture
def place(tmpfs: Path) -> Path:
    """Return an empty directory that every user may enter, on tmpfs, as many trees are built."""
    needs_root("an attack by another user")
    if platform.machine() not in RENAMEAT2:
        lacks(f"renameat2 is not known for {platform.machine()}; run on x86-64 or arm64")
    arena = tmpfs / "arena"
    arena.mkdir()
    arena.chmod(0o755)
    return arena


@pytest.mark.parametrize("way", NAIVE_TURNS)
def test_a_naive_deletion_is_led_astray(place: Path, way: str) -> None:
    toll = campaign(way, place, naively(way), has_lost, NAIVE_TURNS[way])
    assert toll.lost, f"{toll.jobs} jobs and {toll.swaps} exchanges did nothing"


def test_no_race_safe_strategy_is_led_astray(
    cli: Cli, place: Path, variant: tuple[str, ...]
) -> None:
    toll = campaign(variant[0], place, job(cli, *variant), exchanged(SWAPS))
    assert toll.lost == []
    assert toll.swaps >= SWAPS
    assert set(toll.codes) <= {DONE, PARTIAL, CANCELLED}  # a mount inside ends the job


def test_xargs_is_led_astray_without_confinement(cli: Cli, place: Path) -> None:
    unsafe = job(cli, "xargs", *UNCONFINED, "--accept-races")
    toll = campaign("xargs", place, unsafe, has_lost)
    assert toll.lost, f"{toll.jobs} jobs and {toll.swaps} exchanges did nothing"


@pytest.mark.parametrize("strategy", BY_PATH)
def test_a_strategy_by_path_is_refused_where_others_may_write(
    cli: Cli, place: Path, strategy: str
) -> None:
    # A tree that another user owns
    tree = Spool(place)
    tree.guard()
    (tree.target / "below").mkdir(parents=True)
    (tree.target / "below" / "file").touch()
    before = manifest(place)
    finished = cli.delete(tree.target, strategy, *UNCONFINED)
    finished.expect(REFUSED).assert_one_sentence()
    assert "--accept-races" in finished.stderr
    assert manifest(place) == before


@pytest.mark.parametrize("strategy", BY_PATH)
def test_a_strategy_by_path_is_refused_under_attack(cli: Cli, place: Path, strategy: str) -> None:
    toll = campaign(strategy, place, job(cli, strategy, *UNCONFINED), lambda toll: toll.jobs >= 3)
    assert toll.codes == {REFUSED: 3}
    assert toll.lost == []


@pytest.mark.parametrize(
    "exchange", (Exchange.PARENT_LINK, Exchange.PARENT_ROOTS, Exchange.TARGET_ROOTS)
)
def test_rm_by_path_is_led_astray_at_the_last_moment(
    cli: Cli, place: Path, exchange: Exchange
) -> None:
    verdict = attack_rm_by_path(cli, place, exchange)
    assert verdict.was_rung
    assert verdict.lost


def _in_turn(
    variants: Iterable[tuple[str, ...]], exchanges: Iterable[Exchange]
) -> Iterable[Attack]:
    """Return each variant with one exchange; `run` tries all of them."""
    return zip(variants, itertools.cycle(exchanges), strict=False)


@pytest.mark.parametrize(
    ("words", "exchange"),
    [*itertools.product(_PLAIN, Exchange), *_in_turn(_WITH_OPTIONS, Exchange)],
    ids=_name,
)
def test_no_other_directory_is_taken_for_the_target(
    cli: Cli, place: Path, words: tuple[str, ...], exchange: Exchange
) -> None:
    needs_tools_of(words[0])
    # When the attacker puts something else in the place of the target, or of its parent
    verdict = attack_at_the_last_moment(cli, place, exchange, *words)
    assert verdict.was_rung
    assert verdict.lost == ()
    # (a job that lasts long enough sees the exchange and ends itself)
    assert verdict.code in (DONE, PARTIAL, REFUSED, CANCELLED)


@pytest.mark.parametrize("exchange", ACL_EXCHANGES)
def test_rm_by_path_is_led_astray_through_an_acl(cli: Cli, place: Path, exchange: Exchange) -> None:
    # Directories of root's, and an attacker who may write only through a list of theirs
    verdict = attack_rm_by_path(cli, place, exchange, by_acl=True)
    assert verdict.was_rung
    assert verdict.lost


# A tool cannot see by what right a name was exchanged, only the refusal below reads the lists: one
# exchange for each strategy is enough here, as the test above has all of them.
@pytest.mark.parametrize(("words", "exchange"), _in_turn(_PLAIN, ACL_EXCHANGES), ids=_name)
def test_no_strategy_is_led_astray_through_an_acl(
    cli: Cli, place: Path, words: tuple[str, ...], exchange: Exchange
) -> None:
    needs_tools_of(words[0])
    verdict = attack_at_the_last_moment(cli, place, exchange, *words, by_acl=True)
    # Nothing else falls
    assert verdict.was_rung
    assert verdict.lost == ()
    assert verdict.code in (DONE, PARTIAL, REFUSED, CANCELLED)


@pytest.mark.parametrize("strategy", BY_PATH)
def test_a_strategy_by_path_is_refused_when_an_acl_grants_write(
    cli: Cli, place: Path, strategy: str
) -> None:
    verdict = attack_at_the_last_moment(
        cli, place, Exchange.TARGET_ROOTS, strategy, *UNCONFINED, by_acl=True
    )
    assert (verdict.code, verdict.was_rung, verdict.lost) == (REFUSED, False, ())
    assert "access control list" in verdict.message


@pytest.mark.parametrize("exchange", (Exchange.PARENT_LINK, Exchange.TARGET_LINK))
def test_no_link_of_another_user_is_followed_to_another_target(
    cli: Cli, place: Path, exchange: Exchange
) -> None:
    for number in range(JOBS_ALL_THE_TIME):
        arena = place / str(number)
        arena.mkdir()
        arena.chmod(0o755)
        verdict = attack_all_the_time(cli, arena, exchange, "rm")
        # What the link points to never falls
        assert verdict.lost == ()
