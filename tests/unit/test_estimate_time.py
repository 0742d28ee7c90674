"""How long a deletion is predicted to take, from counts and prices."""

import math
import time
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tui_fs.estimate.calibration import BLOCK_BYTES, Calibration, LearnedFactor
from tui_fs.estimate.time import (
    BURST_S,
    COUNTED_PROCESS_S,
    GROWTH_FROM_ENTRIES,
    GROWTH_PER_DOUBLING,
    LEVEL_S,
    NAME_BYTE_S,
    NOISE_BORNE,
    SECONDS_A_COUNTED_CALL,
    UNCERTAINTY_ELSEWHERE,
    UNCERTAINTY_MEASURED,
    UNCERTAINTY_UNMEASURED,
    predicted_seconds,
    typical,
)
from tui_fs.linux.limits import slowdown_by_load
from tui_fs.model.calls import TraceSource
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Options, Pace, StrategyName
from tui_fs.model.survey import LargeDirectory, Survey, Totals
from tui_fs.strategies.prediction import Work
from tui_fs.strategies.registry import STRATEGIES
from tui_fs.strategies.unit_costs import UnitCosts

RM, XARGS, PARALLEL = StrategyName("rm"), StrategyName("xargs"), StrategyName("parallel")
ROUND = Calibration(
    "tmpfs",
    measured_at=1.0,
    kernel="6.1",
    prices={name: UnitCosts(1.0, 0.01, 0.1) for name in STRATEGIES},
    batch_s=5.0,
    block_s=0.001,
    byte_s=1e-9,
    link_s=0.004,
)
"""Figures that are easy to add up; a type of file system that does not grow slower."""

_PRICES = {"rm": UnitCosts(1.0, 0.05, 0.2), "parallel": UnitCosts(1.0, 0.03, 0.1, 0.01)}
OF_THREADS = replace(ROUND, prices={**ROUND.prices, **_PRICES})
"""Costs of names in shared and in separate directories, both cheaper than rm's."""


def survey(
    files: int = 1000,
    directories: int = 11,
    inodes: int | None = None,
    allocated_bytes: int = 0,
    path_bytes: int = 0,
) -> Survey:
    """Return a tree of this many entries; directories occupy a block each."""
    directory_bytes = directories * BLOCK_BYTES if allocated_bytes else 0
    return Survey(
        path=PathStr("/mnt/t"),
        totals=Totals(
            files=files, directories=directories, allocated_bytes=allocated_bytes + directory_bytes
        ),
        inodes=directories + (files if inodes is None else inodes),
        non_directory_path_bytes=path_bytes,
        max_entries_in_directory=files,
        finished=True,
        complete=True,
    )


def expected(
    tree: Survey,
    strategy: StrategyName = RM,
    options: Options | None = None,
    calibration: Calibration = ROUND,
    *,
    runs: int = 1,
    trace: TraceSource = TraceSource.OFF,
) -> float:
    """Return the expected seconds."""
    options = options or Options()
    work = Work(tree, options, calibration.kind, runs=runs)
    prediction = STRATEGIES[strategy].predicted_calls(work)
    calls = sum(prediction.calls.values()) + (prediction.other or 0)
    return predicted_seconds(
        STRATEGIES[strategy], work, calibration, trace=trace, calls=calls
    ).expected


@pytest.mark.parametrize(
    ("tree", "runs", "seconds"),
    [
        (survey(0, 0), 1, 1.0),
        (survey(0, 0), 3, 3.0),
        (survey(1000, 11), 1, 1.0 + 10.0 + 1.1),
        (survey(1000, 11), 2, 2.0 + 10.0 + 1.1),
        (survey(1000, 0, inodes=250), 1, 1.0 + 10.0 - 750 * 0.004),
        (survey(1000, 0, allocated_bytes=1000 * BLOCK_BYTES), 1, 1.0 + 10.0 + 1.0),
        (survey(1000, 0, allocated_bytes=10 * BLOCK_BYTES), 1, 1.0 + 10.0 + 0.01),
        (survey(1, 0, allocated_bytes=BLOCK_BYTES + 10**9), 1, 1.0 + 0.01 + 0.001 + 1.0),
    ],
)
def test_what_costs_is_added_up(tree: Survey, runs: int, seconds: float) -> None:
    assert expected(tree, runs=runs) == pytest.approx(seconds, rel=1e-6)


