"""What was measured is kept for its file system, and jobs refine it."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.conftest import Json
from tests.unit.test_estimate_recommendation import estimate
from tests.unit.test_job_store import plan
from tui_fs.estimate.calibration import Calibration, LearnedFactor
from tui_fs.estimate.time import typical
from tui_fs.job.calibration.store import (
    BRIEFLY_FRESH_S,
    FRESH_S,
    MEASURING,
    keep,
    learn,
    load_calibration,
    refine,
)
from tui_fs.linux.filesystem import FileSystem, file_system_of
from tui_fs.model.calls import TraceSource
from tui_fs.model.errors import TuiFsError
from tui_fs.model.eta import MIN_CONCLUSIVE_S
from tui_fs.model.events import JobFinished, MachineUse, Throttled
from tui_fs.model.outcome import Outcome
from tui_fs.model.paths import PathStr
from tui_fs.model.plan import Plan
from tui_fs.model.snapshot import Snapshot
from tui_fs.model.strategy import Filters, Options, Pace, StrategyName
from tui_fs.model.target import Pin, Target

NOW_S = 1.7e9
HERE = FileSystem("ext4", "/dev/sda1", "/srv", is_read_only=False, identity="abc")
ELSEWHERE = replace(HERE, identity="def")
NETWORK = FileSystem("nfs4", "server:/a", "/a", is_read_only=False, identity="")


@pytest.fixture(autouse=True)
def at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Freeze the clock."""
    monkeypatch.setattr(time, "time", lambda: NOW_S)


@pytest.fixture
def place(state_home: Path) -> Path:
    """Return the directory they are kept in."""
    return state_home / "tui-fs" / "calibrations"


def measured(kind: str = "ext4", age_s: float = 0.0, kernel: str | None = None) -> Calibration:
    """Return what was measured so long ago, with the kernel that runs now or another."""
    release = os.uname().release if kernel is None else kernel
    return replace(typical(kind), measured_at=NOW_S - age_s, kernel=release)


def test_before_anything_is_measured_typical_figures_hold(place: Path) -> None:
    known = load_calibration(HERE)
    assert known.calibration == typical("ext4")
    assert (known.is_of_this, known.is_fresh) == (False, False)
    assert known.rests_on() == "typical figures for ext4, not measured here"
    reason = "this user may not write in /srv"
    assert known.rests_on(reason) == f"typical figures for ext4, not measured here ({reason})"
    # A measurement that runs is no contradiction to "not measured"
    until = "typical figures for ext4, until the running measurement ends"
    assert known.rests_on(MEASURING) == until
    assert not place.parent.exists()


def test_what_was_measured_here_holds_here(place: Path) -> None:
    keep(HERE, measured())
    known = load_calibration(HERE)
    assert known.calibration == measured()
    assert (known.is_of_this, known.is_fresh) == (True, True)
    assert known.rests_on().startswith("small trees deleted on this file system (2023-11-1")
    assert known.rests_on("why").endswith("), not measured again (why)")
    assert known.rests_on(MEASURING).endswith("), until the running measurement ends")
    # And it is this user's alone
    assert place.stat().st_mode & 0o777 == 0o700
    (file,) = place.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("age_s", "kernel", "is_fresh"),
    [
        (0.0, None, True),
        (FRESH_S - 1, None, True),
        (FRESH_S, None, False),
        (0.0, "2.6.32", False),
        (-10.0, None, False),
    ],
)
def test_old_ones_hold_until_they_are_measured_again(
    age_s: float, kernel: str | None, is_fresh: bool
) -> None:
    keep(HERE, measured(age_s=age_s, kernel=kernel))
    known = load_calibration(HERE)
    assert (known.is_of_this, known.is_fresh) == (True, is_fresh)


def test_the_answers_of_a_server_depend_on_its_load() -> None:
    server = replace(NETWORK, identity="a server")
    keep(server, measured("nfs4", age_s=BRIEFLY_FRESH_S - 1))
    assert load_calibration(server).is_fresh
    keep(server, measured("nfs4", age_s=BRIEFLY_FRESH_S))
    assert not load_calibration(server).is_fresh


