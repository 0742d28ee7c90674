"""What a run shows."""

import os
import tempfile

from tests.unit.lab_results import (
    FLAME_FILE,
    HOSTILE,
    STACKS,
    full_experiment,
    full_results,
    judged_verdicts,
    plan,
    results_of,
    showing,
)
from tui_fs.lab.exhibits import Bars, Calls, Claims, Curves, Flames, Row, Table
from tui_fs.lab.experiment import (
    BarsView,
    CallsView,
    Claim,
    CurveView,
    FlameView,
    Published,
    PublishedCalls,
    RatiosView,
    TableView,
    judged,
)
from tui_fs.lab.results import FileState, Measure
from tui_fs.lab.view_model import PUBLISHED_LABEL, exhibits_of
from tui_fs.model.calls import CallCount

_NO_FOLDER = "/nonexistent"


def test_claims_come_first_then_the_views_in_their_order() -> None:
    # given
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, FLAME_FILE), "w", encoding="utf-8") as file:
            file.write(STACKS)

        # when
        exhibits = exhibits_of(full_experiment(), full_results(), folder)

    # then
    assert [type(one) for one in exhibits] == [Claims, Table, Bars, Curves, Calls, Flames]
    claims = exhibits[0]
    assert isinstance(claims, Claims)
    assert tuple(one.verdict for one in claims.claims) == judged_verdicts()
    assert "not installed" in claims.claims[2].why


def test_a_table_tells_median_and_span_and_sets_the_published_figure_below() -> None:
    # given
    experiment = showing(
        TableView("t", ("rm", "rsync"), (Measure.SECONDS, Measure.CALLS)),
        published=(Published("rm", Measure.SECONDS, 0.201, "rm of 2018"),),
    )
    results = results_of([plan("rm"), plan("rsync")], {"rm": [0.010, 0.014, 0.011], "rsync": [2]})

    # when
    (table,) = exhibits_of(experiment, results, _NO_FOLDER)

    # then
    assert isinstance(table, Table)
    assert table.columns == ("", "seconds", "system calls")
    assert table.rows == (
        Row(("rm", "11.0 ms (10.0–14.0)", "")),
        Row((PUBLISHED_LABEL, "201 ms", "")),
        Row(("rsync", "2.00 s", "")),
    )
    assert "rm of 2018" in table.remark
    assert "small run" not in table.remark


def test_ratios_are_of_the_medians_and_the_first_row_is_one() -> None:
    # given
    rows = (("rm", ("rm-1", "rm-2")), ("other", ("x-1", "x-2")), ("absent", ("y-1", "y-2")))
    experiment = showing(RatiosView("r", ("one", "two"), rows))
    plans = [plan(key) for _, keys in rows for key in keys]
    seconds = {"rm-1": [2.0, 9.0, 4.0], "rm-2": [1.0], "x-1": [1.0, 8.0, 2.0], "y-2": []}
    results = results_of(plans, seconds, failed={"y-1": "it is not there"})

    # when
    (table,) = exhibits_of(experiment, results, _NO_FOLDER)

    # then
    assert isinstance(table, Table)
    assert table.columns == ("", "one", "two")
    assert table.rows == (
        Row(("seconds", "4.00 s", "1.00 s")),
        Row(("rm", "1.00", "1.00")),
        Row(("other", "0.50", "")),
        Row(("absent", "", ""), "it is not there"),
    )


def test_a_small_run_says_that_published_figures_may_be_of_larger_trees() -> None:
    # given
    published = (Published("rm", Measure.SECONDS, 0.201),)
    views = (TableView("t", ("rm",), (Measure.SECONDS,)), BarsView("b", ("rm",), Measure.SECONDS))
    results = results_of([plan("rm")], {"rm": [0.010]}, scale="small")

    # when
    table, bars = exhibits_of(showing(*views, published=published), results, _NO_FOLDER)
    (plain, _) = exhibits_of(showing(*views), results, _NO_FOLDER)

    # then
    assert isinstance(table, Table) and "small run" in table.remark
    assert isinstance(bars, Bars) and "larger trees" in bars.remark
    assert isinstance(plain, Table) and plain.remark == ""


