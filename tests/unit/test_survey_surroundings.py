"""A survey that checks its surroundings: processes in a real tree, and changes meanwhile."""

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.trees import flat
from tests.waiting_process import waiting_process
from tui_fs.linux import open_files
from tui_fs.linux.processes import ProcessState, ancestry, state_of
from tui_fs.model.finding import Finding, Severity
from tui_fs.survey.findings import activity
from tui_fs.survey.findings.activity import find_holders
from tui_fs.survey.runner import SurveyRunner


@pytest.fixture
def writer(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[int]:
    """Yield a process with a current directory and a file that it writes, in its own session."""
    code = "import sys; f = open('written', 'w'); print(flush=True); sys.stdin.read()"
    has_own_session = getattr(request, "param", True)
    command = ["python3", "-c", code]
    with waiting_process(command, cwd=tmp_path, start_new_session=has_own_session) as process:
        yield process.pid


def test_find_holders_leaves_a_family_out(tmp_path: Path, writer: int) -> None:
    scan = find_holders([str(tmp_path)], tmp_path.stat().st_dev, ())
    assert {holder.holder.pid for holder in scan.living} == {writer}
    assert [file.path for file in scan.held_files] == [str(tmp_path / "written")]
    scan = find_holders([str(tmp_path)], tmp_path.stat().st_dev, (writer,))
    assert (scan.living, scan.held_files) == ((), ())


def test_a_busy_machine_hides_no_process(
    tmp_path: Path, writer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = iter((open_files.LIMIT_S + 0.1,))

    def state_after_waiting(folder: str) -> ProcessState:
        time.sleep(next(waits, 0))
        return state_of(folder)

    monkeypatch.setattr(open_files, "state_of", state_after_waiting)
    scan = find_holders([str(tmp_path)], tmp_path.stat().st_dev, ())
    assert {holder.holder.pid for holder in scan.living} == {writer}


def _kinds(path: Path, **options: Any) -> dict[str, Finding]:
    *_, survey = SurveyRunner([str(path)], **options).run()
    return {finding.kind: finding for finding in survey.findings}


def test_a_survey_does_not_find_itself(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    assert "in-use" not in _kinds(tmp_path)


def test_a_survey_finds_who_writes(tmp_path: Path, writer: int) -> None:
    finding = _kinds(tmp_path)["in-use"]
    assert (finding.severity, finding.path) == (Severity.WARNING, str(tmp_path / "written"))
    assert f"({writer})" in finding.meaning
    assert _kinds(tmp_path, checks_surroundings=False) == {}


@pytest.mark.usefixtures("writer")
def test_an_open_file_frees_nothing_without_the_search_for_users_too(tmp_path: Path) -> None:
    (tmp_path / "written").write_bytes(b"x" * 5000)
    surveys = [
        list(SurveyRunner([str(tmp_path)], finds_users=finds_users).run())[-1]
        for finds_users in (True, False)
    ]
    assert surveys[0].freed_bytes_min < surveys[0].freed_bytes_max
    assert surveys[1].freed_bytes_min == surveys[0].freed_bytes_min
    used = [
        [finding.numbers["processes"] for finding in survey.findings if finding.kind == "in-use"]
        for survey in surveys
    ]
    assert used == [[1], [1]]  # by its open file


@pytest.mark.parametrize("writer", [False], indirect=True)
def test_who_writes_from_the_same_session_is_no_warning(tmp_path: Path, writer: int) -> None:
    finding = _kinds(tmp_path)["in-use"]
    assert (finding.severity, finding.numbers["written_files"]) == (Severity.INFO, 1)
    assert f"({writer})" in finding.meaning


@pytest.mark.parametrize("writer", [False], indirect=True)
def test_a_session_from_outside_a_container_is_known_by_its_ancestors(
    tmp_path: Path, writer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A container that was entered from outside: all sessions there have the number 0
    monkeypatch.setattr(os, "getsid", lambda _: 0)
    assert _kinds(tmp_path)["in-use"].severity is Severity.INFO
    real = ancestry
    monkeypatch.setattr(
        activity, "ancestry", lambda proc, pid: {1, pid} if pid == writer else real(proc, pid)
    )
    assert _kinds(tmp_path)["in-use"].severity is Severity.WARNING


def test_a_directory_that_changes_while_it_is_read_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flat(tmp_path, 1000)
    real = os.scandir

    def scandir(directory: int) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        entries = list(real(directory))
        (tmp_path / "more").touch()
        while tmp_path.stat().st_mtime <= began_at_s:  # the kernel's clock ticks slowly
            os.utime(tmp_path)
        return nullcontext(iter(entries))

    monkeypatch.setattr(os, "scandir", scandir)
    counting = SurveyRunner([str(tmp_path)], backend="scandir")
    began_at_s = time.time()
    *_, survey = counting.run()
    refilled = [finding.path for finding in survey.findings if finding.kind == "refilled"]
    assert refilled == [str(tmp_path)]
