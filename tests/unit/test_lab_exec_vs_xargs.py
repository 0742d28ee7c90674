"""exec-vs-xargs: what is done at each scale, the text's tables, and the verdicts."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit import lab_results
from tui_fs.lab.experiment import Claim, Counting, Scale, Setting, Step, Verdict
from tui_fs.lab.experiments.exec_vs_xargs import (
    BATCHES,
    COMMAND_BYTES,
    EXPERIMENT,
    PART,
    WHOLE,
    fitting,
)
from tui_fs.lab.results import (
    Results,
)
from tui_fs.lab.tree_generators import Flat
from tui_fs.model.calls import CallCount

Counts = dict[str, dict[str, CallCount]]

TEXT_FILES = 200_000
SETTING = Setting({"file": "/usr/bin/file"}, is_root=True, processors=2)


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


def results_of(
    scale: Scale = Scale.PUBLISHED,
    counts: Counts | None = None,
    times: dict[str, float] | None = None,
    printed: dict[str, str] | None = None,
) -> Results:
    """Return a run of the experiment with these figures and no others; seconds are of the whole."""
    plans = lab_results.plans_of(EXPERIMENT, scale, SETTING)
    shares = {plan.key: plan.share for plan in plans}
    runs = {
        **{key: [lab_results.run_of(value * shares[key])] for key, value in (times or {}).items()},
        **{key: [lab_results.run_of(0.001, text)] for key, text in (printed or {}).items()},
    }
    return lab_results.results_of(plans, runs, calls=counts, scale=scale.value)


def claim(beginning: str) -> Claim:
    return lab_results.claim_of(EXPERIMENT, beginning)


def steps_of(scale: Scale) -> dict[str, tuple[Step, int]]:
    """Return the steps by key, each with the files of its tree."""
    steps = lab_results.steps_of(EXPERIMENT, scale, SETTING)
    return {key: (step, entries - 1) for key, (step, entries) in steps.items()}


@pytest.mark.parametrize("scale", list(Scale))
def test_a_share_is_what_the_part_is_of_the_whole(scale: Scale) -> None:
    trials = EXPERIMENT.trials(scale, SETTING)
    steps = steps_of(scale)
    assert len(steps) == sum(len(trial.steps) for trial in trials)
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


@pytest.mark.parametrize("scale", list(Scale))
def test_the_texts_counts_bear_it_out(scale: Scale) -> None:
    results = results_of(scale, published_counts(PART[scale]))
    for beginning in ("xargs starts one", "No call takes as much", "A process for each file"):
        judgement = claim(beginning).judged(results)
        assert judgement.verdict is Verdict.HOLDS, beginning
    here = claim("A process for each file").judged(results).here
    assert here == "79.1 one by one, 2.5 in batches"


@pytest.mark.parametrize(
    ("beginning", "key", "name", "count"),
    [
        ("xargs starts one", "batches", "execve", CallCount(14)),
        ("No call takes as much", "batches", "wait4", CallCount(16, 2, 0.0001)),
        ("No call takes as much", "exec-name", "wait4", CallCount(200_000, 0, 0.001)),
        ("A process for each file", "batches", "read", CallCount(500_000)),
    ],
)
def test_other_counts_refute_it(beginning: str, key: str, name: str, count: CallCount) -> None:
    counts = published_counts(PART[Scale.PUBLISHED])
    counts[key][name] = count
    judgement = claim(beginning).judged(results_of(counts=counts))
    assert judgement.verdict is Verdict.DOES_NOT


def test_every_counted_batch_is_judged() -> None:
    counts = published_counts(PART[Scale.PUBLISHED])
    expected = 2 + math.ceil(WHOLE[Scale.PUBLISHED] / 1_000)
    for extra, verdict in ((0, Verdict.HOLDS), (2, Verdict.DOES_NOT)):
        counts["xargs-1000"] = {"execve": CallCount(expected + extra)}
        judgement = claim("xargs starts one").judged(results_of(counts=counts))
        assert judgement.verdict is verdict
        assert f"{expected + extra:,} in batches of 1,000, {expected:,} expected" in judgement.here


@pytest.mark.parametrize(("started_each", "verdict"), [(1, Verdict.DOES_NOT), (2, Verdict.HOLDS)])
def test_a_shell_would_be_one_more_program(started_each: int, verdict: Verdict) -> None:
    files = PART[Scale.SMALL]
    counts = {"exec-path": {"execve": CallCount(1 + started_each * files)}}
    judgement = claim("-exec … ; starts a shell").judged(results_of(Scale.SMALL, counts))
    assert judgement.verdict is verdict


@pytest.mark.parametrize(
    ("failed", "failed_by_path", "verdict"),
    [
        (3 * PART[Scale.SMALL], 0, Verdict.HOLDS),
        (0, 0, Verdict.DOES_NOT),
        (7, 0, Verdict.DOES_NOT),
        (PART[Scale.SMALL], PART[Scale.SMALL], Verdict.DOES_NOT),
    ],
)
def test_a_search_fails_once_in_every_directory_before(
    failed: int, failed_by_path: int, verdict: Verdict
) -> None:
    files = PART[Scale.SMALL]
    counts = {
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
