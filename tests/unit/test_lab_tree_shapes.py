"""The experiment on shapes of trees, and its verdicts."""

import math
from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit import lab_results
from tui_fs.lab.experiment import (
    Judged,
    Place,
    Scale,
    Setting,
    Verdict,
)
from tui_fs.lab.experiments.tree_shapes import EXPERIMENT, expected_reads
from tui_fs.lab.preparing import in_words
from tui_fs.lab.results import Run

_GROWING = ("growing-1", "growing-2", "growing-3", "flat")
_SMALL_FILES = (300, 1_000, 3_000, 10_000)
_PUBLISHED_FILES = (1_000, 10_000, 100_000, 1_000_000)
_RM_CALLS = {"unlinkat": 10_001, "getdents64": 10, "brk": 24, "openat": 5, "close": 9}


def _setting(*tools: str) -> Setting:
    return Setting({name: f"/bin/{name}" for name in tools})


def _run(
    seconds: float = 1.0,
    user_s: float = 0.1,
    system_s: float = 0.9,
    minor_faults: int = 100,
    peak_memory_bytes: int = 2_000_000,
) -> Run:
    return Run(seconds, user_s, system_s, peak_memory_bytes, minor_faults, 0)


def _judged(
    beginning: str,
    runs: Mapping[str, Run] | None = None,
    *,
    scale: Scale = Scale.SMALL,
    **figures: Any,
) -> Judged:
    """Return the judgement on a claim by a run with these figures and no others."""
    seconds = {key: [run] for key, run in (runs or {}).items()}
    results = lab_results.run_with(EXPERIMENT, scale, seconds=seconds, **figures)
    return lab_results.judgement_of(EXPERIMENT, beginning, results)


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
    setting = _setting(*installed)
    steps = [step for trial in EXPERIMENT.trials(Scale.SMALL, setting) for step in trial.steps]
    (step,) = [planned for planned in steps if planned.key == "wide-uutils-here"]
    assert in_words(step, setting.tools) == (command,)


def test_the_expected_reads_are_those_of_the_text_with_a_buffer_of_32_kib() -> None:
    assert expected_reads("flat", 1_000_001) == 977
    assert expected_reads("wide", 1_001_001) == 3 * 1_001
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
        ("rm makes one unlinkat for each name", {"unlinkat": 10_002}),
        ("Apart from reading and allocating memory", {"newfstatat": 10_001}),
        ("The number of reads follows from the names", {"getdents64": 80}),
        ("For a large directory rm allocates memory", {"brk": 3}),
    ],
)
def test_claims_on_calls(claim: str, changes: dict[str, int]) -> None:
    assert _judged(claim, calls=_rm_counted()).verdict is Verdict.HOLDS
    assert _judged(claim, calls=_rm_counted(**changes)).verdict is Verdict.DOES_NOT


@pytest.mark.parametrize(
    ("tool", "claim"),
    [("rm", "rm keeps the names"), ("busybox", "An rm that deletes each name as it reads it")],
)
@pytest.mark.parametrize("held_bytes", [0, 288])
def test_claims_on_memory_for_names(tool: str, claim: str, held_bytes: int) -> None:
    runs = {
        f"{name}-{tool}-tmpfs": _run(minor_faults=100 + files * held_bytes // 4_096)
        for name, files in zip(_GROWING, _SMALL_FILES, strict=True)
    }
    expected = Verdict.HOLDS if (held_bytes > 0) is (tool == "rm") else Verdict.DOES_NOT
    assert _judged(claim, runs).verdict is expected


@pytest.mark.parametrize(
    ("peak_bytes", "verdict"), [(280_000_000, Verdict.HOLDS), (30_000_000, Verdict.DOES_NOT)]
)
def test_the_claim_that_all_names_are_held(peak_bytes: int, verdict: Verdict) -> None:
    runs = {
        "growing-3-rm-tmpfs": _run(peak_memory_bytes=29_000_000),
        "flat-rm-tmpfs": _run(peak_memory_bytes=peak_bytes),
    }
    claim = "rm keeps all names of a directory"
    assert _judged(claim, runs, scale=Scale.PUBLISHED).verdict is verdict
    assert _judged(claim, runs).verdict is Verdict.UNTESTED


def test_the_claim_on_the_chain_says_who_deleted_it() -> None:
    claim, ended = "rm deletes a chain", "it ended with status 1"
    runs = {"chain-rm-tmpfs": _run(0.05)}
    judged = _judged(claim, runs, failed={"chain-busybox-tmpfs": ended})
    assert judged.verdict is Verdict.HOLDS
    assert "Deleted by rm -rf 50.0 ms; not by busybox rm" in judged.here
    assert _judged(claim, failed={"chain-rm-tmpfs": ended}).verdict is Verdict.DOES_NOT


@pytest.mark.parametrize(
    ("system_s", "verdict"),
    [(0.9, Verdict.HOLDS), (0.1, Verdict.DOES_NOT), (-0.1, Verdict.UNTESTED)],
)
def test_the_claim_on_the_kernels_time(system_s: float, verdict: Verdict) -> None:
    run = _run(user_s=0.1, system_s=system_s)
    runs = {"wide-rm-tmpfs": run, "flat-rm-tmpfs": run}
    assert _judged("Nearly all the time is spent in the kernel", runs).verdict is verdict


@pytest.mark.parametrize(("flat_s", "verdict"), [(1.1, Verdict.HOLDS), (9.0, Verdict.DOES_NOT)])
def test_the_claim_that_the_shape_matters_little(flat_s: float, verdict: Verdict) -> None:
    wide, flat = (_run(user_s=0.0, system_s=system_s) for system_s in (0.3661, flat_s))
    runs = {"wide-rm-tmpfs": wide, "flat-rm-tmpfs": flat}
    assert _judged("A name costs the same", runs).verdict is verdict


@pytest.mark.parametrize(("power", "verdict"), [(1.0, Verdict.HOLDS), (2.0, Verdict.DOES_NOT)])
def test_the_claim_that_the_cost_does_not_grow(power: float, verdict: Verdict) -> None:
    runs = {
        f"{name}-rm-{place}": _run(1e-6 * math.pow(files, power))
        for name, files in zip(_GROWING, _PUBLISHED_FILES, strict=True)
        for place in (Place.TMPFS, Place.HERE)
    }
    claim = "The cost of a name does not grow"
    assert _judged(claim, runs, scale=Scale.PUBLISHED).verdict is verdict
