"""UnitCosts that are found again in the times they have made."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tui_fs.estimate.calibration import BLOCK_BYTES, Calibration, LearnedFactor
from tui_fs.estimate.fit import Sample, Shape, fit
from tui_fs.estimate.time import typical
from tui_fs.model.errors import TuiFsError
from tui_fs.model.strategy import StrategyName
from tui_fs.strategies.registry import STRATEGIES
from tui_fs.strategies.unit_costs import UnitCosts

ALL = tuple(STRATEGIES)
RM, XARGS, PARALLEL = StrategyName("rm"), StrategyName("xargs"), StrategyName("parallel")
SECONDS = st.floats(1e-7, 1e-2)
PRICES = st.builds(UnitCosts, SECONDS, SECONDS, SECONDS)


def seconds_of(sample: Sample, truth: Calibration) -> float:
    """Return the cost of a tree by the prices, as a plain sum."""
    price = truth.prices[sample.strategy]
    name_s = price.name_s
    if sample.shape is not Shape.FLAT and price.beside_s is not None:
        name_s = price.beside_s
    seconds = price.start_s + sample.names * name_s
    seconds += sample.directories * price.directory_s
    seconds -= (sample.names - sample.inodes) * truth.link_s
    if sample.strategy == XARGS:
        seconds += sample.batches * truth.batch_s
    if sample.allocated_bytes:
        seconds += sample.inodes * truth.block_s
        seconds += (sample.allocated_bytes - sample.inodes * BLOCK_BYTES) * truth.byte_s
    return seconds


def samples_of(truth: Calibration, strategies: Sequence[StrategyName] = ALL) -> list[Sample]:
    """Return one sample of each shape, as long as the prices say."""
    made: list[Sample] = []
    for name in strategies:
        batches = (1, 1) if name == XARGS else (0, 0)
        made.append(Sample(name, Shape.EMPTY, 0.0))
        made.append(Sample(name, Shape.FLAT, 0.0, 2000, 0, 2000, 0, batches[0]))
        made.append(Sample(name, Shape.FOREST, 0.0, 500, 500, 500, 0, batches[1]))
    if PARALLEL in strategies:
        made.append(Sample(PARALLEL, Shape.BESIDE, 0.0, 8000, 16, 8000))
    if XARGS in strategies:
        made.append(Sample(XARGS, Shape.BATCHES, 0.0, 100, 0, 100, 0, 100))
    if RM in strategies:
        made.append(Sample(RM, Shape.BLOCKS, 0.0, 1000, 0, 1000, 1000 * BLOCK_BYTES))
        made.append(Sample(RM, Shape.LINKS, 0.0, 2000, 0, 500))
        made.append(Sample(RM, Shape.LARGE, 0.0, 1, 0, 1, 32 << 20))
    return [replace(trial, seconds=seconds_of(trial, truth)) for trial in made]


@st.composite
def truths(draw: st.DrawFn) -> Calibration:
    """Return prices as any file system may have them."""
    prices: dict[str, UnitCosts] = {name: draw(PRICES) for name in STRATEGIES}
    rm = prices["rm"]
    for name, price in prices.items():  # the kernel does for each what it does for rm
        if name != "rm":
            times = draw(st.floats(0.2, 1.0) if name == PARALLEL else st.floats(1.1, 1.3))
            more = draw(st.floats(0.2, 1.0) if name == PARALLEL else st.floats(1.1, 2.5))
            beside_s = draw(st.floats(0.2, 1.0)) * rm.name_s if name == PARALLEL else None
            prices[name] = UnitCosts(
                price.start_s, times * rm.name_s, more * rm.directory_s, beside_s
            )
    return Calibration(
        "ext4",
        1.0,
        "6.1",
        prices,
        batch_s=draw(SECONDS),
        block_s=rm.name_s * draw(st.floats(0.1, 1.9)),
        byte_s=draw(st.floats(1e-12, 1e-9)),
        link_s=rm.name_s * draw(st.floats(0.0, 1.0)),
    )


def flattened(calibration: Calibration) -> list[float]:
    """Return all figures in a row."""
    row = [calibration.batch_s, calibration.block_s, calibration.byte_s, calibration.link_s]
    for name in STRATEGIES:
        price = calibration.prices[name]
        beside_s = price.name_s if price.beside_s is None else price.beside_s
        row += [price.start_s, price.name_s, price.directory_s, beside_s]
    return row


@given(truths())
def test_the_prices_that_made_the_times_are_found(truth: Calibration) -> None:
    calibration = fit(samples_of(truth), typical("ext4"), 7.0, "6.2")
    assert flattened(calibration) == pytest.approx(flattened(truth), rel=1e-3, abs=1e-9)
    assert (calibration.kind, calibration.measured_at, calibration.kernel) == ("ext4", 7.0, "6.2")
    assert calibration.experience == {}


@given(
    st.lists(
        st.builds(
            Sample,
            st.sampled_from(list(STRATEGIES)),
            st.sampled_from(Shape),
            st.floats(1e-6, 20.0),
            names=st.integers(1, 4000),
            directories=st.integers(0, 2000),
            inodes=st.integers(0, 4000),
            allocated_bytes=st.integers(0, 1 << 26),
            batches=st.integers(0, 200),
        ),
        max_size=40,
    )
)
def test_no_price_is_negative_or_infinite_for_any_measurement(samples: list[Sample]) -> None:
    try:
        calibration = fit(samples, typical("ext4"), 1.0, "")
    except TuiFsError:
        return
    assert all(0.0 <= figure < 1e6 for figure in flattened(calibration))
    assert calibration.link_s <= max(calibration.prices["rm"].name_s, typical("ext4").link_s)


@pytest.mark.parametrize("lacking", (Shape.EMPTY, Shape.FLAT, Shape.FOREST))
def test_without_rm_nothing_is_known(lacking: Shape) -> None:
    samples = [sample for sample in samples_of(typical("ext4")) if sample.shape is not lacking]
    with pytest.raises(TuiFsError, match="too slow, or this machine too busy"):
        fit(samples, typical("ext4"), 1.0, "")


def test_what_was_not_measured_costs_what_is_typical_beside_rm() -> None:
    usual = typical("ext4")
    rm = usual.prices["rm"]
    slow = replace(
        usual,
        prices={**usual.prices, "rm": UnitCosts(0.5, 3 * rm.name_s, 2 * rm.directory_s)},
        link_s=rm.name_s,
    )
    calibration = fit(samples_of(slow, [RM]), usual, 1.0, "")
    for name in set(STRATEGIES) - {RM}:
        was, now = usual.prices[name], calibration.prices[name]
        assert now.start_s == was.start_s
        assert now.name_s == pytest.approx(3 * was.name_s)
        # (a directory's time three times, of rm twice: beyond that threads are not believed)
        times = 2 if name == PARALLEL else 3
        assert now.directory_s == pytest.approx(times * was.directory_s)
    assert calibration.batch_s == usual.batch_s


ONE_AFTER_THE_OTHER = set(STRATEGIES) - {RM, PARALLEL}


def test_threads_may_be_cheaper_than_rm_but_not_by_any_factor() -> None:
    usual = typical("ext4")
    for share, expected_share in ((0.5, 0.5), (0.0, 0.1), (2.0, 1.0)):
        was = UnitCosts(0.002, share * usual.prices["rm"].name_s, share * usual.prices["rm"].name_s)
        cheap = replace(usual, prices={**usual.prices, "parallel": was})
        unit_costs = fit(samples_of(cheap), usual, 1.0, "").prices
        # The half is believed; what is free is not, nor what takes longer than one thread
        assert unit_costs["parallel"].name_s == pytest.approx(
            expected_share * unit_costs["rm"].name_s, rel=0.1
        )


def test_threads_that_wait_for_a_server_may_be_cheaper_by_their_number() -> None:
    usual = typical("nfs4")
    for share, expected_share in ((1 / 60, 1 / 60), (0.0, 1 / 128), (2.0, 1.0)):
        rm = usual.prices["rm"]
        was = UnitCosts(0.002, rm.name_s, rm.directory_s, share * rm.name_s)
        cheap = replace(usual, prices={**usual.prices, "parallel": was})
        unit_costs = fit(samples_of(cheap), usual, 1.0, "").prices
        beside_s = unit_costs["parallel"].beside_s
        assert beside_s == pytest.approx(expected_share * unit_costs["rm"].name_s, rel=0.1)


@pytest.mark.parametrize("name", sorted(ONE_AFTER_THE_OTHER))
def test_none_is_much_cheaper_than_rm(name: StrategyName) -> None:
    usual = typical("ext4")
    free = replace(usual, prices={**usual.prices, name: UnitCosts(0.04, 0.0, 0.0)})
    unit_costs = fit(samples_of(free), usual, 1.0, "").prices
    cost = STRATEGIES[name].cost
    name_ratio = unit_costs[name].name_s / unit_costs["rm"].name_s
    directory_ratio = unit_costs[name].directory_s / unit_costs["rm"].directory_s
    assert name_ratio == pytest.approx(cost.name_bounds[0], abs=0.05)
    assert directory_ratio == pytest.approx(cost.directory_bounds[0], abs=0.05)
    assert unit_costs[name].start_s == pytest.approx(0.04)


def test_a_block_held_up_by_others_costs_no_more_than_two_names() -> None:
    usual = typical("ext4")
    name_s = usual.prices["rm"].name_s
    calibration = fit(samples_of(replace(usual, block_s=9 * name_s)), usual, 1.0, "")
    # A block is not thought dearer than a disk that is quiet would make it
    assert calibration.block_s == pytest.approx(2 * name_s)


def test_blocks_that_took_unequally_long_are_noise_too() -> None:
    usual = typical("ext4")
    first = [sample for sample in samples_of(usual) if sample.strategy == RM]
    apart = {Shape.BLOCKS: 2.0, Shape.FLAT: 1.5}
    second = [
        replace(sample, seconds=apart.get(sample.shape, 1.0) * sample.seconds) for sample in first
    ]
    assert fit([*first, *second], usual, 1.0, "").noise == pytest.approx(1.5)


def test_the_noise_is_how_far_times_of_the_same_lie_apart() -> None:
    usual = typical("ext4")
    first = samples_of(usual)
    second = [replace(sample, seconds=1.2 * sample.seconds) for sample in first]
    assert fit([*second, *first], usual, 1.0, "").noise == pytest.approx(1.2)
    assert fit([*first, *first], usual, 1.0, "").noise == 1.0
    # And a third one between does not make it noisier
    third = [replace(sample, seconds=1.2**0.5 * sample.seconds) for sample in first]
    assert fit([*second, *first, *third], usual, 1.0, "").noise < 1.2
    # And what was not measured twice is not believed to be quiet
    assert fit(first, usual, 1.0, "").noise > 1.2


def test_one_disturbed_run_does_not_count() -> None:
    # All trees three times, with one run delayed for a second
    truth = typical("ext4")
    samples = [*samples_of(truth)] * 3
    at = next(
        n for n, sample in enumerate(samples) if (sample.strategy, sample.shape) == (RM, Shape.FLAT)
    )
    samples[at] = replace(samples[at], seconds=samples[at].seconds + 1.0)
    assert fit(samples, truth, 1.0, "").prices == fit(samples_of(truth), truth, 1.0, "").prices


def test_of_two_times_the_shorter_counts() -> None:
    truth = typical("ext4")
    slower = [replace(sample, seconds=10 * sample.seconds) for sample in samples_of(truth)]
    twice = fit([*slower, *samples_of(truth)], truth, 1.0, "")
    assert flattened(twice) == pytest.approx(flattened(fit(samples_of(truth), truth, 1.0, "")))


def test_a_link_saves_at_most_what_a_name_costs() -> None:
    truth = typical("ext4")
    samples = [
        replace(sample, seconds=0.0) if sample.shape is Shape.LINKS else sample
        for sample in samples_of(truth)
    ]
    # What they save is not more than what a name costs
    calibration = fit(samples, truth, 1.0, "")
    assert calibration.link_s == calibration.prices["rm"].name_s


@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=30))
def test_experience_lies_between_the_jobs(factors: list[float]) -> None:
    experience = LearnedFactor()
    for factor in factors:
        experience = experience.refined(factor)
    assert experience.jobs == len(factors)
    assert min(factors) * 0.999 <= experience.factor <= max(factors) * 1.001


@pytest.mark.parametrize("name", [name for name in STRATEGIES if name not in (RM, PARALLEL)])
def test_one_strategy_that_was_held_up_is_not_believed(name: StrategyName) -> None:
    # Trees that took one strategy a hundred times as long as rm: something else was slow
    usual = typical("ext4")
    rm = usual.prices["rm"]
    held_up = UnitCosts(rm.start_s, 100 * rm.name_s, 100 * rm.directory_s)
    slow = replace(usual, prices={**usual.prices, name: held_up})
    prices = fit(samples_of(slow), usual, 1.0, "").prices
    cost = STRATEGIES[name].cost
    assert prices[name].name_s == pytest.approx(cost.name_bounds[1] * prices["rm"].name_s)
    most_s = cost.directory_bounds[1] * prices["rm"].directory_s
    assert prices[name].directory_s == pytest.approx(most_s)


def test_twice_and_half_cancel() -> None:
    assert LearnedFactor().refined(2.0).refined(0.5).factor == pytest.approx(1.0)


def test_late_jobs_weigh_most() -> None:
    experience = LearnedFactor(100, 1.0)
    for _ in range(5):
        experience = experience.refined(2.0)
    assert 2.0**0.5 < experience.factor < 2.0
