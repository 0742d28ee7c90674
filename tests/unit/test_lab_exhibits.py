"""The exhibits of a run."""

import os
import tempfile
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.unit.lab_results import (
    FLAME_FILE,
    HOSTILE,
    MACHINE,
    STACKS,
    full_experiment,
    full_results,
    plan,
    results_of,
    showing,
)
from tui_fs.lab.exhibits import (
    PUBLISHED_LABEL,
    Bars,
    Calls,
    Claims,
    Flames,
    Row,
    Table,
    exhibits_of,
    flames,
)
from tui_fs.lab.experiment import (
    CallsView,
    Claim,
    FlameView,
    Published,
    PublishedCalls,
    RatiosView,
    TableView,
    Verdict,
    judged,
)
from tui_fs.lab.results import (
    FileState,
    Measure,
    NotMeasured,
    RunBegan,
    StepCounted,
    StepPlan,
    fold,
)
from tui_fs.model.calls import CallCount, TraceSource

_NO_FOLDER = "/nonexistent"


def test_claims_come_first_then_the_views_in_their_order() -> None:
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, FLAME_FILE), "w", encoding="utf-8") as file:
            file.write(STACKS)
        exhibits = exhibits_of(full_experiment(), full_results(), folder)
    assert [type(exhibit) for exhibit in exhibits] == [Claims, Table, Calls, Flames]
    claims = exhibits[0]
    assert isinstance(claims, Claims)
    verdicts = [claim.verdict for claim in claims.claims]
    assert verdicts == [Verdict.HOLDS, Verdict.DOES_NOT, Verdict.UNTESTED]
    assert "not installed" in claims.claims[2].reason


def test_a_table_has_median_and_span_and_the_published_figure_below() -> None:
    experiment = showing(
        TableView("t", ("rm", "rsync"), (Measure.SECONDS, Measure.CALLS)),
        published=(Published("rm", Measure.SECONDS, 0.201, "rm of 2018"),),
    )
    results = results_of([plan("rm"), plan("rsync")], {"rm": [0.010, 0.014, 0.011], "rsync": [2]})
    (table,) = exhibits_of(experiment, results, _NO_FOLDER)
    assert isinstance(table, Table)
    assert table.columns == ("", "time", "system calls")
    assert table.rows == (
        Row(("rm", "11.0 ms (10.0–14.0)", "")),
        Row((PUBLISHED_LABEL, "201 ms", "")),
        Row(("rsync", "2.00 s", "")),
    )
    assert "rm of 2018" in table.remark
    assert "small run" not in table.remark


def test_ratios_are_of_the_medians_and_the_first_row_is_one() -> None:
    rows = (("rm", ("rm-1", "rm-2")), ("other", ("x-1", "x-2")), ("absent", ("y-1", "y-2")))
    experiment = showing(RatiosView("r", ("one", "two"), rows))
    plans = [plan(key) for _, keys in rows for key in keys]
    seconds = {"rm-1": [2.0, 9.0, 4.0], "rm-2": [1.0], "x-1": [1.0, 8.0, 2.0], "y-2": []}
    results = results_of(plans, seconds, failed={"y-1": "it is not there"})
    (table,) = exhibits_of(experiment, results, _NO_FOLDER)
    assert isinstance(table, Table)
    assert table.columns == ("", "one", "two")
    assert table.rows == (
        Row(("time", "4.00 s", "1.00 s")),
        Row(("rm", "1.00", "1.00")),
        Row(("other", "0.50", "")),
        Row(("absent", "", ""), "it is not there"),
    )


def test_a_small_run_says_that_published_figures_may_be_of_larger_trees() -> None:
    published = (Published("rm", Measure.SECONDS, 0.201),)
    view = TableView("t", ("rm",), (Measure.SECONDS,))
    results = results_of([plan("rm")], {"rm": [0.010]}, scale="small")
    (table,) = exhibits_of(showing(view, published=published), results, _NO_FOLDER)
    (plain,) = exhibits_of(showing(view), results, _NO_FOLDER)
    assert isinstance(table, Table) and "small run" in table.remark
    assert isinstance(plain, Table) and plain.remark == ""


