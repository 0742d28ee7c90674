"""At each removing call of each strategy a hostile operation: nothing outside may fall."""

import platform
from collections.abc import Iterator

import pytest

from tests.attack.exhaustive import MACHINE, Scene, attack_everywhere, scratch
from tests.needs import lacks, needs_root, needs_tools_of
from tui_fs.model.strategy import Confine, Mechanism
from tui_fs.safety.confinement import available, mechanisms_for
from tui_fs.strategies.registry import STRATEGIES

LEVELS = 2


@pytest.fixture
def scene() -> Iterator[Scene]:
    """Return a scene on a file system of its own."""
    needs_root("an attack from another mount namespace")
    if platform.machine() != MACHINE:
        lacks(f"the numbers of the removing calls are not known for {platform.machine()}")
    with scratch() as made:
        yield made


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_operation_leads_a_confined_strategy_astray(scene: Scene, strategy: str) -> None:
    needs_tools_of(strategy)
    for mechanism in Mechanism:
        if available().reason(mechanism):
            lacks(f"{mechanism}: {available().reason(mechanism)}")
    tally = attack_everywhere(scene, strategy, 1, mechanisms_for(Confine.AUTO, LEVELS))
    # (a sentinel, or an entry that was moved out of the target before the call)
    assert [case for case in tally.harmful if case.lost] == []
    assert [case for case in tally.harmful if case.lost_after_move] == []
    assert tally.done > 0


@pytest.mark.parametrize("strategy", ("find", "xargs"))
def test_an_operation_leads_a_strategy_astray_without_confinement(
    scene: Scene, strategy: str
) -> None:
    assert attack_everywhere(scene, strategy, 1, ()).lost > 0
