"""Estimates side by side, and the one to recommend."""

from dataclasses import replace

import pytest

from tests.unit.test_cost_calls import EMPTY, TEN_TIMES_100
from tui_fs.cost.calls import FTS_BYTES_PER_ENTRY, FTS_ENTRIES_AT_ONCE
from tui_fs.cost.estimate import Candidate, estimate_all, recommended
from tui_fs.cost.time import UNCERTAINTY, first_estimate
from tui_fs.model.estimate import Estimate
from tui_fs.model.strategy import Guarantees, Options, StrategyName
from tui_fs.model.survey import Survey

SAFE = Guarantees(True, True, any_depth=True, takes_filters=True, processes="1")
BY_PATH = Guarantees(False, True, any_depth=False, takes_filters=True, processes="many")
CANDIDATES = {
    StrategyName.RM: Candidate(SAFE, (("rm",),), ()),
    StrategyName.FIND: Candidate(SAFE, (("find",),), ()),
    StrategyName.XARGS: Candidate(BY_PATH, (("find",), ("xargs",)), ()),
    StrategyName.RSYNC: Candidate(BY_PATH, (("rsync",),), ()),
    StrategyName.RMTREE: Candidate(replace(SAFE, max_levels=900), (("python",),), ()),
}


def estimates(
    survey: Survey = TEN_TIMES_100,
    options: Options | None = None,
    candidates: dict[StrategyName, Candidate] | None = None,
) -> dict[StrategyName, Estimate]:
    """Estimate all candidates on ext4."""
    found = estimate_all(survey, options or Options(), "ext4", candidates or CANDIDATES)
    return {one.strategy: one for one in found}


def test_each_candidate_is_estimated_in_order() -> None:
    # Given four candidates / When estimated / Then four estimates, with their commands
    found = estimates()
    assert list(found) == list(CANDIDATES)
    assert found[StrategyName.XARGS].command == (("find",), ("xargs",))


@pytest.mark.parametrize("strategy", StrategyName)
def test_low_and_high_lie_around_the_expected(strategy: StrategyName) -> None:
    # Given any estimate / When looked at / Then low < expected < high, by the known uncertainty
    one = estimates()[strategy]
    assert one.seconds_low < one.seconds < one.seconds_high
    assert one.seconds_high / one.seconds_low == pytest.approx(UNCERTAINTY**2)


@pytest.mark.parametrize(("levels", "feasible"), [(900, True), (901, False)])
def test_a_strategy_that_calls_itself_has_a_limit_of_levels(levels: int, feasible: bool) -> None:
    # Given a chain of directories / When estimated / Then rmtree says what it cannot do
    one = estimates(replace(TEN_TIMES_100, max_depth=levels))[StrategyName.RMTREE]
    assert one.feasible is feasible
    assert ("stops at about 900; this tree has 901" in " ".join(one.reasons)) is not feasible


def test_more_entries_take_longer() -> None:
    # Given a larger tree / When estimated / Then it takes longer
    assert (
        first_estimate(TEN_TIMES_100, StrategyName.RM, Options(), "ext4").expected
        > first_estimate(EMPTY, StrategyName.RM, Options(), "ext4").expected
    )


def test_small_batches_take_longer_and_parallel_ones_less() -> None:
    # Given batches of one / When estimated / Then slower; with two processes faster again
    def expected(options: Options) -> float:
        return first_estimate(TEN_TIMES_100, StrategyName.XARGS, options, "ext4").expected

    one_by_one = expected(Options(batch_size=1))
    assert one_by_one > expected(Options())
    assert expected(Options(batch_size=1, processes=2)) < one_by_one


def test_the_kind_of_a_fuse_file_system_is_before_its_dot() -> None:
    # Given fuse.sshfs / When estimated / Then it is estimated as fuse
    sshfs, fuse = (
        first_estimate(TEN_TIMES_100, StrategyName.RM, Options(), kind)
        for kind in ("fuse.sshfs", "fuse")
    )
    assert sshfs == fuse