@pytest.mark.parametrize(
    ("strategy", "is_learned"), [("rm", True), ("find", True), ("parallel", False)]
)
def test_the_gain_of_threads_behind_a_server_is_not_learnt(strategy: str, is_learned: bool) -> None:
    server = replace(NETWORK, identity="a server")
    keep(server, measured("nfs4", age_s=60.0))
    predicted = replace(estimate(StrategyName(strategy), 5.0), measured_at=NOW_S - 60.0)
    reason = refine(server, predicted, 7.0)
    assert (reason == "") is is_learned
    assert bool(load_calibration(server).calibration.experience) is is_learned


def test_one_of_the_same_type_is_better_than_none() -> None:
    keep(ELSEWHERE, measured(age_s=5.0))
    keep(replace(HERE, identity="1"), measured(age_s=9.0))
    keep(replace(HERE, kind="xfs", identity="2"), measured("xfs"))
    known = load_calibration(HERE)
    assert known.calibration == measured(age_s=5.0)
    assert (known.is_of_this, known.is_fresh) == (False, False)
    assert known.rests_on("why").startswith("measurements of another ext4 (2023-11-1")
    assert known.rests_on("why").endswith(", not of this one (why)")


def test_a_file_system_that_does_not_answer_is_not_taken_for_another() -> None:
    with pytest.raises(TuiFsError, match="does not answer"):
        keep(NETWORK, measured("nfs4"))
    assert not load_calibration(NETWORK).is_of_this


def test_the_words_count_the_jobs() -> None:
    keep(HERE, replace(measured(), experience={"rm": LearnedFactor(1, 1.2)}))
    assert load_calibration(HERE).rests_on().endswith(") and 1 finished job")
    both = {"rm": LearnedFactor(1, 1.2), "find": LearnedFactor(2, 1.1)}
    keep(HERE, replace(measured(), experience=both))
    assert load_calibration(HERE).rests_on().endswith(") and 3 finished jobs")


def with_prices(text: str, change: Callable[[Json], Json]) -> str:
    """Return the text of a calibration with other prices."""
    document = json.loads(text)
    return json.dumps({**document, "prices": change(document["prices"])})


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda text: text[: len(text) // 2], id="cut"),
        pytest.param(
            lambda text: with_prices(text, lambda prices: {"rm": prices["rm"]}),
            id="without a strategy",
        ),
        pytest.param(
            lambda text: with_prices(text, lambda prices: {**prices, "shred": prices["find"]}),
            id="with an unknown strategy",
        ),
        pytest.param(lambda text: text.replace('"link_s"', '"other_s"'), id="another version"),
        pytest.param(lambda text: json.dumps({**json.loads(text), "batch_s": "fast"}), id="words"),
        pytest.param(lambda _: "", id="empty"),
        pytest.param(lambda _: "[" * 100_000, id="deep"),
    ],
)
def test_a_damaged_file_is_as_none(place: Path, damage: Callable[[str], str]) -> None:
    keep(HERE, measured())
    (file,) = place.iterdir()
    whole = file.read_text()
    file.write_text(damage(whole))
    assert file.read_text() != whole
    assert load_calibration(HERE).calibration == typical("ext4")
    assert load_calibration(ELSEWHERE).calibration == typical("ext4")
    # And it is silently rewritten
    keep(HERE, measured())
    assert load_calibration(HERE).is_fresh


def test_nothing_is_kept_where_others_may_change_it(place: Path) -> None:
    place.mkdir(parents=True)
    place.chmod(0o777)
    with pytest.raises(TuiFsError, match="not private to you"):
        keep(HERE, measured())
    assert list(place.iterdir()) == []