def test_a_step_that_was_not_done_says_why_in_its_row() -> None:
    keys = ("toybox", "failed", "later", "unknown")
    experiment = showing(TableView("t", keys, (Measure.SECONDS,)))
    plans = [plan("toybox", why_not="toybox is not installed"), plan("failed"), plan("later")]
    failed = {"failed": "it ended with \x1b"}
    (over,) = exhibits_of(experiment, results_of(plans, failed=failed), _NO_FOLDER)
    (running,) = exhibits_of(experiment, results_of(plans, ended=None), _NO_FOLDER)
    assert isinstance(over, Table) and isinstance(running, Table)
    assert [row.note for row in over.rows] == [
        "toybox is not installed",
        "it ended with \\e",
        "not run",
    ]
    assert running.rows[2].note == "not yet run"


def test_memory_that_no_sample_has_seen_is_not_measured() -> None:
    """A tool that ends within milliseconds is gone before it is sampled."""
    view = TableView("t", ("rm", "later"), (Measure.SECONDS, Measure.PEAK_MEMORY_BYTES))
    results = results_of([plan("rm"), plan("later")], {"rm": [0.010]})
    short = replace(results.measured["rm"].runs[0], peak_memory_bytes=0)
    measured = {**results.measured, "rm": replace(results.measured["rm"], runs=(short,))}
    (table,) = exhibits_of(showing(view), replace(results, measured=measured), _NO_FOLDER)
    assert isinstance(table, Table)
    assert [row.cells for row in table.rows] == [
        ("rm", "10.0 ms", "not measured"),
        ("later", "", ""),
    ]
    assert "Peak memory is sampled" in table.remark


def test_what_was_done_in_part_is_said_to_be_extrapolated() -> None:
    experiment = showing(TableView("t", ("exec",), (Measure.SECONDS,)))
    results = results_of([plan("exec", "find -exec", share=0.02)], {"exec": [1.0]})
    (table,) = exhibits_of(experiment, results, _NO_FOLDER)
    assert isinstance(table, Table)
    assert table.rows[0].cells == ("find -exec", "50.0 s")
    assert "find -exec: extrapolated from 2 % of the work." in table.remark


def _bars(plans: Sequence[StepPlan], seconds: Mapping[str, Sequence[float]]) -> Bars | None:
    """Return the bars of all steps; the second measure has none."""
    keys = tuple(planned.key for planned in plans)
    view = TableView("b", keys, (Measure.SECONDS, Measure.CALLS), has_bars=True)
    (table,) = exhibits_of(showing(view), results_of(plans, seconds), _NO_FOLDER)
    assert isinstance(table, Table)
    return table.bars


def test_bars_are_grouped_and_logarithmic_over_a_ratio_of_fifty() -> None:
    plans = [plan("a", series="one"), plan("b", series="two"), plan("c", series="one"), plan("d")]
    wide = _bars(plans, {"a": [1.0], "b": [51.0], "c": [2.0, 3.0]})
    narrow = _bars(plans, {"a": [1.0], "b": [50.0]})
    assert wide is not None and narrow is not None
    assert [bar.label for bar in wide.bars] == ["a", "c", "b"]
    assert (wide.bars[1].median, wide.bars[1].least, wide.bars[1].most) == (2.5, 2.0, 3.0)
    assert wide.bars[1].shown == "2.50 s"
    assert wide.is_log and not narrow.is_log


def test_a_table_without_a_value_has_no_bars() -> None:
    assert _bars([plan("rm")], {}) is None