def test_deep_paths_make_strategies_by_path_infeasible() -> None:
    # Given a path of PATH_MAX / When estimated / Then those by path cannot run, and say why
    found = estimates(replace(TEN_TIMES_100, max_path_bytes=4096))
    feasible = {name for name, one in found.items() if one.feasible}
    assert feasible == {StrategyName.RM, StrategyName.FIND, StrategyName.RMTREE}
    assert "4,096" in found[StrategyName.RSYNC].reasons[0]


def test_the_longest_allowed_path_is_feasible() -> None:
    # Given a path one byte shorter / When estimated / Then all can run
    found = estimates(replace(TEN_TIMES_100, max_path_bytes=4095))
    assert all(one.feasible for one in found.values())


def test_a_missing_tool_makes_infeasible_and_is_the_reason() -> None:
    # Given rm that is not installed / When estimated / Then infeasible, with the reason
    missing = replace(CANDIDATES[StrategyName.RM], unfit=("rm is not installed",))
    one = estimates(candidates={**CANDIDATES, StrategyName.RM: missing})[StrategyName.RM]
    assert (one.feasible, one.reasons) == (False, ("rm is not installed",))


def test_a_race_is_a_note_and_no_hindrance() -> None:
    # Given a strategy that is not safe against races / When estimated / Then it says so
    one = estimates()[StrategyName.XARGS]
    assert (one.feasible, one.race_safe, len(one.reasons)) == (True, False, 1)


@pytest.mark.parametrize(
    ("unfit", "expected"),
    [
        ((), StrategyName.RM),
        ((StrategyName.RM,), StrategyName.FIND),
        ((StrategyName.RM, StrategyName.FIND), StrategyName.RMTREE),
        ((StrategyName.RM, StrategyName.FIND, StrategyName.RMTREE), StrategyName.RSYNC),
        (tuple(set(StrategyName) - {StrategyName.XARGS}), StrategyName.XARGS),
        (tuple(StrategyName), None),
    ],
)
def test_the_safest_that_can_run_is_recommended(
    unfit: tuple[StrategyName, ...], expected: StrategyName | None
) -> None:
    # Given some that cannot run / When asked / Then the safest of the others
    candidates = {
        name: replace(one, unfit=("missing",)) if name in unfit else one
        for name, one in CANDIDATES.items()
    }
    assert recommended(tuple(estimates(candidates=candidates).values())) is expected


@pytest.mark.parametrize(
    ("strategy", "keep_root", "processes"),
    [
        (StrategyName.RM, False, 1),
        (StrategyName.RM, True, 2),
        (StrategyName.FIND, False, 1),
        (StrategyName.XARGS, False, 4),
        (StrategyName.RSYNC, False, 4),
        (StrategyName.RSYNC, True, 3),
    ],
)
def test_processes_are_counted(strategy: StrategyName, keep_root: bool, processes: int) -> None:
    # Given a strategy / When estimated / Then it starts this many processes
    assert estimates(options=Options(keep_root=keep_root))[strategy].processes == processes


def test_memory_grows_with_the_largest_directory_up_to_what_fts_reads_at_once() -> None:
    # Given directories of a million and ten million / When estimated / Then rm needs the same
    def memory(entries: int) -> int:
        survey = replace(TEN_TIMES_100, max_entries_in_directory=entries)
        return estimates(survey)[StrategyName.RM].peak_memory_bytes

    assert memory(1_000_000) == memory(10_000_000)
    assert memory(FTS_ENTRIES_AT_ONCE) - memory(0) == FTS_ENTRIES_AT_ONCE * FTS_BYTES_PER_ENTRY


def test_all_calls_add_up() -> None:
    # Given an estimate / When added up / Then it is the sum of its calls
    one = estimates()[StrategyName.RM]
    assert one.total_calls == sum(one.syscalls.values())
