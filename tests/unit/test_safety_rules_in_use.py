"""A current directory of a process, or a directory the program needs, is refused."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.unit.targets import here, refusal, target
from tui_fs.model.paths import PathStr
from tui_fs.safety.environment import current_environment
from tui_fs.safety.rules import (
    Environment,
    check,
)

__all__ = ["here", "target"]


def environment(here: Environment, place: str | Path, whose: str) -> Environment:
    """Return an environment in which this place is the current directory, or is needed."""
    path = PathStr(str(place))
    field = (PathStr("/nowhere"), path) if whose in ("program", "interpreter") else path
    return replace(here, **{whose: field})


@pytest.mark.parametrize("below", ["", "sub", "sub/deeper"])
@pytest.mark.parametrize("whose", ["standing_in", "program", "interpreter", "state"])
def test_a_directory_that_holds_what_is_in_use_is_refused(
    here: Environment, target: Path, below: str, whose: str
) -> None:
    place = target / below
    place.mkdir(parents=True, exist_ok=True)
    assert refusal(target, environment(here, place, whose)).rule == "in-use"


def test_standing_in_the_target_through_a_symlink_is_refused(
    here: Environment, target: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").symlink_to(target)
    around = environment(here, tmp_path / "other", "standing_in")
    assert refusal(target, around).rule == "in-use"


def test_the_surroundings_of_this_process_hold_its_program(tmp_path: Path) -> None:
    around = current_environment(str(tmp_path))
    assert (around.standing_in, around.state) == (os.getcwd(), str(tmp_path))
    assert os.path.dirname(os.path.realpath(os.__file__)).startswith(
        tuple(os.path.realpath(place) for place in around.program)
    )


def test_the_libraries_of_this_process_may_not_go(tmp_path: Path) -> None:
    (libc,) = {
        line.split()[-1]
        for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        if "/libc.so" in line or "/libc-" in line
    }
    assert os.path.dirname(libc) in current_environment(str(tmp_path)).interpreter


def test_a_current_directory_that_is_gone_counts_as_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert current_environment("/state").standing_in == ""


def test_the_place_of_another_person_can_be_given(tmp_path: Path) -> None:
    assert current_environment("/state", str(tmp_path)).standing_in == str(tmp_path)


@pytest.mark.parametrize("below", ["", "inside"])
@pytest.mark.parametrize("whose", ["program", "state"])
def test_nothing_inside_the_program_or_the_jobs_may_go(
    here: Environment, target: Path, whose: str, below: str
) -> None:
    inside = target / below
    inside.mkdir(exist_ok=True)
    assert refusal(inside, environment(here, target, whose)).rule == "in-use"


@pytest.mark.parametrize(
    ("whose", "place"),
    [("standing_in", ".."), ("interpreter", ".."), ("standing_in", "../target2")],
)
def test_what_only_lies_above_or_beside_may_lose_a_part(
    here: Environment, target: Path, whose: str, place: str
) -> None:
    path = os.path.normpath(target / place)
    os.makedirs(path, exist_ok=True)
    assert check(str(target), environment(here, path, whose)).path == str(target)
