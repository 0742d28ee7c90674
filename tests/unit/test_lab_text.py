"""A run on a terminal, line by line."""

import pytest
from rich.cells import cell_len

from tests.unit.lab_results import (
    HOSTILE,
    full_experiment,
    full_results,
    plan,
    results_of,
    showing,
)
from tui_fs.cli.lab import exhibits_as_text, run_as_text
from tui_fs.cli.wrapping import wrapped
from tui_fs.lab.exhibits import (
    Bar,
    Bars,
    Exhibit,
    Flame,
    Flames,
    Row,
    Table,
    exhibits_of,
)

CLAIMS, CALLS = 0, 2


def lines_of(*exhibits: Exhibit, width: int = 80) -> list[str]:
    return exhibits_as_text(exhibits, width).split("\n")


def test_claims_carry_their_verdicts() -> None:
    exhibits = exhibits_of(full_experiment(), full_results(), "/nonexistent")
    assert lines_of(exhibits[CLAIMS]) == [
        "Claims   ✓ 1   ✗ 1   – 1",
        "✓ holds here: rm makes one call a file.",
        "    published:  1,000 unlinkat",
        "    here:       1,000",
        "✗ does not hold here: rsync is faster than rm.",
        "    published:  a little",
        "    here:       rm 1.00 s, rsync 1.70 s",
        "– cannot be tested here: It was always so.",
        "    published:  supposed",
        "    why:        toybox rm: toybox is not installed",
    ]


def test_a_whole_run_fits_the_width() -> None:
    experiment, results = full_experiment(), full_results()
    exhibits = exhibits_of(experiment, results, "/nonexistent")
    text = run_as_text(experiment, results, exhibits, "by-hand-1", 80)
    assert max(map(cell_len, wrapped(text, 80).split("\n"))) <= 80
    assert "- A note." in text
    assert text.endswith("Run by-hand-1: done after 12 s")


def test_a_table_has_its_title_above_and_its_remark_below() -> None:
    rows = (Row(("rm", "1")), Row(("toybox", ""), "not installed"))
    assert lines_of(Table("t", ("", "aaaa"), rows, "a remark")) == [
        "t", "        aaaa", "rm         1", "toybox", "  not installed", "a remark",
    ]  # fmt: skip


def test_calls_are_side_by_side() -> None:
    calls = exhibits_of(full_experiment(), full_results(), "/nonexistent")[CALLS]
    _, names, _, first, *rest = lines_of(calls, width=80)
    assert names.split("│")[1].strip() == "rm, 1,000 files"
    assert names.split("│")[2].strip() == "rsync, 1,000 files"
    assert first.split()[0] == "unlinkat"
    assert any(line.startswith("lstat") for line in rest)


@pytest.mark.parametrize("is_log", [True, False])
def test_bars_are_as_long_as_their_figures_say(is_log: bool) -> None:
    bars = tuple(Bar("b", n, n, n, "x") for n in (1.0, 10.0, 100.0))
    table = Table("Time", ("", "seconds"), (), bars=Bars("seconds", bars, is_log))
    _, _, _, caption, *lines, _ = lines_of(table)
    assert caption == ("seconds (logarithmic)" if is_log else "seconds")
    short, middle, long = (line.count("█") for line in lines)
    assert middle - short == pytest.approx((long - middle) if is_log else long / 10, abs=1.5)


def test_flames_are_indented_and_cut() -> None:
    rows = (Flame("main", 10.0, 100.0, 0), Flame("x" * 100, 90.0, 90.0, 1))
    title, _, main, callee, remark = lines_of(Flames("Where", rows, "10 samples"), width=60)
    assert (title, remark) == ("Where", "10 samples")
    assert main.split() == ["100.0", "%", "10.0", "%", "█" * 16, "main"]
    assert callee.endswith("▍     xxxxxxxxxxxxxxxxxxxxx…") and len(callee) <= 60


def test_nothing_moves_the_cursor() -> None:
    results = results_of([plan("rm", HOSTILE)], notes=(HOSTILE,), experiment=HOSTILE)
    bars = Bars(HOSTILE, (Bar(HOSTILE, 1, 1, 1, "1"),), False)
    exhibits: tuple[Exhibit, ...] = (
        Table(HOSTILE, ("", "x"), (Row((HOSTILE, "1"), HOSTILE),), HOSTILE, bars),
        Flames("f", (Flame(HOSTILE, 1, 1, 0),), HOSTILE),
    )
    text = run_as_text(showing(source=HOSTILE), results, exhibits, HOSTILE, 80)
    assert text.replace("\n", "").isprintable()
