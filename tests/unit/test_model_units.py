"""Numbers read by and written for people."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tui_fs.model.units import (
    bytes_iec,
    call_time,
    clock,
    count,
    duration,
    duration_range,
    duration_span,
    more_or_less,
    parse_age,
    parse_size,
    percent_used,
    short_count,
    singular,
)


def test_a_difference_is_printed_without_a_sign() -> None:
    assert more_or_less(bytes_iec, 4096) == "4.0 KiB more"
    assert more_or_less(bytes_iec, -4096) == "4.0 KiB less"
    assert more_or_less(count, 0) == "0 more"


@pytest.mark.parametrize(
    ("plural", "text"),
    [
        ("entries", "entry"),
        ("open processes", "open process"),
        ("subdirs", "subdir"),
        ("free", "free"),
    ],
)
def test_a_label_has_a_singular(plural: str, text: str) -> None:
    assert singular(plural) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (999, "999"), (1000, "1,000"), (-1234567, "-1,234,567")]
)
def test_counts_have_thousands_separators(number: int, text: str) -> None:
    assert count(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (950.4, "950"),
        (999, "999"),
        (1000, "1,000"),
        (9_999, "9,999"),
        (10_000, "10.0 k"),
        (12_345, "12.3 k"),
        (123_456, "123 k"),
        (999_999, "1.00 M"),
        (1_000_000, "1.00 M"),
        (1_210_000, "1.21 M"),
        (15_000_000, "15.0 M"),
        (999_000_000, "999 M"),
        (1_000_000_000, "1.00 G"),
    ],
)
def test_short_counts_read_like_this(number: float, text: str) -> None:
    assert short_count(number) == text


@given(st.integers(0, 10**12))
@example(99_960)
@example(9_996_000)
@example(99_960_000)
def test_short_counts_keep_to_six_characters(number: int) -> None:
    assert len(short_count(number)) <= 6


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1048524, "1,023.9 KiB"),
        (1048575, "1.0 MiB"),
        (1 << 20, "1.0 MiB"),
        (812 << 20, "812.0 MiB"),
        (1 << 30, "1.0 GiB"),
        (3 << 40, "3.0 TiB"),
        (5 << 50, "5.0 PiB"),
        (1 << 60, "1.0 EiB"),
        (2000 << 60, "2,000.0 EiB"),
        (-1, "-1 B"),
        (-1023, "-1023 B"),
        (-1024, "-1.0 KiB"),
        (-1536, "-1.5 KiB"),
    ],
)
def test_sizes_have_iec_units_and_keep_their_sign(number: int, text: str) -> None:
    assert bytes_iec(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0:00"),
        (8.9, "0:08"),
        (59.6, "0:59"),
        (60, "1:00"),
        (751, "12:31"),
        (3599, "59:59"),
        (3600, "1:00:00"),
        (4351, "1:12:31"),
        (360_000, "100:00:00"),
    ],
)
def test_a_clock_shows_whole_seconds_that_have_passed(seconds: float, text: str) -> None:
    assert clock(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "<0.1 s"),
        (0.0949, "<0.1 s"),
        (0.095, "0.1 s"),
        (0.44, "0.4 s"),
        (9.94, "9.9 s"),
        (9.95, "10 s"),
        (59.6, "60 s"),
        (99.4, "99 s"),
        (99.5, "2 min"),
        (720, "12 min"),
        (3569, "59 min"),
        (3599, "1 h 00 min"),
        (4320, "1 h 12 min"),
        (172_700, "47 h 58 min"),
        (172_800, "2 d"),
    ],
)
def test_durations_round_to_what_an_estimate_is_worth(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (0.001, "1 %"), (0.21, "21 %"), (0.9901, "100 %"), (1.0, "100 %")],
)
def test_a_used_share_is_rounded_up(share: float, text: str) -> None:
    assert percent_used(share) == text


def test_a_span_of_times_that_read_alike_is_one_time() -> None:
    assert duration_span(8.0, 12.4) == "8.0 s to 12 s"
    # Not "<0.1 s to <0.1 s", which says no more
    assert duration_span(0.01, 0.09) == "<0.1 s"
    assert duration_span(12.1, 12.4) == "12 s"


def test_a_range_of_hours_fits_into_its_column() -> None:
    assert duration_range(8.0, 12.4) == "8.0 s–12 s"
    assert duration_range(41_940, 43_500) == "11.7 h–12.1 h"
    assert duration_range(2_400, 4_200) == "40 min–1.2 h"
    assert duration_range(43_500, 43_510) == "12.1 h"
    ends_s = [1.3**power for power in range(-12, 71)]  # to three years
    assert max(len(duration_range(low, high)) for low in ends_s for high in ends_s) <= 15


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("512", 512),
        ("10k", 10_240),
        ("10K", 10_240),
        ("10kb", 10_240),
        ("1M", 1 << 20),
        ("2GiB", 2 << 30),
        ("3 T", 3 << 40),
        (" 4p ", 4 << 50),
        ("8191P", 8191 << 50),
    ],
)
def test_sizes_are_read_in_powers_of_1024(text: str, number: int) -> None:
    assert parse_size(text) == number


@pytest.mark.parametrize(
    "text",
    ["", "k", "-1", "+1", "1.5M", "1e3", "1x", "1 k B", "1i", "٣", "0x10", "8192P", "9" * 30],
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0s", 0),
        ("90s", 90),
        ("15m", 900),
        ("12h", 43_200),
        ("30d", 2_592_000),
        ("30D", 2_592_000),
        ("2w", 1_209_600),
        (" 2 w ", 1_209_600),
    ],
)
def test_ages_are_read_with_their_unit(text: str, seconds: int) -> None:
    assert parse_age(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "1.5h", "1y", "1d2h", "٣d", "9" * 30 + "w"])
def test_what_is_no_age_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_age(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (4.14e-6, "4.1 µs"),
        (9.96e-6, "10 µs"),
        (999.6e-6, "1.0 ms"),
        (0.25, "250 ms"),
        (70, "70.0 s"),
    ],
)
def test_times_of_calls_have_their_unit(seconds: float, text: str) -> None:
    assert call_time(seconds) == text
