"""Filters that a person types, and filters in words."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_fs.model.filter_text import SYNTAX, in_words, parse_filters, typed_glob
from tui_fs.model.strategy import Filters, Share

NOW_S = 1_700_000_000.75
DAY_S = 86_400


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("", Filters()),
        ("  ", Filters()),
        ("*.log", Filters(name_glob="*.log")),
        ("-x", Filters(name_glob="-x")),
        (r"\*.log", Filters(name_glob=r"\*.log")),
        ("'* copy*'", Filters(name_glob="* copy*")),
        ('">5d"', Filters(name_glob=">5d")),
        ("it's.log", Filters(name_glob="it's.log")),
        (">100M", Filters(min_size_bytes=100 << 20)),
        ("> 2GiB", Filters(min_size_bytes=2 << 30)),
        (">0B", Filters(min_size_bytes=0)),
        ("<1k", Filters(size_below_bytes=1024)),
        (">30d", Filters(modified_before_s=1_700_000_000 - 30 * DAY_S)),
        ("<2h", Filters(modified_after_s=1_700_000_000 - 7200)),
        (">15min", Filters(modified_before_s=1_700_000_000 - 900)),
        (">1W", Filters(modified_before_s=1_700_000_000 - 7 * DAY_S)),
        (
            "*.log >1k <1M >1d <2d",
            Filters("*.log", 1024, 1 << 20, 1_700_000_000 - DAY_S, 1_700_000_000 - 2 * DAY_S),
        ),
    ],
)
def test_a_line_is_read_as_filters(text: str, filters: Filters) -> None:
    assert parse_filters(text, NOW_S) == filters


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (">30", "'>30' needs a unit, for example >30M or >30d."),
        (">15m", "'>15m' can mean minutes or MiB; write >15min or >15M."),
        (">", "'>' is not a size or an age; write a number and a unit, as in >100M or >30d."),
        (">=5M", "'>=5M' is not a size or an age; write a number and a unit, as in >100M or >30d."),
        (">5x", "'5x' is not a size; write for example 512, 10k, 1M or 2GiB."),
        (">99999999P", "'99999999P' is larger than any file can be."),
        (">99999d", "'>99999d' is older than any file can be."),
        ("a b", "'b' is a second name; only one is possible."),
        (">1M >2M", "'>2M' is a second limit of this kind; only one is possible."),
        (">2M <1M", "These limits exclude each other: no file can match."),
        (">2d <1d", "These limits exclude each other: no file can match."),
        ("-name *.log", "Leave out -name; write only the value, for example *.log >100M >30d."),
        ("'open", "A quote is not closed."),
        ("''", "An empty pattern matches no name."),
        ("/var/*.log", "'/var/*.log' contains a slash, but the pattern is compared with names"),
    ],
)
def test_a_bad_line_is_refused_with_one_sentence(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)) as error:
        parse_filters(text, NOW_S)
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)


@given(st.text(alphabet="<>0123456789kMGdhmin*'\" \\./-a\0", max_size=20))
def test_no_line_fails_in_another_way(text: str) -> None:
    try:
        filters = parse_filters(text, NOW_S)
    except ValueError as error:
        assert str(error).endswith(".")
    else:
        assert bool(in_words(filters)) == filters.active


@pytest.mark.parametrize("glob", ["*.log", "* copy*", ">5d", "'x'", "-name", "it's", "a  b", "<'"])
def test_a_pattern_is_typed_so_that_it_is_read_back(glob: str) -> None:
    assert parse_filters(typed_glob(glob), NOW_S) == Filters(name_glob=glob)


def test_filters_are_put_into_words_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    filters = parse_filters("*.log >1500k <3G >30d", NOW_S)
    assert in_words(filters, NOW_S + 60) == (
        "*.log, 1,500 KiB or larger, smaller than 3 GiB, "
        "not modified since 2023-10-15 22:13:20 (30 days ago)"
    )
    assert in_words(parse_filters("<2h", NOW_S)) == "modified after 2023-11-14 20:13:20"
    assert in_words(Filters(min_size_bytes=1025)) == "1,025 B or larger"
    assert in_words(Filters(name_glob="\x1b\n")) == r"\e\n"
    assert in_words(Filters(modified_before_s=-(1 << 62))).startswith("not modified since -")
    assert in_words(Filters(share=Share(1, 2))) == ""


def test_the_help_has_only_valid_examples() -> None:
    for line in SYNTAX:
        for word in line.split("  ")[0].split():
            assert parse_filters(word, NOW_S).active
        assert len(line) <= 78
