"""What the experiment on shapes of trees does, and how it judges what comes out."""

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from tui_fs.lab.experiment import (
    Counting,
    CurveView,
    Place,
    Published,
    Scale,
    Setting,
    Verdict,
)
from tui_fs.lab.experiments.tree_shapes import EXPERIMENT, expected_reads
from tui_fs.lab.preparing import in_words
from tui_fs.lab.results import Machine, Measure, Measured, Results, Run, RunBegan, StepPlan
from tui_fs.model.calls import CallCount

_ALL = ("rm", "find", "busybox", "toybox", "uu-rm", "rm-7.5")
_SMALL_FILES = (300, 1_000, 3_000, 10_000)
_PUBLISHED_FILES = (1_000, 10_000, 100_000, 1_000_000)
_RM_CALLS = {"unlinkat": 10_001, "getdents64": 10, "brk": 24, "openat": 5, "close": 9}


def _setting(*tools: str) -> Setting:
    return Setting({name: f"/bin/{name}" for name in tools}, is_root=False, processors=2)


def _run(
    seconds: float = 1.0,
    user_s: float = 0.1,
    system_s: float = 0.9,
    minor_faults: int = 100,
    peak_memory_bytes: int = 2_000_000,
) -> Run:
    return Run(seconds, user_s, system_s, peak_memory_bytes, minor_faults, 0)


def _results(
    runs: Mapping[str, Run],
    calls: Mapping[str, dict[str, int]] | None = None,
    failed: tuple[str, ...] = (),
    scale: Scale = Scale.SMALL,
) -> Results:
    """Return results of all steps, of which these were run, counted, or have failed."""
    measured = {}
    for trial in EXPERIMENT.trials(scale, _setting(*_ALL)):
        assert trial.tree is not None
        for step in trial.steps:
            plan = StepPlan(
                step.key, step.title, (), trial.place, trial.tree.words, trial.tree.entries
            )
            one = Measured(plan, failed="it ended with status 1" if step.key in failed else "")
            if step.key in runs:
                one = replace(one, runs=(runs[step.key],))
            counted = (calls or {}).get(step.key, {})
            measured[step.key] = replace(
                one, calls={name: CallCount(number) for name, number in counted.items()}
            )
    machine = Machine("Linux", "", 2, 1 << 30, "", {})
    return Results(RunBegan("tree-shapes", scale, 0.0, machine, "/tmp", ()), measured)


def _judged(words: str, results: Results) -> tuple[Verdict, str]:
    """Return what is said of the one claim with these words."""
    (claim,) = [one for one in EXPERIMENT.claims if words in one.text]
    judgement = claim.judged(results)
    return judgement.verdict, f"{judgement.here} {judgement.why}"


@pytest.mark.parametrize("scale", list(Scale))
def test_every_rm_deletes_every_shape_in_memory_and_here(scale: Scale) -> None:
    # given all tools
    trials = EXPERIMENT.trials(scale, _setting(*_ALL))
    keys = [step.key for trial in trials for step in trial.steps]
    # then there is a step for each of them, on each shape and place, and no key twice
    tools = ("rm", "find", "busybox", "toybox", "uutils", "old")
    for shape in ("wide", "chain", "flat"):
        for tool in tools:
            assert {f"{shape}-{tool}-tmpfs", f"{shape}-{tool}-here"} <= set(keys)
    assert len(keys) == len(set(keys))
    # and rm and find are counted on each shape, in memory only
    counted = {
        step.key for trial in trials for step in trial.steps if step.counting is Counting.CALLS
    }
    shapes = ("wide", "chain", "flat")
    assert counted == {f"{shape}-{tool}-tmpfs" for shape in shapes for tool in ("rm", "find")}


def test_the_keys_are_the_same_at_both_scales() -> None:
    # given both scales
    keys = [
        [step.key for trial in EXPERIMENT.trials(scale, _setting()) for step in trial.steps]
        for scale in Scale
    ]
    # then their steps have the same keys
    assert keys[0] == keys[1]


def test_the_published_trees_are_those_of_the_text() -> None:
    # given the published scale
    trials = EXPERIMENT.trials(Scale.PUBLISHED, _setting())
    entries = {
        step.key: trial.tree.entries for trial in trials if trial.tree for step in trial.steps
    }
    # then there are as many names as the text counts
    assert entries["wide-rm-tmpfs"] == 1_001_001
    assert entries["chain-rm-tmpfs"] == entries["flat-rm-tmpfs"] == 1_000_001
    assert [entries[f"growing-{number}-rm-here"] for number in (1, 2, 3)] == [
        1_001,
        10_001,
        100_001,
    ]


def test_the_small_scale_makes_few_entries() -> None:
    # given the small scale
    trials = EXPERIMENT.trials(Scale.SMALL, _setting(*_ALL))
    # then all trees of a round together are not larger than one of the published scale
    assert sum(trial.tree.entries for trial in trials if trial.tree) < 300_000
    assert max(trial.rounds for trial in trials) <= 3


