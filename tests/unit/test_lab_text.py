"""A run on a terminal, line by line."""

import pytest

from tests.unit.lab_results import (
    HOSTILE,
    full_experiment,
    full_results,
    plan,
    results_of,
    showing,
)
from tui_fs.cli.lab_text import curves_as_text, exhibits_as_text, run_as_text
from tui_fs.lab.exhibits import Bar, Bars, Curves, Exhibit, Flame, Flames, Line, Point, Row, Table
from tui_fs.lab.view_model import PUBLISHED_LABEL, exhibits_of


def _text(*exhibits: Exhibit, width: int = 80) -> str:
    return exhibits_as_text(exhibits, width)


def test_claims_carry_their_verdicts() -> None:
    # given
    exhibits = exhibits_of(full_experiment(), full_results(), "/nonexistent")

    # when
    text = _text(exhibits[0])

    # then
    assert text.split("\n") == [
        "Claims   ✓ 1   ✗ 1   – 1",
        "✓ holds here: rm makes one call a file.",
        "    published: 1,000 unlinkat",
        "    here:      1,000",
        "✗ does not hold here: rsync is faster than rm.",
        "    published: a little",
        "    here:      rm 1.00 s, rsync 1.70 s",
        "– cannot be tested here: It was always so.",
        "    published: supposed",
        "    why:       toybox rm: toybox is not installed",
    ]


def test_a_whole_run_fits_the_width() -> None:
    # given
    experiment, results = full_experiment(), full_results()
    exhibits = exhibits_of(experiment, results, "/nonexistent")

    # when
    text = run_as_text(experiment, results, exhibits, "by-hand-1", 80)

    # then
    assert max(len(line) for line in text.split("\n")) <= 80
    assert "- A note." in text
    assert text.endswith("Run by-hand-1: done after 12 s")


def test_a_table_that_is_too_wide_is_told_in_blocks() -> None:
    # given
    rows = (Row(("rm", "1", "2", "3")), Row(("toybox", "", "", ""), "not installed"))

    # when
    text = _text(Table("t", ("", "a" * 12, "b" * 12, "c" * 12), rows, "a remark"), width=36)

    # then
    assert text.split("\n") == [
        "t",
        "        aaaaaaaaaaaa  bbbbbbbbbbbb",
        "rm                 1             2",
        "toybox  (not installed)",
        "",
        "        cccccccccccc",
        "rm                 3",
        "toybox",
        "a remark",
    ]


def test_a_block_has_no_published_row_without_a_figure() -> None:
    # given
    rows = (Row(("rm", "1", "2")), Row((PUBLISHED_LABEL, "3", "")))

    # when
    text = _text(Table("t", ("", "a" * 20, "b" * 20), rows), width=36)

    # then
    assert text.count("published") == 1
    assert text.split("\n")[-1].split() == ["rm", "2"]


def test_calls_stand_side_by_side_where_there_is_room() -> None:
    # given
    calls = exhibits_of(full_experiment(), full_results(), "/nonexistent")[4]

    # when
    wide, narrow = _text(calls, width=130).split("\n"), _text(calls, width=80).split("\n")

    # then
    assert wide[1].split("    ")[0] == "rm, 1,000 files" and wide[1].endswith("rsync, 1,000 files")
    assert wide[3].split()[0] == "unlinkat" and "lstat" in wide[3]
    assert "rsync, 1,000 files" in narrow


def test_bars_are_drawn_in_eighths_with_the_published_ones_below() -> None:
    # given
    bars = (
        Bar("rm", 4.0, 4.0, 4.0, "4.00 s", 2.0, "2.00 s"),
        Bar("rsync", 1.0, 0.5, 1.5, "1.00 s"),
    )

    # when
    title, rm, published, rsync = _text(Bars("Time", "seconds", bars, False)).split("\n")

    # then
    assert title == "Time"
    assert rm.startswith("rm     █") and rm.endswith(" 4.00 s")
    assert published.strip().startswith("░") and published.endswith(" 2.00 s published")
    assert rsync.endswith(" 1.00 s (500 ms–1.50 s)")
    assert published.count("░") == pytest.approx(rm.count("█") / 2, abs=1)
    assert rsync.count("█") == pytest.approx(rm.count("█") / 4, abs=1)


def test_logarithmic_bars_say_so() -> None:
    # given
    bars = tuple(Bar("b", one, one, one, "x") for one in (1.0, 10.0, 100.0))

    # when
    title, *lines = _text(Bars("Time", "seconds", bars, True)).split("\n")

    # then
    assert title == "Time (logarithmic)"
    short, middle, long = (line.count("█") for line in lines)
    assert 0 < short < middle < long
    assert middle - short == pytest.approx(long - middle, abs=1)


def _curves(*, is_log: bool = True) -> Curves:
    lines = tuple(
        Line(name, tuple(Point(x, x * by, x * by, x * by) for x in (10.0, 1_000.0, 100_000.0)))
        for name, by in (("rm", 1e-5), ("rsync", 5e-5))
    )
    return Curves("Growth", "files", "seconds", lines, is_log, is_log)


@pytest.mark.parametrize("is_log", [True, False])
def test_curves_are_drawn_without_colours(is_log: bool) -> None:
    # when
    text = curves_as_text(_curves(is_log=is_log), 80)

    # then
    assert "\x1b" not in text
    assert max(len(line) for line in text.split("\n")) <= 80
    assert text.count("●") > 1 and text.count("▲") > 1  # the key has one of each
    assert ("files, logarithmic" in text) is is_log
    assert "● rm   ▲ rsync" in text


def test_a_drawing_does_not_remember_the_one_before() -> None:
    # given
    alone = curves_as_text(_curves(), 80)

    # when
    curves_as_text(Curves("o", "x", "y", (Line("o", (Point(1, 1, 1, 1),)),), False, False), 40)

    # then
    assert curves_as_text(_curves(), 80) == alone


def test_flames_are_indented_and_cut() -> None:
    # given
    rows = (Flame("main", 10.0, 100.0, 0), Flame("x" * 100, 90.0, 90.0, 1))

    # when
    lines = _text(Flames("Where", rows, "10 samples"), width=40).split("\n")

    # then
    assert lines[2] == "100.0 %   10 %  main"
    assert lines[3].startswith(" 90.0 %   90 %    xxx") and len(lines[3]) == 40
    assert lines[4] == "10 samples"


def test_nothing_moves_the_cursor() -> None:
    # given
    results = results_of([plan("rm", HOSTILE)], notes=(HOSTILE,), experiment=HOSTILE)
    exhibits: tuple[Exhibit, ...] = (
        Table(HOSTILE, ("", "x"), (Row((HOSTILE, "1"), HOSTILE),), HOSTILE),
        Flames("f", (Flame(HOSTILE, 1, 1, 0),), HOSTILE),
        Bars("b", "u", (Bar(HOSTILE, 1, 1, 1, "1"),), False),
    )

    # when
    text = run_as_text(showing(source=HOSTILE), results, exhibits, HOSTILE, 80)

    # then
    assert text.replace("\n", "").isprintable()
