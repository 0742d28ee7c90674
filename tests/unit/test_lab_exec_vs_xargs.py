"""exec-vs-xargs: what is done at each scale, the text's tables, and the verdicts."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit import lab_results
from tui_fs.lab.experiment import Counting, Scale, Step, Verdict
from tui_fs.lab.experiments.exec_vs_xargs import (
    BATCHES,
    COMMAND_BYTES,
    EXPERIMENT,
    PART,
    WHOLE,
    fitting,
)
from tui_fs.lab.tree_generators import Flat
from tui_fs.model.calls import CallCount

Counts = dict[str, dict[str, CallCount]]

TEXT_FILES = 200_000


def seconds(name: str) -> float:
    """Return a time in a call, most of it in wait4."""
    return 4.0 if name == "wait4" else 0.01


def published_counts(files: int) -> Counts:
    """Return the published counts, scaled to this many files where each file is one call."""
    share = files / TEXT_FILES
    tables = {figure.key: figure.calls for figure in EXPERIMENT.published_calls}
    scaled = {
        name: CallCount(round(call.calls * share), round(call.errors * share), seconds(name))
        for name, call in tables["exec-name"].items()
    }
    batches = {
        name: CallCount(call.calls, call.errors, seconds(name))
        for name, call in tables["batches"].items()
    }
    batches["execve"] = CallCount(13)  # there is no shell around the commands of a step
    return {"exec-name": scaled, "batches": batches}


def steps_of(scale: Scale) -> dict[str, tuple[Step, int]]:
    """Return the steps by key, each with the files of its tree."""
    steps = lab_results.steps_of(EXPERIMENT, scale)
    return {key: (step, entries - 1) for key, (step, entries) in steps.items()}


@pytest.mark.parametrize("scale", list(Scale))
def test_a_share_is_what_the_part_is_of_the_whole(scale: Scale) -> None:
    steps = steps_of(scale)
    for key in ("exec-path", "exec-name", "exec-name-again", "xargs-1", "rm-each"):
        step, files = steps[key]
        assert files == PART[scale]
        assert step.share == PART[scale] / WHOLE[scale]
    for key in ("xargs", "exec-plus", "rm-xargs", "rm-plus", "rm-delete"):
        assert (steps[key][0].share, steps[key][1]) == (1.0, WHOLE[scale])


@pytest.mark.parametrize("scale", list(Scale))
def test_the_curve_goes_from_one_to_as_many_as_fit(scale: Scale) -> None:
    steps = steps_of(scale)
    curve = sorted(
        (steps[key] for key in ("xargs", *(f"xargs-{batch}" for batch in BATCHES)) if key in steps),
        key=lambda pair: pair[0].x,
    )

    sizes = [step.x for step, _ in curve]
    assert sizes[0] == 1
    assert sizes == sorted(set(sizes))
    assert curve[-1][0].key == "xargs"
    assert len(sizes) >= 5
    assert all(files >= 10 * step.x for step, files in curve if step.share < 1)


def test_all_batches_are_on_the_published_curve() -> None:
    steps = steps_of(Scale.PUBLISHED)
    for batch in BATCHES:
        assert steps[f"xargs-{batch}"][0].counting is Counting.CALLS


@given(st.integers(1, 1_000_000))
def test_what_fits_into_a_command(names: int) -> None:
    number = fitting(names, "/usr/bin/file")
    name_bytes = len(f"./{Flat(names).name(names)}") + 1
    assert 1 <= number <= names
    assert len("/usr/bin/file") + 1 + number * name_bytes <= COMMAND_BYTES
    assert number == names or len("/usr/bin/file") + 1 + (number + 1) * name_bytes > COMMAND_BYTES


SECONDS = {
    "exec-name": 84.764,
    "exec-name-again": 85.722,
    "xargs": 0.860,
    "exec-plus": 0.801,
    "rm-each": 90.0,
    "rm-xargs": 3.0,
}


@pytest.mark.parametrize(
    ("beginning", "key", "other"),
    [
        ("-exec … ; takes about a hundred", "exec-name", 8.6),
        ("-exec … ; takes about a hundred", "exec-name", 860.0),
        ("-exec … + is as fast", "exec-plus", 84.0),
        ("-exec … + is as fast", "exec-plus", 0.3),
        ("Caches are not the cause", "exec-name-again", 8.0),
        ("rm behaves like file", "rm-each", 6.0),
    ],
)
def test_times_decide(beginning: str, key: str, other: float) -> None:
    judge = claim(beginning).judged
    assert judge(results_of(times=SECONDS)).verdict is Verdict.HOLDS
    assert judge(results_of(times={**SECONDS, key: other})).verdict is Verdict.DOES_NOT


def counted(key: str = "", name: str = "", count: CallCount | None = None) -> dict[str, Any]:
    """Return the text's counts; one of them is another."""
    counts = published_counts(PART[Scale.PUBLISHED])
    if count is not None:
        counts[key][name] = count
    return {"calls": counts}


def started(scale: Scale, failed: int, failed_by_path: int) -> dict[str, Any]:
    """Return the programs that were started by name and by path."""
    files = PART[scale]
    calls = {
        "exec-name": {"execve": CallCount(1 + files + failed, failed)},
        "exec-path": {"execve": CallCount(1 + files + failed_by_path, failed_by_path)},
    }
    judgement = claim("A program given by name").judged(results_of(Scale.SMALL, counts))
    assert judgement.verdict is verdict


@pytest.mark.parametrize(
    ("beginning", "key", "holds", "does_not"),
    [
        ("xargs treats every word", "spaces-left", "20", "0"),
        ("With -print0", "spaces-print0-left", "0", "20"),
    ],
)
def test_what_is_left_decides(beginning: str, key: str, holds: str, does_not: str) -> None:
    judge = claim(beginning).judged
    assert judge(results_of(printed={key: holds})).verdict is Verdict.HOLDS
    assert judge(results_of(printed={key: does_not})).verdict is Verdict.DOES_NOT


@pytest.mark.parametrize(
    ("seconds", "left", "verdict"),
    [
        (0.03, "990", Verdict.HOLDS),
        (1.2, "990", Verdict.DOES_NOT),
        (0.03, "1000", Verdict.DOES_NOT),
    ],
)
def test_few_files_are_soon_done(seconds: float, left: str, verdict: Verdict) -> None:
    results = results_of(times={"logs-each": seconds}, printed={"logs-each-left": left})
    assert claim("For a few files").judged(results).verdict is verdict


def test_counts_without_times_are_no_shares_of_the_time() -> None:
    untimed = {
        key: {"wait4": CallCount(9), "read": CallCount(9)} for key in ("exec-name", "batches")
    }
    judgement = claim("No call takes as much").judged(results_of(counts=untimed))
    assert judgement.verdict is Verdict.UNTESTED