def test_calls_are_next_to_the_published_ones_with_a_total() -> None:
    experiment = showing(
        CallsView("c", ("rm",)),
        published_calls=(PublishedCalls("rm", "unlinkat 10000 0 lstat 7 2", "of 2018"),),
    )
    calls = {
        "access": CallCount(1, 1, 0.0),
        "unlinkat": CallCount(10_000, 0, 0.3),
        "mmap": CallCount(9, 0, 0.1),
    }
    (exhibit,) = exhibits_of(experiment, results_of([plan("rm")], calls={"rm": calls}), _NO_FOLDER)
    assert isinstance(exhibit, Calls)
    assert [row.cells for row in exhibit.tables[0].rows] == [
        ("unlinkat", "10,000", "", "75.0 %", "10,000", ""),
        ("mmap", "9", "", "25.0 %", "", ""),
        ("access", "1", "1", "0.0 %", "", ""),
        ("lstat", "0", "", "", "7", "2"),
        ("total", "10,010", "1", "", "10,007", "2"),
    ]
    assert all(len(row.cells) == len(exhibit.columns) for row in exhibit.tables[0].rows)
    assert exhibit.tables[0].remark == "Counted by strace. Published: of 2018."


def test_published_calls_are_shown_where_nothing_could_be_counted() -> None:
    experiment = showing(
        CallsView("c", ("rm", "rsync")),
        published_calls=(PublishedCalls("rm", "lstat 7 0 mmap 9 0"),),
    )
    results = results_of([plan("rm", why_not="no strace"), plan("rsync")], {"rsync": [1.0]})
    (exhibit,) = exhibits_of(experiment, results, _NO_FOLDER)
    assert isinstance(exhibit, Calls)
    rm, rsync = exhibit.tables
    assert [row.cells[0] for row in rm.rows] == ["mmap", "lstat", "total"]
    assert rm.rows[0].cells[1:] == ("", "", "", "9", "")
    assert rm.remark == "Not counted: no strace."
    assert rsync.rows == () and rsync.remark == "Not counted."


def test_calls_of_a_part_are_scaled_to_the_whole() -> None:
    results = results_of([plan("exec", share=0.5)], calls={"exec": {"execve": CallCount(100, 3)}})
    (exhibit,) = exhibits_of(showing(CallsView("c", ("exec",))), results, _NO_FOLDER)
    assert isinstance(exhibit, Calls)
    assert exhibit.tables[0].rows[0].cells == ("execve", "200", "6", "", "", "")
    assert "extrapolated from 50 %" in exhibit.tables[0].remark


def test_stacks_that_were_not_kept_are_said_to_be_missing() -> None:
    (exhibit,) = exhibits_of(showing(FlameView("f", "raw")), results_of([]), _NO_FOLDER)
    assert exhibit == Flames("f", (), "No stacks were kept.")


def test_what_tools_have_said_is_escaped() -> None:
    claim = Claim("c", "p", lambda _: judged(True, HOSTILE, HOSTILE))
    (claims,) = exhibits_of(showing(claims=(claim,)), results_of([]), _NO_FOLDER)
    assert isinstance(claims, Claims)
    assert claims.claims[0].here.isprintable() and claims.claims[0].reason.isprintable()


def test_file_states_are_figures() -> None:
    measures = (Measure.APPARENT_BYTES, Measure.ALLOCATED_BYTES, Measure.EXTENTS)
    left = {"truncate": FileState(1 << 30, 0, 0)}
    (table,) = exhibits_of(
        showing(TableView("t", ("truncate",), measures)),
        results_of([plan("truncate")], left=left),
        _NO_FOLDER,
    )
    assert isinstance(table, Table)
    assert table.rows[0].cells == ("truncate", "1.0 GiB", "0 B", "0")


def test_a_tree_is_listed_depth_first_the_largest_first() -> None:
    lines = ["main;copy 30", "main;delete;unlink 50", "main;delete 10", "main 10"]
    samples, rows = flames(lines)
    assert samples == 100
    assert [(row.function, row.depth, row.own_percent, row.total_percent) for row in rows] == [
        ("main", 0, 10.0, 100.0),
        ("delete", 1, 10.0, 60.0),
        ("unlink", 2, 50.0, 50.0),
        ("copy", 1, 30.0, 30.0),
    ]


