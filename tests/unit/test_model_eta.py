"""The time left: by rate, by the prediction, and by both."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_fs.model.eta import TRUST_RATE_AFTER_S, Range, blend, from_model, from_rate

SECONDS = st.floats(0.0, 1e6)
POSITIVE = st.floats(1e-3, 1e6)
RANGES = st.tuples(SECONDS, SECONDS).map(lambda pair: (min(pair), max(pair)))
PREDICTIONS = st.tuples(POSITIVE, POSITIVE, POSITIVE).map(sorted).map(lambda p: (p[0], p[1], p[2]))


def test_what_is_left_lies_between_two_rates() -> None:
    assert from_rate(600, 100.0, 50.0, 1.0) == (6.0, 12.0)
    assert from_rate(600, 50.0, 100.0, 1.0) == (6.0, 12.0)
    assert from_rate(0, 50.0, 100.0, 1.0) == (0.0, 0.0)


def test_a_steady_rate_of_few_entries_does_not_make_the_time_left_certain() -> None:
    def width(fraction: float) -> float:
        low, high = from_rate(600, 100.0, 100.0, fraction)
        return high / low

    assert [width(share) for share in (0.0, 0.5, 1.0)] == pytest.approx([2.0, 2**0.5, 1.0])


@pytest.mark.parametrize(
    ("fraction", "working_s", "expected"),
    [
        (0.0, 0.0, (10.0, 40.0)),
        (0.5, 5.0, (5.0, 20.0)),
        (0.5, 38.0, (2.0, 20.0)),
        (0.9, 40.0, (0.0, 4.0)),
        (0.9, 400.0, (0.0, 4.0)),
        (1.0, 12.0, (0.0, 0.0)),
    ],
)
def test_the_prediction_shrinks_with_what_is_done(
    fraction: float, working_s: float, expected: Range
) -> None:
    assert from_model((10.0, 20.0, 40.0), fraction, working_s) == pytest.approx(expected)


@given(PREDICTIONS, st.floats(0.0, 1.0), SECONDS)
def test_the_model_gives_a_range_of_times(
    predicted_s: tuple[float, float, float], fraction: float, working_s: float
) -> None:
    low, high = from_model(predicted_s, fraction, working_s)
    assert 0.0 <= low <= high <= predicted_s[2]


@pytest.mark.parametrize(
    ("fraction", "working_s", "trust"),
    [
        (0.0, 0.0, 0.0),
        (0.0, TRUST_RATE_AFTER_S / 2, 0.5),
        (0.0, TRUST_RATE_AFTER_S, 1.0),
        (0.0, 9 * TRUST_RATE_AFTER_S, 1.0),
        (0.125, 0.0, 0.5),
        (0.25, 0.0, 1.0),
        (0.125, TRUST_RATE_AFTER_S / 10, 0.5),
    ],
)
def test_the_rate_is_trusted_more_and_more(fraction: float, working_s: float, trust: float) -> None:
    combined = blend((100.0, 200.0), (0.0, 0.0), fraction, working_s)
    assert combined == pytest.approx((100.0 * trust, 200.0 * trust))


@given(RANGES, RANGES, st.floats(0.0, 1.0), SECONDS)
def test_the_blend_lies_between_both(
    rate: Range, model: Range, fraction: float, working_s: float
) -> None:
    combined = blend(rate, model, fraction, working_s)
    assert combined is not None
    for mixed, own, other in zip(combined, rate, model, strict=True):
        between = min(own, other) <= mixed <= max(own, other)
        assert between or any(math.isclose(mixed, end, abs_tol=1e-9) for end in (own, other))


@given(RANGES, st.floats(0.0, 1.0), SECONDS)
def test_one_alone_is_taken_as_it_is(one: Range, fraction: float, working_s: float) -> None:
    assert blend(one, None, fraction, working_s) == one
    assert blend(None, one, fraction, working_s) == one
    assert blend(None, None, fraction, working_s) is None


def test_nothing_left_is_an_answer() -> None:
    assert blend((0.0, 0.0), None, 1.0, 1.0) == (0.0, 0.0)