def test_a_step_that_was_not_done_says_why_in_its_row() -> None:
    # given
    keys = ("toybox", "failed", "later", "unknown")
    experiment = showing(TableView("t", keys, (Measure.SECONDS,)))
    plans = [plan("toybox", why_not="toybox is not installed"), plan("failed"), plan("later")]
    failed = {"failed": "it ended with \x1b"}

    # when
    (over,) = exhibits_of(experiment, results_of(plans, failed=failed), _NO_FOLDER)
    (running,) = exhibits_of(experiment, results_of(plans, ended=None), _NO_FOLDER)

    # then
    assert isinstance(over, Table) and isinstance(running, Table)
    assert [one.note for one in over.rows] == [
        "toybox is not installed",
        "it ended with \\e",
        "not run",
    ]
    assert running.rows[2].note == "not yet run"


def test_what_was_done_in_part_is_said_to_be_extrapolated() -> None:
    # given
    experiment = showing(TableView("t", ("exec",), (Measure.SECONDS,)))
    results = results_of([plan("exec", "find -exec", share=0.02)], {"exec": [1.0]})

    # when
    (table,) = exhibits_of(experiment, results, _NO_FOLDER)

    # then
    assert isinstance(table, Table)
    assert table.rows[0].cells == ("find -exec", "50.0 s")
    assert "find -exec: extrapolated from 2 % of the work." in table.remark


def test_bars_are_grouped_and_logarithmic_over_a_ratio_of_fifty() -> None:
    # given
    plans = [plan("a", series="one"), plan("b", series="two"), plan("c", series="one"), plan("d")]
    view = BarsView("b", ("a", "b", "c", "d"), Measure.SECONDS)

    # when
    (wide,) = exhibits_of(
        showing(view), results_of(plans, {"a": [1.0], "b": [51.0], "c": [2.0, 3.0]}), _NO_FOLDER
    )
    (narrow,) = exhibits_of(showing(view), results_of(plans, {"a": [1.0], "b": [50.0]}), _NO_FOLDER)

    # then
    assert isinstance(wide, Bars) and isinstance(narrow, Bars)
    assert [one.label for one in wide.bars] == ["a", "c", "b"]
    assert (wide.bars[1].median, wide.bars[1].least, wide.bars[1].most) == (2.5, 2.0, 3.0)
    assert wide.bars[1].shown == "2.50 s"
    assert wide.is_log and not narrow.is_log


def test_a_curve_has_a_line_for_each_series_by_x_and_nothing_that_has_no_place() -> None:
    # given
    plans = [
        plan("late", series="rm", x=100.0),
        plan("early", series="rm", x=10.0),
        plan("zero", series="rm", x=0.0),
        plan("other", series="rsync", x=10.0),
        plan("empty", series="find", x=10.0),
    ]
    keys = tuple(one.key for one in plans)
    seconds = {key: [1.0, 2.0, 4.0] for key in keys if key != "empty"}
    results = results_of(plans, seconds)

    # when
    logarithmic, even = exhibits_of(
        showing(
            CurveView("c", keys, Measure.SECONDS, "files"),
            CurveView("c", keys, Measure.SECONDS, "files", has_log_x=False),
        ),
        results,
        _NO_FOLDER,
    )

    # then
    assert isinstance(logarithmic, Curves) and isinstance(even, Curves)
    assert [line.name for line in logarithmic.lines] == ["rm", "rsync"]
    assert [point.x for point in logarithmic.lines[0].points] == [10.0, 100.0]
    assert [point.x for point in even.lines[0].points] == [0.0, 10.0, 100.0]
    point = even.lines[0].points[0]
    assert (point.median, point.least, point.most) == (2.0, 1.0, 4.0)


def test_plots_without_a_value_are_left_out() -> None:
    # given
    experiment = showing(
        BarsView("b", ("rm",), Measure.SECONDS), CurveView("c", ("rm",), Measure.SECONDS, "files")
    )

    # then
    assert exhibits_of(experiment, results_of([plan("rm")]), _NO_FOLDER) == ()


