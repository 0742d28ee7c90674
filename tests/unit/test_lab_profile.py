"""The profile of shutil.rmtree, and where py-spy is."""

import sysconfig
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.unit import lab_results
from tui_fs.lab.experiment import (
    Judgement,
    Verdict,
)
from tui_fs.lab.experiments.profile import (
    ALONE,
    EXPERIMENT,
    NATIVE,
    RAW,
)
from tui_fs.lab.preparing import py_spy_path, py_spy_version
from tui_fs.lab.results import Run

ENTRIES = 20_201
IN_THE_KERNEL = "Most of the processor time is spent in the kernel, not in Python."
ONE_CALL_EACH = (
    "An entry costs one system call, its removal; opening and reading directories add less "
    "than a fifth."
)
NATIVE_IS_DEAR = "Profiling the C functions, too, takes at least twice as long as without them."
COSTS_LITTLE = "Profiling less than doubles the time."


def judgement(
    claim: str,
    times: Mapping[str, tuple[float, float, float]],
    calls: Mapping[str, int] | None = None,
) -> Judgement:
    """Return the judgement on a claim by a run of these wall, user and system seconds."""
    runs = {key: [Run(*seconds, 0, 0, 0)] for key, seconds in times.items()}
    counts = {ALONE: calls} if calls else None
    results = lab_results.run_with(EXPERIMENT, seconds=runs, calls=counts)
    return lab_results.judgement_of(EXPERIMENT, claim, results)


ONE_SECOND = (1.0, 0.2, 0.8)


@pytest.mark.parametrize(
    ("claim", "times", "calls", "expected", "here"),
    [
        (IN_THE_KERNEL, {ALONE: (1.0, 0.2, 0.8)}, None, Verdict.HOLDS, "80 %"),
        (IN_THE_KERNEL, {ALONE: (1.0, 0.8, 0.2)}, None, Verdict.DOES_NOT, "20 %"),
        (
            ONE_CALL_EACH,
            {ALONE: ONE_SECOND},
            {"unlinkat": 20_000, "rmdir": 201, "openat": 700},
            Verdict.HOLDS,
            "",
        ),
        (
            ONE_CALL_EACH,
            {ALONE: ONE_SECOND},
            {"unlinkat": 20_201, "newfstatat": 20_000},
            Verdict.DOES_NOT,
            "",
        ),
        (ONE_CALL_EACH, {ALONE: ONE_SECOND}, {"unlinkat": 20_200}, Verdict.DOES_NOT, ""),
        (ONE_CALL_EACH, {ALONE: ONE_SECOND}, None, Verdict.UNTESTED, ""),
        (
            COSTS_LITTLE,
            {ALONE: ONE_SECOND, RAW: (1.2, 0.2, 0.8)},
            None,
            Verdict.HOLDS,
            "times as long",
        ),
        (
            COSTS_LITTLE,
            {ALONE: ONE_SECOND, RAW: (2.1, 0.2, 0.8)},
            None,
            Verdict.DOES_NOT,
            "times as long",
        ),
        (
            NATIVE_IS_DEAR,
            {RAW: (1.2, 0.2, 0.8), NATIVE: (2.4, 0.2, 0.8)},
            None,
            Verdict.HOLDS,
            "",
        ),
        (
            NATIVE_IS_DEAR,
            {RAW: (1.2, 0.2, 0.8), NATIVE: (2.0, 0.2, 0.8)},
            None,
            Verdict.DOES_NOT,
            "",
        ),
    ],
)
def test_figures_decide(
    claim: str,
    times: Mapping[str, tuple[float, float, float]],
    calls: Mapping[str, int] | None,
    expected: Verdict,
    here: str,
) -> None:
    judged = judgement(claim, times, calls)
    assert judged.verdict is expected and here in judged.here


def test_py_spy_is_found_beside_the_interpreters_scripts_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("scripts", "path"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "py-spy").write_text("#!/bin/sh\n")
        (tmp_path / place / "py-spy").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path / "scripts"))
    assert py_spy_path() == str(tmp_path / "scripts" / "py-spy")
    (tmp_path / "scripts" / "py-spy").chmod(0o644)
    assert py_spy_path() == str(tmp_path / "path" / "py-spy")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert py_spy_path() is None


def test_the_installed_py_spy_has_a_version() -> None:
    name, number = py_spy_version().split()
    assert name == "py-spy" and number[0].isdigit()
