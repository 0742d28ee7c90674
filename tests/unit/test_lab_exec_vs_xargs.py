"""exec-vs-xargs: what is done at each scale, the text's tables, and the verdicts."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit import lab_results
from tui_fs.lab.experiment import Scale, Step, Verdict
from tui_fs.lab.experiments.exec_vs_xargs import (
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


def timed(**changes: float) -> dict[str, Any]:
    """Return times of the whole work, with some changes; a part of it takes its share."""
    shares = {key: step.share for key, (step, _) in steps_of(Scale.PUBLISHED).items()}
    times = {**SECONDS, **{key.replace("_", "-"): value for key, value in changes.items()}}
    return {"seconds": {key: (value * shares[key],) for key, value in times.items()}}


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
    return {"scale": scale, "calls": calls}


def few(seconds: float, left: str) -> dict[str, Any]:
    """Return the time for a few files, and how many are left."""
    return {"seconds": {"logs-each": (seconds,)}, "outputs": {"logs-each-left": left}}


HUNDRED, PLUS, CACHES, WITH_RM = (
    "-exec … ; takes about a hundred",
    "-exec … + is as fast",
    "Caches are not the cause",
    "The difference is as large with rm",
)
BATCHED, NO_CALL, EACH_FILE = (
    "xargs starts one",
    "No call takes as much",
    "One process per file",
)
SHELL, SEARCH, FEW_FILES = "-exec … ; starts a shell", "A program given by name", "For a few files"
WORDS, PRINT0 = "xargs treats every word", "With -print0"
HOLDS, DOES_NOT = Verdict.HOLDS, Verdict.DOES_NOT
SMALL = Scale.SMALL
IN_THOUSANDS = 2 + math.ceil(WHOLE[Scale.PUBLISHED] / 1_000)


@pytest.mark.parametrize(
    ("claim", "figures", "expected"),
    [
        *((claim, timed(), HOLDS) for claim in (HUNDRED, PLUS, CACHES, WITH_RM)),
        (HUNDRED, timed(exec_name=8.6), DOES_NOT),
        (HUNDRED, timed(exec_name=860.0), DOES_NOT),
        (PLUS, timed(exec_plus=84.0), DOES_NOT),
        (PLUS, timed(exec_plus=0.3), DOES_NOT),
        (CACHES, timed(exec_name_again=8.0), DOES_NOT),
        (WITH_RM, timed(rm_each=6.0), DOES_NOT),
        *((claim, counted(), HOLDS) for claim in (BATCHED, NO_CALL, EACH_FILE)),
        (BATCHED, counted("batches", "execve", CallCount(14)), DOES_NOT),
        (NO_CALL, counted("batches", "wait4", CallCount(16, 2, 0.0001)), DOES_NOT),
        (NO_CALL, counted("exec-name", "wait4", CallCount(200_000, 0, 0.001)), DOES_NOT),
        (EACH_FILE, counted("batches", "read", CallCount(500_000)), DOES_NOT),
        # Counts without times are no shares of the time
        (
            NO_CALL,
            {"calls": {key: {"wait4": 9, "read": 9} for key in ("exec-name", "batches")}},
            Verdict.UNTESTED,
        ),
        # A shell would be one more program
        (SHELL, {"scale": SMALL, "calls": {"exec-path": {"execve": 1 + PART[SMALL]}}}, DOES_NOT),
        (SHELL, {"scale": SMALL, "calls": {"exec-path": {"execve": 1 + 2 * PART[SMALL]}}}, HOLDS),
        # A search fails once in every directory before the one with the program
        (SEARCH, started(SMALL, 3 * PART[SMALL], 0), HOLDS),
        (SEARCH, started(SMALL, 0, 0), DOES_NOT),
        (SEARCH, started(SMALL, 7, 0), DOES_NOT),
        (SEARCH, started(SMALL, PART[SMALL], PART[SMALL]), DOES_NOT),
        (WORDS, {"outputs": {"spaces-left": "20"}}, HOLDS),
        (WORDS, {"outputs": {"spaces-left": "0"}}, DOES_NOT),
        (PRINT0, {"outputs": {"spaces-print0-left": "0"}}, HOLDS),
        (PRINT0, {"outputs": {"spaces-print0-left": "20"}}, DOES_NOT),
        (FEW_FILES, few(0.03, "990"), HOLDS),
        (FEW_FILES, few(1.2, "990"), DOES_NOT),
        (FEW_FILES, few(0.03, "1000"), DOES_NOT),
    ],
)
def test_figures_decide(claim: str, figures: dict[str, Any], expected: Verdict) -> None:
    results = lab_results.run_with(EXPERIMENT, **{"scale": Scale.PUBLISHED, **figures})
    judgement = lab_results.judgement_of(EXPERIMENT, claim, results)
    assert judgement.verdict is expected


@pytest.mark.parametrize(("extra", "verdict"), [(0, HOLDS), (2, DOES_NOT)])
def test_every_counted_batch_is_judged(extra: int, verdict: Verdict) -> None:
    calls = {**counted()["calls"], "xargs-1000": {"execve": IN_THOUSANDS + extra}}
    results = lab_results.run_with(EXPERIMENT, Scale.PUBLISHED, calls=calls)
    judgement = lab_results.judgement_of(EXPERIMENT, BATCHED, results)
    assert judgement.verdict is verdict
    counts = f"{IN_THOUSANDS + extra:,} in batches of 1,000, {IN_THOUSANDS:,} expected"
    assert counts in judgement.here
