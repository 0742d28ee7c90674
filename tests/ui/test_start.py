"""The first screen: what is full, and where; enter counts what is in it."""

import os
import time
from pathlib import Path
from threading import Event

import pytest
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot

from tests.ui.recorded import (
    RUNNING,
    STARTED,
    Host,
    at_all_sizes,
    record,
    screen_text,
    settle,
    until,
    wait_for,
)
from tests.ui.recorded_tree import SilentSurvey
from tests.ui.test_browser_parts import JOB
from tui_fs.app import TuiFsApp
from tui_fs.cli.start_app import note_running_jobs
from tui_fs.linux.filesystem import FileSystem
from tui_fs.model.outcome import JobState
from tui_fs.model.paths import PathStr
from tui_fs.screens.base import Settings
from tui_fs.screens.browser.screen import BrowserScreen
from tui_fs.screens.start import StartScreen, _recent_rows
from tui_fs.widgets.bar_table import BarRow, BarTable
from tui_fs.widgets.path_input import PathInput

GIB = 1 << 30
FULL = FileSystem("ext4", "/dev/vda1", "/", False, 250 * GIB, 12 * GIB, 0, 10**7, 9_100_000)
NO_INODES = FileSystem(
    "xfs", "/dev/vdb1", "/var/spool", False, 100 * GIB, 61 * GIB, 61 * GIB, 2_000_000, 1
)
EMPTY = FileSystem("btrfs", "/dev/vdc", "/backup", True, 4096 * GIB, 4000 * GIB, 4000 * GIB)
SILENT = FileSystem("nfs4", "server:/export", "/mnt/server", False)
ALL = [FULL, NO_INODES, EMPTY, SILENT]


@pytest.fixture(autouse=True)
def a_quiet_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tui_fs.job.store.jobs_directory", lambda: "jobs")
    monkeypatch.setattr("tui_fs.screens.survey_client.SurveyProcess", SilentSurvey)


def start(here: str = "/srv/spool") -> StartScreen:
    return StartScreen(here, Settings(), lambda: list(ALL))


async def test_start(picture: SnapshotAssertion) -> None:
    async with Host(start()).run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "/dev/vda1")
        assert await at_all_sizes(pilot) == picture


async def test_one_list_has_the_cursor_while_a_path_is_typed() -> None:
    app = Host(start())
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "/dev/vda1")
        for table in pilot.app.screen.query(BarTable):
            await pilot.press("colon")
            await settle(pilot)
            assert app.screen.query_one(PathInput).has_focus
            assert screen_text(app).count("›") == 1
            await pilot.press("escape")
            await settle(pilot)
            assert table.has_focus
            await pilot.press("tab")


async def test_what_is_used_up_is_marked_and_described() -> None:
    app = Host(start())
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "! inodes")
        lines = screen_text(app).splitlines()
        (spool,) = (line for line in lines if line.endswith("! inodes"))
        assert "39 %" in spool
        assert "100 %" in spool
        (root,) = (line for line in lines if line.endswith("! bytes"))
        assert "100 %" in root  # as df: what is reserved for root is not free
        assert "12.0 GiB reserved for root" in screen_text(app)
        await pilot.press("j")
        await wait_for(pilot, "xfs on /dev/vdb1")
        await pilot.press("j")
        await wait_for(pilot, "read-only !")
        await pilot.press("j")
        await wait_for(pilot, "does not answer")


async def test_each_row_is_reached_in_a_small_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    recent = [BarRow(f"/srv/{name}", (f"/srv/{name}",)) for name in "abcde"]
    monkeypatch.setattr("tui_fs.screens.start._recent_rows", lambda *_: recent)
    several = [replace(FULL, mount_point=f"/disk{number}") for number in range(20)]
    app = Host(StartScreen("/here", Settings(), lambda: several))
    async with app.run_test(size=(40, 15)) as pilot:
        await wait_for(pilot, "/srv/a")
        for keys, cursor in (("", "isk0"), ("jjjjj", "isk5"), ("G", "sk19")):
            await pilot.press(*keys)
            await settle(pilot)
            (line,) = (line for line in screen_text(app).splitlines() if line[:1] == "›")
            assert cursor in line
        await pilot.press("tab")
        for keys, cursor in (("", "/here"), ("G", "/srv/e")):
            await pilot.press(*keys)
            await settle(pilot)
            (line,) = (line for line in screen_text(app).splitlines() if line[:1] == "›")
            assert cursor in line


async def opened(pilot: Pilot[None]) -> str:
    await until(pilot, lambda: isinstance(pilot.app.screen, BrowserScreen))
    screen = pilot.app.screen
    assert isinstance(screen, BrowserScreen)
    return screen.path


async def test_enter_counts_what_is_in_the_chosen_file_system() -> None:
    app = Host(start())
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "/var/spool")
        await pilot.press("j", "enter")
        assert await opened(pilot) == "/var/spool"


