"""What a job that died has left, according to what is at its targets' paths now."""

import shutil
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.unit.test_job_store import plan
from tui_fs.job.planning import remainder_of
from tui_fs.linux.pins import take_pin
from tui_fs.linux.statx import FileStatx
from tui_fs.model.errors import BadInput, Refused
from tui_fs.model.paths import PathStr
from tui_fs.model.plan import Plan
from tui_fs.model.target import Target


def plan_of(*paths: Path) -> Plan:
    """Return the plan of a job on these directories, as they are now."""
    targets = tuple(Target(PathStr(str(path)), take_pin(str(path))) for path in paths)
    return replace(plan(), targets=targets, created_at=time.time())


def with_birth(target: Target, birth_ns: int | None) -> Target:
    """Return a target whose directory was created at another time."""
    return replace(target, pin=replace(target.pin, birth_ns=birth_ns))


@pytest.fixture
def places(tmp_path: Path) -> list[Path]:
    """Return five directories."""
    paths = [tmp_path / name for name in "abcde"]
    for path in paths:
        path.mkdir()
    return paths


def exchange(path: Path) -> None:
    """Put another directory in the place of one; the first one still has its inode."""
    path.rename(path.parent / f"old-{path.name}")
    path.mkdir()


def test_all_that_are_left_go_on(places: list[Path]) -> None:
    rest = remainder_of(plan_of(*places))
    assert [target.path for target in rest.targets] == list(map(str, places))
    assert rest.gone == ""


def test_what_is_gone_or_another_is_left_out_and_said(places: list[Path]) -> None:
    died = plan_of(*places)
    shutil.rmtree(places[1])
    exchange(places[3])
    rest = remainder_of(died)
    assert [target.path for target in rest.targets] == [str(places[at]) for at in (0, 2, 4)]
    assert [target.pin for target in rest.targets] == [died.targets[at].pin for at in (0, 2, 4)]
    assert rest.gone == f"2 of 5 directories were deleted or replaced: {places[1]}, {places[3]}."


@pytest.mark.parametrize("apart_ns", [-(10**12), -1, 1, 10**12])
def test_one_made_in_another_moment_is_another_even_with_its_inode(
    places: list[Path], apart_ns: int
) -> None:
    died = plan_of(*places[:2])
    others = [
        with_birth(old_target, (old_target.pin.birth_ns or 0) + apart_ns)
        for old_target in died.targets
    ]
    with pytest.raises(Refused) as error:
        remainder_of(replace(died, targets=tuple(others)))
    assert error.value.rule == "changed"
    # And if one of two is the same, only that one
    rest = remainder_of(replace(died, targets=(died.targets[0], others[1])))
    assert [target.path for target in rest.targets] == [str(places[0])]


def test_nothing_is_resumed_without_a_birth_time(
    places: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    died = plan_of(*places)
    monkeypatch.setattr("tui_fs.linux.pins.statx", lambda _: FileStatx(None, None))
    with pytest.raises(Refused) as error:
        remainder_of(died)
    assert "does not record when" in error.value.sentence
    # And if the plan has no birth time
    monkeypatch.undo()
    untold = tuple(with_birth(target, None) for target in died.targets)
    with pytest.raises(Refused):
        remainder_of(replace(died, targets=untold))


def test_many_that_are_gone_are_counted(places: list[Path]) -> None:
    died = plan_of(*places)
    for path in places[:4]:
        path.rmdir()
    assert remainder_of(died).gone.endswith(f"{places[2]} and 1 more.")


def test_with_nothing_left_there_is_nothing_to_do(places: list[Path]) -> None:
    died = plan_of(*places[:2])
    for path in places[:2]:
        path.rmdir()
    with pytest.raises(BadInput) as error:
        remainder_of(died)
    assert "nothing is left" in error.value.sentence


def test_nothing_but_others_is_refused(places: list[Path]) -> None:
    died = plan_of(*places[:2])
    places[0].rmdir()
    exchange(places[1])
    with pytest.raises(Refused) as refusal:
        remainder_of(died)
    assert refusal.value.rule == "changed"
