"""y copies the command line that does the same, and shows it."""

import base64

import pytest
from msgspec.structs import replace

from tests.ui.lab_screens import a_quiet_lab
from tests.ui.recorded import MAILDROP, PAUSED, SPOOL, Host, maildrop_survey, record, wait_for
from tests.ui.recorded_lab import DONE, EXPERIMENT, store
from tests.ui.recorded_tree import TreeSurvey, found_survey
from tests.ui.test_screens import REPORTS, SMALL, a_quiet_machine, post_forecast
from tui_fs.model.finding import Finding, FindingKind, Severity
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Filters, Options, Pace
from tui_fs.screens.base import BaseScreen, Settings
from tui_fs.screens.browser.screen import BrowserScreen
from tui_fs.screens.jobs import JobsScreen
from tui_fs.screens.lab.experiments import LabScreen
from tui_fs.screens.lab.result import LabResultScreen
from tui_fs.screens.options import Choices
from tui_fs.screens.preview import PreviewScreen
from tui_fs.screens.report import ReportScreen
from tui_fs.screens.run import RunScreen

__all__ = ["a_quiet_lab", "a_quiet_machine"]

COPIED = "Copied, if your terminal allows it:"


async def copied(screen: BaseScreen, ready: str, *keys: str) -> str:
    """Press y on a screen; return what is in the clipboard."""
    app = Host(screen)
    async with app.run_test(size=SMALL) as pilot:
        await wait_for(pilot, ready)
        await pilot.press(*keys, "y")
        await wait_for(pilot, COPIED)
        await wait_for(pilot, app.clipboard[:70])
    return app.clipboard


async def test_a_job_is_attached_to() -> None:
    app = Host(RunScreen(record(PAUSED), Settings()))
    async with app.run_test(size=SMALL) as pilot:
        await pilot.press("y")  # the command is known before the job has answered
    assert app.clipboard == "tui-fs attach 7f3a01"


async def test_a_report_is_printed_by_attach() -> None:
    screen = ReportScreen(record(REPORTS["done"]), Settings())
    assert await copied(screen, "DONE") == "tui-fs attach 7f3a01"


@pytest.mark.parametrize(
    ("imported", "filters", "line"),
    [
        (None, Filters(), f"tui-fs survey -- {SPOOL}"),
        (None, Filters("*.log", 5), f"tui-fs estimate '--name=*.log' --min-size=5 -- {SPOOL}"),
        ("/tmp/du.json", Filters(), "tui-fs survey --import=/tmp/du.json"),
    ],
)
async def test_the_browser_has_the_command_that_counts_the_same(
    imported: str | None, filters: Filters, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_fs.screens.survey_client.SurveyProcess", TreeSurvey)
    screen = BrowserScreen(SPOOL, Settings(), imported=imported)
    screen.filters = filters
    assert await copied(screen, "sessions") == line


async def test_the_highlighted_job_of_the_list_is_attached_to() -> None:
    record(REPORTS["done"])
    assert await copied(JobsScreen(Settings()), "7f3a01") == "tui-fs attach 7f3a01"


async def test_an_empty_list_has_no_command() -> None:
    app = Host(JobsScreen(Settings()))
    async with app.run_test(size=SMALL) as pilot:
        await wait_for(pilot, "no jobs yet")
        await pilot.press("y")
        await wait_for(pilot, "There is no job to attach to.")
    assert app.clipboard == ""


@pytest.mark.slow
async def test_the_preview_has_the_command_with_all_options() -> None:
    app = Host(PreviewScreen((MAILDROP,), Settings(), filters=Filters("*.log")))
    async with app.run_test(size=SMALL) as pilot:
        await pilot.press("y")
        await wait_for(pilot, "There is no command yet.")
        screen = app.screen
        assert isinstance(screen, PreviewScreen)
        options = Options(keep_root=True, pace=Pace(True, 500), filters=Filters("*.log"))
        screen._choices = Choices(options)
        survey = maildrop_survey()
        survey = replace(survey, matched=survey.totals)
        post_forecast(screen, survey, screen._forecast_of(survey))
        await wait_for(pilot, "rmtree")
        await pilot.press("y")
        await wait_for(pilot, COPIED)
    words = app.clipboard.split(" ")
    assert words[:2] == ["tui-fs", "delete"] and words[-2:] == ["--", MAILDROP]
    assert {"'--name=*.log'", "--keep-root", "--gentle", "--rate=500"} <= set(words)
    assert "--yes" not in words


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ((("chattr", "-i", "/srv/spool/a b\n\udcff"),), "chattr -i $'/srv/spool/a b\\x0a\\xff'"),
        ((), ""),
    ],
)
async def test_a_finding_has_the_command_of_its_advice(
    command: tuple[tuple[str, ...], ...], line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = Finding(
        FindingKind("immutable"), Severity.WARNING, PathStr("/srv/spool/x"), {}, "Locked.", "Do."
    )
    survey = replace(found_survey(), findings=(replace(finding, command=command),))
    monkeypatch.setattr("tests.ui.recorded_tree.found_survey", lambda: survey)
    monkeypatch.setattr("tui_fs.screens.survey_client.SurveyProcess", TreeSurvey)
    app = Host(BrowserScreen(SPOOL, Settings()))
    async with app.run_test(size=SMALL) as pilot:
        await wait_for(pilot, "sessions")
        await pilot.press("tab")
        await wait_for(pilot, "Locked.")
        await pilot.press("y")
        await wait_for(pilot, COPIED if line else "names no command to run as it is")
    assert app.clipboard == line


async def test_the_lab_has_the_command_of_the_experiment() -> None:
    line = await copied(LabScreen("", Settings()), EXPERIMENT.name)
    assert line == f"tui-fs lab run {EXPERIMENT.name} --scale small"


async def test_a_result_has_the_command_that_repeats_its_run() -> None:
    screen = LabResultScreen(EXPERIMENT, store(DONE, "kept"), Settings())
    line = await copied(screen, "claims")
    assert line == f"tui-fs lab run {EXPERIMENT.name} --scale small"


async def test_a_line_that_the_screen_cannot_show_is_not_copied() -> None:
    class Long(JobsScreen):
        def command_to_copy(self) -> tuple[str, ...]:
            return ("tui-fs", "delete", "/srv/" + "x" * 2_000)

    app = Host(Long(Settings()))
    async with app.run_test(size=SMALL) as pilot:
        await wait_for(pilot, "no jobs yet")
        await pilot.press("y")
        await wait_for(pilot, "too many to check them")
    assert app.clipboard == ""


async def test_the_terminal_gets_one_line_without_control_characters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written: list[str] = []
    app = Host(JobsScreen(Settings()))
    record(REPORTS["done"])
    async with app.run_test(size=SMALL) as pilot:
        await wait_for(pilot, "7f3a01")
        assert app._driver is not None
        monkeypatch.setattr(app._driver, "write", written.append)
        await pilot.press("y")
        await pilot.pause()
    (sequence,) = [text for text in written if text.startswith("\x1b]52;c;")]
    line = base64.b64decode(sequence.removeprefix("\x1b]52;c;").rstrip("\a")).decode()
    assert line == "tui-fs attach 7f3a01"