def test_calls_stand_beside_the_published_ones_with_a_total() -> None:
    # given
    experiment = showing(
        CallsView("c", ("rm",)),
        published_calls=(
            PublishedCalls("rm", {"unlinkat": (10_000, 0, 0.1), "lstat": (7, 2, None)}, "of 2018"),
        ),
    )
    calls = {
        "access": CallCount(1, 1, 0.0),
        "unlinkat": CallCount(10_000, 0, 0.3),
        "mmap": CallCount(9, 0, 0.1),
    }

    # when
    (exhibit,) = exhibits_of(experiment, results_of([plan("rm")], calls={"rm": calls}), _NO_FOLDER)

    # then
    assert isinstance(exhibit, Calls)
    assert [one.cells for one in exhibit.tables[0].rows] == [
        ("unlinkat", "10,000", "", "75.0 %", "10,000", ""),
        ("mmap", "9", "", "25.0 %", "", ""),
        ("access", "1", "1", "0.0 %", "", ""),
        ("lstat", "0", "", "", "7", "2"),
        ("total", "10,010", "1", "", "10,007", "2"),
    ]
    assert all(len(one.cells) == len(exhibit.columns) for one in exhibit.tables[0].rows)
    assert exhibit.tables[0].remark == "Counted by strace. Published: of 2018."


def test_published_calls_are_shown_where_nothing_could_be_counted() -> None:
    # given
    experiment = showing(
        CallsView("c", ("rm", "rsync")),
        published_calls=(PublishedCalls("rm", {"lstat": (7, 0, None), "mmap": (9, 0, None)}),),
    )
    results = results_of([plan("rm", why_not="no strace"), plan("rsync")], {"rsync": [1.0]})

    # when
    (exhibit,) = exhibits_of(experiment, results, _NO_FOLDER)

    # then
    assert isinstance(exhibit, Calls)
    rm, rsync = exhibit.tables
    assert [one.cells[0] for one in rm.rows] == ["mmap", "lstat", "total"]
    assert rm.rows[0].cells[1:] == ("", "", "", "9", "")
    assert rm.remark == "Not counted: no strace."
    assert rsync.rows == () and rsync.remark == "Not counted."


def test_calls_of_a_part_are_told_of_the_whole() -> None:
    # given
    results = results_of([plan("exec", share=0.5)], calls={"exec": {"execve": CallCount(100, 3)}})

    # when
    (exhibit,) = exhibits_of(showing(CallsView("c", ("exec",))), results, _NO_FOLDER)

    # then
    assert isinstance(exhibit, Calls)
    assert exhibit.tables[0].rows[0].cells == ("execve", "200", "6", "", "", "")
    assert "extrapolated from 50 %" in exhibit.tables[0].remark


def test_stacks_that_were_not_kept_are_said_to_be_missing() -> None:
    # when
    (exhibit,) = exhibits_of(showing(FlameView("f", "raw")), results_of([]), _NO_FOLDER)

    # then
    assert exhibit == Flames("f", (), "No stacks were kept.")


def test_what_tools_have_said_is_escaped() -> None:
    # given
    claim = Claim("c", "p", lambda _: judged(True, HOSTILE, HOSTILE))

    # when
    (claims,) = exhibits_of(showing(claims=(claim,)), results_of([]), _NO_FOLDER)

    # then
    assert isinstance(claims, Claims)
    assert claims.claims[0].here.isprintable() and claims.claims[0].why.isprintable()


def test_file_states_are_figures() -> None:
    # given
    measures = (Measure.APPARENT_BYTES, Measure.ALLOCATED_BYTES, Measure.EXTENTS)
    left = {"truncate": FileState(1 << 30, 0, 0)}

    # when
    (table,) = exhibits_of(
        showing(TableView("t", ("truncate",), measures)),
        results_of([plan("truncate")], left=left),
        _NO_FOLDER,
    )

    # then
    assert isinstance(table, Table)
    assert table.rows[0].cells == ("truncate", "1.0 GiB", "0 B", "0")
