"""Figures as a person reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_fs.lab.figures import bars_axis, shown, shown_span
from tui_fs.lab.results import Measure


@pytest.mark.parametrize(
    ("measure", "value", "words"),
    [
        (Measure.SECONDS, 0.0, "0 s"),
        (Measure.SECONDS, 0.000412, "412 µs"),
        (Measure.SECONDS, 0.0123, "12.3 ms"),
        (Measure.SECONDS, 0.9999, "1.00 s"),
        (Measure.SECONDS, 1234.0, "1,234 s"),
        (Measure.SECONDS, 7_500.0, "2 h 05 min"),
        (Measure.CPU_PERCENT, 99.4, "99 %"),
        (Measure.MICROSECONDS_PER_ENTRY, 3.456, "3.46 µs"),
        (Measure.PEAK_MEMORY_BYTES, float(3 << 20), "3.0 MiB"),
        (Measure.CALLS, 20_063.0, "20,063"),
    ],
)
def test_figures_have_units_and_three_digits(measure: Measure, value: float, words: str) -> None:
    assert shown(measure, value) == words


@pytest.mark.parametrize(
    ("least", "most", "beside", "words"),
    [
        (0.0112, 0.0134, "12.3 ms", "11.2–13.4"),
        (0.98e-3, 1.2e-3, "1.00 ms", "980 µs–1.20 ms"),
        (1e-3, 2e-3, "900 µs", "1.00–2.00 ms"),
        (0.01, 0.01, "10.0 ms", ""),
    ],
)
def test_a_span_repeats_no_unit(least: float, most: float, beside: str, words: str) -> None:
    assert shown_span(Measure.SECONDS, least, most, beside) == words


@given(values=st.lists(st.floats(1e-9, 1e15), min_size=1, max_size=8), is_log=st.booleans())
def test_positions_rise_with_the_values(values: list[float], is_log: bool) -> None:
    axis = bars_axis(values, is_log=is_log)
    places = [axis.position(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(0 <= place <= 1 for place in places)


@given(st.floats(1e-6, 1e6), st.floats(1.1, 100.0))
def test_equal_ratios_are_equal_lengths_on_a_logarithmic_axis(low: float, ratio: float) -> None:
    axis = bars_axis([low, low * ratio**2], is_log=True)
    first, middle, last = (axis.position(low * ratio**power) for power in range(3))
    assert middle - first == pytest.approx(last - middle)
    assert first < middle
