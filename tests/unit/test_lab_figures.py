"""Figures as a person reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_fs.lab.figures import safe, shown, shown_span, shown_tick
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


def test_ticks_are_plain_numbers() -> None:
    assert shown_tick("files", 1_000.0) == "1,000"
    assert shown_tick("files", 1e6) == "1 M"
    assert shown_tick("seconds", 0.005) == "5 ms"
    assert shown_tick("peak memory", 1e7) == "10 MB"


@given(st.text())
def test_safe_text_is_printable_and_stays_so(text: str) -> None:
    assert safe(text).isprintable()
    assert safe(safe(text)) == safe(text)