@pytest.mark.parametrize(("rate_per_s", "seconds"), [(10, 101.1), (1000, 12.1), (0, 12.1)])
def test_a_rate_limit_makes_a_deletion_as_long_as_it_demands(
    rate_per_s: int, seconds: float
) -> None:
    work = Work(survey(1000, 11), Options(pace=Pace(rate_per_s=rate_per_s)), ROUND.kind)
    predicted = predicted_seconds(STRATEGIES[RM], work, ROUND)
    assert predicted.expected == pytest.approx(seconds)
    assert predicted.low < seconds < predicted.high


@pytest.mark.parametrize("files", [1000, 1_000_000])
def test_the_low_end_under_a_rate_limit_is_what_the_limit_allows(files: int) -> None:
    options = Options(pace=Pace(rate_per_s=500))
    tree, quick = survey(files, 0), typical("ext4")
    limit_s = files / 500
    work = Work(tree, options, "ext4")
    assert predicted_seconds(STRATEGIES[PARALLEL], work, quick).low == pytest.approx(limit_s)
    free = predicted_seconds(STRATEGIES[RM], Work(tree, Options(), "ext4"), quick)
    limited = predicted_seconds(STRATEGIES[RM], work, quick)
    # Before rm is stopped for the last time, it removes entries faster than the limit
    ahead = min(1.0, BURST_S / free.low)
    assert limited.low == pytest.approx(max(free.low, limit_s * (1 - ahead)))
    assert limited.low <= limit_s


def test_blocks_of_directories_are_no_blocks_of_files() -> None:
    tree = survey(1000, 11, allocated_bytes=1)
    tree = replace(tree, totals=replace(tree.totals, allocated_bytes=11 * BLOCK_BYTES))
    assert expected(tree) == pytest.approx(expected(survey(1000, 11)))


def test_a_survey_that_did_not_count_inodes_has_one_for_each_name() -> None:
    assert expected(replace(survey(), inodes=0)) == expected(survey())


def test_each_rm_that_xargs_starts_costs() -> None:
    tree = survey(1000, 0)
    one_by_one = expected(tree, XARGS, Options(batch_size=1))
    assert one_by_one == pytest.approx(1.0 + 10.0 + 1000 * 5.0, rel=1e-3)
    halved = expected(tree, XARGS, Options(batch_size=1, processes=2))
    assert halved == pytest.approx(1.0 + 10.0 + 500 * 5.0, rel=1e-3)
    # And the kernel's counters are inherited by each
    counted = expected(tree, XARGS, Options(batch_size=1), trace=TraceSource.PERF)
    assert counted - one_by_one == pytest.approx(1000 * COUNTED_PROCESS_S, rel=0.02)


def shared(largest: int, depth: int = 0, **counts: int) -> Survey:
    """Return a tree with a largest directory and a depth."""
    tree = survey(**{"files": 1000, "directories": 11, **counts})
    return replace(tree, max_entries_in_directory=largest, max_depth=depth)


@pytest.mark.parametrize(
    ("tree", "threads", "seconds"),
    [
        (shared(10), 2, 1.0 + 10.0 + 1.1),  # each thread has its own directories to the end
        (shared(500), 2, 1.0 + 10.0 + 1.1),
        (shared(1000), 2, 1.0 + 30.0 + 1.1),  # all that there is, they share
        # 250 in parallel with 250, then 500 are left
        (shared(750), 2, 1.0 + 500 * 0.03 + 500 * 0.01 + 1.1),
        (shared(1000), 4, 1.0 + 30.0 + 1.1),
        # 200 in parallel with 600, then 200 are left
        (shared(400), 4, 1.0 + 200 * 0.03 + 800 * 0.01 + 1.1),
        (shared(10), 1, 1.0 + 50.0 + 11 * 0.2),  # as rm does it
        (shared(100, depth=6), 2, 1.0 + 10.0 + 1.1),  # another thread has as many in parallel
        (shared(100, depth=12), 2, 1.0 + 50.0 + 11 * 0.2),  # a chain: no thread can help
        (shared(1000, depth=1, directories=1), 2, 1.0 + 30.0 + 0.1),  # a directory that is alone
        # Blocks are freed side by side, too
        (
            shared(100, directories=0, allocated_bytes=1000 * BLOCK_BYTES),
            2,
            1.0 + 10.0 + 0.2,
        ),
    ],
)
def test_threads_share_what_they_can(tree: Survey, threads: int, seconds: float) -> None:
    options = Options(pace=Pace(threads=threads))
    assert expected(tree, PARALLEL, options, OF_THREADS) == pytest.approx(seconds, rel=1e-6)


