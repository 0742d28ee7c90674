"""What happens before the first picture, and what comes after it to save time."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from textual.css.stylesheet import Stylesheet

from tests.ui.recorded import SPOOL, until
from tests.ui.recorded_tree import SilentSurvey, TreeSurvey
from tui_fs.app import FEW_COLOURS_THEME, TuiFsApp
from tui_fs.cli import start_app
from tui_fs.cli.parser import parse
from tui_fs.model.errors import BadInput
from tui_fs.screens.browser.screen import BrowserScreen
from tui_fs.survey.process import SurveyRequest

_LATER = ("preview", "run", "report", "maintenance", "jobs", "doctor", "fleet", "lab.experiments")


@pytest.fixture(autouse=True)
def no_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_fs.job.store.jobs_directory", lambda: "jobs")


async def test_the_style_sheet_is_read_once_for_any_theme(monkeypatch: pytest.MonkeyPatch) -> None:
    readings: list[Stylesheet] = []
    monkeypatch.setattr("tui_fs.screens.survey_client.SurveyProcess", SilentSurvey)
    monkeypatch.setattr(Stylesheet, "reparse", readings.append)
    app = TuiFsApp(SPOOL, theme=FEW_COLOURS_THEME)
    async with app.run_test() as pilot:
        await until(pilot, lambda: isinstance(app.screen, BrowserScreen))
        assert app.current_theme.name == FEW_COLOURS_THEME
        assert app.theme_variables["background"] == "ansi_default"
        assert not readings


async def test_a_survey_that_runs_already_is_used_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_fs.screens.survey_client.SurveyProcess", TreeSurvey)
    early = TreeSurvey(SurveyRequest((SPOOL,)))
    begun = len(TreeSurvey.begun)
    app = TuiFsApp(SPOOL, survey=early)  # type: ignore[arg-type]
    async with app.run_test() as pilot:
        await until(pilot, lambda: early.asked != [])
        assert len(TreeSurvey.begun) == begun
        await pilot.press("r")
        await until(pilot, lambda: early.is_stopped)
        assert len(TreeSurvey.begun) == begun + 1


@pytest.mark.parametrize("theme", ["nord", "nrod"])
def test_the_survey_begins_before_the_screens_are_loaded_and_ends_with_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, theme: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    opened: list[Any] = []

    def open_app(path: str, survey: TreeSurvey, **_: Any) -> int:
        opened.append((path, survey.is_stopped))
        return 0

    monkeypatch.setattr(start_app, "SurveyProcess", TreeSurvey)
    monkeypatch.setattr(start_app, "require_screen", lambda: None)
    monkeypatch.setattr(start_app, "open_app", open_app)
    parsed = parse((str(tmp_path), "--theme", theme))
    if theme == "nord":
        assert parsed.run(parsed) == 0
        assert opened == [(str(tmp_path), False)]
    else:
        with pytest.raises(BadInput):
            parsed.run(parsed)
    assert TreeSurvey.begun[-1].paths == (str(tmp_path),)
    assert TreeSurvey.begun[-1].is_stopped


def loaded_with(module: str) -> list[str]:
    """Return the names of all modules that a process of its own loads with one."""
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.split()


def test_a_survey_loads_neither_the_page_nor_the_reader_of_exports() -> None:
    loaded = loaded_with("tui_fs.survey.worker")
    assert "tui_fs.survey.runner" in loaded
    assert not {"tui_fs.survey.report.page", "tui_fs.survey.imported"}.intersection(loaded)


def test_only_the_first_screen_is_loaded_for_the_first_picture() -> None:
    loaded = loaded_with("tui_fs.app")
    assert "tui_fs.screens.browser.screen" in loaded
    assert [name for name in _LATER if f"tui_fs.screens.{name}" in loaded] == []


async def test_the_next_screens_are_loaded_soon_after_the_first_picture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[str] = []
    monkeypatch.setattr("tui_fs.screens.survey_client.SurveyProcess", SilentSurvey)
    monkeypatch.setattr("tui_fs.app._QUIET_S", 0.01)
    monkeypatch.setattr("tui_fs.app.import_module", loaded.append)
    app = TuiFsApp(SPOOL)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "tui_fs.screens.maintenance" in loaded)
    assert "tui_fs.screens.preview" in loaded
