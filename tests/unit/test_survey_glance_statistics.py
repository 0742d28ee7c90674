"""The arithmetic of a first figure, compared with what can be worked out by hand."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_fs.survey.glance_statistics import (
    Sum,
    Sums,
    freedom_of,
    interval,
    student_95,
)
from tui_fs.survey.glance_strata import Pool, Stratum
from tui_fs.survey.glance_tree import Node, Root


def node() -> Node:
    """Make a directory that is never opened."""
    return Node(Root(b"/t", -1, 0, "ext"), b"d", None, 1, 4)


def holding(entries: float, is_sampled: bool = False) -> Sums:
    """Make what a directory of so many entries adds."""
    sums = Sums()
    sums.values[Sum.ENTRIES] = entries
    sums.seen[Sum.ENTRIES] = entries
    if is_sampled:
        sums.has_left_out()
    return sums


def stratum(
    waiting: int, read: list[float], weight: float = 1.0, is_sampled: bool = False
) -> Stratum:
    """Make a stratum of which some were read, all of a directory of `weight` times as many."""
    number = waiting + len(read)
    pool = Pool(node(), number * weight, [], looked=number)
    made = Stratum()
    for _ in range(number):
        made.add(node(), pool)
    for entries in read:
        made.draw(random.Random(1))
        made.read.append(holding(entries, is_sampled))
    return made


def test_a_stratum_read_to_its_end_is_exact() -> None:
    # Given three directories, all read / When estimated / Then their sum without any doubt
    sums = stratum(0, [1.0, 5.0, 100.0]).estimate()
    assert (sums.values[Sum.ENTRIES], sums.variances[Sum.ENTRIES]) == (106.0, 0.0)
    assert sums.is_exact
    assert interval(sums, Sum.ENTRIES).is_exact


def test_a_stratum_half_read_is_doubled_with_its_variance() -> None:
    # Given 2 of 4 read / When estimated / Then N * mean, and N^2 (1 - n/N) s^2 / n
    sums = stratum(2, [10.0, 20.0]).estimate()
    assert sums.values[Sum.ENTRIES] == 60.0
    assert sums.variances[Sum.ENTRIES] == pytest.approx(16 * 0.5 * 50 / 2)
    assert sums.margins[Sum.ENTRIES] == pytest.approx(0.5 * 4 * 20 / 3)
    assert not sums.is_exact


def test_all_drawn_but_only_sampled_below_keeps_its_variance() -> None:
    # Given all directories drawn, each estimated itself / Then no correction for finite numbers
    sums = stratum(0, [10.0, 20.0], is_sampled=True).estimate()
    assert sums.variances[Sum.ENTRIES] == pytest.approx(4 * 50 / 2)
    assert not sums.is_exact


def test_directories_not_looked_at_are_stood_for() -> None:
    # Given that one in ten was looked at / When all of those are read / Then ten times their sum
    sums = stratum(0, [10.0, 20.0], weight=10.0).estimate()
    assert sums.values[Sum.ENTRIES] == 300.0
    assert not sums.is_exact


def test_what_is_put_back_or_taken_back_counts_no_more() -> None:
    # Given a stratum / When one is drawn and put back, and one read taken back / Then as before
    made = stratum(3, [10.0, 20.0])
    made.draw(random.Random(1))
    made.put_back()
    assert (len(made.waiting), len(made.drawn), made.weight) == (3, 2, 5.0)
    made.take_back()
    assert (len(made.read), made.weight) == (1, 4.0)
    made.take()
    assert (len(made.waiting), made.weight) == (2, 3.0)


@given(st.lists(st.floats(0, 1e9), min_size=2, max_size=30), st.integers(0, 1_000_000))
def test_an_interval_is_in_order_and_not_below_what_was_seen(
    read: list[float], waiting: int
) -> None:
    # Given any sample / When the interval is taken / Then seen <= low <= expected <= high
    sums = stratum(min(waiting, 50), read).estimate()
    sums.add_unknown(float(waiting), 1.0)
    told = interval(sums, Sum.ENTRIES)
    assert math.floor(sums.seen[Sum.ENTRIES]) <= told.low <= told.expected <= told.high
    capped = interval(sums, Sum.ENTRIES, cap=sums.seen[Sum.ENTRIES] + 1)
    assert capped.low <= capped.expected <= capped.high <= math.ceil(sums.seen[Sum.ENTRIES] + 1)


def test_a_guess_above_the_cap_is_known_no_better() -> None:
    # Given a sum that was estimated higher than it can be
    sums = holding(0)
    sums.seen[Sum.ENTRIES], sums.values[Sum.ENTRIES] = 4_000, 62_000
    sums.vary(Sum.ENTRIES, 1_000.0**2, 1_000.0)
    free = interval(sums, Sum.ENTRIES)
    assert free.low > 60_000
    # Then its range reaches from the cap as far down as it did from the guess
    told = interval(sums, Sum.ENTRIES, cap=60_000)
    assert (told.expected, told.high) == (60_000, 60_000)
    assert told.expected - told.low == pytest.approx(free.expected - free.low, rel=0.1)


def test_what_rests_on_one_large_file_may_not_be_there() -> None:
    # Given bytes of which nine tenths are what one file of a directory read says of ten others
    read = Sums()
    read.values[Sum.ALLOCATED], read.seen[Sum.ALLOCATED] = 100.0, 20.0
    read.largest_bytes = 90.0
    whole = Sums()
    whole.add(read, 10.0)
    whole.vary(Sum.ALLOCATED, 100.0**2, 20.0)
    # When asked for the range / Then it reaches down to what is known without that file
    told = interval(whole, Sum.ALLOCATED)
    assert 20 < told.low <= 20 + 1_000 - 20 - 900
    # and where no file says that much, it does not
    whole.largest_bytes = 9.0
    assert interval(whole, Sum.ALLOCATED).low > 800


def test_a_directory_of_directories_does_not_tell_how_large_those_are() -> None:
    # Given a large directory that holds nothing but directories nobody has read
    whole = Sums()
    whole.values[Sum.ENTRIES] = whole.values[Sum.DIRECTORIES] = 1.0
    whole.values[Sum.ALLOCATED] = 4_000_000.0
    # When they are added / Then they do not each take as much
    whole.add_unknown(1_000_000.0, 100_000.0)
    assert whole.values[Sum.ALLOCATED] < 4_000_000 + 100_000 * 4_096


def test_levels_nobody_has_read_take_as_much_as_those_that_were() -> None:
    # Given a chain of 1,000 directories of a block each, of which more may come
    sums = holding(1_000.0)
    sums.values[Sum.DIRECTORIES], sums.values[Sum.ALLOCATED] = 1_000.0, 1_000 * 4_096.0
    # When as many again are expected / Then so are their blocks
    sums.add_unknown(1_000.0, 1_000.0)
    assert sums.values[Sum.ALLOCATED] == 2_000 * 4_096


def test_files_that_stand_for_many_count_as_few() -> None:
    # Given 100 files looked at of a directory of 100, and 100 of one of 1,000,000
    small, large, whole = Sums(), Sums(), Sums()
    small.files_stood_for, small.files_squared = 100.0, 100.0**2 / 100
    large.files_stood_for, large.files_squared = 1e6, 1e6**2 / 100
    # When each is alone / Then a hundred; when both are added, hardly more
    assert small.effective_files == large.effective_files == 100
    whole.add(small)
    whole.add(large)
    assert 100 < whole.effective_files < 101
    # And where each of them stands for as many, all of them
    whole.add(small, 10_000.0)
    assert 190 < whole.effective_files < 201
    # And none without any
    assert Sums().effective_files == 0


def test_what_is_only_guessed_may_be_twenty_times_as_much() -> None:
    # Given a chain of 100 and nobody knows how far it goes / Then it may well be 2,000
    sums = holding(100.0)
    sums.add_unknown(100.0, 1.0)
    told = interval(sums, Sum.ENTRIES)
    assert told.low < 130
    assert told.high >= 2_000


def test_few_values_that_make_up_a_variance_give_it_little_freedom() -> None:
    # Given one value far from a hundred others / Then its variance is known as badly as from two
    assert freedom_of([1.0, 2.0] * 50) == pytest.approx(99.0)
    assert freedom_of([1.0] * 99 + [1000.0]) < 2
    assert freedom_of([3.0, 3.0]) == 1.0


@pytest.mark.parametrize(("freedom", "t"), [(1, 6.31), (4, 2.13), (20, 1.725), (1e9, 1.645)])
def test_student(freedom: float, t: float) -> None:
    # Given degrees of freedom / Then the value of the tables
    assert student_95(freedom) == pytest.approx(t, rel=0.01)


def test_nine_of_ten_intervals_hold_the_truth_of_a_skewed_population() -> None:
    # Given a skewed population / When sampled again and again / Then the interval mostly holds it
    dice = random.Random(5)
    population = [math.floor(dice.lognormvariate(3, 1.2)) for _ in range(2_000)]
    inside = 0
    for _ in range(200):
        read = [float(one) for one in dice.sample(population, 60)]
        told = interval(stratum(2_000 - 60, read).estimate(), Sum.ENTRIES)
        inside += told.low <= sum(population) <= told.high
    assert inside >= 180
