"""The page of a run: well-formed, escaped, and drawn as the figures say."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.lab_results import (
    FLAME_FILE,
    HOSTILE,
    STACKS,
    full_experiment,
    full_results,
    plan,
    results_of,
    showing,
)
from tui_fs.lab.exhibits import Bar, Bars, Row, Table, exhibits_of
from tui_fs.lab.experiment import TableView
from tui_fs.lab.page import page
from tui_fs.lab.results import Ending, Machine, Measure, RunEnded

_VOID = frozenset({"meta", "link", "br"})


class _Reader(HTMLParser):
    """Collects what a browser would: elements, their attributes and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.text += data


def _read(content: str) -> _Reader:
    reader = _Reader()
    reader.feed(content)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture
def content(tmp_path: Path) -> str:
    """A page with an exhibit of every kind."""
    (tmp_path / FLAME_FILE).write_text(STACKS)
    experiment, results = full_experiment(), full_results()
    return page(experiment, results, exhibits_of(experiment, results, str(tmp_path)), "run-1")


def test_the_page_has_everything(content: str) -> None:
    text = _read(content).text
    for words in (
        "Made by hand", "What does it show?", "somebody's page, 2018", "run-1", "2023-11-1",
        "✓ holds here", "✗ does not hold here", "– cannot be tested here",
        "toybox is not installed", "rm-1000 -rf tree", "timed 3 times", "rm (GNU) 9.7",
        "6.12.1", "a processor, 2 usable", "4.0 GiB", "A note.", "Counted by strace.",
        "unlink (c.py)", "60.0 %",
    ):  # fmt: skip
        assert words in text, words


def test_the_page_needs_nothing_else(content: str) -> None:
    reader = _read(content)
    assert not {"script", "img", "iframe", "object", "embed"} & {*reader.tags}
    assert ("href", "data:,") in reader.attributes
    for name, value in reader.attributes:
        assert not name.startswith("on")
        if name in ("src", "href"):
            assert "http" not in value and "//" not in value
    assert "url(" not in content and "@import" not in content
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'; img-src data:") in (
        reader.attributes
    )


def test_a_run_without_an_end_or_with_a_bad_one_says_so() -> None:
    experiment = showing()
    cancelled = RunEnded(Ending.FAILED, 3.0, "no <room>")
    assert "has no end" in page(experiment, results_of([], ended=None), ())
    assert "failed: no &lt;room&gt;" in page(experiment, results_of([], ended=cancelled), ())
    assert "has no end" not in page(experiment, results_of([]), ())


def test_hostile_words_stay_words() -> None:
    machine = Machine(HOSTILE, HOSTILE, 2, 1 << 30, HOSTILE, {"rm": HOSTILE, HOSTILE: "x"})
    plans = [plan("rm", HOSTILE, commands=(HOSTILE,), tree=HOSTILE, why_not=HOSTILE)]
    results = results_of(plans, notes=(HOSTILE,), machine=machine)
    experiment = showing(TableView(HOSTILE, ("rm",), (Measure.SECONDS,)), source=HOSTILE)
    benign = results_of([plan("rm", "x", why_not="x")], notes=("x",))
    bars, plain_bars = (_drawn(word, Bar(word, 1, 1, 1, word, 2, word)) for word in (HOSTILE, "x"))
    tables = exhibits_of(experiment, results, "/nonexistent")
    content = page(experiment, results, (*tables, bars), HOSTILE)
    reader = _read(content)
    plain = page(
        showing(TableView("x", ("rm",), (Measure.SECONDS,)), source="x"),
        benign,
        (*exhibits_of(showing(*experiment.views(results)), benign, ""), plain_bars),
        "x",
    )
    assert [tag for tag in reader.tags if tag not in ("title", "div", "dt", "dd")] == [
        row for row in _read(plain).tags if row not in ("title", "div", "dt", "dd")
    ]
    assert content.replace("\n", "").isprintable()
    assert "<b>" in reader.text and "\\x00" in reader.text and "\\u202e" in reader.text


def _elements(content: str, kind: str) -> list[str]:
    """Return the style of each element of a class."""
    return re.findall(rf'<div class="{kind}" style="([^"]*)"', content)


def _drawn(words: str, *bars: Bar, is_log: bool = False) -> Table:
    """Return a table with bars."""
    return Table(words, ("", words), (Row((words, words)),), "", Bars(words, bars, is_log))


def _page_of(*tables: Table) -> str:
    return page(showing(), results_of([]), tables)


def test_every_figure_has_its_mark(content: str) -> None:
    assert [len(_elements(content, kind)) for kind in ("length", "whisker", "mark")] == [6, 6, 2]


def test_bars_are_as_long_as_their_figures() -> None:
    bars = (Bar("", seconds, seconds, seconds, "") for seconds in (1.0, 2.0, 4.0))
    lengths = [
        float(style.removeprefix("width:").removesuffix("%"))
        for style in _elements(_page_of(_drawn("b", *bars)), "length")
    ]
    assert lengths[1] == pytest.approx(2 * lengths[0], abs=0.1)
    assert lengths[2] == pytest.approx(4 * lengths[0], abs=0.1)


_VALUES = st.floats(0, 1e12)


@given(st.lists(st.tuples(_VALUES, _VALUES, st.none() | _VALUES), max_size=6), st.booleans())
def test_any_figures_can_be_drawn(
    values: list[tuple[float, float, float | None]], is_log: bool
) -> None:
    bars = tuple(Bar("b", value, value, max(value, two), "1", p, "2") for value, two, p in values)
    content = _page_of(_drawn("b", *bars, is_log=is_log))
    for style in _elements(content, "(?:length|whisker|mark)"):
        for share in re.findall(r":([^;%]+)%", style):
            assert 0 <= float(share) <= 100
    assert len(_elements(content, "length")) == len(values)
