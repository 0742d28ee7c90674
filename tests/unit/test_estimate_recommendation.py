"""Which strategy is recommended, and a sentence for every one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tui_fs.estimate.recommendation import advice, recommended, recommended_as
from tui_fs.model.estimate import Estimate
from tui_fs.model.paths import PATH_MAX_BYTES, PathStr
from tui_fs.model.strategy import StrategyName
from tui_fs.model.survey import Survey, Totals
from tui_fs.strategies.fts import FTS_SORTED_ABOVE
from tui_fs.strategies.registry import STRATEGIES

RM, FIND, XARGS, RSYNC, RMTREE, PARALLEL = (
    StrategyName("rm"),
    StrategyName("find"),
    StrategyName("xargs"),
    StrategyName("rsync"),
    StrategyName("rmtree"),
    StrategyName("parallel"),
)
PLAIN = Survey(
    finished=True,
    path=PathStr("/mnt/t"),
    totals=Totals(files=9000, directories=100),
    max_entries_in_directory=100,
    max_path_bytes=100,
)


def estimate(name: StrategyName, seconds: float = 10.0, reason: str = "") -> Estimate:
    """Return an estimate; one with a reason cannot run."""
    return Estimate(
        strategy=name,
        seconds_low=seconds / 2,
        seconds=seconds,
        seconds_high=seconds * 2,
        syscalls={"unlinkat": 10},
        other_calls=30,
        processes=1234,
        peak_memory_bytes=1,
        feasible=not reason,
        race_safe=name not in (RSYNC, XARGS),
        mount_safe=True,
        reasons=(reason,) if reason else (),
        command=(("tool",),),
        rests_on="a test",
        calls_rest_on="a test",
        advice="",
    )


def all_of(**seconds: float) -> list[Estimate]:
    """Return an estimate of each strategy; those not named take ten seconds."""
    return [estimate(name, seconds.get(name, 10.0)) for name in STRATEGIES]


def recommended_sentence(
    survey: Survey,
    kind: str = "ext4",
    without: tuple[StrategyName, ...] = (),
    seconds: float = 0.5,
    rate_per_s: int = 0,
) -> str:
    """Return the sentence of the strategy that is recommended."""
    estimates = [
        estimate(name, seconds, "missing" if name in without else "") for name in STRATEGIES
    ]
    best = recommended(estimates)
    assert best is not None
    return advice(survey, kind, estimates, rate_per_s)[best]


def test_a_strategy_is_called_instant_only_for_a_short_time_and_after_the_count() -> None:
    few = replace(PLAIN, totals=Totals(files=400, directories=10))
    assert recommended_sentence(few) == (
        "With so few entries rm is instant, and no other user can redirect it outside the tree."
    )
    assert "instant" not in recommended_sentence(replace(few, finished=False))
    assert "instant" not in recommended_sentence(few, seconds=9.0)


@pytest.mark.parametrize("files", [409, 900_000])
def test_a_limit_that_sets_the_time_is_named(files: int) -> None:
    tree = replace(PLAIN, totals=Totals(files=files, directories=1))
    limit_s = (files + 1) / 410
    assert recommended_sentence(tree, seconds=limit_s, rate_per_s=410) == (
        "The limit of 410 entries per second sets the time, so no strategy is faster; no other "
        "user can redirect rm outside the tree."
    )
    assert "limit" not in recommended_sentence(tree, seconds=limit_s + 0.5, rate_per_s=410)


def test_every_strategy_has_its_place_in_the_order() -> None:
    ranks = {strategy.rank: strategy.guarantees.race_safe for strategy in STRATEGIES.values()}
    assert len(ranks) == len(STRATEGIES)
    safe = [ranks[rank] for rank in sorted(ranks)]
    assert safe == sorted(safe, reverse=True)


@given(
    st.lists(st.booleans(), min_size=len(STRATEGIES), max_size=len(STRATEGIES)),
    st.permutations(list(STRATEGIES)),
)
def test_the_safest_that_can_run_is_recommended(
    can_run: list[bool], order: list[StrategyName]
) -> None:
    estimates = [
        estimate(name, reason="" if can else "missing")
        for name, can in zip(order, can_run, strict=True)
    ]
    able = [
        name
        for name in sorted(STRATEGIES, key=lambda strategy: STRATEGIES[strategy].rank)
        if can_run[order.index(name)]
    ]
    assert recommended(estimates) is (able[0] if able else None)


def test_threads_are_recommended_where_they_were_measured_to_be_faster_by_much() -> None:
    estimates = [replace(row, measured_at=1.0) for row in all_of(parallel=5.0)]
    assert recommended(estimates) == PARALLEL
    sentences = advice(PLAIN, "ext4", estimates)
    assert sentences[PARALLEL].startswith("About 2.0 times as fast as rm, as measured on this file")
    assert sentences[RM] == (
        "About 2.0 times the time of parallel: it removes the same names one by one."
    )


@pytest.mark.parametrize(
    ("seconds", "measured_at", "says"),
    [
        (5.0, 0.0, "The gain of several threads was not measured on this file system."),
        (8.1, 1.0, "Not faster than rm: the gain of several threads depends"),
        (20.0, 1.0, "About 2.0 times the time of rm: the gain of several threads depends"),
    ],
)
def test_threads_are_not_recommended_on_a_guess(
    seconds: float, measured_at: float, says: str
) -> None:
    estimates = [replace(row, measured_at=measured_at) for row in all_of(parallel=seconds)]
    assert recommended(estimates) == RM
    assert advice(PLAIN, "ext4", estimates)[PARALLEL].startswith(says)


@pytest.mark.parametrize(
    ("seconds", "rate_per_s", "says"),
    [
        (10.0, 900, "Not faster than rm: both are limited to 900 entries per second."),
        (20.0, 900, "About 2.0 times the time of rm: the gain of several threads depends"),
        (10.0, 90_000, "Not faster than rm: the gain of several threads depends"),
    ],
)
def test_a_limit_that_makes_threads_no_faster_is_named(
    seconds: float, rate_per_s: int, says: str
) -> None:
    estimates = [replace(row, measured_at=1.0) for row in all_of(parallel=seconds)]
    assert advice(PLAIN, "ext4", estimates, rate_per_s)[PARALLEL].startswith(says)


@pytest.mark.parametrize(("rm", "parallel"), [(1.9, 1.0), (1.0, 0.5)])
def test_a_factor_learned_from_jobs_is_no_measured_gain_of_threads(
    rm: float, parallel: float
) -> None:
    """One slow job of rm, or one fast job of parallel, must not decide for parallel."""
    learned = {RM: rm, PARALLEL: parallel}
    estimates = [
        replace(
            row,
            measured_at=1.0,
            seconds=row.seconds * learned.get(row.strategy, 1.0),
            learned_factor=learned.get(row.strategy, 1.0),
        )
        for row in all_of()
    ]
    assert recommended(estimates) == RM
    assert all(
        "as measured" not in sentence for sentence in advice(PLAIN, "ext4", estimates).values()
    )


def test_a_factor_learned_from_jobs_does_not_enlarge_the_measured_gain() -> None:
    estimates = [replace(row, measured_at=1.0) for row in all_of(rm=19.0, parallel=5.0)]
    estimates = [
        replace(row, learned_factor=1.9) if row.strategy == RM else row for row in estimates
    ]
    assert recommended(estimates) == PARALLEL
    assert advice(PLAIN, "ext4", estimates)[PARALLEL].startswith("About 2.0 times as fast as rm")


@pytest.mark.parametrize(
    ("rm_s", "find_s", "words"),
    [(5.1, 2.7, "safest"), (5.1, 5.1, "best"), (0.09, 0.01, "best")],
)
def test_the_recommended_one_is_called_safest_beside_a_faster_one(
    rm_s: float, find_s: float, words: str
) -> None:
    estimates = all_of(rm=rm_s, find=find_s)
    assert recommended(estimates) == RM
    assert recommended_as(estimates) == words
    is_explained = "but it is the safest" in advice(PLAIN, "ext4", estimates)[RM]
    assert is_explained == (words == "safest")


@pytest.mark.parametrize("seconds", (5.0, 9.0))
def test_in_one_directory_of_a_server_threads_cannot_help(seconds: float) -> None:
    flat = replace(PLAIN, totals=Totals(files=9000, directories=9), max_entries_in_directory=8990)
    estimates = [replace(row, measured_at=1.0) for row in all_of(parallel=seconds)]
    cannot = "threads cannot help"
    assert "at the same time" not in advice(flat, "nfs4", estimates)[PARALLEL]
    assert (cannot in advice(flat, "nfs4", estimates)[PARALLEL]) == (seconds == 9.0)
    assert cannot not in advice(PLAIN, "nfs4", estimates)[PARALLEL]
    assert cannot not in advice(flat, "ext4", estimates)[PARALLEL]


def test_an_engine_that_cannot_run_is_not_recommended() -> None:
    estimates = [replace(row, measured_at=1.0) for row in all_of()]
    fast = estimate(PARALLEL, 1.0, "tui-fs-engine is not installed")
    assert recommended([*estimates[:-1], replace(fast, measured_at=1.0)]) == RM


@pytest.mark.parametrize(
    ("name", "seconds", "begins", "names"),
    [
        (RSYNC, 30.0, "About 3.0 times the time of rm: ", "status of every file"),
        (FIND, 9.0, "Not faster than rm: ", ""),
        # A faster one is not recommended for that
        (XARGS, 5.0, "Possibly 0.5 times the time of rm, but ", "by path"),
    ],
)
def test_a_strategy_is_compared_with_the_recommended_one(
    name: StrategyName, seconds: float, begins: str, names: str
) -> None:
    estimates = all_of(**{name: seconds})
    assert recommended(estimates) == RM
    sentence = advice(PLAIN, "ext4", estimates)[name]
    assert sentence.startswith(begins) and names in sentence


def test_what_cannot_run_says_why() -> None:
    estimates = [*all_of()[:3], estimate(RSYNC, reason="rsync is not installed")]
    sentences = advice(PLAIN, "ext4", estimates)
    assert sentences[RSYNC] == "It cannot run here: rsync is not installed."
    assert RMTREE not in sentences
    # And where nothing can run each says why
    estimates = [estimate(name, reason=f"no {name}") for name in STRATEGIES]
    sentences = advice(PLAIN, "ext4", estimates)
    assert sentences == {name: f"It cannot run here: no {name}." for name in STRATEGIES}


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({}, "ext4", "Removing the names is nearly all"),
        ({"max_path_bytes": PATH_MAX_BYTES}, "ext4", "Paths of up to 4,096 bytes"),
        ({"max_path_bytes": PATH_MAX_BYTES - 1}, "ext4", "Removing the names"),
        (
            {"writable_by_others": 1},
            "ext4",
            "Other users can write in 1 directory, but cannot redirect rm",
        ),
        ({"writable_by_others": 2}, "ext4", "Other users can write in 2 directories,"),
        ({"totals": Totals(files=2000, allocated_bytes=2001 << 20)}, "ext4", "A few large files"),
        ({"totals": Totals(files=9, allocated_bytes=9 << 40)}, "ext4", "A few large files"),
        ({"totals": Totals(files=989, directories=10)}, "ext4", "With so few entries"),
        ({"totals": Totals(files=990, directories=10)}, "ext4", "Removing the names"),
        ({"totals": Totals(files=2000, directories=1200)}, "ext4", "Nearly as many directories"),
    ],
)
def test_the_tree_says_why_the_recommended_one(
    change: dict[str, object], kind: str, words: str
) -> None:
    assert recommended_sentence(replace(PLAIN, **change), kind).startswith(words)


@pytest.mark.parametrize(
    ("kind", "without", "words"),
    [
        ("ext4", (), "rm removes the names in inode order"),
        ("ext3", (RM,), "find removes the names in inode order"),
        ("ext4", (RM, FIND), "parallel removes the names in inode order"),
        ("ext4", (RM, FIND, PARALLEL), "every strategy spends its time removing the names"),
        ("xfs", (), "every strategy spends its time removing the names"),
    ],
)
def test_one_flat_directory_is_removed_in_the_order_that_suits_the_disk(
    kind: str, without: tuple[StrategyName, ...], words: str
) -> None:
    entries = FTS_SORTED_ABOVE + 1
    flat = replace(PLAIN, totals=Totals(files=entries), max_entries_in_directory=entries)
    sentence = recommended_sentence(flat, kind, without)
    assert f"One directory of 10,001 entries on {kind}: " in sentence
    assert words in sentence
    smaller = replace(flat, max_entries_in_directory=entries - 1)
    assert words not in recommended_sentence(smaller, kind, without)


TREES = st.builds(
    Survey,
    path=st.just(PathStr("/t")),
    totals=st.builds(
        Totals,
        files=st.integers(0, 10**7),
        directories=st.integers(0, 10**6),
        allocated_bytes=st.integers(0, 1 << 50),
    ),
    max_path_bytes=st.integers(1, 10_000),
    max_entries_in_directory=st.integers(0, 10**7),
    writable_by_others=st.integers(0, 3),
)


@given(
    TREES,
    st.sampled_from(["ext4", "xfs", "tmpfs", "nfs4"]),
    st.lists(st.floats(0.0, 1e6), min_size=len(STRATEGIES), max_size=len(STRATEGIES)),
    st.lists(st.booleans(), min_size=len(STRATEGIES), max_size=len(STRATEGIES)),
)
def test_one_plain_sentence_for_each_on_any_tree(
    survey: Survey, kind: str, seconds: list[float], can_run: list[bool]
) -> None:
    estimates = [
        estimate(name, taken, "" if can else "rsync is not installed")
        for name, taken, can in zip(STRATEGIES, seconds, can_run, strict=True)
    ]
    sentences = advice(survey, kind, estimates)
    assert list(sentences) == list(STRATEGIES)
    for name, sentence in sentences.items():
        assert sentence[0].isupper(), sentence
        assert sentence.endswith("."), sentence
        assert sentence.isprintable(), sentence
        assert name in sentence or not sentence.startswith("Others"), sentence


@pytest.mark.parametrize("best", (RSYNC, XARGS))
@given(survey=TREES, kind=st.sampled_from(["ext4", "xfs"]))
def test_safety_is_not_promised_of_what_goes_by_path(
    best: StrategyName, survey: Survey, kind: str
) -> None:
    others = tuple(name for name in STRATEGIES if name != best)
    assert "redirect" not in recommended_sentence(survey, kind, others)
