"""The place of an experiment and its missing steps are known before anything is made."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.needs import needs_root
from tests.unit.lab_trials import RM, Files, done, experiment_of, place, ran, results_of
from tui_fs.job.scratch import Scratch
from tui_fs.lab.experiment import (
    Scale,
    Step,
    Trial,
)
from tui_fs.lab.preparing import prepare
from tui_fs.lab.tree_generators import Flat
from tui_fs.model.errors import BadInput, Missing, Refused

__all__ = ["place"]


def test_what_cannot_be_done_here_says_why_and_the_rest_is_done(place: Path) -> None:
    commands = {"can": "ls", "cannot": "no-such-tool", "after": "ls"}
    steps = tuple(Step(key, "", (((tool,),),)) for key, tool in commands.items())
    results = results_of(done(place, Trial(steps, rounds=1)))
    assert [results.has(key) for key in commands] == [True, False, False]
    assert "no-such-tool was not found in PATH" in results.plan("cannot").why_not
    assert "an earlier step was skipped: no-such-tool" in results.plan("after").why_not


def test_an_experiment_of_which_nothing_can_be_done_is_refused(place: Path) -> None:
    trial = Trial((Step("cannot", "", ((("no-such-tool",),),)),))
    with pytest.raises(Missing, match="no-such-tool was not found in PATH"):
        prepare(experiment_of(trial), Scale.SMALL, str(place))


def test_a_place_without_room_is_refused(place: Path) -> None:
    trial = Trial((Step("rm", "", RM),), Flat(1 << 50))
    with pytest.raises(Refused) as refused:
        prepare(experiment_of(trial), Scale.SMALL, str(place))
    assert refused.value.rule == "room"
    assert os.listdir(place) == []


@pytest.mark.parametrize("what", ("a file", "nothing", "others'"))
def test_a_place_that_cannot_be_used_is_said(place: Path, what: str) -> None:
    other = place / "other"
    if what == "a file":
        other.touch()
    elif what == "others'":
        other.mkdir()
        other.chmod(0o777)
    trial = Trial((Step("rm", "", RM),), Files())
    with pytest.raises(Refused if what == "others'" else BadInput):
        prepare(experiment_of(trial), Scale.SMALL, str(other))


def test_tools_are_listed_with_their_versions(place: Path) -> None:
    trial = Trial((Step("find", "", ((("find", "{tree}"),),)),), Files(), rounds=1)
    tools: Mapping[str, str] = prepare(experiment_of(trial), Scale.SMALL, str(place)).machine.tools
    assert "GNU findutils" in tools["find"]


@pytest.mark.root
@pytest.mark.parametrize("owner, mode", ((65534, 0o1755), (65534, 0o700), (0, 0o1777)))
def test_a_sticky_directory_of_another_user_is_no_place(place: Path, owner: int, mode: int) -> None:
    # A directory whose owner can exchange every name in it, sticky or not
    needs_root("giving a directory away")
    other = place / "other"
    other.mkdir()
    os.chown(other, owner, owner)
    other.chmod(mode)
    trial = Trial((Step("ls", "", ((("ls",),),)),), rounds=1)
    if owner == 0:
        assert ran(done(other, trial)) == ["ls"]
        return
    with pytest.raises(Refused):
        prepare(experiment_of(trial), Scale.SMALL, str(other))
    with pytest.raises(Refused):
        Scratch(str(other), other.stat().st_dev)
