"""A run of an experiment: what is done, in which order, what is told, and what is left."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.needs import needs_root
from tests.trees import Sentinel
from tests.unit.scratching import told_by_child
from tui_fs.lab.conductor import Conductor
from tui_fs.lab.experiment import (
    Counting,
    Experiment,
    Pipeline,
    Place,
    Scale,
    Setting,
    Step,
    Trial,
)
from tui_fs.lab.preparing import prepare
from tui_fs.lab.results import (
    LabEvent,
    Progressed,
    Results,
    RunBegan,
    StepCounted,
    StepFailed,
    StepRan,
    fold,
)
from tui_fs.model.errors import BadInput, Missing, Refused

RM: tuple[Pipeline, ...] = ((("rm", "-r", "{tree}"),),)


class Stopped(Exception):
    """The test ends the run."""


@dataclass(frozen=True)
class Files:
    """A few empty files."""

    files: int = 3
    entries: int = 4
    contents_bytes: int = 0
    words: str = "three files"

    def build(self, directory: int, tick: Callable[[int], None]) -> None:
        """Make them."""
        for number in range(self.files):
            os.mknod(f"file {number}", dir_fd=directory)
        tick(self.files)


def experiment_of(*trials: Trial) -> Experiment:
    """Return an experiment that does these trials."""

    def same(_scale: Scale, _setting: Setting) -> tuple[Trial, ...]:
        return trials

    return Experiment("a-test", "A test", "Does it work?", same, finds_tools=())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a directory to work in, and keep records in another one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "place").mkdir(mode=0o700)
    (tmp_path / "kept").mkdir()
    return tmp_path / "place"


def done(
    place: Path,
    *trials: Trial,
    goes_on: Callable[[], None] = lambda: None,
    told: list[LabEvent] | None = None,
) -> list[LabEvent]:
    """Do the trials; give what was told."""
    told = [] if told is None else told
    prepared = prepare(experiment_of(*trials), Scale.SMALL, str(place))
    began = RunBegan("a-test", "small", 0.0, prepared.machine, str(place), prepared.plans)
    told.append(began)
    Conductor(prepared, str(place.parent / "kept"), told.append, goes_on).run()
    return told


def results_of(events: list[LabEvent]) -> Results:
    """Return what was told, added up."""
    return fold(events)


def ran(events: list[LabEvent]) -> list[str]:
    """Return the keys of the steps that were timed, in their order."""
    return [one.key for one in events if isinstance(one, StepRan)]


def test_the_trials_alternate_and_each_has_its_rounds(place: Path) -> None:
    # Given a trial of three rounds and one of two / When done
    first = Trial((Step("first", "first", RM),), Files(), rounds=3)
    second = Trial((Step("second", "second", RM),), Files(), rounds=2)
    events = done(place, first, second)
    # Then they take turns, and nothing is left
    assert ran(events) == ["first", "second", "first", "second", "first"]
    assert os.listdir(place) == []


def test_progress_goes_from_nothing_to_nearly_all_and_never_back(place: Path) -> None:
    # Given two trials / When done
    steps = (Step("list", "list", ((("ls", "{tree}"),),)), Step("rm", "rm", RM))
    events = done(place, Trial(steps, Files(), rounds=3), Trial((replace(steps[1], key="2"),)))
    # Then the share that is done grows
    shares = [one.done for one in events if isinstance(one, Progressed)]
    assert shares == sorted(shares)
    assert shares[0] == 0.0 and 0.5 < shares[-1] <= 1.0


def test_steps_of_a_trial_work_on_one_tree_one_after_the_other(place: Path) -> None:
    # Given a step that adds a file, one that counts and one that deletes
    steps = (
        Step("add", "add", ((("touch", "{tree}/more"),),)),
        Step("count", "count", ((("find", "{tree}"), ("wc", "-l")),)),
        Step("delete", "delete", RM),
    )
    # When done twice / Then the tree was made anew for each round
    results = results_of(done(place, Trial(steps, Files(), rounds=2)))
    assert [run.output for run in results.measured["count"].runs] == ["5", "5"]


def test_a_star_stands_for_all_names_in_the_tree_and_the_commands_run_there(place: Path) -> None:
    # Given a step that names everything in the tree
    named = Step("names", "names", ((("echo", "*"),),), is_in_tree=True)
    # When done / Then it got the names, sorted, and nothing was split at the spaces
    results = results_of(done(place, Trial((named,), Files(), rounds=1)))
    assert results.measured["names"].runs[0].output == "file 0 file 1 file 2"
    assert results.plan("names").commands == ("cd tree; echo *",)


def test_words_stand_for_paths_and_tools(place: Path) -> None:
    # Given a step that uses all of them
    words = ("{empty}", "{out}", "{path:true}", "{}", "{tree}/x")
    step = Step("words", "words", ((("echo", *words),),))
    # When done / Then each stands for what it says
    results = results_of(done(place, Trial((step,), rounds=1)))
    found = results.measured["words"].runs[0].output.split(" ")
    assert found[0] == "empty" and found[1] == str(place.parent / "kept")
    assert os.path.isabs(found[2]) and found[2].endswith("/true")
    assert found[3:] == ["{}", "tree/x"]


def test_what_fails_is_told_with_the_tools_own_words_and_ends_its_trial_only(place: Path) -> None:
    # Given a step that fails before another one, and a trial beside it
    bad = Step("bad", "bad", ((("rm", "{tree}/nothing"),),))
    after = Step("after", "after", RM)
    good = Trial((Step("good", "good", RM),), Files(), rounds=2)
    # When done
    events = done(place, Trial((bad, after), Files(), rounds=2), good)
    # Then the failure is told once, what comes after is not measured, the other one is
    (failed,) = [one for one in events if isinstance(one, StepFailed)]
    assert failed.key == "bad" and "status 1" in failed.why and "No such file" in failed.why
    assert ran(events) == ["good", "good"]
    assert os.listdir(place) == []


def test_a_status_that_is_expected_is_no_failure(place: Path) -> None:
    # Given a step that is expected to end with 1 / When done / Then it was measured
    step = Step("false", "false", ((("false",),),), expects=frozenset({1}))
    assert ran(done(place, Trial((step,), rounds=1))) == ["false"]


def test_what_is_counted_runs_once_more_without_being_timed(place: Path) -> None:
    # Given a step whose calls are counted
    needs_root("counting system calls")
    step = Step("rm", "rm", RM, counting=Counting.CALLS)
    # When done in two rounds
    events = done(place, Trial((step,), Files(), rounds=2))
    # Then it was counted once, first, and timed twice
    (counted,) = [one for one in events if isinstance(one, StepCounted)]
    assert counted.calls["unlinkat"].calls == 4
    assert events.index(counted) < min(
        number for number, one in enumerate(events) if isinstance(one, StepRan)
    )
    assert ran(events) == ["rm", "rm"]


def test_a_pinned_step_has_one_processor_and_the_next_one_all(place: Path) -> None:
    # Given a step on one processor between two others
    count = ((("nproc",),),)
    steps = (
        Step("before", "", count),
        Step("pinned", "", count, is_pinned=True),
        Step("after", "", count),
    )
    # When done / Then it alone sees one
    results = results_of(done(place, Trial(steps, rounds=1)))
    seen = [results.measured[key].runs[0].output for key in ("before", "pinned", "after")]
    assert seen == [str(len(os.sched_getaffinity(0))), "1", seen[0]]


def test_a_file_that_is_left_is_looked_at(place: Path) -> None:
    # Given a step that leaves a sparse file / When done / Then its sizes are told
    step = Step("sparse", "", ((("truncate", "-s", "1M", "big"),),), leaves="big")
    left = results_of(done(place, Trial((step,), rounds=1))).left("sparse")
    assert (left.apparent_bytes, left.allocated_bytes) == (1 << 20, 0)


@pytest.mark.root
@pytest.mark.parametrize("kind", (Place.TMPFS, Place.EXT4, Place.XFS, Place.BTRFS))
def test_a_file_system_made_for_it_is_gone_afterwards(place: Path, kind: Place) -> None:
    # Given a trial on a file system of its own
    needs_root("mounting")
    where = Step("where", "", ((("stat", "-f", "-c", "%T", "{tree}"),),))
    trial = Trial((where, Step("rm", "", RM)), Files(), kind, rounds=1)

    def use() -> list[str]:
        results = results_of(done(place, trial))
        return [results.measured["where"].runs[0].output, results.plan("where").place]

    # When done / Then the tree lay there, and nothing of it is left
    named = {"ext4": "ext2/ext3"}.get(kind.value, kind.value)
    assert told_by_child(use) == [named, kind.value]
    assert os.listdir(place) == []


@pytest.fixture
def sentinel(place: Path) -> Iterator[Sentinel]:
    """Plant what must survive around the place; compare it afterwards."""
    sentinel = Sentinel(place)
    yield sentinel
    sentinel.assert_whole()


@pytest.mark.parametrize("asked", range(1, 12))
def test_a_run_that_is_ended_at_any_moment_leaves_nothing(
    place: Path, sentinel: Sentinel, asked: int
) -> None:
    # Given a run that is to end when it asks for the nth time whether it goes on
    del sentinel
    before = set(os.listdir(place))
    left = asked

    def goes_on() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Stopped

    slow = Step("slow", "", ((("sleep", "0.5"),), (("find", "{tree}"),)))
    # When it ends so / Then nothing of it is left
    with pytest.raises(Stopped):
        done(place, Trial((slow, Step("rm", "", RM)), Files(), rounds=4), goes_on=goes_on)
    assert set(os.listdir(place)) == before


def test_what_cannot_be_done_here_says_why_and_the_rest_is_done(place: Path) -> None:
    # Given a step with a tool that nobody has, after one that can be done
    steps = (Step("can", "", ((("ls",),),)), Step("cannot", "", ((("no-such-tool",),),)))
    # When done
    results = results_of(done(place, Trial(steps, rounds=1)))
    # Then the first is measured, and the second says what is missing
    assert results.has("can") and not results.has("cannot")
    assert "no-such-tool is not installed" in results.plan("cannot").why_not


def test_an_experiment_of_which_nothing_can_be_done_is_refused(place: Path) -> None:
    # Given nothing but a tool that nobody has / When prepared / Then it says so
    trial = Trial((Step("cannot", "", ((("no-such-tool",),),)),))
    with pytest.raises(Missing, match="no-such-tool is not installed"):
        prepare(experiment_of(trial), Scale.SMALL, str(place))


def test_a_place_without_room_is_refused(place: Path) -> None:
    # Given a trial that needs more than any disk has / When prepared / Then nothing is made
    trial = Trial((Step("rm", "", RM),), replace(Files(), contents_bytes=1 << 60))
    with pytest.raises(Refused) as refused:
        prepare(experiment_of(trial), Scale.SMALL, str(place))
    assert refused.value.rule == "room"
    assert os.listdir(place) == []


@pytest.mark.parametrize("what", ("a file", "nothing", "others'"))
def test_a_place_that_cannot_be_used_is_said(place: Path, what: str) -> None:
    # Given no directory, or one in which others can exchange what is made
    other = place / "other"
    if what == "a file":
        other.touch()
    elif what == "others'":
        other.mkdir()
        other.chmod(0o777)
    trial = Trial((Step("rm", "", RM),), Files())
    # When prepared / Then it is refused with a sentence
    with pytest.raises(Refused if what == "others'" else BadInput):
        prepare(experiment_of(trial), Scale.SMALL, str(other))


def test_tools_are_told_with_their_versions(place: Path) -> None:
    # Given a step with GNU find / When prepared / Then its version is part of the record
    trial = Trial((Step("find", "", ((("find", "{tree}"),),)),), Files(), rounds=1)
    tools: Mapping[str, str] = prepare(experiment_of(trial), Scale.SMALL, str(place)).machine.tools
    assert "GNU findutils" in tools["find"]
