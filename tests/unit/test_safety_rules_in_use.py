"""A current directory of a process, or a directory the program needs, is refused."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.targets import here, refusal, target
from tui_fs.model.paths import PathStr
from tui_fs.safety.environment import current_environment
from tui_fs.safety.rules import (
    Environment,
    check,
)

__all__ = ["here", "target"]


@pytest.mark.parametrize("below", ["", "sub", "sub/deeper"])
@pytest.mark.parametrize("whose", ["standing_in", "program", "state"])
def test_the_current_directory_of_a_process_is_refused(
    here: Environment, target: Path, below: str, whose: str
) -> None:
    place = PathStr(os.path.join(target, below))
    os.makedirs(place, exist_ok=True)
    around = {
        "standing_in": replace(here, standing_in=place),
        "program": replace(here, program=(PathStr("/nowhere"), place)),
        "state": replace(here, state=place),
    }[whose]
    assert refusal(target, around).rule == "in-use"


def test_standing_in_the_target_through_a_symlink_is_refused(
    here: Environment, target: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").symlink_to(target)
    around = replace(here, standing_in=PathStr(str(tmp_path / "other")))
    assert refusal(target, around).rule == "in-use"


def test_standing_beside_a_target_of_a_shorter_name_is_allowed(
    here: Environment, target: Path
) -> None:
    beside = f"{target}2"
    os.mkdir(beside)
    assert check(str(target), replace(here, standing_in=PathStr(beside))).path == str(target)


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
    place = PathStr(str(target))
    around = {
        "program": replace(here, program=(place,)),
        "state": replace(here, state=place),
    }[whose]
    assert refusal(inside, around).rule == "in-use"


@pytest.mark.parametrize("whose", ["standing_in", "interpreter"])
def test_what_only_holds_other_things_besides_may_lose_a_part(
    here: Environment, target: Path, whose: str
) -> None:
    place = PathStr(str(target.parent))
    around = {
        "standing_in": replace(here, standing_in=place),
        "interpreter": replace(here, interpreter=(place,)),
    }[whose]
    assert check(str(target), around).path == str(target)


def test_the_interpreter_itself_is_refused(here: Environment, target: Path) -> None:
    (target / "bin").mkdir()
    around = replace(here, interpreter=(PathStr(str(target / "bin")),))
    assert refusal(target, around).rule == "in-use"
