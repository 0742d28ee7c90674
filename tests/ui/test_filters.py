"""Filters in the screens: what they count, what they say, and what a deletion with them leaves."""

from contextlib import nullcontext

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot
from textual.widgets import Input

from tests.ui.recorded import (
    MAILDROP,
    Host,
    maildrop_survey,
    plan,
    screen_text,
    settle,
    until,
    wait_for,
)
from tests.ui.recorded_tree import CACHES, SilentSurvey, TreeSurvey
from tests.ui.test_browser import answering, browsing, previewed
from tests.ui.test_screens import a_quiet_machine, alive, counted, post_forecast
from tui_fs.job.planning import Remainder, forecast
from tui_fs.model.filter_text import SYNTAX
from tui_fs.model.strategy import Filters, Options
from tui_fs.model.survey import Totals
from tui_fs.screens.base import Settings
from tui_fs.screens.options import Choices
from tui_fs.screens.preview import ForecastUpdated, PreviewScreen
from tui_fs.screens.survey_client import SurveyClient
from tui_fs.survey.process import Update

__all__ = ["a_quiet_machine", "alive", "answering", "previewed"]

DAY_S = 86_400


async def type_filter(pilot: Pilot[None], text: str) -> None:
    """Open the field and enter a line."""
    await pilot.press("f")
    field = pilot.app.screen.query_one("#filter-input", Input)
    field.value = text
    await pilot.press("enter")
    await settle(pilot)


@pytest.mark.slow
@pytest.mark.usefixtures("answering", "a_quiet_machine")
async def test_a_filter_counts_again_and_everything_shown_says_so() -> None:
    async with browsing() as browser:
        await type_filter(browser.pilot, "*.log >1k")
        assert browser.survey.filters == Filters(name_glob="*.log", min_size_bytes=1024)
        shown = screen_text(browser.pilot.app)
        assert "matches 1,279,040 files" in shown
        assert " matches  allocated ▼" in shown
        assert "only *.log, 1 KiB or larger · f changes this filter, esc removes it" in shown
        shown = await browser.press("b")
        assert "most allocated bytes first · only *.log, 1 KiB or larger" in shown
        assert " matches  allocated ▼" in shown
        assert "without the filter" in await browser.press("escape", "tab")


@pytest.mark.slow
@pytest.mark.parametrize("is_removed_by", ["escape", "an empty line"])
@pytest.mark.usefixtures("answering", "a_quiet_machine")
async def test_without_the_filter_the_same_survey_shows_everything(is_removed_by: str) -> None:
    async with browsing() as browser:
        await type_filter(browser.pilot, "*.log")
        number = len(TreeSurvey.begun)
        if is_removed_by == "escape":
            await browser.press("escape")
        else:
            await type_filter(browser.pilot, "  ")
        await browser.sees("entries in 4,112 directories")
        shown = screen_text(browser.pilot.app)
        assert "matches" not in shown and "only " not in shown
        assert "everything" in browser.survey.asked
        assert len(TreeSurvey.begun) == number
        assert not browser.screen.filters.active
        await browser.press("r")
        assert not browser.survey.filters.active


@pytest.mark.usefixtures("answering", "a_quiet_machine")
async def test_a_wrong_filter_changes_nothing_and_is_explained_above_the_syntax() -> None:
    async with browsing() as browser:
        await type_filter(browser.pilot, "*.log >15m")
        shown = screen_text(browser.pilot.app)
        assert "'>15m' can mean minutes or MiB; write >15min or >15M." in shown
        assert all(line in shown for line in SYNTAX)
        assert (len(TreeSurvey.begun), browser.screen.filters) == (1, Filters())
        shown = await browser.press("escape")
        assert SYNTAX[0] not in shown and "matches" not in shown


@pytest.mark.usefixtures("answering", "a_quiet_machine")
async def test_an_answer_with_the_former_filter_is_not_shown() -> None:
    async with browsing() as browser:
        await type_filter(browser.pilot, "*.log")
        late = replace(browser.survey._last, is_filtered=True)
        await browser.press("escape")
        browser.survey._updates.put(late)
        await settle(browser.pilot)
        assert "matches" not in screen_text(browser.pilot.app)
        assert "entries in 4,112 directories" in screen_text(browser.pilot.app)