TEN_SECONDS = JobFinished(
    at_s=11.0,
    outcome=Outcome.DONE,
    explanation="",
    strategy_wall_s=10.0,
    deleted_files=10,
    deleted_directories=2,
    split_is_exact=True,
    surviving_entries=0,
    space=None,
    left=(),
)
ENDED = Snapshot(finished=TEN_SECONDS)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Return a target on a file system that was measured an hour ago."""
    keep(file_system_of(str(tmp_path)), measured(_kind(tmp_path), age_s=3600.0))
    return tmp_path / "gone-by-now"


def _kind(path: Path) -> str:
    return file_system_of(str(path)).kind


def planned(target: Path, seconds: float = 5.0, learned_factor: float = 1.0) -> Plan:
    """Return a plan for rm with these seconds predicted, made after the measurement."""
    return replace(
        plan(created_at=NOW_S - 60.0),
        targets=(Target(PathStr(str(target)), Pin(1, 2, 3)),),
        predicted=replace(
            estimate(plan().strategy, seconds),
            measured_at=NOW_S - 3600.0,
            learned_factor=learned_factor,
        ),
    )


def experience_of(target: Path) -> dict[str, LearnedFactor]:
    """Return what jobs have shown where a target was."""
    return load_calibration(file_system_of(str(target.parent))).calibration.experience


def test_a_finished_job_refines_its_strategy(target: Path) -> None:
    learn(planned(target), ENDED)
    assert experience_of(target) == {"rm": LearnedFactor(1, 2.0)}
    # And where twice as long was predicted then, and taken, that is confirmed
    learn(planned(target, 10.0, 2.0), ENDED)
    assert experience_of(target)["rm"].jobs == 2
    assert experience_of(target)["rm"].factor == pytest.approx(2.0)
    # And the prices are as they were measured
    known = load_calibration(file_system_of(str(target.parent)))
    assert replace(known.calibration, experience={}) == measured(_kind(target.parent), 3600.0)


FILTERED = Options(filters=Filters(name_glob="*.o"))
ON_ANOTHER_DISK = Target(PathStr("/mnt/other"), Pin(9, 2, 3))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda _: {"options": FILTERED}, id="filtered"),
        pytest.param(
            lambda plan: {"expected": replace(plan.expected, complete=False)}, id="not all counted"
        ),
        pytest.param(lambda _: {"trace": TraceSource.STRACE}, id="traced"),
        pytest.param(
            lambda plan: {"targets": (*plan.targets, ON_ANOTHER_DISK)}, id="two file systems"
        ),
        pytest.param(lambda _: {"predicted": None}, id="not predicted"),
        pytest.param(
            lambda plan: {"predicted": replace(plan.predicted, measured_at=NOW_S - 7200.0)},
            id="predicted by other prices",
        ),
    ],
)
def test_a_plan_without_prices_is_not_learnt_from(
    target: Path, change: Callable[[Plan], dict[str, Any]]
) -> None:
    whole = planned(target)
    learn(replace(whole, **change(whole)), ENDED)
    assert experience_of(target) == {}


@pytest.mark.parametrize(
    "ended",
    [
        replace(ENDED, finished=None),
        replace(ENDED, paused_s=1.0),
        replace(ENDED, held_s=0.1),
        replace(ENDED, throttled=Throttled(1.0, "disk", 90.0)),
        replace(ENDED, pace=Pace(gentle=True)),
        replace(ENDED, pace=Pace(rate_per_s=100)),
        replace(ENDED, pace=Pace(nice=19)),
        replace(ENDED, finished=replace(TEN_SECONDS, machine=MachineUse(1, 12.1, 0.0))),
        replace(ENDED, finished=replace(TEN_SECONDS, strategy_wall_s=MIN_CONCLUSIVE_S * 0.99)),
        *(
            replace(ENDED, finished=replace(TEN_SECONDS, outcome=outcome))
            for outcome in Outcome
            if outcome is not Outcome.DONE
        ),
    ],
)
def test_a_job_that_was_disturbed_is_not_learnt_from(target: Path, ended: Snapshot) -> None:
    learn(planned(target), ended)
    assert experience_of(target) == {}


def test_a_job_that_hardly_waited_for_processors_is_learnt_from(target: Path) -> None:
    used = MachineUse(2, 11.9, 0.0)
    learn(planned(target), replace(ENDED, finished=replace(TEN_SECONDS, machine=used)))
    assert experience_of(target) == {"rm": LearnedFactor(1, 2.0)}


def test_the_shortest_conclusive_job_is_learnt_from(target: Path) -> None:
    just = replace(TEN_SECONDS, strategy_wall_s=MIN_CONCLUSIVE_S)
    learn(planned(target, MIN_CONCLUSIVE_S), replace(ENDED, finished=just))
    assert experience_of(target) == {"rm": LearnedFactor(1, 1.0)}


def test_nothing_is_learnt_without_a_measurement(tmp_path: Path, place: Path) -> None:
    learn(planned(tmp_path / "gone"), ENDED)
    assert list(place.glob("*")) == []
