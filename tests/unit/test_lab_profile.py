"""The profile of shutil.rmtree, and py-spy's profile of a process."""

import sysconfig
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.needs import lacks
from tests.unit import lab_results
from tui_fs.lab import pyspy
from tui_fs.lab.exhibits import flames
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
from tui_fs.lab.pyspy import (
    not_permitted,
    profile_itself,
    py_spy_path,
    py_spy_version,
)
from tui_fs.lab.results import Run
from tui_fs.model.errors import Missing, TuiFsError

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
    # And without it this process is not profiled
    with pytest.raises(Missing):
        profile_itself(1, lambda: True)


def test_the_installed_py_spy_has_a_version() -> None:
    name, number = py_spy_version().split()
    assert name == "py-spy" and number[0].isdigit()


@pytest.mark.parametrize(("scope", "is_named"), [("2\n", True), ("0\n", False), ("", False)])
def test_what_would_permit_it_is_said(tmp_path: Path, scope: str, is_named: bool) -> None:
    (tmp_path / "scope").write_text(scope)
    message = "\nError: Permission Denied: Try again\nmore\n"
    reason = not_permitted(message, str(tmp_path / "scope"))
    assert (
        reason.sentence
        == "py-spy is not permitted to profile tui-fs: Permission Denied: Try again."
    )
    assert "root" in reason.advice
    assert ("ptrace_scope" in reason.advice) is is_named


@pytest.fixture
def busy() -> Iterator[None]:
    """Keep a thread of this process at work."""
    ends = threading.Event()

    def be_busy() -> None:
        while not ends.is_set():
            sum(range(1_000))

    thread = threading.Thread(target=be_busy, name="busy")
    thread.start()
    yield
    ends.set()
    thread.join()


def folders(state_home: Path) -> list[Path]:
    """List the profiles that are kept."""
    return sorted((state_home / "tui-fs" / "lab" / "self-profiles").glob("*"))


@pytest.mark.usefixtures("busy")
@pytest.mark.slow
def test_this_process_is_profiled(state_home: Path) -> None:
    try:
        profile = profile_itself(1, lambda: True)
    except TuiFsError as why:
        lacks(str(why))
    samples, rows = flames(profile.raw.splitlines(), 500)
    assert samples > 0
    assert any("be_busy" in row.function for row in rows)
    # And the file is kept, for this user alone
    (folder,) = folders(state_home)
    assert str(folder) == profile.folder and folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "tui-fs.raw").read_text(encoding="utf-8") == profile.raw


def test_an_unneeded_profile_ends_and_leaves_nothing(state_home: Path) -> None:
    if py_spy_path() is None:
        lacks("py-spy is not installed; enable it with: pip install py-spy")
    with pytest.raises(TuiFsError, match=r"interrupted"):
        profile_itself(3_600, lambda: False)
    assert folders(state_home) == []


def test_a_refusal_is_reported_and_leaves_nothing(
    tmp_path: Path, state_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A py-spy without the permission to trace
    refused = tmp_path / "py-spy"
    refused.write_text("#!/bin/sh\necho 'Error: Permission Denied' >&2\nexit 1\n")
    refused.chmod(0o755)
    monkeypatch.setattr(pyspy, "py_spy_path", lambda: str(refused))
    with pytest.raises(
        TuiFsError, match=r"is not permitted to profile tui-fs: Permission Denied\."
    ):
        profile_itself(1, lambda: True)
    assert folders(state_home) == []
