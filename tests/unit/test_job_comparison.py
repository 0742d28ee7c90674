"""Two jobs side by side."""

import json

import pytest
from msgspec.structs import replace

from tests.conftest import Cli
from tests.unit.test_job_lock import held
from tests.unit.test_job_view import job
from tests.unit.test_model_snapshot import RUNNING, finished, sampled
from tui_fs.job.comparison import (
    ComparedJob,
    JobFigures,
    call_remark,
    call_rows,
    comparison_json,
    figure_rows,
    refuse_same,
    remarks,
)
from tui_fs.model.errors import BadInput
from tui_fs.model.events import Event, Paused
from tui_fs.model.outcome import JobState, Outcome
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import StrategyName
from tui_fs.screens.comparison import rate_lines
from tui_fs.widgets.rate_graph import RateHistory

DONE = JobFigures(
    job_id="aaa",
    place="/srv/a",
    targets=(PathStr("/srv/a"),),
    strategy=StrategyName("rm"),
    file_system="ext4",
    state=JobState.DONE,
    expected_entries=1_000,
    is_survey_complete=True,
    deleted_entries=1_000,
    failed=0,
    working_s=2.0,
    throttled_s=0.0,
    rate_limit_per_s=0,
    cpu_s=1.5,
    peak_memory_bytes=1 << 20,
    is_peak_sampled=False,
    syscalls={"unlinkat": 1_000, "rmdir": 1, "openat": 4, "close": 8, "brk": 3},
    trace_note="exact",
)
OTHER = replace(DONE, job_id="bbb")


def cells(first: JobFigures, second: JobFigures) -> dict[str, tuple[str, ...]]:
    rows = [*figure_rows(first, second), *call_rows(first, second)]
    return {row.cells[0].strip(): row.cells[1:] for row in rows}


def test_the_peak_of_a_job_without_a_rate_is_unknown() -> None:
    measured = RateHistory()
    measured.add(1.0, 500.0)
    lines = rate_lines([(DONE, measured), (OTHER, RateHistory())], 60)
    ends = [line[-1][1].strip() for line in lines if len(line) == 3]
    assert [end for end in ends if end] == ["peak 500 /s", "peak ?"]


def test_figures_have_a_ratio_of_the_second_to_the_first() -> None:
    rows = cells(DONE, replace(OTHER, working_s=1.0, cpu_s=3.0, peak_memory_bytes=3 << 20))
    assert rows["time"] == ("2.0 s", "1.0 s", "0.50")
    assert rows["rate"] == ("500 /s", "1,000 /s", "2.00")
    assert rows["cpu"] == ("1.5 s", "3.0 s", "2.00")
    assert rows["peak memory"] == ("1.0 MiB", "3.0 MiB", "3.00")
    assert rows["file system"] == ("ext4", "ext4", "")


def test_what_nothing_has_measured_is_unknown_and_has_no_ratio() -> None:
    unknown = replace(
        OTHER, deleted_entries=None, cpu_s=None, peak_memory_bytes=None, file_system=""
    )
    rows = cells(DONE, unknown)
    for label in ("deleted", "rate", "cpu", "peak memory"):
        assert rows[label][1:] == ("?", ""), label
    assert rows["file system"] == ("ext4", "unknown", "")


def test_calls_are_added_up_by_group_and_all_others_have_one_row() -> None:
    rows = cells(DONE, replace(OTHER, syscalls={"unlink": 500, "close": 22}))
    assert rows["remove"] == ("1,001", "500", "0.50")
    assert rows["unlinkat"] == ("1,000", "0", "")
    assert rows["unlink"] == ("0", "500", "")
    assert rows["start-up"] == ("11", "22", "2.00")
    assert "all others" not in rows  # it would repeat the line of its group


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"expected_entries": 40_000, "deleted_entries": 40_000},
            "Entries differ: 1,000 and 40,000; compare the rates, not the times.",
        ),
        (
            {"deleted_entries": 100},
            "Deleted entries differ: 1,000 and 100; compare the rates, not the times.",
        ),
        ({"expected_entries": 1_005, "deleted_entries": 1_005}, None),
        ({"throttled_s": 3.0}, "Job bbb was throttled for 3.0 s of its time."),
        ({"rate_limit_per_s": 500}, "Job bbb had a limit of 500 entries per second."),
    ],
)
def test_what_cannot_be_compared_is_said(change: dict[str, object], sentence: str | None) -> None:
    other = replace(OTHER, **change)
    assert remarks(DONE, other) == ([sentence] if sentence else [])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({}, ""),
        ({"syscalls": {}}, "No system calls were counted of job bbb."),
        (
            {"trace_note": "strace"},
            "Different sources may count different calls: aaa: exact; bbb: strace.",
        ),
    ],
)
def test_calls_of_different_sources_are_named(change: dict[str, object], sentence: str) -> None:
    assert call_remark(DONE, replace(OTHER, **change)) == sentence


def test_calls_that_were_not_counted_are_not_zero() -> None:
    rows = call_rows(DONE, replace(OTHER, syscalls={}))
    assert rows
    assert {row.cells[2] for row in rows} == {"?"}


def test_a_job_is_not_compared_with_itself() -> None:
    with pytest.raises(BadInput, match="Both are job aaa"):
        refuse_same("aaa", "aaa")


def test_json_has_ratios_only_of_known_figures() -> None:
    value = comparison_json(DONE, replace(OTHER, working_s=1.0, peak_memory_bytes=None))
    assert value["ratios"]["working_s"] == 0.5
    assert value["ratios"]["entries_per_s"] == 2.0
    assert value["ratios"]["peak_memory_bytes"] is None
    assert [compared["id"] for compared in value["jobs"]] == ["aaa", "bbb"]


def read(*events: Event, job_id: str, is_alive: bool = False) -> JobFigures:
    folder = job(*events, job_id=job_id)
    if not is_alive:
        return ComparedJob(folder).poll()
    with held(folder.lock):
        return ComparedJob(folder).poll()


def test_a_running_job_has_figures_so_far_and_a_sampled_peak() -> None:
    running = read(*RUNNING, sampled(1, 10), sampled(2, 30), job_id="run", is_alive=True)
    assert (running.state, running.deleted_entries) == (JobState.RUNNING, 30)
    assert running.is_peak_sampled
    ended = read(*RUNNING, sampled(2, 30), finished(Outcome.DONE), job_id="end")
    assert (ended.state, ended.is_peak_sampled) == (JobState.DONE, False)


def test_a_pause_is_no_working_time() -> None:
    paused = read(*RUNNING, sampled(2, 30), Paused(3.0, 3.0, True), job_id="p", is_alive=True)
    before = read(*RUNNING, sampled(2, 30), job_id="q", is_alive=True)
    assert paused.state is JobState.PAUSED
    assert before.working_s <= paused.working_s <= 3.0


def test_the_command_line_prints_both_jobs(cli: Cli) -> None:
    for name in ("aaa1", "bbb1"):
        job(*RUNNING, sampled(2, 30), finished(Outcome.DONE), job_id=name)
    text = cli.run("jobs", "--compare", "aaa", "bbb").stdout.decode()
    assert "aaa1" in text and "bbb1" in text and "2nd/1st" in text
    value = json.loads(cli.run("jobs", "--compare", "aaa", "bbb", "--json").stdout)
    assert (value["schema"], value["type"]) == (1, "comparison")
    same = cli.run("jobs", "--compare", "aaa", "aaa1")
    assert (same.code, "Both are job aaa1" in same.stderr) == (2, True)
