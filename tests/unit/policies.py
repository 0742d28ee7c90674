"""Policies, targets to ask them about, and what they answer."""

from pathlib import Path

import pytest

from tui_fs.linux.pins import take_pin
from tui_fs.model.errors import Refused
from tui_fs.model.paths import PathStr
from tui_fs.model.target import Target
from tui_fs.safety.policy import (
    READ_ONLY_VARIABLE,
    Policy,
    check_policy,
    read_policy,
)
from tui_fs.strategies.registry import STRATEGIES


@pytest.fixture(autouse=True)
def quiet_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing outside of the test switch deletion off."""
    monkeypatch.delenv(READ_ONLY_VARIABLE, raising=False)


def policy_file(tmp_path: Path, content: str | bytes, name: str = "policy.toml") -> str:
    """Write a policy and return its path."""
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def read(tmp_path: Path, *contents: str | bytes) -> Policy:
    """Read files with these contents."""
    return read_policy(
        tuple(policy_file(tmp_path, text, f"{n}.toml") for n, text in enumerate(contents)),
        known_strategies=STRATEGIES,
    )


def never(*places: str | Path) -> Policy:
    """Return a policy with places that must stay."""
    return Policy(sources=("/p.toml",), never=tuple(PathStr(str(place)) for place in places))


def allowed(*lists: tuple[Path, ...]) -> Policy:
    """Return a policy with lists of places that may go."""
    return Policy(allowed=tuple(tuple(PathStr(str(place)) for place in paths) for paths in lists))


def at(path: Path) -> Target:
    """Return the target at a directory that is made where it is missing."""
    path.mkdir(parents=True, exist_ok=True)
    return Target(PathStr(str(path)), take_pin(str(path)))


def refusal(policy: Policy, target: Target, rule: str = "policy") -> str:
    """Return the sentence of a refusal, which must have an advice and the rule's name."""
    with pytest.raises(Refused) as refused:
        check_policy(policy, target)
    assert refused.value.rule == rule
    assert refused.value.sentence.endswith(".")
    assert refused.value.advice
    return refused.value.sentence