@pytest.mark.slow
@pytest.mark.usefixtures("answering", "a_quiet_machine")
async def test_marks_are_measured_again_because_other_entries_count() -> None:
    async with browsing() as browser:
        await browser.press("N")
        assert browser.marked == CACHES
        await type_filter(browser.pilot, "*.log")
        await browser.sees("2 marked · 420 matches · 2.0 MiB")
        await browser.press("escape")
        await browser.sees("2 marked · 420 entries · 2.0 MiB")
        assert browser.survey.asked.count("measure") == 2


@pytest.mark.slow
@pytest.mark.usefixtures("answering", "a_quiet_machine")
async def test_the_preview_takes_the_filter_for_the_shown_directory(
    previewed: list[tuple[str, ...]],
) -> None:
    async with browsing() as browser:
        await browser.press("D")
        assert previewed == []
        await type_filter(browser.pilot, ">30d")
        await browser.press("D")
        screen = browser.pilot.app.screen
        assert isinstance(screen, PreviewScreen)
        assert previewed == [("/srv/spool",)]
        assert screen._choices.options.filters == browser.screen.filters != Filters()


@pytest.mark.usefixtures("answering")
async def test_an_import_is_filtered_but_not_deleted() -> None:
    async with browsing("/srv/export.json") as browser:
        await type_filter(browser.pilot, "*.log")
        assert browser.survey.filters == Filters(name_glob="*.log")
        assert browser.survey.imported == "/srv/export.json"
        shown = screen_text(browser.pilot.app)
        assert "matches 1,279,040 files" in shown and "D all matches" not in shown
        await browser.press("D")
        assert browser.screen.marks.refusal in screen_text(browser.pilot.app)


@pytest.mark.slow
@pytest.mark.usefixtures("alive")
async def test_the_counts_of_the_former_filter_are_not_shown_in_the_preview() -> None:
    screen = PreviewScreen((MAILDROP,), Settings())
    async with Host(screen).run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        everything = maildrop_survey()
        await counted(everything)(pilot)
        await wait_for(pilot, "1,204,112 files")
        late = ForecastUpdated(Update(everything), screen._forecast_of(everything), Choices())
        late.survey_number = screen._client.number
        await pilot.press("f", *"*.log >15m", "enter")
        await wait_for(pilot, "'>15m' can mean minutes or MiB; write >15min or >15M.")
        await pilot.press(*["backspace"] * 5, "enter")
        await until(pilot, lambda: screen._filters == Filters(name_glob="*.log"))
        assert pilot.app.screen is screen
        screen.post_message(late)
        screen._predicted(everything, late.forecast, screen._choices)
        await settle(pilot)
        shown = screen_text(pilot.app)
        assert "counting…" in shown and "1,204,112" not in shown
        await pilot.press("enter")
        assert pilot.app.screen is screen  # there is nothing to confirm yet
        matched = replace(everything, matched=Totals(files=3, allocated_bytes=4096))
        post_forecast(screen, matched, screen._forecast_of(matched))
        await wait_for(pilot, "3 files match *.log")
        await pilot.press("o")
        assert pilot.app.screen.query_one("#filter", Input).value == "*.log"


@pytest.mark.slow
async def test_a_dead_job_with_filters_is_previewed_with_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    filters = Filters(name_glob="*.log")
    died = replace(plan(), options=Options(filters=filters))
    monkeypatch.setattr(
        "tui_fs.screens.preview.remainder_of", lambda _: Remainder(died.targets, "")
    )
    monkeypatch.setattr("tui_fs.screens.preview.keep_open", lambda _: nullcontext())
    monkeypatch.setattr("tui_fs.screens.survey_client.SurveyProcess", SilentSurvey)
    started: list[Filters | None] = []
    monkeypatch.setattr(SurveyClient, "start", lambda *_, filters: started.append(filters))
    screen = PreviewScreen((MAILDROP,), Settings(), died)
    async with Host(screen).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: started == [filters])
        survey = replace(maildrop_survey(), matched=Totals(files=3, allocated_bytes=4096))
        prediction = forecast((MAILDROP,), survey, died.options)
        post_forecast(screen, survey, prediction)
        await wait_for(pilot, "3 files match *.log")
        assert "Delete matches in" in screen_text(pilot.app)
        await pilot.press("o")
        await wait_for(pilot, "keep the directory")
        assert not pilot.app.screen.query("#filter")
        await pilot.press("enter")
        await settle(pilot)
        await pilot.press("f")
        await wait_for(pilot, "The rest of a job has its filter.")
        assert screen._filters == filters
