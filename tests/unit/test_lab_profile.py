"""The profile of shutil.rmtree, and where py-spy is."""

import sysconfig
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.unit import lab_results
from tui_fs.job.doctor import diagnose
from tui_fs.lab.experiment import (
    Judged,
    Verdict,
)
from tui_fs.lab.experiments.profile import (
    ALONE,
    EXPERIMENT,
    NATIVE,
    RAW,
)
from tui_fs.lab.results import Run
from tui_fs.linux.tools import PY_SPY, Tool, find_tool
from tui_fs.strategies.registry import why_missing

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
) -> Judged:
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
        (tmp_path / place / "py-spy").write_text(f"#!/bin/sh\necho py-spy {place}\n")
        (tmp_path / place / "py-spy").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path / "scripts"))
    path = str(tmp_path / "scripts" / "py-spy")
    assert find_tool(PY_SPY) == Tool("py-spy", path, "py-spy scripts")
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    path = str(tmp_path / "path" / "py-spy")
    assert find_tool(PY_SPY) == Tool("py-spy", path, "py-spy path")


def test_without_py_spy_doctor_and_the_lab_name_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    command = "pip install 'tui-fs[profile]'"
    (row,) = (tool for tool in diagnose().tools if tool.name == "py-spy")
    assert command in row.remedy and not row.path
    assert command in why_missing("py-spy")
