"""What prevents a strategy, and what it will leave."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.strategies import BY_PATH
from tui_fs.estimate.preflight import Preflight, RunConditions, check_preflight
from tui_fs.linux.memory import MemoryRoom
from tui_fs.model.finding import Finding, FindingKind, Severity
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Options, StrategyName
from tui_fs.model.survey import Root, Survey, Totals
from tui_fs.strategies.prediction import Work
from tui_fs.strategies.registry import STRATEGIES
from tui_fs.strategies.rsync import MAX_LEVELS

MIB = 1 << 20
ROOT = PathStr("/mnt/t")
TREE = Survey(
    ROOT,
    Totals(files=8, directories=3),
    max_depth=2,
    max_path_bytes=100,
    top_directories=2,
    top_non_directories=5,
    roots=(Root(ROOT, 1, 2),),
)
RM = StrategyName("rm")
ROOM = MemoryRoom(100 * MIB, "the memory of this machine")


def finding(kind: str, path: str, **effects: Any) -> Finding:
    """Make a finding with what it means for a deletion."""
    return Finding(FindingKind(kind), Severity.WARNING, PathStr(path), {}, "", "", **effects)


def asked(
    survey: Survey = TREE,
    strategy: StrategyName = RM,
    options: Options | None = None,
    *,
    peak_bytes: int = MIB,
    place: RunConditions | None = None,
) -> Preflight:
    """Ask with what the strategies really promise."""
    place = place or RunConditions(ROOM)
    work = Work(survey, options or Options(), is_inside=place.is_inside)
    return check_preflight(STRATEGIES[strategy], work, peak_bytes, place)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("keep_root", [False, True])
def test_an_ordinary_tree_has_no_hindrances(strategy: StrategyName, keep_root: bool) -> None:
    assert asked(strategy=strategy, options=Options(keep_root=keep_root)) == Preflight()
    assert asked(strategy=strategy, place=RunConditions()) == Preflight()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_only_those_that_work_by_path_have_a_longest_path(strategy: StrategyName) -> None:
    hindrances = asked(replace(TREE, max_path_bytes=4_110), strategy).hindrances
    assert bool(hindrances) is (strategy in BY_PATH)
    assert all("4,096" in text for text in hindrances)


@pytest.mark.parametrize(
    ("strategy", "is_inside", "longest"),
    [
        (StrategyName("xargs"), False, 4_095),
        (StrategyName("xargs"), True, 4_095 + len(ROOT) - len(".")),
        (StrategyName("rsync"), False, 4_095 + len(ROOT) + len("/")),
        (StrategyName("rsync"), True, 4_095 + len(ROOT) + len("/")),
    ],
)
def test_the_longest_path_is_as_the_tool_is_given_it(
    strategy: StrategyName, is_inside: bool, longest: int
) -> None:
    place = RunConditions(ROOM, is_inside=is_inside)
    for more in (0, 1):
        survey = replace(TREE, max_path_bytes=longest + more)
        assert len(asked(survey, strategy, place=place).hindrances) == more


def test_rsync_is_given_the_target_with_a_slash() -> None:
    for root_bytes, hindered in ((4_094, 0), (4_095, 1)):
        root = PathStr("/" + "t" * (root_bytes - 1))
        survey = replace(TREE, path=root, roots=(Root(root, 1, 2),), max_path_bytes=root_bytes + 2)
        assert len(asked(survey, StrategyName("rsync")).hindrances) == hindered
        inside = RunConditions(ROOM, is_inside=True)
        assert asked(survey, StrategyName("rsync"), place=inside).hindrances == ()


def test_directories_only_may_be_of_any_depth_for_xargs() -> None:
    survey = replace(TREE, totals=Totals(directories=3), max_path_bytes=9_000)
    assert asked(survey, StrategyName("xargs")).hindrances == ()


@pytest.mark.parametrize(
    ("strategy", "levels", "version", "is_possible"),
    [
        (StrategyName("rmtree"), 900, "", True),
        (StrategyName("rmtree"), 901, "", False),
        (StrategyName("rsync"), MAX_LEVELS, "rsync  version 3.5.0", True),
        (StrategyName("rsync"), MAX_LEVELS + 1, "rsync  version 3.5.0", False),
        (StrategyName("rsync"), MAX_LEVELS + 1, "", False),
        (StrategyName("rsync"), MAX_LEVELS + 1, "rsync  version 3.2.7", True),
        (StrategyName("rm"), 100_000, "", True),
        (StrategyName("find"), 100_000, "", True),
    ],
)
def test_some_descend_this_many_levels(
    strategy: StrategyName, levels: int, version: str, is_possible: bool
) -> None:
    place = RunConditions(ROOM, {"rsync": version})
    hindrances = asked(replace(TREE, max_depth=levels), strategy, place=place).hindrances
    assert (hindrances == ()) is is_possible
    assert all(f"this tree has {levels:,}" in text for text in hindrances)


@pytest.mark.parametrize(
    ("peak", "hindrances", "notes"), [(50, 0, 0), (51, 0, 1), (100, 0, 1), (101, 1, 0)]
)
def test_memory_that_is_not_there_hinders_and_scarce_memory_is_reported(
    peak: int, hindrances: int, notes: int
) -> None:
    answer = asked(peak_bytes=peak * MIB)
    assert (len(answer.hindrances), len(answer.notes)) == (hindrances, notes)
    assert all("of the memory of this machine" in text for text in answer.hindrances + answer.notes)


def test_a_read_only_file_system_hinders_everybody() -> None:
    place = RunConditions(ROOM, is_read_only=True)
    assert all(
        "read-only" in asked(strategy=strategy, place=place).hindrances[0]
        for strategy in STRATEGIES
    )


def test_findings_that_block_are_hindrances_for_every_strategy() -> None:
    mounts = [finding("mount-inside", f"/{n}", blocks=f"/{n} is mounted") for n in range(3)]
    use = finding("used-elsewhere", "/u", blocks="/u is a layer")
    survey = replace(TREE, findings=(*mounts[:2], use, mounts[2]))
    for strategy in STRATEGIES:
        assert asked(survey, strategy).hindrances == ("/0 is mounted (and 2 more)", "/u is a layer")


def test_a_locked_target_hinders_if_everything_is_directly_in_it() -> None:
    survey = replace(
        TREE,
        totals=Totals(files=5, directories=3),
        top_directories=2,
        top_non_directories=5,
        findings=(finding("immutable", ROOT, lock="immutable", remains="it remains"),),
    )
    assert asked(survey).hindrances == ("the target is immutable: nothing can be deleted",)
    assert asked(survey).notes == ()
    # And with something further down, that can be
    deeper = replace(survey, totals=Totals(files=6, directories=3))
    assert asked(deeper) == Preflight(notes=("it remains",))
    # And of two targets one is not locked
    two = replace(survey, roots=(*survey.roots, Root(PathStr("/mnt/u"), 1, 3)))
    assert asked(two).hindrances == ()


def test_the_note_of_a_finding_is_shown_once_and_does_not_hinder() -> None:
    notes = ("another command deletes it", "another command deletes it", "")
    findings = tuple(finding("k", f"/mnt/{n}", note=note) for n, note in enumerate(notes))
    for strategy in STRATEGIES:
        answer = asked(replace(TREE, findings=findings), strategy)
        assert answer == Preflight(notes=("another command deletes it",))


def test_what_remains_is_noted_once() -> None:
    # Two findings with the same effect, one with another, and directories not read
    survey = replace(
        TREE,
        unreadable=2,
        findings=(
            finding("immutable", "/mnt/t/a", lock="immutable", remains="2 are immutable"),
            finding("immutable", "/mnt/t/b", lock="immutable", remains="2 are immutable"),
            finding("sticky", "/mnt/t/d", remains="entries of others remain"),
        ),
    )
    hindrances = asked(survey)
    assert hindrances.hindrances == ()
    assert hindrances.notes == (
        "2 are immutable",
        "entries of others remain",
        "2 directories could not be read completely: unread entries are not counted",
    )


@pytest.mark.parametrize(
    ("version", "keep_root", "is_possible"),
    [
        ("rm (GNU coreutils) 8.28", True, False),
        ("rm (GNU coreutils) 8.28", False, True),
        ("rm (GNU coreutils) 8.30", True, True),
        ("rm (GNU coreutils) 9.1", True, True),
        ("", True, True),
    ],
)
def test_an_old_rm_cannot_keep_the_root(version: str, keep_root: bool, is_possible: bool) -> None:
    place = RunConditions(ROOM, {"rm": version})
    options = Options(keep_root=keep_root)
    assert (asked(options=options, place=place).hindrances == ()) is is_possible
    assert asked(strategy=StrategyName("find"), options=options, place=place) == Preflight()
