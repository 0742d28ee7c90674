"""Estimates side by side, and the one to recommend."""

import pytest
from msgspec.structs import replace

from tests.unit.test_strategies_prediction import TEN_TIMES_100
from tui_fs.estimate.calibration import LearnedFactor
from tui_fs.estimate.estimator import Candidate, EstimateInputs, estimate_all
from tui_fs.estimate.recommendation import advice
from tui_fs.estimate.time import predicted_seconds, typical
from tui_fs.model.calls import TraceSource
from tui_fs.model.estimate import Estimate
from tui_fs.model.strategy import Options, StrategyName
from tui_fs.model.survey import Survey, Totals
from tui_fs.strategies.prediction import Work
from tui_fs.strategies.registry import STRATEGIES

CANDIDATES = {name: Candidate(((name,),), ()) for name in STRATEGIES}

UNMEASURED = EstimateInputs(typical("ext4"), is_of_this=False, words="what is typical")
MEASURED = EstimateInputs(
    replace(typical("ext4"), measured_at=1.0, experience={"rm": LearnedFactor(4, 3.0)}),
    is_of_this=True,
    words="what was measured",
    trace=TraceSource.PERF,
)


def estimates(
    survey: Survey = TEN_TIMES_100,
    options: Options | None = None,
    candidates: dict[StrategyName, Candidate] | None = None,
    basis: EstimateInputs | None = None,
) -> dict[StrategyName, Estimate]:
    """Estimate all candidates on an ext4 without measurements."""
    by_strategy = estimate_all(
        survey, options or Options(), basis or UNMEASURED, candidates or CANDIDATES
    )
    return {estimate.strategy: estimate for estimate in by_strategy}


def test_each_candidate_is_estimated_in_order() -> None:
    by_strategy = estimates()
    assert list(by_strategy) == list(CANDIDATES)
    assert by_strategy[StrategyName("xargs")].command == (("xargs",),)


def test_much_memory_has_a_reason() -> None:
    def reason(entries: int, strategy: StrategyName) -> str:
        totals = replace(TEN_TIMES_100.totals, files=entries)
        survey = replace(TEN_TIMES_100, totals=totals, max_entries_in_directory=entries)
        return estimates(survey)[strategy].memory_reason

    assert reason(1_000, StrategyName("rm")) == reason(1_000, StrategyName("rsync")) == ""
    assert "up to 100,000 names" in reason(2_000_000, StrategyName("rm"))
    assert "all removed paths" in reason(2_000_000, StrategyName("rsync"))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("basis", (UNMEASURED, MEASURED))
def test_the_time_is_what_the_basis_says(basis: EstimateInputs, strategy: StrategyName) -> None:
    twice = {name: replace(candidate, runs=2) for name, candidate in CANDIDATES.items()}
    one = estimates(candidates=twice, basis=basis)[strategy]
    seconds = predicted_seconds(
        STRATEGIES[strategy],
        Work(TEN_TIMES_100, filesystem="ext4", runs=2),
        basis.calibration,
        is_of_this=basis.is_of_this,
        trace=basis.trace,
        calls=one.total_calls,
    )
    assert (one.seconds_low, one.seconds, one.seconds_high) == (
        seconds.low,
        seconds.expected,
        seconds.high,
    )
    assert one.seconds_low < one.seconds < one.seconds_high
    assert one.rests_on == basis.words


def test_each_has_the_sentence_of_the_advice() -> None:
    by_strategy = estimates()
    sentences = advice(TEN_TIMES_100, "ext4", tuple(by_strategy.values()))
    assert {name: estimate.advice for name, estimate in by_strategy.items()} == sentences
    assert all(sentences.values())


def test_a_missing_tool_makes_infeasible_and_is_the_reason() -> None:
    missing = replace(CANDIDATES[StrategyName("rm")], unfit=("rm is not installed",))
    one = estimates(candidates={**CANDIDATES, StrategyName("rm"): missing})[StrategyName("rm")]
    assert (one.feasible, one.reasons) == (False, ("rm is not installed",))


def test_a_race_is_a_note_and_no_hindrance() -> None:
    one = estimates()[StrategyName("xargs")]
    assert (one.feasible, one.race_safe, len(one.reasons)) == (True, False, 1)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_larger_directory_never_takes_less_memory(strategy: StrategyName) -> None:
    def memory(entries: int) -> int:
        totals = replace(TEN_TIMES_100.totals, files=entries)
        survey = replace(TEN_TIMES_100, totals=totals, max_entries_in_directory=entries)
        return estimates(survey)[strategy].peak_memory_bytes

    needed = [memory(entries) for entries in (0, 1_000, 100_000, 10_000_000)]
    assert needed == sorted(needed)
    assert needed[0] > 0


def test_all_calls_add_up() -> None:
    one = estimates()[StrategyName("rm")]
    assert one.total_calls == sum(one.syscalls.values()) + (one.other_calls or 0)


def test_calls_that_the_engine_does_not_count_are_in_the_sum_to_compare() -> None:
    candidate = Candidate((), (), trace=TraceSource.ENGINE, rmdirs=(1, 1))

    def parallel(source: TraceSource, survey: Survey = TEN_TIMES_100) -> Estimate:
        candidates = {StrategyName("parallel"): replace(candidate, trace=source)}
        (estimate,) = estimate_all(survey, Options(), UNMEASURED, candidates)
        return estimate

    by_engine, by_kernel = parallel(TraceSource.ENGINE), parallel(TraceSource.PERF)
    assert "execve" not in by_engine.syscalls
    assert by_kernel.syscalls["execve"] == 2
    assert by_engine.total_calls == by_kernel.total_calls
    assert (by_engine.uncounted_calls, by_kernel.uncounted_calls) == (173, 0)
    # With a filter, only the removals are predicted
    some = parallel(TraceSource.ENGINE, replace(TEN_TIMES_100, matched=Totals(files=7)))
    assert (some.uncounted_calls, some.total_calls) == (0, 7)