def test_threads_that_may_wait_for_each_other_are_predicted_to_gain_half_as_much() -> None:
    tree = replace(survey(1000, 11), max_entries_in_directory=100)
    on_xfs = replace(OF_THREADS, kind="xfs")
    seconds = expected(tree, PARALLEL, Options(pace=Pace(threads=2)), on_xfs)
    assert seconds == pytest.approx(1.0 + 1000 * (0.05 * 0.01) ** 0.5 + 11 * (0.2 * 0.1) ** 0.5)
    # And one thread alone takes what it takes elsewhere, and so do names that are shared
    alone = Options(pace=Pace(threads=1))
    assert expected(tree, PARALLEL, alone, on_xfs) == expected(tree, PARALLEL, alone, OF_THREADS)
    flat = replace(survey(1000, 1), max_entries_in_directory=1000)
    seconds = expected(flat, PARALLEL, Options(pace=Pace(threads=2)), on_xfs)
    assert seconds == pytest.approx(1.0 + 1000 * 0.03 + (0.2 * 0.1) ** 0.5)


RAISING_NAMES = 8


@pytest.mark.parametrize(
    ("tree", "threads", "raising_names", "seconds"),
    [
        # a fifth of the time of rm
        (shared(10), 0, 0.99 * RAISING_NAMES, 1000 * 0.01 + 11 * 0.2 / 5),
        # the largest directory entry by entry
        (shared(500), 0, 0.5 * RAISING_NAMES, 500 * 0.05 + 11 * 0.2 / 5),
        (shared(1000), 0, 0, 1000 * 0.05 + 11 * 0.2 / 5),
        (shared(10, depth=11), 0, 0.989 * RAISING_NAMES, 1000 * 0.01 + 11 * 0.2),  # a chain
        (shared(10), 2, 0, 500 * 0.05 + 11 * 0.2 / 2),
        (shared(10), 1, 0, 1000 * 0.05 + 11 * 0.2),
        (shared(10), 100, 0, 1000 * 0.01 + 11 * 0.2 / 5),  # more than the server can answer
    ],
)
def test_threads_wait_for_a_server_at_the_same_time(
    tree: Survey, threads: int, raising_names: float, seconds: float
) -> None:
    served = replace(OF_THREADS, kind="nfs4")
    took_s = expected(tree, PARALLEL, Options(pace=Pace(threads=threads)), served)
    assert took_s == pytest.approx(1.0 + raising_names * 0.05 + seconds, rel=1e-6)


@pytest.mark.parametrize(
    "name, calls, calls_more", [("rm", 9, 2), ("find", 7, 2), ("rmtree", 1, 0)]
)
def test_a_directory_that_is_opened_again_takes_more_answers_of_a_server(
    name: str, calls: int, calls_more: int
) -> None:
    tree = survey(files=0, directories=300)
    chain = replace(tree, max_depth=300, parent_directories=299)
    served = replace(ROUND, kind="nfs4")
    local_s = expected(chain, StrategyName(name)) - expected(tree, StrategyName(name))
    assert local_s == pytest.approx(0, abs=1e-9)
    more_s = expected(chain, StrategyName(name), calibration=served)
    more_s -= expected(tree, StrategyName(name), calibration=served)
    assert more_s == pytest.approx(0.1 * 295 * calls_more / calls)


