"""The page of a run: well-formed, escaped, and drawn as the figures say."""

import math
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

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
from tui_fs.lab.axis import bars_axis, points_axis
from tui_fs.lab.drawing import bars_svg, curves_svg
from tui_fs.lab.exhibits import Bar, Bars, Curves, Line, Point
from tui_fs.lab.experiment import TableView
from tui_fs.lab.page import page
from tui_fs.lab.results import Ending, Machine, Measure, RunEnded
from tui_fs.lab.view_model import exhibits_of

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


def _svgs(content: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(one) for one in re.findall(r"<svg.*?</svg>", content, re.S)]


def _marks(svg: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [one for one in svg.iter() if kind in one.get("class", "").split()]


def test_the_page_tells_everything(content: str) -> None:
    # when
    told = _read(content).text

    # then
    for words in (
        "Made by hand", "What does it show?", "somebody's page, 2018", "run-1", "2023-11-1",
        "✓ holds here", "✗ does not hold here", "– cannot be tested here",
        "toybox is not installed", "rm-1000 -rf tree", "timed 3 times", "rm (GNU) 9.7",
        "6.12.1", "a processor, 2 available", "4.0 GiB", "A note.", "Counted by strace.",
        "unlink (c.py)", "60.0 %",
    ):  # fmt: skip
        assert words in told, words


def test_the_page_needs_nothing_else(content: str) -> None:
    # when
    reader = _read(content)

    # then
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


def test_every_plot_is_well_formed_and_has_a_name(content: str) -> None:
    # when
    svgs = _svgs(content)

    # then
    assert len(svgs) == 2
    for one in svgs:
        assert one.get("role") == "img"
        assert one.get("aria-label")
    assert "Time for 100,000 files: rm, 10 files" in (svgs[0].get("aria-label") or "")


def test_every_figure_has_its_mark(content: str) -> None:
    # when
    bars, curves = _svgs(content)

    # then
    assert len(_marks(bars, "bar")) == 6
    assert len(_marks(bars, "whisker")) == 6
    assert len(_marks(bars, "published")) == 2
    assert len(_marks(curves, "point")) == 6
    assert len(_marks(curves, "spread")) == 6
    assert len(_marks(curves, "line")) == 2
    assert len(_marks(curves, "key")) == 2


def test_a_run_without_an_end_or_with_a_bad_one_says_so() -> None:
    # given
    experiment = showing()
    cancelled = RunEnded(Ending.FAILED, 3.0, "no <room>")

    # then
    assert "has no end" in page(experiment, results_of([], ended=None), ())
    assert "failed: no &lt;room&gt;" in page(experiment, results_of([], ended=cancelled), ())
    assert "has no end" not in page(experiment, results_of([]), ())


def test_hostile_words_stay_words() -> None:
    # given
    machine = Machine(HOSTILE, HOSTILE, 2, 1 << 30, HOSTILE, {"rm": HOSTILE, HOSTILE: "x"})
    plans = [plan("rm", HOSTILE, commands=(HOSTILE,), tree=HOSTILE, why_not=HOSTILE)]
    results = results_of(plans, notes=(HOSTILE,), machine=machine)
    experiment = showing(TableView(HOSTILE, ("rm",), (Measure.SECONDS,)), source=HOSTILE)
    benign = results_of([plan("rm", "x", why_not="x")], notes=("x",))
    bars = Bars(HOSTILE, HOSTILE, (Bar(HOSTILE, 1, 1, 1, HOSTILE, 2, HOSTILE),), False)
    curves = Curves(HOSTILE, HOSTILE, HOSTILE, (Line(HOSTILE, (Point(1, 1, 1, 1),)),), True, True)
    plain_bars = Bars("x", "x", (Bar("x", 1, 1, 1, "x", 2, "x"),), False)
    plain_curves = Curves("x", "x", "x", (Line("x", (Point(1, 1, 1, 1),)),), True, True)
    tables = exhibits_of(experiment, results, "/nonexistent")

    # when
    content = page(experiment, results, (*tables, bars, curves), HOSTILE)
    reader = _read(content)
    plain = page(
        showing(TableView("x", ("rm",), (Measure.SECONDS,)), source="x"),
        benign,
        (*exhibits_of(showing(*experiment.views(results)), benign, ""), plain_bars, plain_curves),
        "x",
    )

    # then
    assert [one for one in reader.tags if one not in ("title", "div", "dt", "dd")] == [
        one for one in _read(plain).tags if one not in ("title", "div", "dt", "dd")
    ]
    assert content.replace("\n", "").isprintable()
    assert len(_svgs(content)) == 2
    assert "<b>" in reader.text and "\\x00" in reader.text and "\\u202e" in reader.text


_FIGURES = st.floats(1e-9, 1e15)


@given(values=st.lists(_FIGURES, min_size=1, max_size=8), is_log=st.booleans())
def test_positions_rise_with_the_values(values: list[float], is_log: bool) -> None:
    for axis in (points_axis(values, is_log=is_log), bars_axis(values, is_log=is_log)):
        # when
        places = [axis.position(one) for one in sorted(values)]

        # then
        assert places == sorted(places)
        assert all(0 <= one <= 1 for one in places)
        ticks = axis.ticks()
        assert len(ticks) >= 2
        assert list(ticks) == sorted({*ticks})
        assert all(axis.low <= one <= axis.high for one in ticks)


@given(st.floats(1e-6, 1e6), st.floats(1.1, 100.0))
def test_equal_ratios_are_equal_lengths_on_a_logarithmic_axis(low: float, ratio: float) -> None:
    # given
    axis = points_axis([low, low * ratio**2], is_log=True)

    # when
    first, middle, last = (axis.position(low * ratio**power) for power in range(3))

    # then
    assert middle - first == pytest.approx(last - middle)
    assert first < middle


def test_a_logarithmic_axis_shows_decades() -> None:
    assert points_axis([3.0, 30_000.0], is_log=True).ticks() == (10.0, 100.0, 1_000.0, 10_000.0)
    assert points_axis([11.0, 45.0], is_log=True).ticks() == (10.0, 20.0, 50.0)


def test_an_even_axis_begins_at_zero() -> None:
    assert points_axis([3.0, 9.0], is_log=False).ticks() == (0.0, 2.0, 4.0, 6.0, 8.0)


def test_bars_are_as_long_as_their_figures() -> None:
    # given
    bars = Bars("b", "seconds", tuple(Bar("", one, one, one, "") for one in (1.0, 2.0, 4.0)), False)

    # when
    (svg,) = _svgs(bars_svg(bars))
    lengths = [float(one.get("width") or 0) for one in _marks(svg, "bar")]

    # then
    assert lengths[1] == pytest.approx(2 * lengths[0], abs=0.2)
    assert lengths[2] == pytest.approx(4 * lengths[0], abs=0.3)


def test_points_lie_where_their_figures_say() -> None:
    # given
    points = tuple(Point(x, x**2, x**2, x**2) for x in (1.0, 10.0, 100.0))
    curves = Curves("c", "x", "y", (Line("squares", points),), True, True)

    # when
    (svg,) = _svgs(curves_svg(curves))
    places = re.findall(r"[\d.]+ [\d.]+", _marks(svg, "line")[0].get("d") or "")
    (x0, y0), (x1, y1), (x2, y2) = (map(float, one.split()) for one in places)

    # then
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.2)
    assert y2 < y1 < y0


