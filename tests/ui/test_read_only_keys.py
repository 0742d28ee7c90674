"""Keys that could let a job delete more are answered with a sentence in read-only mode."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.test_policy import write_policy
from tests.ui.recorded import PAUSED, RUNNING, Host, record, screen_text, settle, until
from tests.ui.test_screens import SMALL, a_quiet_machine, shows
from tui_fs.model.command import Command
from tui_fs.screens import run
from tui_fs.screens.base import Settings
from tui_fs.screens.maintenance import MaintenanceScreen
from tui_fs.screens.report import ReportScreen
from tui_fs.screens.run import RunScreen

__all__ = ["a_quiet_machine"]


@pytest.fixture(params=("option", "variable", "policy", "damaged policy"))
def settings(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Settings]:
    """Turn read-only mode on, by each available method."""
    match request.param:
        case "variable":
            monkeypatch.setenv("TUI_FS_READ_ONLY", "1")
        case "policy":
            write_policy(tmp_path, "read_only = true")
        case "damaged policy":
            write_policy(tmp_path, "never")
    yield Settings(read_only=request.param == "option")


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Command]:
    """Collect what the run screen sends."""
    commands: list[Command] = []
    monkeypatch.setattr(run, "send", lambda _, command: commands.append(command))
    monkeypatch.setattr("tui_fs.job.view.has_supervisor", lambda _: True)
    return commands


@pytest.mark.parametrize("settings", ["option"], indirect=True)
@pytest.mark.parametrize("key", ["n", "t"])
@pytest.mark.slow
async def test_a_running_job_is_not_made_faster(
    settings: Settings, sent: list[Command], key: str
) -> None:
    app = Host(RunScreen(record(RUNNING), settings))
    async with app.run_test(size=SMALL) as pilot:
        await shows("649,632")(pilot)
        await pilot.press(key)
        # A sentence says why not, and nothing is sent
        await until(pilot, lambda: app.screen.query_one("#message").display)
        assert sent == []
        # And the job can be paused
        await pilot.press("p")
        await settle(pilot)
        assert sent == [Command("pause")]


async def test_a_paused_job_is_not_resumed(settings: Settings, sent: list[Command]) -> None:
    app = Host(RunScreen(record(PAUSED), settings))
    async with app.run_test(size=SMALL) as pilot:
        await shows("PAUSED")(pilot)
        await pilot.press("p")
        # A sentence says why not, and nothing is sent
        await until(pilot, lambda: app.screen.query_one("#message").display)
        assert sent == []


@pytest.mark.parametrize("settings", ["option", "policy"], indirect=True)
@pytest.mark.slow
async def test_the_rest_of_a_died_job_is_not_offered(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_fs.job.view.has_supervisor", lambda _: False)
    app = Host(ReportScreen(record(RUNNING), settings))
    async with app.run_test(size=SMALL) as pilot:
        await shows("DIED")(pilot)
        assert "resume…" not in screen_text(app)
        await pilot.press("p")
        await until(pilot, lambda: app.screen.query_one("#message").display)
        assert isinstance(app.screen, ReportScreen)


@pytest.mark.parametrize("settings", ["option", "damaged policy"], indirect=True)
async def test_no_directory_is_set_aside(settings: Settings, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    (spool / "letter").touch()
    app = Host(MaintenanceScreen(str(spool), settings))
    async with app.run_test(size=SMALL) as pilot:
        await shows("set aside")(pilot)
        await pilot.press("j", "enter")
        # A sentence says why not
        await until(pilot, lambda: app.screen.query_one("#message").display)
        assert isinstance(app.screen, MaintenanceScreen)
    assert (spool / "letter").exists()
