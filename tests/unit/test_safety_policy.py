"""Refusals by a policy."""

from pathlib import Path

import pytest

from tests.unit.policies import allowed, at, never, quiet_environment, read, refusal
from tui_fs.model.errors import Refused
from tui_fs.model.strategy import StrategyName
from tui_fs.safety.policy import (
    Policy,
    check_policy,
    check_strategy,
    name_required_by,
)

__all__ = ["quiet_environment"]


# What is forbidden


def test_no_policy_forbids_nothing(tmp_path: Path) -> None:
    check_policy(Policy(), at(tmp_path / "target"))
    check_strategy(Policy(), "rm")
    assert name_required_by(Policy(), 10**9) is None


def test_read_only_forbids_and_names_who_says_so(tmp_path: Path) -> None:
    policy = read(tmp_path, "read_only = true")
    assert policy.sources[0] in refusal(policy, at(tmp_path / "target"), "read-only")


@pytest.mark.parametrize(
    ("place", "word"),
    [
        ("a/b", "is"),
        ("a", "is inside"),
        (".", "is inside"),
        ("a/b/c", "contains"),
        ("a/b/not/there/yet", "contains"),
    ],
)
def test_at_in_or_above_a_place_that_stays_is_refused(
    tmp_path: Path, place: str, word: str
) -> None:
    target = at(tmp_path / "a" / "b")
    sentence = refusal(never("/elsewhere", tmp_path / place), target)
    words = f"{target.path} must never" if word == "is" else f"{target.path} {word} "
    assert words in sentence
    assert "/p.toml" in sentence


@pytest.mark.parametrize("place", ["a/bb", "a/b2/c", "a/B", "b"])
def test_beside_a_place_that_stays_is_permitted(tmp_path: Path, place: str) -> None:
    check_policy(never(tmp_path / place), at(tmp_path / "a" / "b"))
    at(tmp_path / place)
    check_policy(never(tmp_path / place), at(tmp_path / "a" / "b"))


def test_the_root_as_a_place_forbids_everything(tmp_path: Path) -> None:
    assert "is inside" in refusal(never("/"), at(tmp_path / "target"))


# What is allowed


def test_only_at_or_below_an_allowed_place(tmp_path: Path) -> None:
    spool = tmp_path / "srv" / "spool"
    policy = allowed((tmp_path / "other", spool))
    check_policy(policy, at(spool))
    check_policy(policy, at(spool / "deep" / "er"))
    for path in (spool.parent, spool.parent / "spool2", spool.parent / "spoo"):
        assert str(spool) in refusal(policy, at(path))


def test_every_list_must_permit(tmp_path: Path) -> None:
    policy = allowed((tmp_path / "a",), (tmp_path / "a" / "b", tmp_path / "c"))
    check_policy(policy, at(tmp_path / "a" / "b" / "x"))
    refusal(policy, at(tmp_path / "a" / "x"))
    refusal(policy, at(tmp_path / "c"))


def test_an_empty_list_allows_nothing(tmp_path: Path) -> None:
    assert "deletion is allowed: none" in refusal(
        read(tmp_path, "allowed = []"), at(tmp_path / "x")
    )


def test_never_is_stronger_than_allowed(tmp_path: Path) -> None:
    policy = Policy(
        never=never(tmp_path / "a" / "db").never, allowed=allowed((tmp_path / "a",)).allowed
    )
    check_policy(policy, at(tmp_path / "a" / "x"))
    refusal(policy, at(tmp_path / "a" / "db"))


# Strategies and names


def test_only_the_named_strategies_may_be_used() -> None:
    policy = Policy(sources=("/p.toml",), strategies=frozenset({"rm", "find"}))
    check_strategy(policy, StrategyName("rm"))
    with pytest.raises(Refused) as refused:
        check_strategy(policy, StrategyName("rsync"))
    assert refused.value.rule == "policy"
    assert "rsync" in refused.value.sentence
    assert "/p.toml" in refused.value.sentence
    assert "find, rm" in refused.value.advice
    with pytest.raises(Refused, match="No strategy"):
        check_strategy(Policy(strategies=frozenset()), StrategyName("rm"))


@pytest.mark.parametrize(
    ("limit", "entries", "required"),
    [(0, 0, True), (0, 1, True), (1, 1, False), (1, 2, True), (500, 500, False), (500, 501, True)],
)
def test_a_name_is_asked_for_above_the_limit(limit: int, entries: int, required: bool) -> None:
    reason = name_required_by(Policy(type_name_above_entries=limit), entries)
    assert (reason is not None) is required