@given(
    st.lists(
        st.tuples(st.floats(0, 1e12), st.floats(0, 1e12), st.none() | st.floats(0, 1e12)),
        max_size=6,
    ),
    st.booleans(),
)
def test_any_figures_can_be_drawn(
    values: list[tuple[float, float, float | None]], is_log: bool
) -> None:
    # given
    bars = tuple(Bar("b", one, one, max(one, two), "1", p, "2") for one, two, p in values)
    points = tuple(Point(two, one, one, one) for one, two, _ in values)

    # when
    drawn = bars_svg(Bars("b", "u", bars, is_log)) + curves_svg(
        Curves("c", "x", "y", (Line("l", points),), is_log, is_log)
    )

    # then
    for svg in _svgs(drawn):
        for one in svg.iter():
            for name in ("x", "y", "x1", "x2", "y1", "y2", "width"):
                assert math.isfinite(float(one.get(name) or 0))
    assert drawn.count('class="bar"') == len(values)
    assert os.linesep in drawn


def test_a_long_label_is_cut_and_told_whole() -> None:
    # given
    long = "rm -rf " + "x" * 100

    # when
    (svg,) = _svgs(bars_svg(Bars("b", "u", (Bar(long, 1, 1, 1, "1 s"),), False)))
    (label,) = _marks(svg, "label")

    # then
    assert [one.text for one in label.iter("title")] == [long]
    assert "".join(label.itertext()).removeprefix(long).endswith("…")