def test_subdirectories_of_one_directory_are_removed_one_after_the_other() -> None:
    served = replace(OF_THREADS, kind="nfs4")
    tree = replace(shared(10), top_directories=10)  # the target is the largest directory
    directories_s = 11 * 0.2 * (1 / 5 + 10 / 11 * 0.1 / 0.2)
    took_s = expected(tree, PARALLEL, Options(), served)
    raising_s = RAISING_NAMES * 0.05
    assert took_s == pytest.approx(1.0 + raising_s + 1000 * 0.01 + directories_s, rel=1e-6)
    # one of them has most names
    below = tuple(LargeDirectory(PathStr("/t"), entries, 4096) for entries in (510, 500))
    tree = replace(shared(510), largest=below, top_directories=10, top_non_directories=500)
    took_s = expected(tree, PARALLEL, Options(), served)
    assert took_s == pytest.approx(1.0 + 0.5 * raising_s + 500 * 0.05 + directories_s, rel=1e-6)


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != XARGS])
def test_counters_cost_nothing_where_no_processes_are_started(strategy: StrategyName) -> None:
    counted = expected(survey(), strategy, trace=TraceSource.PERF)
    assert 1.0 < counted / expected(survey(), strategy) < 1.01


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_strace_costs_for_each_call(strategy: StrategyName) -> None:
    slower = expected(survey(), strategy, trace=TraceSource.STRACE) - expected(survey(), strategy)
    assert slower > 1011 * SECONDS_A_COUNTED_CALL[TraceSource.STRACE]


@pytest.mark.parametrize(
    ("calibration", "is_of_this", "spread"),
    [
        (typical("ext4"), False, UNCERTAINTY_UNMEASURED),
        (typical("ext4"), True, UNCERTAINTY_UNMEASURED),
        (ROUND, False, UNCERTAINTY_ELSEWHERE),
        (ROUND, True, UNCERTAINTY_MEASURED),
    ],
)
def test_the_range_is_as_wide_as_what_is_known(
    calibration: Calibration, is_of_this: bool, spread: float
) -> None:
    interval = predicted_seconds(STRATEGIES[RM], Work(survey()), calibration, is_of_this=is_of_this)
    assert interval.expected / interval.low == pytest.approx(spread)
    assert interval.high / interval.expected == pytest.approx(spread)
    assert UNCERTAINTY_MEASURED < UNCERTAINTY_ELSEWHERE < UNCERTAINTY_UNMEASURED


def test_a_busy_machine_makes_the_range_wider() -> None:
    def spread(noise: float) -> float:
        interval = predicted_seconds(STRATEGIES[RM], Work(survey()), replace(ROUND, noise=noise))
        return interval.high / interval.expected

    assert spread(NOISE_BORNE) == pytest.approx(UNCERTAINTY_MEASURED)
    assert spread(2 * NOISE_BORNE) == pytest.approx(2 * UNCERTAINTY_MEASURED)