async def test_the_present_directory_is_one_key_away(tmp_path: Path) -> None:
    app = Host(start(str(tmp_path)))
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "/var/spool")
        await pilot.press("full_stop")
        assert await opened(pilot) == str(tmp_path)


@pytest.mark.slow
async def test_any_directory_can_be_typed(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    app = Host(start(str(tmp_path)))
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "/var/spool")
        await pilot.press("colon", *"none", "enter")
        await wait_for(pilot, "exist.")
        await pilot.press(*["backspace"] * 4, *"logs", "enter")
        assert await opened(pilot) == str(tmp_path / "logs")


async def test_a_typed_directory_that_does_not_answer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = Event()
    monkeypatch.setattr("os.path.islink", lambda _: answers.wait(60))
    monkeypatch.setattr("tui_fs.screens.base.PATIENCE_S", 0.1)
    app = Host(start(str(tmp_path)))
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "/var/spool")
        await pilot.press("colon", *"dead", "enter")
        await wait_for(pilot, "yet.")
        await pilot.press("escape")
        await wait_for(pilot, ": path")
        answers.set()


@pytest.mark.slow
async def test_escape_leaves_the_path_field_and_returns_to_the_directory(tmp_path: Path) -> None:
    app = TuiFsApp(str(tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await pilot.press("F")
        await until(pilot, lambda: isinstance(app.screen, StartScreen))
        await wait_for(pilot, "this directory")
        await pilot.press("colon", "q")
        await wait_for(pilot, "esc close the field")
        await pilot.press("escape")
        await wait_for(pilot, ": path")
        assert isinstance(app.screen, StartScreen)
        await pilot.press("escape")
        await opened(pilot)
    first = Host(start(str(tmp_path)))
    async with first.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "this directory")
        await pilot.press("escape")
        await wait_for(pilot, "q quits.")


async def test_directories_of_earlier_jobs_are_listed_where_they_exist(tmp_path: Path) -> None:
    record(RUNNING)  # in /srv/spool/maildrop, which does not exist here
    app = Host(start(str(tmp_path)))
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "this directory")
        nearest = next(path for path in ("/srv/spool", "/srv") if os.path.isdir(path))
        await wait_for(pilot, "last job ")
        await pilot.press("tab", "j")
        await pilot.press("enter")
        assert await opened(pilot) == nearest


@pytest.mark.slow
async def test_the_cursor_stays_where_the_user_has_put_it() -> None:
    order = [FULL, NO_INODES]
    screen = StartScreen("/srv", Settings(), lambda: list(order))
    app = Host(screen)
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "/var/spool")
        await pilot.press("j")
        order.reverse()
        await until(pilot, lambda: "/var/spool" in screen_text(app).splitlines()[3])
        await wait_for(pilot, "xfs on /dev/vdb1")


async def test_a_mount_table_that_cannot_be_read_is_said() -> None:
    def refused() -> list[FileSystem]:
        raise PermissionError(13, "Permission denied", "/proc/self/mountinfo")

    app = Host(StartScreen("/srv", Settings(), refused))
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Permission denied")


@pytest.mark.slow
async def test_a_key_leads_to_the_file_systems_from_everywhere(tmp_path: Path) -> None:
    app = TuiFsApp(str(tmp_path), shows_start=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, StartScreen))
        await wait_for(pilot, "this directory")
        await pilot.press("full_stop")
        await opened(pilot)
        await pilot.press("F")
        await until(pilot, lambda: isinstance(app.screen, StartScreen))
        assert len(app.screen_stack) == 2  # Textual's own, and the file systems
    app = TuiFsApp(str(tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await pilot.press("F")
        await until(pilot, lambda: isinstance(app.screen, StartScreen))


@pytest.mark.parametrize("is_running", [True, False])
async def test_running_jobs_are_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_running: bool
) -> None:
    monkeypatch.setattr("tui_fs.job.view.has_supervisor", lambda _: is_running)
    record([STARTED])
    app = Host(start(str(tmp_path)))
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "a job is at work" if is_running else "last job ")
        await settle(pilot)
        assert ("1 job is running: J" in screen_text(app)) == is_running


@pytest.mark.parametrize("is_running", [True, False])
def test_quitting_says_how_to_follow_a_running_job(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_running: bool
) -> None:
    monkeypatch.setattr("tui_fs.job.view.has_supervisor", lambda _: is_running)
    folder = record([STARTED])
    note_running_jobs()
    assert (f"tui-fs attach {folder.job_id}" in capsys.readouterr().err) == is_running


def test_a_directory_of_earlier_jobs_says_when_the_last_one_was(tmp_path: Path) -> None:
    job = replace(
        JOB,
        state=JobState.DONE,
        targets=(PathStr(f"{tmp_path}/gone"),),
        created_at=time.time() - 600,
    )
    (row,) = _recent_rows([job], "/here")
    assert (row.key, row.flag) == (str(tmp_path), "last job 10 min ago")
    (row,) = _recent_rows([replace(job, state=JobState.PAUSED)], "/here")
    assert row.flag == "a job is at work"