def test_recursion_and_a_single_line_are_one_row() -> None:
    lines = ["walk (a.py:3);walk (a.py:4);walk (a.py:4) 3", "walk (a.py:4) 1"]
    samples, rows = flames(lines)
    assert samples == 4
    assert [(row.function, row.own_percent) for row in rows] == [("walk (a.py)", 100.0)]


def test_several_lines_of_a_function_are_distinguished() -> None:
    lines = ["walk (a.py:3);walk (a.py:9) 300", "walk (a.py:4) 97", "walk (a.py:5) 3"]
    lines.append("walk (a.py:3);join (b.py:1) 400")
    _, rows = flames(lines)
    assert [(row.function, row.depth, row.own_percent, row.total_percent) for row in rows] == [
        ("walk (a.py)", 0, 0.375, 100.0),
        ("join (b.py)", 1, 50.0, 50.0),
        ("line 9", 1, 37.5, 37.5),
        ("line 4", 1, 12.125, 12.125),
    ]


def test_what_is_no_stack_is_passed_over() -> None:
    lines = ["", "nonsense", "a;b many", "a;b ٣", " 4", "a b;c d 2"]
    samples, rows = flames(lines)
    assert samples == 2
    assert [row.function for row in rows] == ["a b", "c d"]


def test_no_samples_are_no_rows() -> None:
    assert flames(["a;b 0", ""]) == (0, ())


def test_a_very_deep_stack_is_read() -> None:
    line = ";".join(f"f{number}" for number in range(20_000)) + " 7"
    samples, rows = flames([line], max_rows=25)
    assert samples == 7
    assert [row.depth for row in rows] == list(range(25))


def test_control_characters_in_names_are_escaped() -> None:
    _, rows = flames(["\x1b[31mred 1"])
    assert rows[0].function == "\\e[31mred"


_STACKS = st.lists(
    st.tuples(st.lists(st.sampled_from("abcd"), min_size=1, max_size=5), st.integers(1, 50)),
    min_size=1,
    max_size=40,
)


@given(stacks=_STACKS, most=st.integers(1, 12))
def test_every_row_is_below_its_caller(stacks: list[tuple[list[str], int]], most: int) -> None:
    samples, rows = flames([f"{';'.join(stack)} {times}" for stack, times in stacks], most)
    assert samples == sum(times for _, times in stacks)
    assert 1 <= len(rows) <= most
    above: list[float] = []
    for row in rows:
        assert row.depth <= len(above), "its caller is missing"
        assert 0 <= row.own_percent <= row.total_percent + 1e-9
        if row.depth:
            assert row.total_percent <= above[row.depth - 1] + 1e-9
        above = [*above[: row.depth], row.total_percent]


def test_what_perf_does_not_count_is_not_reported_as_none() -> None:
    # Calls counted by perf, which knows only some of them
    counted = StepCounted("rm", TraceSource.PERF, {"unlinkat": CallCount(10)})
    results = fold([began_of(plan("rm")), counted])
    # When asked for one that it knows, for one that it does not, and for the sum
    assert results.calls("rm", "unlinkat").calls == 10
    assert results.calls("rm", "rmdir").calls == 0
    with pytest.raises(NotMeasured, match="not among the calls that perf counts"):
        results.calls("rm", "socket")
    with pytest.raises(NotMeasured):
        results.total_calls("rm")


def test_a_judge_that_cannot_reckon_makes_its_claim_untested() -> None:
    claim = Claim("It is twice as fast.", "", lambda _: judged(1 / 0 > 2, ""))
    results = fold([began_of(plan("rm"))])
    assert claim.judged(results).verdict is Verdict.UNTESTED


def began_of(*plans: StepPlan) -> RunBegan:
    """Return the beginning of a run with these steps."""
    return RunBegan("one", "small", 0.0, MACHINE, "/x", plans)