@pytest.mark.parametrize("slowdown", [1.0, 1.5, 3.0, 50.0])
def test_the_slowdown_is_the_time_that_a_computation_takes(
    slowdown: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_fs.linux.limits._slowdown_of_thread", lambda: (1.0, False))
    ticks = count()
    used_s = [0.0]

    def processor_time() -> float:
        used_s[0] = next(ticks) * 0.001
        return used_s[0]

    measured = slowdown_by_load(lambda: slowdown * used_s[0], processor_time)
    assert measured == pytest.approx(slowdown)


@pytest.mark.parametrize(("age_s", "is_recent"), [(0.5, True), (60.0, False)])
def test_a_thread_that_has_just_been_started_shows_the_slowdown_by_its_own_life(
    age_s: float, is_recent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_fs.linux.limits._PROBE_S", 1e-6)
    monkeypatch.setattr("tui_fs.linux.limits.age_s", lambda _: age_s)
    asked: list[float] = []

    def clock() -> float:
        asked.append(time.monotonic())
        return asked[-1]

    assert slowdown_by_load(clock) >= 1.0
    assert bool(asked) is not is_recent


def test_the_present_load_extends_the_high_end_only() -> None:
    idle = predicted_seconds(STRATEGIES[RM], Work(survey()), ROUND)
    busy = predicted_seconds(STRATEGIES[RM], Work(survey()), ROUND, slowdown=1.5)
    assert (busy.low, busy.expected) == (idle.low, idle.expected)
    assert busy.high == pytest.approx(1.5 * idle.high)


def test_the_load_of_the_calibration_is_not_counted_twice() -> None:
    loaded = replace(ROUND, slowdown=3.0)
    quiet = predicted_seconds(STRATEGIES[RM], Work(survey()), ROUND)
    for slowdown, factor in ((1.0, 1.0), (3.0, 1.0), (6.0, 2.0)):
        times = predicted_seconds(STRATEGIES[RM], Work(survey()), loaded, slowdown=slowdown)
        assert times.expected == quiet.expected
        assert times.low == pytest.approx(quiet.low / 3.0)  # that load may have ended
        assert times.high == pytest.approx(factor * quiet.high)


def test_experience_holds_for_its_strategy_and_its_file_system_only() -> None:
    learnt = replace(ROUND, experience={"rm": LearnedFactor(3, 2.0)})
    assert expected(survey(), calibration=learnt) == pytest.approx(2 * expected(survey()))
    find = StrategyName("find")
    assert expected(survey(), find, calibration=learnt) == expected(survey(), find)
    elsewhere = predicted_seconds(STRATEGIES[RM], Work(survey()), learnt, is_of_this=False)
    assert elsewhere.expected == expected(survey())


def test_each_entry_of_a_larger_tree_costs_more() -> None:
    tree = survey(4 * GROWTH_FROM_ENTRIES, 0)
    plain = tree.totals.files * 0.01
    grown = 1.0 + plain * (1.0 + 2 * GROWTH_PER_DOUBLING)
    assert expected(tree) == pytest.approx(grown)
    small = survey(GROWTH_FROM_ENTRIES, 0)
    assert expected(small) == pytest.approx(1.0 + small.totals.files * 0.01)


def test_longer_names_cost_more() -> None:
    tree = survey(1000, 0)
    longer = replace(tree, non_directory_name_bytes=200_000)
    assert expected(longer) - expected(tree) == pytest.approx(200_000 * NAME_BYTE_S)


@pytest.mark.parametrize(("levels", "times"), [(8, 1.0), (400, 1.25), (800, 2.0)])
def test_only_xargs_pays_for_the_levels_of_its_paths(levels: int, times: float) -> None:
    tree = replace(survey(1000, 0), non_directory_levels=1000)
    deep = replace(tree, non_directory_levels=1000 + 1000 * levels)
    more_s = 1000 * levels * LEVEL_S * times
    assert expected(deep, XARGS) - expected(tree, XARGS) == pytest.approx(more_s, rel=1e-3)
    # And those that go by descriptors do not
    for strategy in set(STRATEGIES) - {XARGS}:
        assert expected(deep, strategy) == expected(tree, strategy)


@given(
    st.sampled_from(list(STRATEGIES)),
    st.integers(0, 10**8),
    st.integers(0, 10**7),
    st.integers(0, 10**8),
    st.integers(0, 1 << 50),
    st.sampled_from(TraceSource),
    st.sampled_from(["ext4", "tmpfs", "xfs", "nfs4", "unheard-of"]),
)
def test_any_tree_takes_some_time_and_more_files_take_more(
    strategy: StrategyName,
    files: int,
    directories: int,
    inodes: int,
    allocated_bytes: int,
    trace: TraceSource,
    kind: str,
) -> None:
    inodes = max(min(files, 1), min(files, inodes))
    tree = survey(files, directories, inodes, allocated_bytes)
    more = survey(files + 1000, directories, inodes + 1000, allocated_bytes)
    smaller, larger = (
        predicted_seconds(STRATEGIES[strategy], Work(each), typical(kind), trace=trace)
        for each in (tree, more)
    )
    assert 0.0 < smaller.low < smaller.expected < smaller.high < math.inf
    assert smaller.expected < larger.expected


@pytest.mark.parametrize("kind", ("ext4", "fuse.sshfs", "nfs4", "unheard-of", ""))
def test_typical_figures_are_there_for_every_strategy(kind: str) -> None:
    usual = typical(kind)
    assert set(usual.prices) == set(STRATEGIES)
    assert (usual.kind, usual.measured_at, usual.experience) == (kind, 0.0, {})


def test_a_type_is_the_part_before_its_dot() -> None:
    assert typical("fuse.sshfs").prices == typical("fuse").prices
    assert typical("fuse").prices != typical("ext4").prices