@pytest.mark.parametrize(
    ("installed", "command"),
    [
        (("uu-rm", "coreutils"), "uu-rm -rf tree"),
        (("uu_rm",), "uu_rm -rf tree"),
        (("coreutils",), "coreutils rm -rf tree"),
        ((), "uu-rm -rf tree"),
    ],
)
def test_uutils_goes_by_several_names(installed: tuple[str, ...], command: str) -> None:
    # given a machine on which it is called so
    setting = _setting(*installed)
    steps = [step for trial in EXPERIMENT.trials(Scale.SMALL, setting) for step in trial.steps]
    # then that name is used
    (step,) = [one for one in steps if one.key == "wide-uutils-here"]
    assert in_words(step, setting.tools) == (command,)


def test_all_tools_of_the_steps_are_looked_for() -> None:
    # given all steps
    trials = EXPERIMENT.trials(Scale.SMALL, _setting())
    named = {step.commands[0][0][0] for trial in trials for step in trial.steps}
    # then their tools are among those that the experiment asks for
    assert named <= set(EXPERIMENT.finds_tools)


def test_published_figures_belong_to_steps_and_add_up() -> None:
    # given the figures of the text
    trials = EXPERIMENT.trials(Scale.PUBLISHED, _setting())
    keys = {step.key for trial in trials for step in trial.steps}
    # then each stands beside a step, and none twice
    assert {one.key for one in EXPERIMENT.published} <= keys
    assert len({(one.key, one.measure) for one in EXPERIMENT.published}) == len(
        EXPERIMENT.published
    )
    figure = Published(
        "flat-rm-tmpfs",
        Measure.MINOR_FAULTS,
        70_489,
        "1,000,000 files in one directory, rm of 2009",
    )
    assert figure in EXPERIMENT.published
    # and the tables of calls add up to the sums that stand below them there
    totals = {
        one.key: (
            sum(calls for calls, _, _ in one.calls.values()),
            sum(errors for _, errors, _ in one.calls.values()),
        )
        for one in EXPERIMENT.published_calls
    }
    assert totals == {
        "wide-rm-tmpfs": (1_016_627, 15),
        "wide-old-tmpfs": (1_028_117, 16),
        "flat-rm-tmpfs": (1_003_151, 1),
        "flat-old-tmpfs": (1_001_025, 2),
    }


def test_the_expected_reads_are_those_of_the_text_with_a_buffer_of_32_kib() -> None:
    # given a million names in one directory, read once and then once more
    # then that is one more than the 976 of the text
    assert expected_reads("flat", 1_000_001) == 977
    # and of 1,001 directories each is read to its end, and once more
    assert expected_reads("wide", 1_001_001) == 3 * 1_001
    # and of a chain the last directory is empty
    assert expected_reads("chain", 5_001) == 3 * 5_000 + 2


def _rm_counted(**changes: int) -> dict[str, dict[str, int]]:
    return {
        "flat-rm-tmpfs": {**_RM_CALLS, **changes},
        "wide-rm-tmpfs": {"unlinkat": 3_661, "getdents64": 183},
        "chain-rm-tmpfs": {"unlinkat": 3_001, "getdents64": 9_002},
    }


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        ("one unlinkat for each name", {"unlinkat": 10_002}),
        ("no call for each name", {"newfstatat": 10_001}),
        ("names and the size of the buffer", {"getdents64": 80}),
        ("asks for memory again and again", {"brk": 3}),
    ],
)
def test_claims_on_calls(claim: str, changes: dict[str, int]) -> None:
    # given what rm of today calls, then the claim holds
    verdict, _ = _judged(claim, _results({}, _rm_counted()))
    assert verdict is Verdict.HOLDS
    # given other counts, then it does not
    verdict, _ = _judged(claim, _results({}, _rm_counted(**changes)))
    assert verdict is Verdict.DOES_NOT
    # and without counts nothing can be said
    assert _judged(claim, _results({}))[0] is Verdict.UNTESTED


@pytest.mark.parametrize(("tool", "claim"), [("rm", "It holds the names"), ("busybox", "name by")])
@pytest.mark.parametrize("held_bytes", [0, 288])
def test_claims_on_memory_for_names(tool: str, claim: str, held_bytes: int) -> None:
    # given page faults that grow with the names, or do not
    names = ("growing-1", "growing-2", "growing-3", "flat")
    runs = {
        f"{name}-{tool}-tmpfs": _run(minor_faults=100 + files * held_bytes // 4_096)
        for name, files in zip(names, _SMALL_FILES, strict=True)
    }
    # when it is judged, then rm must hold them and one that deletes name by name must not
    verdict, _ = _judged(claim, _results(runs))
    assert verdict is (Verdict.HOLDS if (held_bytes > 0) is (tool == "rm") else Verdict.DOES_NOT)


@pytest.mark.parametrize(
    ("peak_bytes", "verdict"), [(280_000_000, Verdict.HOLDS), (30_000_000, Verdict.DOES_NOT)]
)
def test_the_claim_that_all_names_are_held(peak_bytes: int, verdict: Verdict) -> None:
    # given the peak for ten times as many names
    runs = {
        "growing-3-rm-tmpfs": _run(peak_memory_bytes=29_000_000),
        "flat-rm-tmpfs": _run(peak_memory_bytes=peak_bytes),
    }
    # then it is judged by whether it is about ten times as much
    assert _judged("however many", _results(runs, scale=Scale.PUBLISHED))[0] is verdict
    # and small trees tell nothing
    assert _judged("however many", _results(runs))[0] is Verdict.UNTESTED


def test_the_claim_on_the_chain_says_who_deleted_it() -> None:
    # given that rm has deleted it and busybox has not
    results = _results({"chain-rm-tmpfs": _run(0.05)}, failed=("chain-busybox-tmpfs",))
    # then it holds, and both are named
    verdict, words = _judged("chain of directories", results)
    assert verdict is Verdict.HOLDS
    assert "Deleted by rm 50.0 ms; not by busybox rm" in words
    # given that rm has failed, then it does not
    verdict, words = _judged("chain of directories", _results({}, failed=("chain-rm-tmpfs",)))
    assert verdict is Verdict.DOES_NOT
    # given that nothing was run, then nothing can be said
    assert _judged("chain of directories", _results({}))[0] is Verdict.UNTESTED


@pytest.mark.parametrize(
    ("system_s", "verdict"), [(0.9, Verdict.HOLDS), (0.1, Verdict.DOES_NOT), (-0.1, None)]
)
def test_the_claim_on_the_kernels_time(system_s: float, verdict: Verdict | None) -> None:
    # given how much of the time is the kernel's
    run = _run(user_s=0.1, system_s=system_s)
    results = _results({"wide-rm-tmpfs": run, "flat-rm-tmpfs": run})
    # then the claim is judged by the share, if there is any time
    assert _judged("kernel's", results)[0] is (verdict or Verdict.UNTESTED)


@pytest.mark.parametrize(("flat_s", "verdict"), [(1.1, Verdict.HOLDS), (9.0, Verdict.DOES_NOT)])
def test_the_claim_that_the_shape_matters_little(flat_s: float, verdict: Verdict) -> None:
    # given what a wide tree of 3,661 names and one directory of 10,001 take of a processor
    wide, flat = (_run(user_s=0.0, system_s=system_s) for system_s in (0.3661, flat_s))
    results = _results({"wide-rm-tmpfs": wide, "flat-rm-tmpfs": flat})
    # then their costs of a name are compared
    assert _judged("as in small ones", results)[0] is verdict


@pytest.mark.parametrize(("power", "verdict"), [(1.0, Verdict.HOLDS), (2.0, Verdict.DOES_NOT)])
def test_the_claim_that_the_cost_does_not_grow(power: float, verdict: Verdict) -> None:
    # given times in proportion to the names, or to their square
    names = ("growing-1", "growing-2", "growing-3", "flat")
    runs = {
        f"{name}-rm-{place}": _run(1e-6 * math.pow(files, power))
        for name, files in zip(names, _PUBLISHED_FILES, strict=True)
        for place in (Place.TMPFS, Place.HERE)
    }
    # then the cost of a name stays, or does not
    results = _results(runs, scale=Scale.PUBLISHED)
    assert _judged("does not grow", results)[0] is verdict


@pytest.mark.parametrize(
    ("claim", "key", "holds_s", "not_s"),
    [
        ("a fifth longer", "flat-{}-tmpfs", 1.2, 1.0),
        ("within a few per cent", "wide-{}-tmpfs", 1.04, 1.3),
        ("over 20 % faster", "chain-{}-tmpfs", 0.76, 1.0),
    ],
)
def test_claims_on_the_old_rm(claim: str, key: str, holds_s: float, not_s: float) -> None:
    # given that the old rm takes a second
    runs = {key.format("old"): _run(1.0)}
    if claim.startswith("within"):
        runs |= {"wide-old-here": _run(1.0), "wide-rm-here": _run(1.0)}
    # then rm of today is judged by how much longer it takes
    for seconds, verdict in ((holds_s, Verdict.HOLDS), (not_s, Verdict.DOES_NOT)):
        results = _results({**runs, key.format("rm"): _run(seconds)})
        assert _judged(claim, results)[0] is verdict
    # and without the old one nothing can be said
    assert _judged(claim, _results({key.format("rm"): _run(1.0)}))[0] is Verdict.UNTESTED


def test_the_views_name_the_trees_and_only_steps_there_are() -> None:
    # given what was measured of some
    results = _results({"flat-rm-tmpfs": _run()})
    # when the views are asked for
    views = EXPERIMENT.views(results)
    # then their titles tell the trees, and the curves are drawn over log axes
    assert "Time: 10,000 empty files in one directory" in {one.title for one in views}
    curves = [one for one in views if isinstance(one, CurveView)]
    assert all(one.has_log_x and one.has_log_y for one in curves)
    assert {one.measure for one in curves} == {
        Measure.MICROSECONDS_PER_ENTRY,
        Measure.PEAK_MEMORY_BYTES,
    }
    # and every key is that of a step
    keys = {key for one in views for key in getattr(one, "keys", ())}
    assert keys <= set(results.measured)
